use driver::operation::Operation;
use serde::Serialize;

use super::write::WriteItem;
use crate::PartitionKey;
use crate::container::ContainerClient;
use crate::serialize::to_body;

impl ContainerClient {
    /// Stores a new item; [`Conflict`](crate::ErrorKind::Conflict) if there is one with its id.
    ///
    /// An item has an `id` and, at the container's partition key path, the value that `key` names.
    pub fn create_item(&self, key: impl Into<PartitionKey>, item: &(impl Serialize + ?Sized)) -> WriteItem {
        let operation = to_body(item).map(|body| Operation::create_item(self.name(), key.into(), body));
        WriteItem::new(self.driver(), operation)
    }
}
