//! Why an emulator did not start, in terms of what the person starting it can do next.

use std::fmt;
use std::net::SocketAddr;

use engine::disk::OpenError;
use engine::regions::TopologyError;
use server::ListenError;

/// What kept [`Emulator::start`](crate::Emulator::start) from finishing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Another process listens there: choose another port, or stop that process.
    #[error("port {} is already in use ({listener} would listen on {address})", address.port())]
    PortInUse {
        /// Where the listener wanted to be.
        address: SocketAddr,
        /// Which of the emulator's listeners wanted it.
        listener: ListenerKind,
    },
    /// The ports after the first one do not suffice.
    #[error(
        "{regions} regions need {regions} ports from {first} on, and ports end at 65535; choose a lower one"
    )]
    NoPortLeft {
        /// The first region's port.
        first: u16,
        /// How many are needed.
        regions: usize,
    },
    /// The operating system refused the address or the port.
    #[error("cannot listen on {address} for {listener}: {source}")]
    CannotListen {
        /// Where the listener wanted to be.
        address: SocketAddr,
        /// Which of the emulator's listeners wanted it.
        listener: ListenerKind,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The regions do not make an account.
    #[error(transparent)]
    InvalidTopology(#[from] TopologyError),
    /// The data directory cannot be opened.
    #[error(transparent)]
    CannotOpen(#[from] OpenError),
    /// The account key is not what clients could sign with.
    #[error("the account key cannot be used: {reason}")]
    InvalidKey {
        /// What is wrong with it.
        reason: String,
    },
}

impl StartError {
    /// Why the listener of this kind could not be opened.
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
    /// The account itself.
    Account,
    /// Health and control.
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
