//! What the .NET SDK puts on the wire and no other SDK does, as raw requests.

mod batches;
mod headers;
mod requests;
mod resume;
