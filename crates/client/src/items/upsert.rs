use driver::operation::Operation;
use serde::Serialize;

use super::write::WriteItem;
use crate::PartitionKey;
use crate::container::ContainerClient;
use crate::serialize::to_body;

impl ContainerClient {
    /// Stores an item, whether there is one with its id or not.
    pub fn upsert_item(&self, key: impl Into<PartitionKey>, item: &(impl Serialize + ?Sized)) -> WriteItem {
        let operation = to_body(item).map(|body| Operation::upsert_item(self.name(), key.into(), body));
        WriteItem::new(self.driver(), operation)
    }
}
