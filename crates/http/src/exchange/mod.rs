//! What happened to one request, and how that travels.
//!
//! `azure_core` hands a request in and a response out, and neither has room for anything else. So the
//! record of an exchange travels beside them: [`observe`] runs a future in a scope, the client below, be it
//! wrapped ever so often, reports into the scope it finds itself in, and the record comes out with the
//! answer. The same scope carries inwards what the trait cannot: until when the call may last and which
//! protocol it is for ([`Wanted`]).
//!
//! ```
//! use perihelion_http::exchange::{self, Exchange, Reuse, Sent};
//! # use std::time::{Duration, Instant};
//!
//! # async fn execute() {
//! #     let reporter = exchange::begin();
//! #     let mut record = Exchange::begun();
//! #     record.reuse = Some(Reuse::New);
//! #     record.sent = Sent::Sent;
//! #     reporter.report(&record);
//! # }
//! # fn soon() -> Instant { std::time::Instant::now() + Duration::from_secs(5) }
//! # futures::executor::block_on(async {
//! let (record, answer) = exchange::observe(execute()).until(soon()).await;
//! assert_eq!(record.sent, Sent::Sent);
//! assert_eq!(record.reuse, Some(Reuse::New));
//! # let () = answer;
//! # });
//! ```
//!
//! Whoever implements `azure_core::http::HttpClient` takes part with three calls: [`wanted`] at the start,
//! [`begin`] for each attempt, and [`Reporter::report`] whenever there is news. Outside of any scope they do
//! nothing.

mod record;
mod scope;

pub use record::{ConnectionId, Exchange, Protocol, Reuse, Sent, Step};
pub use scope::{Observe, Reporter, Wanted, begin, observe, wanted};
