//! Opening the door: which sockets, and what to say when one cannot be had.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

use crate::bind::Bind;

/// Connections the kernel holds while they wait to be accepted.
const BACKLOG: u32 = 1024;
/// How many ports are tried when any would do and its twin on the other address is taken.
const ANY_PORT_ATTEMPTS_MAX: u32 = 16;

/// The operating system refused an address or a port.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct ListenError {
    /// Where the server was to listen.
    pub address: SocketAddr,
    /// What the operating system said.
    pub source: io::Error,
}

impl ListenError {
    /// Whether another process listens there.
    pub fn is_port_in_use(&self) -> bool {
        self.source.kind() == io::ErrorKind::AddrInUse
    }
}

/// Sockets that listen on one port.
#[derive(Debug)]
pub struct Listeners {
    pub(super) sockets: Vec<TcpListener>,
    port: u16,
}

impl Listeners {
    /// Takes `port` (0 means any) on every address of `bind`.
    ///
    /// The first address is a must. The second, `::1` beside `127.0.0.1`, is a courtesy to clients
    /// that resolve `localhost` to it: without IPv6 the server goes on without it.
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

    /// The port they listen on.
    pub fn port(&self) -> u16 {
        self.port
    }
}

pub(super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections of an earlier run may linger in TIME_WAIT; they must not keep a restart waiting.
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
