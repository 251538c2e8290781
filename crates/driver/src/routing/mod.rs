//! Where to send.

mod endpoint;

pub use endpoint::{Endpoint, EndpointKind, Region};
