//! Opening the listening sockets of a server, on every address of a [`Bind`].

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

use crate::bind::Bind;

/// Connections the kernel holds while they wait to be accepted.
const BACKLOG: u32 = 1024;
/// How many ports are tried when any port will do and the second address has it taken.
const ANY_PORT_ATTEMPTS_MAX: u32 = 16;

/// The operating system refused to listen on an address or a port.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct ListenError {
    /// The address that the server tried to listen on.
    pub address: SocketAddr,
    /// The error of the operating system.
    pub source: io::Error,
}

impl ListenError {
    /// Whether another process listens there.
    pub fn is_port_in_use(&self) -> bool {
        self.source.kind() == io::ErrorKind::AddrInUse
    }
}

/// The listening sockets of one port, one for each address.
#[derive(Debug)]
pub struct Listeners {
    pub(super) sockets: Vec<TcpListener>,
    port: u16,
}

impl Listeners {
    /// Listens on `port` (0 means any) on every address of `bind`.
    ///
    /// Fails if the first address cannot be bound. The second, `::1` beside `127.0.0.1`, is there for
    /// clients that resolve `localhost` to it: without IPv6 the server runs without it.
    pub fn open(bind: Bind, port: u16) -> Result<Listeners, ListenError> {
        let mut attempts = if port == 0 { ANY_PORT_ATTEMPTS_MAX } else { 1 };
        loop {
            attempts -= 1;
            let address = SocketAddr::new(bind.primary(), port);
            let first = listen(address).map_err(|source| ListenError { address, source })?;
            let taken = first.local_addr().map_err(|source| ListenError { address, source })?.port();
            let Some(second) = bind.secondary() else {
                return Ok(Listeners { sockets: vec![first], port: taken });
            };
            match listen(SocketAddr::new(second, taken)) {
                Ok(second) => return Ok(Listeners { sockets: vec![first, second], port: taken }),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && attempts > 0 => {}
                Err(error) => {
                    warn_unless_expected(&error, second, taken);
                    return Ok(Listeners { sockets: vec![first], port: taken });
                }
            }
        }
    }

    /// The port that the sockets listen on.
    pub fn port(&self) -> u16 {
        self.port
    }
}

pub(super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections of an earlier run may be in TIME_WAIT; they must not block a restart.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn warn_unless_expected(error: &io::Error, address: IpAddr, port: u16) {
    if error.kind() == io::ErrorKind::AddrInUse {
        tracing::warn!(
            "another process listens on [{address}]:{port}; clients that resolve localhost to it will not \
             reach this one, so use 127.0.0.1 instead"
        );
    } else {
        tracing::debug!(%error, %address, "listening on one address only");
    }
}
