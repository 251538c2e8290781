//! Responses of the account: replies with their headers, and errors.

mod error;
mod header_numbers;
mod reply;

pub(crate) use error::ServiceError;
pub(crate) use reply::{CommonHeaders, PartitionHeaders, Reply, ascii_value};
