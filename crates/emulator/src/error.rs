//! The errors of starting an emulator, worded by what its user can do next.

use std::fmt;
use std::net::SocketAddr;

use engine::disk::OpenError;
use engine::regions::TopologyError;
use server::ListenError;

/// The error of [`Emulator::start`](crate::Emulator::start), worded for its caller.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Another process listens on this port: choose another port, or stop that process.
    #[error("port {} is already in use ({listener} would listen on {address})", address.port())]
    PortInUse {
        /// The address that the listener needs.
        address: SocketAddr,
        /// Which of the emulator's listeners needs it.
        listener: ListenerKind,
    },
    /// There are too few ports after the first one.
    #[error(
        "an account with {regions} regions needs {regions} ports after {first}, and ports end at 65535; choose a lower one"
    )]
    NoPortLeft {
        /// The port of the account.
        first: u16,
        /// How many ports are needed.
        regions: usize,
    },
    /// The operating system does not allow the address or the port.
    #[error("cannot listen on {address} for {listener}: {source}")]
    CannotListen {
        /// The address that the listener needs.
        address: SocketAddr,
        /// Which of the emulator's listeners needs it.
        listener: ListenerKind,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The configured regions are invalid.
    #[error(transparent)]
    InvalidTopology(#[from] TopologyError),
    /// The data directory cannot be opened.
    #[error(transparent)]
    CannotOpen(#[from] OpenError),
    /// The account key is not valid base64.
    #[error("the account key cannot be used: {reason}")]
    InvalidKey {
        /// What is wrong with the key.
        reason: String,
    },
}

impl StartError {
    /// Converts the error of a listener of this kind.
    pub(crate) fn listen(listener: ListenerKind) -> impl Fn(ListenError) -> StartError {
        move |error| match error.is_port_in_use() {
            true => StartError::PortInUse { address: error.address, listener },
            false => StartError::CannotListen { address: error.address, listener, source: error.source },
        }
    }
}

/// One of the listeners an emulator opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenerKind {
    /// The listener of the account, or of one of its regions.
    Account,
    /// The listener of the control port.
    Control,
}

impl fmt::Display for ListenerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ListenerKind::Account => "the account",
            ListenerKind::Control => "the control port",
        })
    }
}
