//! Queries in requests and responses: the query text with its parameters, the query plan, and metrics.
//!
//! Input and output: bodies. Making a plan is done by the crate `sql`, executing it by the client.

mod metrics; // query metrics and index metrics
mod plan; // the query plan
mod spec; // query text and parameters

pub use metrics::{IndexMetrics, IndexUse, QueryMetrics};
pub use plan::{
    AggregateKind, DCountInfo, DistinctType, HybridSearchQueryInfo, ORDER_BY_FILTER, QueryInfo, QueryPlan,
    QueryRange, SortOrder,
};
pub use spec::{QueryParameter, QuerySpec, QuerySpecError, SQL_BYTES_MAX};
