//! `create_item`, `upsert_item`, `replace_item` and `delete_item`, and the options that all writes of one item have.

use std::future::IntoFuture;

use driver::CosmosDriver;
use driver::operation::{Operation, Precondition};
use futures::future::BoxFuture;
use protocol::headers as names;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::call::Call;
use crate::call_options::call_options;
use crate::container::ContainerClient;
use crate::response::ItemResponse;
use crate::serialize::to_body;
use crate::{OperationOptions, PartitionKey, Result};

impl ContainerClient {
    /// Creates an item; the error is [`Conflict`](crate::ErrorKind::Conflict) if one with its id exists.
    ///
    /// An item has an `id` and, at the container's partition key path, the value that `key` has.
    pub fn create_item(&self, key: impl Into<PartitionKey>, item: &(impl Serialize + ?Sized)) -> WriteItem {
        let operation = to_body(item).map(|body| Operation::create_item(self.name(), key.into(), body));
        WriteItem::new(self.driver(), operation)
    }

    /// Creates an item, or replaces the one with its id.
    pub fn upsert_item(&self, key: impl Into<PartitionKey>, item: &(impl Serialize + ?Sized)) -> WriteItem {
        let operation = to_body(item).map(|body| Operation::upsert_item(self.name(), key.into(), body));
        WriteItem::new(self.driver(), operation)
    }

    /// Replaces an item; the error is [`NotFound`](crate::ErrorKind::NotFound) if it does not exist.
    pub fn replace_item(
        &self,
        key: impl Into<PartitionKey>,
        id: &str,
        item: &(impl Serialize + ?Sized),
    ) -> WriteItem {
        let operation = to_body(item).map(|body| Operation::replace_item(self.name(), key.into(), id, body));
        WriteItem::new(self.driver(), operation)
    }

    /// Deletes an item; the error is [`NotFound`](crate::ErrorKind::NotFound) if it does not exist.
    pub fn delete_item(&self, key: impl Into<PartitionKey>, id: &str) -> WriteItem {
        WriteItem::new(self.driver(), Ok(Operation::delete_item(self.name(), key.into(), id)))
    }
}

/// A write of one item that is sent when it is awaited.
///
/// The response contains no item unless [`returning`](WriteItem::returning) asks for it: the caller has just sent the
/// item, and sending it back takes time.
#[derive(Debug)]
#[must_use = "nothing is sent before it is awaited"]
pub struct WriteItem<R = ()>(Call<ItemResponse<R>>);

call_options!(impl[R] WriteItem<R>, "Sets how long the write may take, with every attempt and wait.");

impl WriteItem {
    pub(super) fn new(driver: &CosmosDriver, operation: Result<Operation>) -> WriteItem {
        let minimal = |operation: Operation| operation.with_header(names::PREFER, names::PREFER_MINIMAL);
        WriteItem(Call::new(driver, operation.map(minimal), ItemResponse::without_body))
    }

    /// Returns the item as it was stored; for a patch there is no other way to know it.
    pub fn returning<T: DeserializeOwned>(self) -> WriteItem<T> {
        let whole = |operation: Operation| operation.with_header(names::PREFER, "return=representation");
        WriteItem(self.0.map_operation(whole).with_reader(ItemResponse::read))
    }
}

impl<R> WriteItem<R> {
    /// Writes only if the item still has this ETag; otherwise the error is
    /// [`PreconditionFailed`](crate::ErrorKind::PreconditionFailed).
    pub fn if_match(self, etag: impl Into<String>) -> WriteItem<R> {
        let etag = etag.into();
        WriteItem(self.0.map_operation(|operation| operation.with_precondition(Precondition::IfMatch(etag))))
    }

    /// Declares the write idempotent: it may be applied twice, also some time later. A write whose response is lost is
    /// then sent again instead of failing with [`Undecided`](crate::ErrorKind::Undecided), and a slow write may be
    /// hedged in a second region if several regions accept writes.
    pub fn repeatable(self) -> WriteItem<R> {
        WriteItem(self.0.map_operation(Operation::repeatable))
    }

    /// Runs this [trigger](crate::scripts::Trigger) before the write, in its transaction.
    pub fn pre_trigger(self, id: &str) -> WriteItem<R> {
        let id = id.to_owned();
        WriteItem(self.0.map_operation(|operation| operation.with_header(names::PRE_TRIGGER_INCLUDE, id)))
    }

    /// Runs this [trigger](crate::scripts::Trigger) after the write, in its transaction.
    pub fn post_trigger(self, id: &str) -> WriteItem<R> {
        let id = id.to_owned();
        WriteItem(self.0.map_operation(|operation| operation.with_header(names::POST_TRIGGER_INCLUDE, id)))
    }

    /// Uses this session token instead of the client's own.
    pub fn session_token(self, token: &str) -> WriteItem<R> {
        WriteItem(self.0.session_token(token))
    }

    fn options_mut(&mut self) -> &mut OperationOptions {
        self.0.options_mut()
    }
}

impl<R: Send + 'static> IntoFuture for WriteItem<R> {
    type Output = Result<ItemResponse<R>>;
    type IntoFuture = BoxFuture<'static, Result<ItemResponse<R>>>;

    fn into_future(self) -> Self::IntoFuture {
        self.0.into_future()
    }
}
