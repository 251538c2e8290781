//! Operations on the items of a container, one file each.

mod batch;
mod create;
mod delete;
mod patch;
mod read;
mod replace;
mod upsert;
mod write;

pub use batch::{Batch, BatchItem, BatchResponse};
pub use patch::Patch;
pub use read::ReadItem;
pub use write::WriteItem;
