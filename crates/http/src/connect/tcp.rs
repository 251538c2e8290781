//! TCP: connects to the first of several addresses that accepts (happy eyeballs), with the socket options of the client.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpSocket, TcpStream};

/// How long to wait for an address before the next one is tried in parallel (RFC 8305, section 8).
const CONNECTION_ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// The socket options of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpSettings {
    /// The idle time before the system sends keepalive probes.
    pub(crate) keepalive: Option<Duration>,
    /// The local address to connect from.
    pub(crate) local: Option<IpAddr>,
}

/// Connects to the first of `addresses` that accepts. The next address is tried after a delay, or at once when one
/// fails. Connections that come later are closed.
pub(crate) async fn connect(addresses: &[SocketAddr], settings: &TcpSettings) -> io::Result<TcpStream> {
    let mut untried = addresses.iter().copied();
    let mut attempts = FuturesUnordered::new();
    let mut first_error = None;
    // Each round starts an attempt or ends one; without any left it returns.
    loop {
        match untried.next() {
            Some(address) => attempts.push(connect_one(address, settings)),
            None if attempts.is_empty() => return Err(first_error.unwrap_or_else(no_address)),
            None => {}
        }
        let delay = async {
            if untried.len() > 0 {
                tokio::time::sleep(CONNECTION_ATTEMPT_DELAY).await;
            } else {
                std::future::pending().await
            }
        };
        tokio::select! {
            Some(attempt) = attempts.next() => match attempt {
                Ok(stream) => return Ok(stream),
                // The first address is the preferred one, so its error is the one to report; later ones are dropped.
                Err(error) => { first_error.get_or_insert(error); }
            },
            () = delay => {}
        }
    }
}

fn no_address() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the name has no address")
}

async fn connect_one(address: SocketAddr, settings: &TcpSettings) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(local) = settings.local {
        socket.bind(SocketAddr::new(local, 0))?;
    }
    socket.set_nodelay(true)?;
    if let Some(time) = settings.keepalive {
        let keepalive = TcpKeepalive::new().with_time(time).with_interval(time.min(Duration::from_secs(10)));
        SockRef::from(&socket).set_tcp_keepalive(&keepalive)?;
    }
    socket.connect(address).await
}

#[cfg(test)]
mod tests {
    use socket2::{Domain, Socket, Type};
    use tokio::net::TcpListener;

    use super::*;

    const DEFAULTS: TcpSettings = TcpSettings { keepalive: Some(Duration::from_secs(30)), local: None };

    async fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        (listener, address)
    }

    /// An address without a listener, which refuses connections.
    async fn refusing() -> SocketAddr {
        listener().await.1
    }

    #[tokio::test]
    async fn sockets_have_keepalive_and_nodelay() {
        let (_listener, address) = listener().await;
        let stream = connect(&[address], &DEFAULTS).await.expect("it listens");
        assert!(stream.nodelay().expect("the option can be read"));
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().expect("the option can be read"));
        assert_eq!(socket.tcp_keepalive_time().expect("the option can be read"), Duration::from_secs(30));
    }

    #[tokio::test]
    async fn the_local_address_is_the_configured_one() {
        let (_listener, address) = listener().await;
        let local: IpAddr = "127.0.0.2".parse().expect("an address");
        let settings = TcpSettings { local: Some(local), ..DEFAULTS };
        let stream = connect(&[address], &settings).await.expect("it listens");
        assert_eq!(stream.local_addr().expect("it is connected").ip(), local);
    }

    #[tokio::test]
    async fn an_address_that_refuses_is_followed_by_the_next_at_once() {
        let (_listener, address) = listener().await;
        let stream = connect(&[refusing().await, address], &DEFAULTS).await.expect("the second listens");
        assert_eq!(stream.peer_addr().expect("it is connected"), address);
    }

    /// An address that accepts nothing and refuses nothing: the backlog of its listener is full.
    fn unresponsive() -> (Socket, Vec<std::net::TcpStream>, SocketAddr) {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
        socket.listen(0).expect("it listens");
        let address = socket.local_addr().ok().and_then(|address| address.as_socket()).expect("an address");
        let mut backlog = Vec::new();
        let timeout = Duration::from_millis(50);
        while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, timeout) {
            backlog.push(stream);
        }
        (socket, backlog, address)
    }

    #[tokio::test]
    async fn an_unresponsive_address_is_followed_by_the_next_after_a_delay() {
        let (_socket, _backlog, unresponsive) = unresponsive();
        let (_listener, listening) = listener().await;
        let addresses = [unresponsive, listening];
        let connecting = connect(&addresses, &DEFAULTS);
        let stream = tokio::time::timeout(Duration::from_secs(10), connecting).await.expect("in time");
        assert_eq!(stream.expect("the second").peer_addr().expect("connected"), listening);
    }

    #[tokio::test]
    async fn if_all_addresses_fail_the_first_error_is_returned() {
        let error = connect(&[refusing().await, refusing().await], &DEFAULTS).await.expect_err("both refuse");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let error = connect(&[], &DEFAULTS).await.expect_err("there is no address");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
