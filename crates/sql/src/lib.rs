//! The Cosmos DB SQL language: text → tokens → tree → plan → rows.
//!
//! Pure: no I/O, no async, no clock. What a query needs from outside (the current time, a random
//! draw) arrives in its context.

mod context;
#[allow(dead_code, reason = "the evaluator that calls these is not here yet")]
mod functions;
pub mod value;

pub use context::{
    ComputedProperty, Context, DistanceFunction, FullTextLanguage, GeometryKind, Schema, VectorPolicy,
};
pub use value::{Number, Object, Value};
