//! One attempt at one endpoint: headers, signature, sending, throttling.

pub mod outcome;
pub mod request;
