//! The Cosmos DB SQL language: query text → tokens → AST → bound pipeline → rows, and query plans.
//!
//! Pure: no I/O, no async, no clock. What a query needs from outside (the current time, a random seed) is
//! in its [`QueryContext`].
//!
//! Start with [`Statement::prepare`], then push documents into a [`QueryExecution`].

pub mod access_path;
pub mod ast;
mod bind;
mod bound;
mod context;
mod error;
mod evaluate;
mod execution;
mod functions;
mod lexer;
mod like;
mod parser;
mod plan;
mod statement;
mod token;
pub mod value;
mod work_budget;

pub use access_path::{AccessPath, PartitionKeyFilter};
pub use bind::check_computed_property;
pub use bound::{InputOrder, RowOrigin};
pub use context::{
    ComputedProperty, DistanceFunction, FullTextLanguage, GeometryKind, QueryContext, QuerySchema,
    VectorPolicy,
};
pub use error::SqlError;
pub use evaluate::{InputDemand, UnmergedRow};
pub use execution::{QueryExecution, run_reference};
pub use lexer::QUERY_TEXT_BYTES_MAX;
pub use parser::{DEPTH_MAX, NESTING_MAX, parse_query};
pub use plan::{Feature, PlanError, SupportedFeatures};
pub use statement::{PatchCondition, Statement};
pub use token::Span;
pub use value::{HashableValue, Number, Object, Value};
