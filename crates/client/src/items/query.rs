//! `query_items`: SQL over a container, as pages or as a stream of rows.

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

/// A query and its parameters.
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
    /// The first value that has no JSON form.
    problem: Option<Error>,
}

impl Query {
    /// A query without parameters.
    pub fn new(text: impl Into<String>) -> Query {
        Query { text: text.into(), parameters: Vec::new(), problem: None }
    }

    /// Gives a parameter its value. Values never become a part of the text, so nothing has to be escaped.
    #[must_use]
    pub fn with_parameter(mut self, name: &str, value: impl Serialize) -> Query {
        match serde_json::to_value(value) {
            Ok(value) => self.parameters.push(json!({"name": name, "value": value})),
            Err(error) => {
                let message = format!("the value of {name} has no JSON form: {error}");
                self.problem.get_or_insert(Error::new(ErrorKind::BadRequest, message).with_source(error));
            }
        }
        self
    }

    fn body(self) -> Result<bytes::Bytes> {
        match self.problem {
            Some(problem) => Err(problem),
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

/// A query until it is run: by [`pages`](QueryItems::pages) or as a [`stream`](QueryItems::stream) of rows.
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
    /// Looks at the items of this key only, or of all keys that begin like it.
    pub fn partition_key(mut self, key: impl Into<PartitionKey>) -> QueryItems<T> {
        self.key = Some(key.into());
        self
    }

    /// Looks at this part of the container only: one of its [ranges](ContainerClient::feed_ranges).
    pub fn range(mut self, range: FeedRange) -> QueryItems<T> {
        self.paging = self.paging.with_range(range);
        self
    }

    /// How many partitions are asked at a time; eight unless it is said.
    pub fn parallel_max(mut self, requests: NonZeroUsize) -> QueryItems<T> {
        self.paging = self.paging.with_parallel_max(requests);
        self
    }

    /// The most rows of a page.
    pub fn page_size(mut self, rows: NonZeroU32) -> QueryItems<T> {
        self.paging = self.paging.with_page_items(rows);
        self
    }

    /// Goes on where an earlier page of the same query stopped, be it in another process.
    pub fn continuation(mut self, continuation: impl Into<String>) -> QueryItems<T> {
        self.paging = self.paging.with_continuation(continuation);
        self
    }

    /// Sees at least what this session token has seen, instead of what this client has: one of an answer, or of
    /// [`ContainerClient::session_token`].
    pub fn session_token(mut self, token: &str) -> QueryItems<T> {
        self.paging = self.paging.with_session_token(token);
        self
    }

    /// Options of each request of this query.
    pub fn options(mut self, options: OperationOptions) -> QueryItems<T> {
        self.options = options;
        self
    }

    /// Plans it; pages are asked for one by one, and [can be gone on from](Pages::continuation) elsewhere.
    pub async fn pages(self) -> Result<Pages<T>> {
        let QueryItems { container, query, key, paging, options, .. } = self;
        let question = Question { container, body: query.body()?, key, paging, options };
        let pages = Box::pin(question.plan()).await?;
        // A continuation belongs to the container it came from, and to no other of its name.
        let again = question.paging.continuation.is_none().then(|| Box::new(question));
        Ok(Pages { pages, again, row: PhantomData })
    }

    /// Its rows, one by one, asking for pages as they are needed. Ends with the first error.
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

/// What is asked, whatever its rows are read as.
#[derive(Debug)]
struct Question {
    container: ContainerClient,
    body: bytes::Bytes,
    key: Option<PartitionKey>,
    paging: QueryOptions,
    options: OperationOptions,
}

impl Question {
    async fn plan(&self) -> Result<QueryPages<ServicePages>> {
        let mut paging = self.paging.clone();
        if let Some(key) = &self.key {
            paging = paging.with_range(range_of(key, &self.container).await?);
        }
        let (driver, name) = (self.container.driver(), self.container.name());
        driver.query(name, self.body.clone(), &paging, &self.options).await
    }
}

/// The stretch of the ring that a key stands for.
pub(super) async fn range_of(key: &PartitionKey, container: &ContainerClient) -> Result<EpkRange> {
    let driver = container.driver();
    let known = driver.container(container.name()).await?;
    if let Some(range) = stretch(key, known.partition_key()) {
        return Ok(range);
    }
    // It may have been made again, with another key.
    let newest = driver.refresh_container(&known).await?;
    stretch(key, newest.partition_key()).ok_or_else(|| {
        let (given, wanted) = (key.components().len(), newest.partition_key().paths.len());
        let message = format!("the partition key has {given} components and the container's {wanted}");
        Error::new(ErrorKind::BadRequest, message).about(container.name().link())
    })
}

/// The same, by a definition; none if the key is too long for it.
fn stretch(key: &PartitionKey, definition: &PartitionKeyDefinition) -> Option<EpkRange> {
    match definition.completeness(key) {
        KeyCompleteness::Complete => Some(EpkRange::point(effective_key(definition, key))),
        KeyCompleteness::Prefix => Some(prefix_range(definition, key)),
        KeyCompleteness::TooLong => None,
    }
}

/// Whether the container was made again under its name since it was looked up.
pub(super) fn is_another_container(error: &Error) -> bool {
    error.is_status(Status::BAD_REQUEST, SubStatus::COLLECTION_RID_MISMATCH)
}

/// A query under way.
#[derive(Debug)]
pub struct Pages<T> {
    pages: QueryPages<ServicePages>,
    /// What to ask again if the container turns out to be another one: until the first page.
    again: Option<Box<Question>>,
    row: PhantomData<fn() -> T>,
}

/// A page of rows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Request units since the page before.
    pub charge: f64,
    /// Requests since the page before; none if its rows had come with earlier ones.
    pub requests: u32,
    /// What happened to the last of them, newest first.
    pub diagnostics: Vec<Diagnostics>,
}

impl<T: DeserializeOwned> Pages<T> {
    /// The next page; none after the last. After an error the same page can be asked for again, unless its rows
    /// do not fit into `T` ([`Mismatch`](crate::ErrorKind::Mismatch)).
    pub async fn next_page(&mut self) -> Result<Option<Page<T>>> {
        let page = match (Box::pin(self.pages.next_page()).await, self.again.take()) {
            (Err(error), Some(question)) if is_another_container(&error) => {
                self.pages = Box::pin(question.plan()).await?;
                Box::pin(self.pages.next_page()).await?
            }
            // Another try of the same page is still the first one.
            (Err(error), again) => {
                self.again = again;
                return Err(error);
            }
            (page, _) => page?,
        };
        let Some(page) = page else { return Ok(None) };
        let items = page.rows.iter().map(|row| from_body(row)).collect::<Result<_>>()?;
        let (charge, requests, diagnostics) = (page.charge, page.requests, page.diagnostics);
        Ok(Some(Page { items, charge, requests, diagnostics }))
    }

    /// Where to go on after the pages so far; none after the last. Give it to
    /// [`QueryItems::continuation`] of the same query.
    pub fn continuation(&self) -> Option<String> {
        self.pages.continuation()
    }
}
