//! The Cosmos DB SQL language: text → tokens → tree → plan → rows.
//!
//! Pure: no I/O, no async, no clock. What a query needs from outside (the current time, a random
//! draw) arrives in its context.

pub mod value;

pub use value::{Number, Object, Value};
