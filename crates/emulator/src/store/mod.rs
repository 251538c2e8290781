//! One region's data: container → partition → item.
//!
//! A partition's state is an immutable snapshot of persistent maps. A write builds the next one
//! under the partition's writer lock and swaps it in; reads take the current one and never wait.
//! Reading order: what is stored (`item`, `log`, `index`), together (`state`), how it changes
//! (`document`, `transaction`, `partition`), and under which rules (`schema`, `container`).

mod container;
mod document;
pub(crate) mod index;
mod item;
mod log;
mod partition;
mod patch;
mod schema;
mod state;
#[cfg(test)]
mod tests;
mod transaction;

pub(crate) use container::Container;
pub(crate) use document::{Document, DocumentError, ITEM_BYTES_MAX};
pub(crate) use item::{Item, Ordinal};
pub(crate) use log::{Change, ChangeKind};
pub(crate) use partition::Partition;
pub(crate) use patch::{Action, Operation, Pointer, apply as apply_patch};
pub(crate) use schema::Schema;
pub(crate) use state::State;
pub(crate) use transaction::{Precondition, Transaction, WriteError, Written};
