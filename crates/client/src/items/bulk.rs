//! `bulk`: many operations, each by itself, as fast as the container takes them.

use std::fmt;
use std::future::IntoFuture;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use driver::Error;
use driver::bulk::{self as below, BulkOptions, BulkResult, BulkStream, BulkSummary};
use futures::future::BoxFuture;
use futures::{Stream, StreamExt, stream};
use protocol::status::Status;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::patch::Patch;
use crate::container::ContainerClient;
use crate::serialize::{from_body, to_body};
use crate::{PartitionKey, Result};

/// One operation of a [`Bulk`].
#[derive(Clone, Debug)]
#[must_use = "an operation does nothing until it is executed"]
pub struct BulkOperation(
    /// Or why it cannot be sent.
    Result<below::BulkOperation>,
);

impl BulkOperation {
    /// Stores a new item.
    pub fn create(key: impl Into<PartitionKey>, item: &(impl Serialize + ?Sized)) -> BulkOperation {
        BulkOperation(to_body(item).map(|body| below::BulkOperation::create(key.into(), body)))
    }

    /// Stores an item, whether it is there or not.
    pub fn upsert(key: impl Into<PartitionKey>, item: &(impl Serialize + ?Sized)) -> BulkOperation {
        BulkOperation(to_body(item).map(|body| below::BulkOperation::upsert(key.into(), body)))
    }

    /// Stores an item that is JSON text already, whether it is there or not. The text must be one JSON object.
    pub fn upsert_json(key: impl Into<PartitionKey>, json: impl Into<Bytes>) -> BulkOperation {
        BulkOperation(Ok(below::BulkOperation::upsert(key.into(), json)))
    }

    /// Writes over an item that is there.
    pub fn replace(
        key: impl Into<PartitionKey>,
        id: &str,
        item: &(impl Serialize + ?Sized),
    ) -> BulkOperation {
        BulkOperation(to_body(item).map(|body| below::BulkOperation::replace(key.into(), id, body)))
    }

    /// Changes parts of an item where it is.
    pub fn patch(key: impl Into<PartitionKey>, id: &str, patch: Patch) -> BulkOperation {
        let body = patch.body().and_then(|body| to_body(&body));
        BulkOperation(body.map(|body| below::BulkOperation::patch(key.into(), id, body)))
    }

    /// Reads an item.
    pub fn read(key: impl Into<PartitionKey>, id: &str) -> BulkOperation {
        BulkOperation(Ok(below::BulkOperation::read(key.into(), id)))
    }

    /// Removes an item.
    pub fn delete(key: impl Into<PartitionKey>, id: &str) -> BulkOperation {
        BulkOperation(Ok(below::BulkOperation::delete(key.into(), id)))
    }

    /// An operation that fails with this error when its turn comes, so that what could not be made into one
    /// keeps its place in the input.
    pub fn failed(error: Error) -> BulkOperation {
        BulkOperation(Err(error))
    }

    /// Does it only if the item still has this version.
    pub fn if_match(self, etag: impl Into<String>) -> BulkOperation {
        BulkOperation(self.0.map(|operation| operation.with_if_match(etag)))
    }

    /// Says that doing it twice does no harm, so that it is sent again when its answer is lost instead of
    /// ending in [`Undecided`](crate::ErrorKind::Undecided).
    ///
    /// A create that is then told of a conflict still ends so: what is there may be of its own making or of somebody
    /// else's, and looks the same. Who has to know gives each item a mark that nobody else writes (an id of the run,
    /// say), and reads it; who only wants the item to be there as it is sent writes it with
    /// [`upsert`](BulkOperation::upsert).
    pub fn repeatable(self) -> BulkOperation {
        BulkOperation(self.0.map(below::BulkOperation::repeatable))
    }
}

/// Many operations on the items of a container, each by itself: no transaction, no order, one result each.
///
/// Operations travel in requests of up to a hundred per physical partition. Each partition gets as many at a
/// time as it takes without throttling; what it refuses is sent again after the wait it asks for. Splits are
/// followed, and one operation that is too large or makes no sense fails alone.
///
/// ```no_run
/// # use perihelion::{ContainerClient, Result};
/// # use serde_json::json;
/// # async fn run(orders: ContainerClient) -> Result<()> {
/// let done = orders
///     .bulk()
///     .upsert("ada", &json!({"id": "o-1", "customer": "ada"}))
///     .delete("bob", "o-7")
///     .await;
/// for item in done.failed() {
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

impl ContainerClient {
    /// Many operations on its items, each by itself.
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
    /// Adds an operation.
    pub fn operation(mut self, operation: BulkOperation) -> Bulk {
        self.operations.push(operation);
        self
    }

    /// Stores a new item.
    pub fn create(self, key: impl Into<PartitionKey>, item: &(impl Serialize + ?Sized)) -> Bulk {
        self.operation(BulkOperation::create(key, item))
    }

    /// Stores an item, whether it is there or not.
    pub fn upsert(self, key: impl Into<PartitionKey>, item: &(impl Serialize + ?Sized)) -> Bulk {
        self.operation(BulkOperation::upsert(key, item))
    }

    /// Writes over an item that is there.
    pub fn replace(self, key: impl Into<PartitionKey>, id: &str, item: &(impl Serialize + ?Sized)) -> Bulk {
        self.operation(BulkOperation::replace(key, id, item))
    }

    /// Changes parts of an item where it is.
    pub fn patch(self, key: impl Into<PartitionKey>, id: &str, patch: Patch) -> Bulk {
        self.operation(BulkOperation::patch(key, id, patch))
    }

    /// Reads an item.
    pub fn read(self, key: impl Into<PartitionKey>, id: &str) -> Bulk {
        self.operation(BulkOperation::read(key, id))
    }

    /// Removes an item.
    pub fn delete(self, key: impl Into<PartitionKey>, id: &str) -> Bulk {
        self.operation(BulkOperation::delete(key, id))
    }

    /// Says how much is sent at a time and how long it is tried.
    pub fn options(mut self, options: BulkOptions) -> Bulk {
        self.options = options;
        self
    }

    /// Says that doing any of them twice does no harm; see [`BulkOperation::repeatable`].
    pub fn repeatable(mut self) -> Bulk {
        self.repeatable = true;
        self
    }

    /// Lets writes answer with the item as it was stored.
    pub fn returning_content(mut self) -> Bulk {
        self.options = self.options.returning_content();
        self
    }

    /// Carries out those added so far and then these. Results come in the order in which they are done.
    pub fn execute<I>(self, operations: I) -> BulkResults
    where
        I: IntoIterator<Item = BulkOperation>,
        I::IntoIter: Send + 'static,
    {
        self.execute_stream(stream::iter(operations))
    }

    /// The same for operations that come one after the other: the stream is read as fast as the container
    /// takes them, and no faster.
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

/// Waits for all results.
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

/// The results of a bulk, one for each operation, as they come. Dropping it cancels what is under way.
#[must_use = "nothing is sent before it is polled"]
pub struct BulkResults(BulkStream);

impl BulkResults {
    /// What was done so far: requests, request units, refusals, and how much each partition takes at a time.
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

/// What became of all operations, in the order in which they were added.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BulkResponse {
    /// One for each operation.
    pub items: Vec<BulkItem>,
    /// What it took.
    pub summary: BulkSummary,
}

impl BulkResponse {
    /// Those that did not do what they asked.
    pub fn failed(&self) -> impl Iterator<Item = &BulkItem> {
        self.items.iter().filter(|item| item.outcome.is_err())
    }
}

/// What became of one operation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BulkItem {
    /// Which one it was, in the order in which they were handed in, counted from 0.
    pub index: u64,
    /// Request units it cost, refusals included.
    pub charge: f64,
    /// How often it was sent.
    pub attempts: u32,
    /// What it came to; the error's kind says what to do next.
    pub outcome: Result<BulkAnswer>,
}

impl BulkItem {
    fn of(result: BulkResult) -> BulkItem {
        let outcome = result.outcome.map(|answer| BulkAnswer {
            status: answer.status,
            etag: answer.etag,
            body: answer.body,
        });
        BulkItem { index: result.index, charge: result.charge, attempts: result.attempts, outcome }
    }
}

/// The answer to an operation that did what it asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BulkAnswer {
    /// Its status.
    pub status: Status,
    /// The version it read or left.
    pub etag: Option<String>,
    body: Bytes,
}

impl BulkAnswer {
    /// The item: of a read, and of a write if the bulk [returns content](Bulk::returning_content).
    pub fn value<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        if self.body.is_empty() { Ok(None) } else { from_body(&self.body).map(Some) }
    }
}
