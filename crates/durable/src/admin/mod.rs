//! What operators ask for: instances, executions, counts, deletion.

mod deletion;
mod executions;
mod instances;
mod metrics;
mod pruning;

pub(crate) use instances::named;
