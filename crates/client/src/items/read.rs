//! `read_item`.

use std::future::IntoFuture;

use driver::operation::{Operation, Precondition};
use driver::{Error, ErrorKind};
use futures::future::BoxFuture;
use protocol::status::{Status, SubStatus};
use serde::de::DeserializeOwned;

use crate::call::Call;
use crate::container::ContainerClient;
use crate::response::ItemResponse;
use crate::{OperationOptions, PartitionKey, Result};

/// A read of one item, until it is awaited.
#[derive(Debug)]
#[must_use = "nothing is sent before it is awaited"]
pub struct ReadItem<T>(Call<ItemResponse<T>>);

impl ContainerClient {
    /// Reads one item; [`NotFound`](crate::ErrorKind::NotFound) if there is none, or with
    /// [`optional`](ReadItem::optional), `None`.
    ///
    /// Read it as an [`Item<T>`](crate::Item) to have the service's own properties as well.
    pub fn read_item<T: DeserializeOwned>(&self, key: impl Into<PartitionKey>, id: &str) -> ReadItem<T> {
        let operation = Operation::read_item(self.name(), key.into(), id);
        ReadItem(Call::new(self.driver(), Ok(operation), ItemResponse::read))
    }
}

impl<T: DeserializeOwned> ReadItem<T> {
    /// No item is not an error: gives `None` in its place. A container that is not there still is one.
    pub fn optional(self) -> Call<Option<ItemResponse<T>>> {
        let read = self.0.reading(|answer| ItemResponse::read(answer).map(Some));
        read.or_else(|error| if is_missing_item(&error) { Ok(None) } else { Err(error) })
    }

    /// Reads only what has another version than this one: gives `None` while it is unchanged, which costs less.
    pub fn if_none_match(self, etag: impl Into<String>) -> Call<Option<ItemResponse<T>>> {
        let etag = etag.into();
        let read = self.0.reading(|answer| match answer.status() {
            Status::NOT_MODIFIED => Ok(None),
            _ => ItemResponse::read(answer).map(Some),
        });
        read.change(|operation| operation.with_precondition(Precondition::IfNoneMatch(etag)))
    }
}

/// Whether it was the item that was not found, and not the container: then the read itself was answered so.
fn is_missing_item(error: &Error) -> bool {
    let last = error.diagnostics().and_then(|diagnostics| diagnostics.attempts().last());
    let status = last.and_then(|attempt| attempt.outcome.sent()).and_then(|sent| sent.status);
    error.kind() == ErrorKind::NotFound && status == Some((Status::NOT_FOUND, SubStatus::NONE))
}

impl<T> ReadItem<T> {
    /// Sees at least what this session token has seen, instead of what this client has.
    pub fn session_token(self, token: &str) -> ReadItem<T> {
        ReadItem(self.0.session_token(token))
    }

    /// Options of this read alone.
    pub fn options(self, options: OperationOptions) -> ReadItem<T> {
        ReadItem(self.0.options(options))
    }
}

impl<T: Send + 'static> IntoFuture for ReadItem<T> {
    type Output = Result<ItemResponse<T>>;
    type IntoFuture = BoxFuture<'static, Result<ItemResponse<T>>>;

    fn into_future(self) -> Self::IntoFuture {
        self.0.into_future()
    }
}
