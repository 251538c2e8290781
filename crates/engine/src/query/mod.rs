//! Queries over a container: where to look, what to read, what to return.
//!
//! In: a prepared statement and a scope. Out: one page of rows and where to go on. The language is
//! `sql`'s; here are the access paths (`route`, `stream`, `cursor`), paging (`execute`, `walk`, `sort`,
//! `page`, `window`; `continuation` and `spot` for where to go on) and what is told about it (`metrics`).

mod continuation;
mod cursor;
mod execute;
mod metrics;
mod page;
mod route;
mod scope;
mod sort;
mod spot;
mod stream;
#[cfg(test)]
mod tests;
mod walk;
mod window;

pub use continuation::{Continuation, ContinuationToken};
pub use execute::{QueryOutcome, QueryRequest};
pub use metrics::IndexMetrics;
pub use page::PageBody;
pub use scope::Scope;
