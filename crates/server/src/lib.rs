//! Sockets: from a port to a [`Handler`] and back.
//!
//! In: a [`Listeners`] and a handler. Out: a running [`Server`] that speaks HTTP/1.1 and HTTP/2,
//! plain and over TLS, on one port, within [`Limits`]. What a request means is the handler's affair;
//! nothing here knows about accounts.
//!
//! A request's way: `listen` → `entrance` → accept (here) → `wire` → `connection` → `exchange` →
//! handler. `watch`, `registry` and `judge` notice clients that stopped moving; `gather` lets busy connections
//! write one after the other; `conduct` is what goes wrong on purpose.

mod authority;
mod bind;
mod compress;
mod conduct;
mod connection;
mod entrance;
mod exchange;
mod gather;
mod handler;
mod judge;
mod limits;
mod listen;
mod registry;
mod request_body;
mod running;
mod sniff;
mod stream;
mod tls;
mod watch;
mod wire;

pub use authority::{Authority, AuthorityError};
pub use bind::Bind;
pub use conduct::{Conduct, STALL_MAX};
pub use entrance::Entrance;
pub use handler::{Encrypted, Handler, Handling};
pub use limits::Limits;
pub use listen::{ListenError, Listeners};
pub use running::Server;
pub use tls::{AuthoritySource, Tls, TlsError};
