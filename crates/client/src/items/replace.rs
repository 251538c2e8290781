use driver::operation::Operation;
use serde::Serialize;

use super::write::WriteItem;
use crate::PartitionKey;
use crate::container::ContainerClient;
use crate::serialize::to_body;

impl ContainerClient {
    /// Writes over an item that is there; [`NotFound`](crate::ErrorKind::NotFound) if there is none.
    pub fn replace_item(
        &self,
        key: impl Into<PartitionKey>,
        id: &str,
        item: &(impl Serialize + ?Sized),
    ) -> WriteItem {
        let operation = to_body(item).map(|body| Operation::replace_item(self.name(), key.into(), id, body));
        WriteItem::new(self.driver(), operation)
    }
}
