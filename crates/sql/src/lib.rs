//! The Cosmos DB SQL language: text → tokens → tree → plan → rows.
//!
//! Pure: no I/O, no async, no clock. What a query needs from outside (the current time, a random
//! draw) arrives in its context.

#![allow(dead_code, reason = "the binder and the planner, which use the rest, are being added")]

mod context;
mod error;
mod functions;
mod lexer;
mod parser;
mod token;
pub mod tree;
pub mod value;

pub use context::{
    ComputedProperty, Context, DistanceFunction, FullTextLanguage, GeometryKind, Schema, VectorPolicy,
};
pub use error::SqlError;
pub use lexer::TEXT_MAX;
pub use parser::{DEPTH_MAX, NESTING_MAX, parse_query};
pub use token::Span;
pub use value::{Number, Object, Value};
