//! An HTTP client that says what happened.
//!
//! General clients hide what a resilient driver must know: whether a connection was new or reused, how
//! long each step took, and whether a request that failed had left the machine. This one tells.
//!
//! ```
//! # #[cfg(feature = "client")]
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! use perihelion_http::{Client, exchange::Sent};
//!
//! # let nobody = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
//! # let url = format!("http://{nobody}/");
//! let client = Client::new();
//! match client.send(http::Request::get(url).body(())?).await {
//!     Ok(response) => {
//!         let exchange = response.body().exchange();
//!         println!("{} after {:?}", response.status(), exchange.first_byte);
//!         println!("over connection {:?}, {:?}", exchange.connection, exchange.reuse);
//!         let body = response.into_body().bytes(1024 * 1024).await?;
//!     }
//!     // Nothing left: whatever the request does, it may be sent again.
//!     Err(error) if error.sent() == Sent::NotSent => println!("{error}"),
//!     Err(error) => return Err(error.into()),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A `Client` also is an `azure_core::http::HttpClient`. Through that trait the record comes beside the
//! response: see [`exchange`].
//!
//! A request borrows a connection, is sent, is answered, and gives the connection back:
//!
//! 1. `authority` names the other end: scheme, lower-cased host and port.
//! 2. `pool` has an HTTP/1.1 connection to it waiting, or not; HTTP/2 connections are shared.
//! 3. `connect` makes one if not: resolve, TCP, proxy, TLS, within one deadline.
//! 4. `Client` sends the request and hands the answer back as it arrives.
//! 5. [`exchange`] is the record of all that, and [`Error`] what it says when it went wrong.
//!
//! Every wait has an end: for a connection, for the first byte, for each piece of a body, and for the call as
//! a whole. Nothing runs in the background but one task for each HTTP/2 connection, which ends with it.
//!
//! Requests are spans of `tracing` (`http.request`, and `http.connect` inside), and the pool tells its numbers
//! as events (`pool::observe`). While nobody listens, that costs next to nothing.
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
mod sharing;

#[cfg(feature = "client")]
pub use azure::Pieces;
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
