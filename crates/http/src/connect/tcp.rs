//! From addresses to a socket: happy eyeballs, keepalive, nodelay, local address.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpSocket, TcpStream};

/// How long an attempt has to itself before the next address is tried beside it (RFC 8305, section 8).
const HEAD_START: Duration = Duration::from_millis(250);

/// How sockets are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpSettings {
    /// A connection that was silent for so long is probed by the system.
    pub(crate) keepalive: Option<Duration>,
    /// The address to connect from.
    pub(crate) local: Option<IpAddr>,
}

/// The first of `addresses` that answers. Each is given a head start before the next is tried beside it; when
/// one fails, the next is tried at once. Those that come second are closed.
pub(crate) async fn connect(addresses: &[SocketAddr], settings: &TcpSettings) -> io::Result<TcpStream> {
    let mut waiting = addresses.iter().copied();
    let mut trying = FuturesUnordered::new();
    let mut failed = None;
    loop {
        match waiting.next() {
            Some(address) => trying.push(connect_one(address, settings)),
            None if trying.is_empty() => return Err(failed.unwrap_or_else(no_address)),
            None => {}
        }
        let head_start = async {
            if waiting.len() > 0 {
                tokio::time::sleep(HEAD_START).await;
            } else {
                std::future::pending().await
            }
        };
        tokio::select! {
            Some(tried) = trying.next() => match tried {
                Ok(stream) => return Ok(stream),
                // The first one is the one the name's owner prefers: its reason is the better story.
                Err(error) => { failed.get_or_insert(error); }
            },
            () = head_start => {}
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

    const PLAIN: TcpSettings = TcpSettings { keepalive: Some(Duration::from_secs(30)), local: None };

    async fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        (listener, address)
    }

    /// An address on which nobody listens.
    async fn nobody() -> SocketAddr {
        listener().await.1
    }

    #[tokio::test]
    async fn sockets_keep_alive_and_do_not_delay() {
        let (_listener, address) = listener().await;
        let stream = connect(&[address], &PLAIN).await.expect("it listens");
        assert!(stream.nodelay().expect("it can be asked"));
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().expect("it can be asked"));
        assert_eq!(socket.tcp_keepalive_time().expect("it can be asked"), Duration::from_secs(30));
    }

    #[tokio::test]
    async fn the_local_address_is_the_one_asked_for() {
        let (_listener, address) = listener().await;
        let local: IpAddr = "127.0.0.2".parse().expect("an address");
        let settings = TcpSettings { local: Some(local), ..PLAIN };
        let stream = connect(&[address], &settings).await.expect("it listens");
        assert_eq!(stream.local_addr().expect("it is connected").ip(), local);
    }

    #[tokio::test]
    async fn an_address_that_refuses_is_followed_by_the_next_at_once() {
        let (_listener, address) = listener().await;
        let stream = connect(&[nobody().await, address], &PLAIN).await.expect("the second listens");
        assert_eq!(stream.peer_addr().expect("it is connected"), address);
    }

    /// An address where nobody answers: its line is full and nobody takes from it.
    fn silent() -> (Socket, Vec<std::net::TcpStream>, SocketAddr) {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
        socket.listen(0).expect("it listens");
        let address = socket.local_addr().ok().and_then(|address| address.as_socket()).expect("an address");
        let mut waiting = Vec::new();
        let patience = Duration::from_millis(50);
        while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, patience) {
            waiting.push(stream);
        }
        (socket, waiting, address)
    }

    #[tokio::test]
    async fn an_address_that_says_nothing_is_not_waited_for() {
        let (_socket, _waiting, silent) = silent();
        let (_listener, there) = listener().await;
        let addresses = [silent, there];
        let connecting = connect(&addresses, &PLAIN);
        let stream = tokio::time::timeout(Duration::from_secs(10), connecting).await.expect("in time");
        assert_eq!(stream.expect("the second").peer_addr().expect("connected"), there);
    }

    #[tokio::test]
    async fn without_an_answer_the_first_reason_is_told() {
        let error = connect(&[nobody().await, nobody().await], &PLAIN).await.expect_err("nobody listens");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let error = connect(&[], &PLAIN).await.expect_err("there is nobody to ask");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
