//! One region's data: container → partition → item.
//!
//! What readers see is always an immutable snapshot of persistent maps: the `head` for point reads,
//! the `state` for everything that searches. Writers take turns and publish what they have done.
//! Reading order: what is stored (`item`, `log`, `index`), together (`head`, `state`), how it changes
//! (`document`, `transaction`, `partition`), and under which rules (`schema`, `container`).

mod by_key;
mod conflicts;
mod container;
mod contents;
mod document;
mod drafts;
mod exchange;
mod head;
mod home;
mod inbox;
pub mod index;
mod kept;
mod layout;
mod line;
mod log;
mod mesh;
mod partition;
mod patch;
mod post;
mod reach;
mod replica;
mod restore;
mod saved;
mod schema;
mod state;
#[cfg(test)]
mod tests;
mod transaction;
mod view;
mod viewed;

pub use conflicts::Conflict;
pub use container::{Container, Partitioning, WriteUnavailable};
pub use document::{Document, DocumentError};
#[cfg(test)]
pub(crate) use head::Head;
pub use layout::LayoutError;
pub use partition::{Partition, WriteContext, WriteOutcome};
pub use patch::apply as apply_patch;
pub use reach::Progress;
pub use replica::PartitionView;
pub(crate) use restore::Place;
pub(crate) use saved::{ContainerSnapshot, Held, Restoring};
pub use schema::ContainerSchema;
pub(crate) use state::PartitionState;
pub use transaction::{Precondition, Transaction, WriteError, WrittenItem};
