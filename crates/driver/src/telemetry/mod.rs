//! Telemetry: spans and events through `tracing`, and metrics for an observer.
//!
//! An operation is a span, each of its requests a span within it, and what changes for all operations (a circuit
//! breaker that opens, a region that is left) is an event. [`names`] has the names of all of them: those of
//! OpenTelemetry's conventions for Cosmos DB, and names of our own, which begin with `perihelion`. Programs that keep
//! metrics of their own implement an [`OperationObserver`]. `docs/telemetry.md` has everything in tables.
//!
//! With nobody listening an operation compares one number per span. Nothing is formatted, cloned or boxed.

mod attempt_span;
mod attributes;
pub(crate) mod events;
pub mod names;
mod observer;
mod operation_span;
mod points;
mod state_changes;

pub(crate) use attempt_span::AttemptSpan;
pub use attributes::AttributeValue;
pub use observer::{OperationEnded, OperationObserver};
pub(crate) use operation_span::{ClientIdentity, OperationSpan};
pub use points::MetricPoint;
pub(crate) use state_changes::{update_account, update_breaker, update_breakers};

#[cfg(test)]
mod tests;
