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
pub(crate) mod index;
mod item;
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

pub(crate) use conflicts::Conflict;
pub(crate) use container::{Container, Partitioning, WriteRefused};
pub(crate) use document::{Document, DocumentError};
#[cfg(test)]
pub(crate) use head::Head;
pub(crate) use item::{Item, Kept, Ordinal};
pub use layout::LayoutError;
pub(crate) use log::{Change, ChangeKind};
pub(crate) use partition::{Commit, Moment, Partition};
pub(crate) use patch::apply as apply_patch;
pub(crate) use reach::Reach;
pub(crate) use replica::Replica;
pub(crate) use restore::Place;
pub(crate) use saved::{Held, Restoring, SavedContainer};
pub(crate) use schema::Schema;
pub(crate) use state::State;
pub(crate) use transaction::{Precondition, Transaction, WriteError, Written};
