//! The trace of one request, and the scope that passes it through `azure_core`'s trait.
//!
//! The trait takes a request and returns a response, and neither has room for anything else. So [`observe`] runs a
//! future in a scope: a client that is called within it, at any depth of wrappers, reports its trace to the scope, and
//! the trace is returned with the output of the future. In the other direction the scope passes what the trait cannot:
//! the deadline of the call and the protocol to use ([`RequestOptions`]).
//!
//! ```
//! use perihelion_http::trace::{self, RequestTrace, Reuse, Sent};
//! # use std::time::{Duration, Instant};
//!
//! # async fn execute() {
//! #     let reporter = trace::start_trace();
//! #     let mut trace = RequestTrace::started();
//! #     trace.reuse = Some(Reuse::New);
//! #     trace.sent = Sent::Sent;
//! #     reporter.report(&trace);
//! # }
//! # fn soon() -> Instant { std::time::Instant::now() + Duration::from_secs(5) }
//! # futures::executor::block_on(async {
//! let (trace, response) = trace::observe(execute()).with_deadline(soon()).await;
//! assert_eq!(trace.sent, Sent::Sent);
//! assert_eq!(trace.reuse, Some(Reuse::New));
//! # let () = response;
//! # });
//! ```
//!
//! Another implementation of `azure_core::http::HttpClient` supports this with three calls: [`request_options`] at the
//! start, [`start_trace`] for each attempt, and [`TraceReporter::report`] after each step. Outside of a scope they do
//! nothing.

mod request_trace;
mod scope;

pub use request_trace::{ConnectionId, Protocol, RequestTrace, Reuse, Sent, Step};
pub use scope::{Observe, RequestOptions, TraceReporter, observe, request_options, start_trace};
