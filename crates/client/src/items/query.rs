//! `query_items`: SQL queries over a container, as pages or as a stream of rows.

use std::fmt;
use std::marker::PhantomData;
use std::num::{NonZeroU32, NonZeroUsize};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use driver::diagnostics::Diagnostics;
use driver::query::{QueryOptions, QueryPage, QueryPages, ServicePages};
use driver::{Error, ErrorKind};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use protocol::container::{KeyCompleteness, PartitionKeyDefinition};
use protocol::headers as names;
use protocol::partition::{EpkRange, effective_key, prefix_range};
use protocol::query::{IndexMetrics, QueryMetrics};
use protocol::status::{Status, SubStatus};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::call_options::call_options;
use crate::container::ContainerClient;
use crate::pages::{PageReader, PageStream, entries};
use crate::serialize::{from_body, to_body};
use crate::{FeedRange, OperationOptions, PartitionKey, Result};

/// A SQL query and its parameters.
///
/// ```
/// use perihelion::Query;
///
/// let query = Query::new("SELECT * FROM c WHERE c.total > @least").with_parameter("@least", 10);
/// ```
#[derive(Debug)]
pub struct Query {
    text: String,
    parameters: Vec<Value>,
    /// The error of the first value that cannot be serialized.
    error: Option<Error>,
}

impl Query {
    /// A query without parameters.
    pub fn new(text: impl Into<String>) -> Query {
        Query { text: text.into(), parameters: Vec::new(), error: None }
    }

    /// Sets the value of a parameter. Values do not become part of the query text, so nothing has to be escaped.
    #[must_use]
    pub fn with_parameter(mut self, name: &str, value: impl Serialize) -> Query {
        match serde_json::to_value(value) {
            Ok(value) => self.parameters.push(json!({"name": name, "value": value})),
            Err(error) => {
                let message = format!("the value of {name} has no JSON form: {error}");
                self.error.get_or_insert(Error::new(ErrorKind::BadRequest, message).with_source(error));
            }
        }
        self
    }

    fn body(self) -> Result<bytes::Bytes> {
        match self.error {
            Some(error) => Err(error),
            None => to_body(&json!({"query": self.text, "parameters": self.parameters})),
        }
    }
}

impl From<&str> for Query {
    fn from(text: &str) -> Query {
        Query::new(text)
    }
}

impl ContainerClient {
    /// Asks a question, of all partitions unless a [key](QueryItems::partition_key) narrows it down. Rows come
    /// as the query says they are ordered, and none is lost or repeated when partitions split meanwhile.
    pub fn query_items<T: DeserializeOwned>(&self, query: impl Into<Query>) -> QueryItems<T> {
        QueryItems {
            container: self.clone(),
            query: query.into(),
            key: None,
            paging: QueryOptions::new(),
            options: OperationOptions::new(),
            row: PhantomData,
        }
    }
}

/// A query with its options, to be run as [`pages`](QueryItems::pages) or as a [`stream`](QueryItems::stream) of rows.
#[must_use = "nothing is sent before it is run"]
pub struct QueryItems<T> {
    container: ContainerClient,
    query: Query,
    key: Option<PartitionKey>,
    paging: QueryOptions,
    options: OperationOptions,
    row: PhantomData<fn() -> T>,
}

call_options!(impl[T] QueryItems<T>, "Sets how long each page may take, with all its requests.");

impl<T> QueryItems<T> {
    fn options_mut(&mut self) -> &mut OperationOptions {
        &mut self.options
    }
}

impl<T: DeserializeOwned> QueryItems<T> {
    /// Limits the query to items of this partition key, or of all keys with this prefix.
    pub fn partition_key(mut self, key: impl Into<PartitionKey>) -> QueryItems<T> {
        self.key = Some(key.into());
        self
    }

    /// Limits the query to one of the container's [feed ranges](ContainerClient::feed_ranges).
    pub fn range(mut self, range: FeedRange) -> QueryItems<T> {
        self.paging = self.paging.with_range(range);
        self
    }

    /// Sets how many partitions are queried at a time. Default: 8.
    pub fn parallel_max(mut self, requests: NonZeroUsize) -> QueryItems<T> {
        self.paging = self.paging.with_parallel_max(requests);
        self
    }

    /// Sets the largest number of rows in a page.
    pub fn page_size(mut self, rows: NonZeroU32) -> QueryItems<T> {
        self.paging = self.paging.with_page_items(rows);
        self
    }

    /// Continues after an earlier page of the same query, which may have been read in another process.
    pub fn continuation(mut self, continuation: impl Into<String>) -> QueryItems<T> {
        self.paging = self.paging.with_continuation(continuation);
        self
    }

    /// Uses this session token instead of the client's own: that of a response, or of
    /// [`ContainerClient::session_token`].
    pub fn session_token(mut self, token: &str) -> QueryItems<T> {
        self.paging = self.paging.with_session_token(token);
        self
    }

    /// Asks for [query metrics](Page::query_metrics): what the service read, and how long it took.
    pub fn query_metrics(self) -> QueryItems<T> {
        self.header(names::POPULATE_QUERY_METRICS, "true")
    }

    /// Asks for [index metrics](Page::index_metrics): the indexes that the query used, and those that would help. The
    /// service works them out anew for every page, so ask while a query is tuned.
    pub fn index_metrics(self) -> QueryItems<T> {
        self.header(names::POPULATE_INDEX_METRICS, "true")
    }

    /// Plans the query. The result is a [`Stream`](crate::Stream) of pages; the
    /// [continuation](Page::continuation) of a page lets another process go on after it.
    pub async fn pages(self) -> Result<Pages<T>> {
        self.start(true).await
    }

    /// Plans the query. Continuations cost time with every page, so a stream of rows does without.
    async fn start(self, with_continuations: bool) -> Result<Pages<T>> {
        let QueryItems { container, query, key, paging, options, .. } = self;
        let request = QueryRequest { container, body: query.body()?, key, paging, options };
        let pages = Box::pin(request.plan()).await?;
        let continuation = request.paging.continuation.clone();
        // A continuation is not valid for a container that was created again under the same name.
        let may_restart = continuation.is_none();
        let reader = QueryReader { pages, request: Box::new(request), may_restart, with_continuations };
        Ok(Pages { pages: PageStream::new(reader), continuation, row: PhantomData })
    }

    /// The rows as a stream that requests pages as they are needed. It ends with the first error.
    pub fn stream(self) -> impl Stream<Item = Result<T>> + Send
    where
        T: Send,
    {
        let pages = stream::once(self.start(false)).try_flatten();
        entries(Box::pin(pages.map_ok(|page| page.items)))
    }
}

impl<T> fmt::Debug for QueryItems<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryItems").field("query", &self.query).finish_non_exhaustive()
    }
}

/// A query with its options, without the type of its rows.
#[derive(Debug)]
struct QueryRequest {
    container: ContainerClient,
    body: bytes::Bytes,
    key: Option<PartitionKey>,
    paging: QueryOptions,
    options: OperationOptions,
}

impl QueryRequest {
    async fn plan(&self) -> Result<QueryPages<ServicePages>> {
        let (driver, name) = (self.container.driver(), self.container.name());
        let deadline = driver.call_deadline(&self.options)?;
        let plan = async {
            let mut paging = self.paging.clone();
            if let Some(key) = &self.key {
                let options = deadline.options()?;
                paging.range = Some(key_range(key, paging.range.as_ref(), &self.container, &options).await?);
            }
            driver.query(name, self.body.clone(), &paging, &self.options).await
        };
        deadline.within(Box::pin(plan)).await
    }
}

/// Reads the pages of a query.
struct QueryReader {
    pages: QueryPages<ServicePages>,
    request: Box<QueryRequest>,
    /// Whether the query is planned again if the container was deleted and created again: before the first page.
    may_restart: bool,
    /// Whether pages have their continuation.
    with_continuations: bool,
}

impl PageReader for QueryReader {
    /// A page, and the continuation after it.
    type Page = (QueryPage, Option<String>);

    async fn read(&mut self) -> Result<Option<Self::Page>> {
        let deadline = self.request.container.driver().call_deadline(&self.request.options)?;
        let page = match deadline.within(Box::pin(self.pages.next_page())).await {
            Err(error) if self.may_restart && is_container_recreated(&error) => {
                self.may_restart = false;
                self.pages = Box::pin(self.request.plan()).await?;
                deadline.within(Box::pin(self.pages.next_page())).await?
            }
            page => page?,
        };
        self.may_restart = false;
        let continuation =
            |pages: &QueryPages<_>| self.with_continuations.then(|| pages.continuation()).flatten();
        Ok(page.map(|page| (page, continuation(&self.pages))))
    }
}

/// The EPK range of a partition key or of a key prefix. The caller may give a feed range or a key, not both.
pub(super) async fn key_range(
    key: &PartitionKey,
    range: Option<&FeedRange>,
    container: &ContainerClient,
    options: &OperationOptions,
) -> Result<EpkRange> {
    if range.is_some() {
        let message = "a partition key and a feed range are set: leave out the feed range, the key says more";
        return Err(Error::new(ErrorKind::BadRequest, message).about(container.name().link()));
    }
    let driver = container.driver();
    let known = driver.container(container.name(), options).await?;
    if let Some(range) = range_by_definition(key, known.partition_key()) {
        return Ok(range);
    }
    // The container may have been deleted and created again with another partition key.
    let newest = driver.refresh_container(&known, options).await?;
    range_by_definition(key, newest.partition_key()).ok_or_else(|| {
        let (given, wanted) = (key.components().len(), newest.partition_key().paths.len());
        let message = format!("the partition key has {given} components and the container's {wanted}");
        Error::new(ErrorKind::BadRequest, message).about(container.name().link())
    })
}

/// The EPK range of a key under a partition key definition; none if the key has more components than the definition.
fn range_by_definition(key: &PartitionKey, definition: &PartitionKeyDefinition) -> Option<EpkRange> {
    match definition.completeness(key) {
        KeyCompleteness::Complete => Some(EpkRange::point(effective_key(definition, key))),
        KeyCompleteness::Prefix => Some(prefix_range(definition, key)),
        KeyCompleteness::TooLong => None,
    }
}

/// Whether the error says that the container was deleted and created again since its metadata was read.
pub(super) fn is_container_recreated(error: &Error) -> bool {
    error.is_status(Status::BAD_REQUEST, SubStatus::COLLECTION_RID_MISMATCH)
}

/// A query that is being read page by page: a [`Stream`](crate::Stream) of pages.
///
/// After an error, the next page is the one that failed, unless its rows do not fit into `T`
/// ([`Mismatch`](crate::ErrorKind::Mismatch)).
///
/// ```no_run
/// # use perihelion::{ContainerClient, Result};
/// # use futures::TryStreamExt;
/// # async fn run(orders: ContainerClient) -> Result<()> {
/// let mut pages = orders.query_items::<serde_json::Value>("SELECT * FROM c").pages().await?;
/// while let Some(page) = pages.try_next().await? {
///     println!("{} rows for {} RU; {:?}", page.items.len(), page.charge, page.continuation);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Pages<T> {
    pages: PageStream<QueryReader>,
    continuation: Option<String>,
    row: PhantomData<fn() -> T>,
}

/// One page of the rows of a query.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Page<T> {
    /// The rows of this page.
    pub items: Vec<T>,
    /// The request units since the page before.
    pub charge: f64,
    /// The number of requests since the page before; 0 if earlier responses contained all rows of this page.
    pub requests: u32,
    /// The diagnostics of the last requests, newest first.
    pub diagnostics: Vec<Diagnostics>,
    /// The session token of the partitions that responded since the page before: a read with it sees at least what this
    /// page shows. None if earlier responses contained all rows of this page.
    pub session_token: Option<String>,
    /// The continuation after this page, for [`QueryItems::continuation`] of the same query; none for the last page.
    pub continuation: Option<String>,
    /// What the service read for this page, if [`QueryItems::query_metrics`] asked for it.
    pub query_metrics: Option<QueryMetrics>,
    /// The indexes that the query used and lacks, if [`QueryItems::index_metrics`] asked for them.
    pub index_metrics: Option<IndexMetrics>,
}

impl<T: DeserializeOwned> Pages<T> {
    /// Reads the next page; none after the last. Dropping the future loses no rows.
    pub async fn next_page(&mut self) -> Result<Option<Page<T>>> {
        self.next().await.transpose()
    }

    /// The continuation after the pages so far, for [`QueryItems::continuation`] of the same query; none after the last
    /// page, and before the first unless the query continues an earlier one.
    pub fn continuation(&self) -> Option<String> {
        self.continuation.clone()
    }
}

impl<T: DeserializeOwned> Stream for Pages<T> {
    type Item = Result<Page<T>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let pages = self.get_mut();
        let page = ready!(pages.pages.poll_next_unpin(context));
        Poll::Ready(page.map(|page| {
            let (page, continuation) = page?;
            pages.continuation.clone_from(&continuation);
            Ok(Page {
                items: page.rows.iter().map(|row| from_body(row)).collect::<Result<_>>()?,
                charge: page.charge,
                requests: page.requests,
                diagnostics: page.diagnostics,
                session_token: page.session_token,
                continuation,
                query_metrics: page.query_metrics,
                index_metrics: page.index_metrics,
            })
        }))
    }
}
