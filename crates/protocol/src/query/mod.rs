//! Queries on the wire: the text with its parameters, and the plan a gateway answers with.
//!
//! In and out: bodies. Making a plan and obeying it is `sql`'s and the client's affair.

mod plan;
mod spec;

pub use plan::{
    AggregateKind, DCountInfo, DistinctType, HybridSearchQueryInfo, ORDER_BY_FILTER, QueryInfo, QueryPlan,
    QueryRange, SortOrder,
};
pub use spec::{QueryParameter, QuerySpec, QuerySpecError, SQL_BYTES_MAX};
