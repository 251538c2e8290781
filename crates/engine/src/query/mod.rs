//! Query execution over a container: access methods, paging and metrics.
//!
//! In: a prepared statement and a scope. Out: one page of rows and a continuation. The language is `sql`'s;
//! here are the access methods (`access_method`, `ordinal_stream`, `cursor`), paging (`execute`, `scan`, `sort`,
//! `page`, `offset_limit`, `run_limit`, with `continuation`, `resume` and `sort_position` for where a page begins) and
//! the metrics headers (`metrics`). `order_by_index` refuses what the service refuses.

mod access_method;
mod continuation;
mod cursor;
mod execute;
mod metrics;
mod offset_limit;
mod order_by_index;
mod ordinal_stream;
mod page;
mod resume;
mod run_limit;
mod scan;
mod scope;
mod sort;
mod sort_position;
#[cfg(test)]
mod tests;

pub use continuation::{Continuation, ContinuationToken};
pub use execute::{QueryOutcome, QueryRequest, RunError};
pub use metrics::IndexMetrics;
pub use order_by_index::{OrderByError, check_order_by};
pub use page::PageBody;
pub use resume::{InvalidResumeFilter, ResumeFilter, ResumeValue};
pub use run_limit::RunLimit;
pub use scope::Scope;
