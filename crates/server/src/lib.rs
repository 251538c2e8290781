//! The socket layer of the local servers: listeners, TLS and HTTP connections.
//!
//! Input: [`Listeners`] and a [`Handler`]. Output: a running [`Server`] that speaks HTTP/1.1 and HTTP/2,
//! plain and over TLS, on one port, within [`Limits`]. The handler decides what a request means; nothing
//! here knows about accounts.
//!
//! A request passes through `server` (accepts the connection) → `connection` (TLS and HTTP) → `exchange`
//! (one request and its response) → handler, and back through `peeked_stream` and `client_socket`.
//! `connection_activity`, `connection_registry` and `timeout_policy` close connections whose clients have
//! stalled; `write_coalescing` groups the writes of busy connections; `unread_responses` bounds what HTTP/2 clients
//! leave unread; `connection_fault` holds the failures
//! that fault injection asks for.

// Opening ports and accepting connections.
mod bind;
mod limits;
mod listeners;
mod server;
mod server_port;

// TLS.
mod authority;
mod tls;

// One connection, from the socket to the handler.
mod client_socket;
mod compress;
mod connection;
mod connection_fault;
mod exchange;
mod handler;
mod peeked_stream;
mod protocol_detection;
mod request_body;
mod unread_responses;
mod write_coalescing;

// Which connections are open, and which have to close.
mod connection_activity;
mod connection_registry;
mod timeout_policy;

pub use authority::{Authority, AuthorityError};
pub use bind::Bind;
pub use connection_fault::{ConnectionFault, STALL_MAX};
pub use handler::{Encrypted, Handler, HandlerResponse};
pub use limits::Limits;
pub use listeners::{ListenError, Listeners};
pub use server::Server;
pub use server_port::ServerPort;
pub use tls::{AuthoritySource, Tls, TlsError};
