//! An HTTP client that reports what happened to each request.
//!
//! A driver that retries must know what general clients do not report: whether a connection was new or reused, how long
//! each step took, and whether a failed request had been sent. This client records all of it in a
//! [`RequestTrace`](trace::RequestTrace).
//!
//! ```
//! # #[cfg(feature = "client")]
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! use perihelion_http::{Client, trace::Sent};
//!
//! # let unused = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
//! # let url = format!("http://{unused}/");
//! let client = Client::new();
//! match client.send(http::Request::get(url).body(())?).await {
//!     Ok(response) => {
//!         let trace = response.body().trace();
//!         println!("{} after {:?}", response.status(), trace.first_byte);
//!         println!("over connection {:?}, {:?}", trace.connection, trace.reuse);
//!         let body = response.into_body().bytes(1024 * 1024).await?;
//!     }
//!     // Nothing was sent, so any request can be retried.
//!     Err(error) if error.sent() == Sent::NotSent => println!("{error}"),
//!     Err(error) => return Err(error.into()),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A `Client` is also an `azure_core::http::HttpClient`; [`trace`] says how to get the trace through that trait.
//!
//! The way of a request:
//!
//! 1. `client` starts a `call`, with its deadline and its trace, and finds the host by its `origin`.
//! 2. `host` acquires a connection: an idle one from the `pool` (HTTP/1.1), a stream of a shared one (HTTP/2), or a new
//!    one that `connect` opens (DNS, TCP, proxy, TLS).
//! 3. `connection` sends the request over the `stream`, which counts what is written, and returns the response.
//! 4. The response body returns the connection to its pool when it has been read.
//!
//! Every wait has a timeout: for a connection, for the first byte, for each chunk of a body, and for the whole call. The
//! only background tasks are the drivers of HTTP/2 connections, which end with them. Requests are spans of `tracing`
//! (`http.request`, and `http.connect` inside), and the pool publishes its counters as events (`pool::metrics`).
//!
//! Without the feature `client` only `trace` and the errors are compiled: what a driver needs to work with another
//! HTTP client.

// From the lowest layer to the highest: a module uses only those above it.
#[cfg(any(test, feature = "client"))]
mod clock;
#[cfg(feature = "client")]
mod sync;
pub mod trace;

mod error;

#[cfg(feature = "client")]
mod deadline;
#[cfg(feature = "client")]
pub mod origin;
#[cfg(feature = "client")]
mod settings;

#[cfg(feature = "client")]
mod call;
#[cfg(feature = "client")]
mod endpoint;
#[cfg(feature = "client")]
pub mod pool;
#[cfg(feature = "client")]
mod stream;

#[cfg(feature = "client")]
mod request_body;

#[cfg(feature = "client")]
mod connect;
#[cfg(feature = "client")]
mod connection;

#[cfg(feature = "client")]
mod host;

#[cfg(feature = "client")]
mod client;

#[cfg(feature = "client")]
mod azure;

#[cfg(feature = "client")]
pub use azure::RequestParts;
#[cfg(feature = "client")]
pub use client::{BuildError, Client, ClientBuilder};
#[cfg(feature = "client")]
pub use connect::dns::{Resolve, Resolving, SystemResolver};
#[cfg(feature = "client")]
pub use connect::proxy::{InvalidProxy, Proxy};
#[cfg(feature = "client")]
pub use connection::ResponseBody;
pub use error::{Error, ErrorKind};
#[cfg(feature = "client")]
pub use request_body::RequestBody;
