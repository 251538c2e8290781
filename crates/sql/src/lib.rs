//! The Cosmos DB SQL language: query text → tokens → AST → bound pipeline → rows, and query plans.
//!
//! Pure: no I/O, no async, no clock. What a query needs from outside (the current time, a random seed) is
//! in its [`QueryContext`].
//!
//! Start with [`Statement::prepare`], then push documents into a [`QueryExecution`].
//!
//! # Layers, from the bottom up
//!
//! `value` and `token`; `lexer`, [`ast`] and `parser`; `functions` and `like`; `bound` (the output of the
//! binder) and `evaluate`; `bind`; [`access_path`]; `statement`; `execution` and `plan`.

pub mod access_path; // what an index can do for a query
pub mod ast; // the abstract syntax tree, and printing it
mod bind; // AST → bound query
mod bound; // bound queries: names, functions and constants resolved
mod context; // the container's schema, the time and the random seed
mod error; // errors with the service's codes
mod evaluate; // expressions and pipelines over rows
mod execution; // documents → rows
mod functions; // the built-in functions
mod lexer; // text → tokens
mod like; // LIKE patterns
mod parser; // tokens → AST
mod plan; // query plans for clients
mod statement; // prepared statements
mod token; // tokens and spans
pub mod value; // JSON values with undefined: parsing, comparison, order keys
mod work_budget; // the limit on the work of one execution

pub use access_path::{AccessPath, PartitionKeyFilter};
pub use bind::check_computed_property;
pub use bound::{InputOrder, RowOrigin};
pub use context::{
    ComputedProperty, DistanceFunction, FullTextLanguage, FullTextPathLanguage, GeometryKind, QueryContext,
    QuerySchema, VectorPolicy,
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
