use driver::operation::Operation;

use super::write::WriteItem;
use crate::PartitionKey;
use crate::container::ContainerClient;

impl ContainerClient {
    /// Removes an item; [`NotFound`](crate::ErrorKind::NotFound) if there is none.
    pub fn delete_item(&self, key: impl Into<PartitionKey>, id: &str) -> WriteItem {
        WriteItem::new(self.driver(), Ok(Operation::delete_item(self.name(), key.into(), id)))
    }
}
