//! Responses of the account: replies with their headers, and errors that become one.

mod error;
mod figures;
mod reply;

pub(crate) use error::ServiceError;
pub(crate) use reply::{Reply, ServedBy, Stamp, ascii_value};
