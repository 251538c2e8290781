//! `read_item`: the point read of one item.

use std::future::IntoFuture;

use driver::operation::{Operation, Precondition};
use driver::{Error, ErrorKind};
use futures::future::BoxFuture;
use protocol::status::{Status, SubStatus};
use serde::de::DeserializeOwned;

use crate::call::Call;
use crate::call_options::call_options;
use crate::container::ContainerClient;
use crate::response::ItemResponse;
use crate::{OperationOptions, PartitionKey, Result};

/// A point read that is sent when it is awaited.
#[derive(Debug)]
#[must_use = "nothing is sent before it is awaited"]
pub struct ReadItem<T>(Call<ItemResponse<T>>);

call_options!(impl[T] ReadItem<T>, "Sets how long the read may take, with every attempt and wait.");

impl ContainerClient {
    /// Reads one item. If it does not exist, the error is [`NotFound`](crate::ErrorKind::NotFound), or the result is
    /// `None` with [`optional`](ReadItem::optional).
    ///
    /// Read it as an [`Item<T>`](crate::Item) to get its system properties as well.
    pub fn read_item<T: DeserializeOwned>(&self, key: impl Into<PartitionKey>, id: &str) -> ReadItem<T> {
        let operation = Operation::read_item(self.name(), key.into(), id);
        ReadItem(Call::new(self.driver(), Ok(operation), ItemResponse::read))
    }
}

impl<T: DeserializeOwned> ReadItem<T> {
    /// Returns `None` instead of an error if the item does not exist. A missing container is still an error.
    pub fn optional(self) -> Call<Option<ItemResponse<T>>> {
        let read = self.0.with_reader(|response| ItemResponse::read(response).map(Some));
        read.or_else(|error| if is_missing_item(&error) { Ok(None) } else { Err(error) })
    }

    /// Returns `None` if the item still has this ETag, which costs less than reading it.
    pub fn if_none_match(self, etag: impl Into<String>) -> Call<Option<ItemResponse<T>>> {
        let etag = etag.into();
        let read = self.0.with_reader(|response| match response.status() {
            Status::NOT_MODIFIED => Ok(None),
            _ => ItemResponse::read(response).map(Some),
        });
        read.map_operation(|operation| operation.with_precondition(Precondition::IfNoneMatch(etag)))
    }
}

/// Whether the item was not found, rather than the container: only then the last attempt itself has that status.
pub(super) fn is_missing_item(error: &Error) -> bool {
    let last = error.diagnostics().and_then(|diagnostics| diagnostics.attempts().last());
    let status = last.and_then(|attempt| attempt.outcome.sent()).and_then(|sent| sent.status);
    error.kind() == ErrorKind::NotFound && status == Some((Status::NOT_FOUND, SubStatus::NONE))
}

impl<T> ReadItem<T> {
    /// Uses this session token instead of the client's own: the read sees at least what the token has seen.
    pub fn session_token(self, token: &str) -> ReadItem<T> {
        ReadItem(self.0.session_token(token))
    }

    fn options_mut(&mut self) -> &mut OperationOptions {
        self.0.options_mut()
    }
}

impl<T: Send + 'static> IntoFuture for ReadItem<T> {
    type Output = Result<ItemResponse<T>>;
    type IntoFuture = BoxFuture<'static, Result<ItemResponse<T>>>;

    fn into_future(self) -> Self::IntoFuture {
        self.0.into_future()
    }
}
