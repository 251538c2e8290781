//! An HTTP client that says what happened.
//!
//! General clients hide what a resilient driver must know: whether a connection was new or reused, how
//! long each step took, and whether a request that failed had left the machine. This one tells.
//!
//! A request borrows a connection, is sent, is answered, and gives the connection back:
//!
//! 1. `authority` names the other end: scheme, lower-cased host and port.
//! 2. `pool` has a connection to it waiting, or not.
//! 3. `connect` makes one if not: resolve, TCP, TLS, each step within its deadline.
//! 4. `client` sends the request and hands the answer back as it arrives.
//! 5. `exchange` is the record of all that, and `error` what it says when it went wrong.
//!
//! Without the feature `client` only the vocabulary is compiled: what a driver needs in order to
//! understand a client it has never met.

// What happened to a request.
mod error;
pub mod exchange;

pub use error::{Error, ErrorKind};

// The other end.
#[cfg(feature = "client")]
pub mod authority;

// Connections that wait.
#[cfg(feature = "client")]
pub mod pool;

// New connections.
#[cfg(feature = "client")]
mod connect;
#[cfg(feature = "client")]
mod connection;

#[cfg(feature = "client")]
pub use connect::dns::{Resolve, Resolving, SystemResolver};
#[cfg(feature = "client")]
pub use connect::proxy::{BadProxy, Proxy};

// Requests.
#[cfg(feature = "client")]
mod azure;
#[cfg(feature = "client")]
mod call;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "client")]
mod client_builder;
#[cfg(feature = "client")]
mod host;
#[cfg(feature = "client")]
mod request;
#[cfg(feature = "client")]
mod response;
#[cfg(feature = "client")]
mod settings;

#[cfg(feature = "client")]
pub use client::Client;
#[cfg(feature = "client")]
pub use client_builder::{BuildError, ClientBuilder};
#[cfg(feature = "client")]
pub use request::RequestBody;
#[cfg(feature = "client")]
pub use response::ResponseBody;

// Time.
#[cfg(any(test, feature = "client"))]
pub(crate) mod clock;
#[cfg(feature = "client")]
mod deadline;
#[cfg(feature = "client")]
mod sync;
