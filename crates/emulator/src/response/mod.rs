//! Responses of the account: replies with their headers, and errors.

mod error;
mod header_numbers;
mod reply;

pub(crate) use error::ServiceError;
pub(crate) use reply::{CommonHeaders, PartitionHeaders, QUOTA, QuotaUsage, Reply, ascii_value};
