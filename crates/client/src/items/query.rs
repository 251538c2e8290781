//! `query_items`: SQL queries over a container, as pages or as a stream of rows.

use std::fmt;
use std::marker::PhantomData;
use std::num::{NonZeroU32, NonZeroUsize};

use driver::diagnostics::Diagnostics;
use driver::query::{QueryOptions, QueryPages, ServicePages};
use driver::{Error, ErrorKind};
use futures::Stream;
use futures::stream::try_unfold;
use protocol::container::{KeyCompleteness, PartitionKeyDefinition};
use protocol::partition::{EpkRange, effective_key, prefix_range};
use protocol::status::{Status, SubStatus};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::container::ContainerClient;
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

    /// Sets the options of each request of this query.
    pub fn options(mut self, options: OperationOptions) -> QueryItems<T> {
        self.options = options;
        self
    }

    /// Plans the query. Pages are then read one by one; [`Pages::continuation`] lets another process continue.
    pub async fn pages(self) -> Result<Pages<T>> {
        let QueryItems { container, query, key, paging, options, .. } = self;
        let request = QueryRequest { container, body: query.body()?, key, paging, options };
        let pages = Box::pin(request.plan()).await?;
        // A continuation is not valid for a container that was created again under the same name.
        let again = request.paging.continuation.is_none().then(|| Box::new(request));
        Ok(Pages { pages, restart: again, row: PhantomData })
    }

    /// The rows as a stream that requests pages as they are needed. It ends with the first error.
    pub fn stream(self) -> impl Stream<Item = Result<T>> + Send
    where
        T: Send,
    {
        enum State<T> {
            New(Box<QueryItems<T>>),
            Running(Box<Pages<T>>, std::vec::IntoIter<T>),
        }
        try_unfold(State::New(Box::new(self)), async |state| {
            let (mut pages, mut rows) = match state {
                State::New(query) => (Box::new(query.pages().await?), Vec::new().into_iter()),
                State::Running(pages, rows) => (pages, rows),
            };
            loop {
                if let Some(row) = rows.next() {
                    return Ok(Some((row, State::Running(pages, rows))));
                }
                match pages.next_page().await? {
                    Some(page) => rows = page.items.into_iter(),
                    None => return Ok(None),
                }
            }
        })
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
        let mut paging = self.paging.clone();
        if let Some(key) = &self.key {
            paging = paging.with_range(key_range(key, &self.container, &self.options).await?);
        }
        let (driver, name) = (self.container.driver(), self.container.name());
        driver.query(name, self.body.clone(), &paging, &self.options).await
    }
}

/// The EPK range of a partition key or of a key prefix.
pub(super) async fn key_range(
    key: &PartitionKey,
    container: &ContainerClient,
    options: &OperationOptions,
) -> Result<EpkRange> {
    let driver = container.driver();
    let options = &driver.fix_deadline(options)?;
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

/// A query that is being read page by page.
#[derive(Debug)]
pub struct Pages<T> {
    pages: QueryPages<ServicePages>,
    /// The query to plan again if the container was deleted and created again; none after the first page.
    restart: Option<Box<QueryRequest>>,
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
}

impl<T: DeserializeOwned> Pages<T> {
    /// Reads the next page; none after the last. After an error, a further call requests the same page again, unless its
    /// rows do not fit into `T` ([`Mismatch`](crate::ErrorKind::Mismatch)).
    pub async fn next_page(&mut self) -> Result<Option<Page<T>>> {
        let page = match (Box::pin(self.pages.next_page()).await, self.restart.take()) {
            (Err(error), Some(request)) if is_container_recreated(&error) => {
                self.pages = Box::pin(request.plan()).await?;
                Box::pin(self.pages.next_page()).await?
            }
            // After any other error the next call reads the first page again.
            (Err(error), again) => {
                self.restart = again;
                return Err(error);
            }
            (page, _) => page?,
        };
        let Some(page) = page else { return Ok(None) };
        let items = page.rows.iter().map(|row| from_body(row)).collect::<Result<_>>()?;
        let (charge, requests, diagnostics) = (page.charge, page.requests, page.diagnostics);
        Ok(Some(Page { items, charge, requests, diagnostics }))
    }

    /// The continuation after the pages so far, for [`QueryItems::continuation`] of the same query; none after the last
    /// page.
    pub fn continuation(&self) -> Option<String> {
        self.pages.continuation()
    }
}
