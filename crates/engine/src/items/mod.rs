//! Item versions and their changes, as every other part of the engine uses them. Pure data.

mod change;
mod item;

pub use change::{Change, ChangeKind};
pub use item::{EntityTag, Item, ItemDraft, Ordinal, StoredItem, is_system_member};
