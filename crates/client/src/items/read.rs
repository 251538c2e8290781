//! `read_item`.

use std::future::IntoFuture;

use driver::operation::Operation;
use futures::future::BoxFuture;
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
    /// Reads one item; [`NotFound`](crate::ErrorKind::NotFound) if there is none.
    ///
    /// Read it as an [`Item<T>`](crate::Item) to have the service's own properties as well.
    pub fn read_item<T: DeserializeOwned>(&self, key: impl Into<PartitionKey>, id: &str) -> ReadItem<T> {
        let operation = Operation::read_item(self.name(), key.into(), id);
        ReadItem(Call::new(self.driver(), Ok(operation), ItemResponse::read))
    }
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
