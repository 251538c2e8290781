//! `bulk`: many independent operations, as fast as the throughput of the container allows.

use std::fmt;
use std::future::IntoFuture;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use driver::Error;
use driver::bulk::{self as driver_bulk, BulkOptions, BulkResult, BulkStream, BulkSummary};
use futures::future::BoxFuture;
use futures::{Stream, StreamExt, stream};
use protocol::status::Status;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::patch::Patch;
use crate::call_options::call_options;
use crate::container::ContainerClient;
use crate::serialize::{from_body, to_body};
use crate::{OperationOptions, PartitionKey, Result};

/// One operation of a [`Bulk`].
#[derive(Clone, Debug)]
#[must_use = "an operation does nothing until it is executed"]
pub struct BulkOperation(
    /// The driver's operation, or the error that becomes its result.
    Result<driver_bulk::BulkOperation>,
);

impl BulkOperation {
    /// An operation that creates an item.
    pub fn create(key: impl Into<PartitionKey>, item: &(impl Serialize + ?Sized)) -> BulkOperation {
        BulkOperation(to_body(item).map(|body| driver_bulk::BulkOperation::create(key.into(), body)))
    }

    /// Creates an item, or replaces the one with its id.
    pub fn upsert(key: impl Into<PartitionKey>, item: &(impl Serialize + ?Sized)) -> BulkOperation {
        BulkOperation(to_body(item).map(|body| driver_bulk::BulkOperation::upsert(key.into(), body)))
    }

    /// Creates or replaces an item that is JSON text already. The text must be one JSON object.
    pub fn upsert_json(key: impl Into<PartitionKey>, json: impl Into<Bytes>) -> BulkOperation {
        BulkOperation(Ok(driver_bulk::BulkOperation::upsert(key.into(), json)))
    }

    /// Replaces an item that exists.
    pub fn replace(
        key: impl Into<PartitionKey>,
        id: &str,
        item: &(impl Serialize + ?Sized),
    ) -> BulkOperation {
        BulkOperation(to_body(item).map(|body| driver_bulk::BulkOperation::replace(key.into(), id, body)))
    }

    /// Changes properties of an item.
    pub fn patch(key: impl Into<PartitionKey>, id: &str, patch: Patch) -> BulkOperation {
        let body = patch.body().and_then(|body| to_body(&body));
        BulkOperation(body.map(|body| driver_bulk::BulkOperation::patch(key.into(), id, body)))
    }

    /// Reads an item by its id.
    pub fn read(key: impl Into<PartitionKey>, id: &str) -> BulkOperation {
        BulkOperation(Ok(driver_bulk::BulkOperation::read(key.into(), id)))
    }

    /// Deletes an item by its id.
    pub fn delete(key: impl Into<PartitionKey>, id: &str) -> BulkOperation {
        BulkOperation(Ok(driver_bulk::BulkOperation::delete(key.into(), id)))
    }

    /// An operation whose result is this error. It stands for an input that could not be made into an operation, so
    /// that results keep the index of their input.
    pub fn failed(error: Error) -> BulkOperation {
        BulkOperation(Err(error))
    }

    /// Makes the operation conditional: the item must still have this ETag.
    pub fn if_match(self, etag: impl Into<String>) -> BulkOperation {
        BulkOperation(self.0.map(|operation| operation.with_if_match(etag)))
    }

    /// Declares the operation idempotent: it is sent again when its response is lost, instead of failing with
    /// [`Undecided`](crate::ErrorKind::Undecided).
    ///
    /// A create that is sent again and then meets a conflict still fails with `Undecided`, because the existing item
    /// may be its own or that of another writer. To find out, give each item a property that only this run writes, and
    /// read it. If the item only has to exist as it is sent, use [`upsert`](BulkOperation::upsert).
    pub fn repeatable(self) -> BulkOperation {
        BulkOperation(self.0.map(driver_bulk::BulkOperation::repeatable))
    }
}

/// Many independent operations on the items of a container: no transaction, no order, one result each.
///
/// The client sends requests of up to 100 operations for each physical partition, as many at a time as the partition
/// accepts without throttling. A throttled operation is sent again after the wait that the service asks for. Splits are
/// followed, and an operation that is too large or invalid fails alone.
///
/// ```no_run
/// # use perihelion::{ContainerClient, Result};
/// # use serde_json::json;
/// # async fn run(orders: ContainerClient) -> Result<()> {
/// let response = orders
///     .bulk()
///     .upsert("ada", &json!({"id": "o-1", "customer": "ada"}))
///     .delete("bob", "o-7")
///     .await;
/// for item in response.failed() {
///     println!("operation {}: {}", item.index, item.outcome.as_ref().unwrap_err());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a bulk does nothing until it is executed"]
pub struct Bulk {
    container: ContainerClient,
    operations: Vec<BulkOperation>,
    options: BulkOptions,
    repeatable: bool,
}

call_options!(impl[] Bulk, "Sets how long each request may take; operations that are rejected are sent again.", without options);

impl ContainerClient {
    /// An empty bulk on the items of this container.
    pub fn bulk(&self) -> Bulk {
        Bulk {
            container: self.clone(),
            operations: Vec::new(),
            options: BulkOptions::new(),
            repeatable: false,
        }
    }
}

impl Bulk {
    /// Adds an operation of any kind.
    pub fn operation(mut self, operation: BulkOperation) -> Bulk {
        self.operations.push(operation);
        self
    }

    /// Adds the creation of an item.
    pub fn create(self, key: impl Into<PartitionKey>, item: &(impl Serialize + ?Sized)) -> Bulk {
        self.operation(BulkOperation::create(key, item))
    }

    /// Adds an operation that creates an item, or replaces the one with its id.
    pub fn upsert(self, key: impl Into<PartitionKey>, item: &(impl Serialize + ?Sized)) -> Bulk {
        self.operation(BulkOperation::upsert(key, item))
    }

    /// Adds the replacement of an item that exists.
    pub fn replace(self, key: impl Into<PartitionKey>, id: &str, item: &(impl Serialize + ?Sized)) -> Bulk {
        self.operation(BulkOperation::replace(key, id, item))
    }

    /// Adds a patch of an item.
    pub fn patch(self, key: impl Into<PartitionKey>, id: &str, patch: Patch) -> Bulk {
        self.operation(BulkOperation::patch(key, id, patch))
    }

    /// Adds the read of an item.
    pub fn read(self, key: impl Into<PartitionKey>, id: &str) -> Bulk {
        self.operation(BulkOperation::read(key, id))
    }

    /// Adds the deletion of an item.
    pub fn delete(self, key: impl Into<PartitionKey>, id: &str) -> Bulk {
        self.operation(BulkOperation::delete(key, id))
    }

    /// Sets how many requests are sent at a time and how long operations are retried. The options of requests
    /// ([`BulkOptions::operation`]) are merged into those that were set before: what they set wins, and what they do not
    /// set stays as it was. A session token and [`returning_content`](Bulk::returning_content) stay as well.
    pub fn options(mut self, options: BulkOptions) -> Bulk {
        let before = std::mem::replace(&mut self.options, options);
        self.options.operation = std::mem::take(&mut self.options.operation).or(&before.operation);
        self.options.returns_content |= before.returns_content;
        self.options.session_token = self.options.session_token.take().or(before.session_token);
        self
    }

    /// Uses this session token instead of the client's own: reads see at least what the token has seen.
    pub fn session_token(mut self, token: &str) -> Bulk {
        self.options = self.options.with_session_token(token);
        self
    }

    fn options_mut(&mut self) -> &mut OperationOptions {
        &mut self.options.operation
    }

    /// Declares all operations idempotent; see [`BulkOperation::repeatable`].
    pub fn repeatable(mut self) -> Bulk {
        self.repeatable = true;
        self
    }

    /// Lets writes return the item as it was stored.
    pub fn returning_content(mut self) -> Bulk {
        self.options = self.options.returning_content();
        self
    }

    /// Executes the operations added so far and then these. Results come in the order in which operations finish.
    pub fn execute<I>(self, operations: I) -> BulkResults
    where
        I: IntoIterator<Item = BulkOperation>,
        I::IntoIter: Send + 'static,
    {
        self.execute_stream(stream::iter(operations))
    }

    /// Executes the operations added so far and then those of a stream. The stream is polled only as fast as the
    /// container accepts operations.
    pub fn execute_stream(
        self,
        operations: impl Stream<Item = BulkOperation> + Send + 'static,
    ) -> BulkResults {
        let Bulk { container, operations: first, options, repeatable } = self;
        let all = stream::iter(first)
            .chain(operations)
            .map(move |operation| if repeatable { operation.repeatable().0 } else { operation.0 });
        BulkResults(container.driver().bulk(container.name(), all, options))
    }
}

/// Executes all operations and waits for their results.
impl IntoFuture for Bulk {
    type Output = BulkResponse;
    type IntoFuture = BoxFuture<'static, BulkResponse>;

    fn into_future(self) -> Self::IntoFuture {
        let mut results = self.execute([]);
        Box::pin(async move {
            let mut items: Vec<BulkItem> = results.by_ref().collect().await;
            items.sort_unstable_by_key(|item| item.index);
            BulkResponse { items, summary: results.summary() }
        })
    }
}

/// The results of a bulk as a stream, one for each operation. Dropping it cancels the requests in flight.
#[must_use = "nothing is sent before it is polled"]
pub struct BulkResults(BulkStream);

impl BulkResults {
    /// A summary so far: requests, request units, throttled operations, and the concurrency of each partition.
    pub fn summary(&self) -> BulkSummary {
        self.0.summary()
    }
}

impl Stream for BulkResults {
    type Item = BulkItem;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<BulkItem>> {
        let next = self.get_mut().0.poll_next_unpin(context);
        next.map(|next| next.map(BulkItem::of))
    }
}

impl fmt::Debug for BulkResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The results of all operations of a bulk, in the order in which they were added.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BulkResponse {
    /// The results, one for each operation.
    pub items: Vec<BulkItem>,
    /// The number of requests, their charge and other totals.
    pub summary: BulkSummary,
}

impl BulkResponse {
    /// The results of the operations that failed.
    pub fn failed(&self) -> impl Iterator<Item = &BulkItem> {
        self.items.iter().filter(|item| item.outcome.is_err())
    }
}

/// The result of one operation of a bulk.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BulkItem {
    /// The index of the operation in the order in which operations were added, from 0.
    pub index: u64,
    /// The request units it cost, including attempts that were throttled.
    pub charge: f64,
    /// How often it was sent.
    pub attempts: u32,
    /// The response, or the error; the kind of the error says what to do next.
    pub outcome: Result<BulkItemResponse>,
}

impl BulkItem {
    fn of(result: BulkResult) -> BulkItem {
        let outcome = result.outcome.map(|response| BulkItemResponse {
            status: response.status,
            etag: response.etag,
            body: response.body,
        });
        BulkItem { index: result.index, charge: result.charge, attempts: result.attempts, outcome }
    }
}

/// The response to an operation of a bulk that succeeded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BulkItemResponse {
    /// The status of the operation.
    pub status: Status,
    /// The ETag of the item after the operation.
    pub etag: Option<String>,
    body: Bytes,
}

impl BulkItemResponse {
    /// The item that was read; of a write only if the bulk [returns content](Bulk::returning_content).
    pub fn value<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        if self.body.is_empty() { Ok(None) } else { from_body(&self.body).map(Some) }
    }
}
