//! The conflicts feed: concurrent writes that the conflict resolution policy of a container leaves to the application.
//!
//! A multi-write account adds a conflict when two regions wrote the same item and the container has a custom policy
//! without a procedure. The application reads the conflict, writes the item as it should be, and deletes the conflict.

use driver::operation::{Operation, OperationKind, Scope, Target};
use protocol::resource_path::ResourceType;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

use crate::PartitionKey;
use crate::call::Call;
use crate::container::ContainerClient;
use crate::list::List;
use crate::response::Response;

/// A write that lost against the write of another region.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", bound = "T: DeserializeOwned")]
#[non_exhaustive]
pub struct Conflict<T> {
    /// The id of the conflict itself.
    pub id: String,
    /// What the losing write did.
    #[serde(rename = "operationType")]
    pub operation: ConflictOperation,
    /// The item as the losing write had it; none for a delete.
    #[serde(rename = "content", default, deserialize_with = "item_in_text")]
    pub item: Option<T>,
    /// The `_rid` of the item that both regions wrote.
    #[serde(default)]
    pub source_resource_id: String,
    /// When the losing write was made, in seconds since 1970.
    #[serde(rename = "_ts", default)]
    pub timestamp: u64,
}

/// What a write that lost did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ConflictOperation {
    /// It created an item whose id, or unique key, another region created as well.
    Create,
    /// It replaced or patched an item that another region wrote as well.
    Replace,
    /// It deleted an item that another region wrote.
    Delete,
    /// It did something that this version of the client has no name for.
    #[serde(other)]
    Other,
}

/// Reads an item that is a text inside the JSON of its conflict; an empty text is none.
fn item_in_text<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    match Option::<String>::deserialize(deserializer)?.as_deref() {
        None | Some("") => Ok(None),
        Some(text) => serde_json::from_str(text).map(Some).map_err(D::Error::custom),
    }
}

impl ContainerClient {
    /// Lists the conflicts of the container. Read the items as [`Item<T>`](crate::Item) to get their system properties
    /// as well.
    ///
    /// ```no_run
    /// # use perihelion::{ContainerClient, Item, Result};
    /// # use serde_json::Value;
    /// # async fn run(orders: ContainerClient) -> Result<()> {
    /// let mut pages = orders.list_conflicts::<Value>().pages();
    /// while let Some(page) = pages.next_page().await? {
    ///     for conflict in page.into_value() {
    ///         if let Some(lost) = conflict.item {
    ///             // … merge `lost` into the item, and then:
    ///             orders.delete_conflict(lost["customer"].as_str().unwrap_or(""), &conflict.id).await?;
    ///         }
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list_conflicts<T: DeserializeOwned>(&self) -> List<Conflict<T>> {
        let feed = Target::container(self.name()).feed(ResourceType::Conflict);
        List::new(self.driver(), feed, ResourceType::Conflict.feed_property())
    }

    /// Reads one conflict of the logical partition of `key`.
    pub fn read_conflict<T: DeserializeOwned>(
        &self,
        key: impl Into<PartitionKey>,
        id: &str,
    ) -> Call<Response<Conflict<T>>> {
        let operation = self.conflict_operation(OperationKind::Read, key.into(), id);
        Call::new(self.driver(), Ok(operation), Response::read)
    }

    /// Deletes a conflict, which says that it is resolved.
    pub fn delete_conflict(&self, key: impl Into<PartitionKey>, id: &str) -> Call<Response<()>> {
        let operation = self.conflict_operation(OperationKind::Delete, key.into(), id);
        Call::new(self.driver(), Ok(operation), Response::without_body)
    }

    fn conflict_operation(&self, kind: OperationKind, key: PartitionKey, id: &str) -> Operation {
        let target = Target::container(self.name()).entry(ResourceType::Conflict, id);
        Operation::new(kind, target).with_scope(Scope::Key(key))
    }
}
