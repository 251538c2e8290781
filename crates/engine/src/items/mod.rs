//! Item versions and their changes, as every other part of the engine uses them. Pure data.

mod change;
mod item;

pub(crate) use change::{Change, ChangeKind};
pub(crate) use item::{EntityTag, ItemParts, StoredItem, is_system_member};
pub use item::{Item, Ordinal};
