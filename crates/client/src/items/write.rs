//! What all writes of one item have in common.

use std::future::IntoFuture;

use driver::CosmosDriver;
use driver::operation::{Operation, Precondition};
use futures::future::BoxFuture;
use protocol::headers as names;
use serde::de::DeserializeOwned;

use crate::call::Call;
use crate::response::ItemResponse;
use crate::{OperationOptions, Result};

/// A write of one item, until it is awaited.
///
/// The answer has no item unless it is asked for ([`returning`](WriteItem::returning)): it was just sent, and
/// sending it back costs time.
#[derive(Debug)]
#[must_use = "nothing is sent before it is awaited"]
pub struct WriteItem<R = ()>(Call<ItemResponse<R>>);

impl WriteItem {
    pub(super) fn new(driver: &CosmosDriver, operation: Result<Operation>) -> WriteItem {
        let minimal = |operation: Operation| operation.with_header(names::PREFER, names::PREFER_MINIMAL);
        WriteItem(Call::new(driver, operation.map(minimal), ItemResponse::without_body))
    }

    /// Answers with the item as it was stored, which for a patch is the only way to know it.
    pub fn returning<T: DeserializeOwned>(self) -> WriteItem<T> {
        let whole = |operation: Operation| operation.with_header(names::PREFER, "return=representation");
        WriteItem(self.0.change(whole).reading(ItemResponse::read))
    }
}

impl<R> WriteItem<R> {
    /// Writes only if the item still has this version; otherwise the error is
    /// [`PreconditionFailed`](crate::ErrorKind::PreconditionFailed).
    pub fn if_match(self, etag: impl Into<String>) -> WriteItem<R> {
        let etag = etag.into();
        WriteItem(self.0.change(|operation| operation.with_precondition(Precondition::IfMatch(etag))))
    }

    /// Says that writing it twice does no harm, also later, so that a write whose answer was lost is sent again
    /// instead of ending in [`Undecided`](crate::ErrorKind::Undecided), and one that is slow may be sent to a second
    /// region where several take writes.
    pub fn repeatable(self) -> WriteItem<R> {
        WriteItem(self.0.change(Operation::repeatable))
    }

    /// Follows what this session token has seen, instead of what this client has.
    pub fn session_token(self, token: &str) -> WriteItem<R> {
        WriteItem(self.0.session_token(token))
    }

    /// Options of this write alone.
    pub fn options(self, options: OperationOptions) -> WriteItem<R> {
        WriteItem(self.0.options(options))
    }
}

impl<R: Send + 'static> IntoFuture for WriteItem<R> {
    type Output = Result<ItemResponse<R>>;
    type IntoFuture = BoxFuture<'static, Result<ItemResponse<R>>>;

    fn into_future(self) -> Self::IntoFuture {
        self.0.into_future()
    }
}
