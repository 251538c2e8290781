//! The Cosmos DB SQL language: text → tokens → tree → plan → rows.
//!
//! Pure: no I/O, no async, no clock. What a query needs from outside (the current time, a random
//! draw) arrives in its context.
//!
//! Start with [`Statement::prepare`], then [`Run`] it over documents.

pub mod access;
mod bind;
mod code;
mod context;
mod effort;
mod error;
mod evaluate;
mod functions;
mod lexer;
mod like;
mod parser;
mod plan;
mod run;
mod statement;
mod token;
pub mod tree;
pub mod value;

pub use access::{Access, KeyFilter};
pub use bind::check_computed_property;
pub use context::{
    ComputedProperty, Context, DistanceFunction, FullTextLanguage, GeometryKind, Schema, VectorPolicy,
};
pub use error::SqlError;
pub use lexer::TEXT_MAX;
pub use parser::{DEPTH_MAX, NESTING_MAX, parse_query};
pub use plan::{Feature, PlanError, SupportedFeatures};
pub use run::{Flow, Identity, InputOrder, RowsOf, Run, UnmergedRow, run_naive};
pub use statement::{Condition, Statement};
pub use token::Span;
pub use value::{Number, Object, Value};
