//! `typed`: a container whose items all have one type.

use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::change_feed::FollowChanges;
use super::patch::Patch;
use super::query::{Query, QueryItems};
use super::read::ReadItem;
use super::read_many::{ItemIdentity, ReadMany};
use super::write::WriteItem;
use crate::PartitionKey;
use crate::container::ContainerClient;

impl ContainerClient {
    /// A view of this container whose items are all a `T`, so that calls need not name the type.
    ///
    /// ```no_run
    /// # use perihelion::{ContainerClient, Result};
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize)]
    /// struct Order {
    ///     id: String,
    ///     customer: String,
    ///     total: f64,
    /// }
    ///
    /// # async fn run(container: ContainerClient) -> Result<()> {
    /// let orders = container.typed::<Order>();
    /// orders.create("ada", &Order { id: "o-1".into(), customer: "ada".into(), total: 12.5 }).await?;
    /// let order = orders.read("ada", "o-1").await?.into_value();
    /// println!("{}", order.total);
    /// # Ok(())
    /// # }
    /// ```
    pub fn typed<T>(&self) -> TypedContainer<T> {
        TypedContainer { container: self.clone(), item: PhantomData }
    }
}

/// A view of a container whose items are all a `T`. Cheap to clone.
///
/// Its calls are those of [`ContainerClient`]. Items with their system properties are a `TypedContainer<Item<T>>`.
pub struct TypedContainer<T> {
    container: ContainerClient,
    item: PhantomData<fn() -> T>,
}

impl<T> TypedContainer<T> {
    /// The container itself, for calls with other types.
    pub fn container(&self) -> &ContainerClient {
        &self.container
    }

    /// Deletes an item: [`ContainerClient::delete_item`].
    pub fn delete(&self, key: impl Into<PartitionKey>, id: &str) -> WriteItem {
        self.container.delete_item(key, id)
    }

    /// Changes properties of an item: [`ContainerClient::patch_item`].
    pub fn patch(&self, key: impl Into<PartitionKey>, id: &str, patch: Patch) -> WriteItem {
        self.container.patch_item(key, id, patch)
    }
}

impl<T: Serialize> TypedContainer<T> {
    /// Creates an item: [`ContainerClient::create_item`].
    pub fn create(&self, key: impl Into<PartitionKey>, item: &T) -> WriteItem {
        self.container.create_item(key, item)
    }

    /// Creates or replaces an item: [`ContainerClient::upsert_item`].
    pub fn upsert(&self, key: impl Into<PartitionKey>, item: &T) -> WriteItem {
        self.container.upsert_item(key, item)
    }

    /// Replaces an item: [`ContainerClient::replace_item`].
    pub fn replace(&self, key: impl Into<PartitionKey>, id: &str, item: &T) -> WriteItem {
        self.container.replace_item(key, id, item)
    }
}

impl<T: DeserializeOwned> TypedContainer<T> {
    /// Reads one item: [`ContainerClient::read_item`].
    pub fn read(&self, key: impl Into<PartitionKey>, id: &str) -> ReadItem<T> {
        self.container.read_item(key, id)
    }

    /// Reads many items by their keys and ids: [`ContainerClient::read_many`].
    pub fn read_many(&self, items: impl IntoIterator<Item = impl Into<ItemIdentity>>) -> ReadMany<T> {
        self.container.read_many(items)
    }

    /// Queries items: [`ContainerClient::query_items`]. For rows of another type, query the
    /// [container](TypedContainer::container).
    pub fn query(&self, query: impl Into<Query>) -> QueryItems<T> {
        self.container.query_items(query)
    }

    /// Reads the changes of the container: [`ContainerClient::change_feed`].
    pub fn changes(&self) -> FollowChanges<T> {
        self.container.change_feed()
    }
}

// Derived implementations would ask for a `T` that can be cloned and shown.
impl<T> Clone for TypedContainer<T> {
    fn clone(&self) -> TypedContainer<T> {
        self.container.typed()
    }
}

impl<T> fmt::Debug for TypedContainer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedContainer").field("container", &self.container).finish()
    }
}
