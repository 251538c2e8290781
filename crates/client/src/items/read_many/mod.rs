//! `read_many`: items by their partition keys and ids, with few requests.

mod plan;

use std::collections::HashMap;
use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::sync::Arc;

use bytes::Bytes;
use driver::diagnostics::Diagnostics;
use driver::operation::Operation;
use driver::query::QueryOptions;
use driver::{CallDeadline, Container, ContainerSession, CosmosDriver, SessionScope};
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};
use serde::de::DeserializeOwned;

pub use self::plan::ItemIdentity;

use self::plan::{PartitionRead, check_keys, identity_of, plan, query_body};
use super::query::is_container_recreated;
use super::read::is_missing_item;
use crate::call_options::call_options;
use crate::container::ContainerClient;
use crate::serialize::from_body;
use crate::{OperationOptions, Result};

/// Requests at a time by default.
const PARALLEL_MAX: NonZeroUsize = NonZeroUsize::new(8).expect("8 is not zero");
/// Requests whose diagnostics a response contains.
const DIAGNOSTICS_MAX: usize = 64;

impl ContainerClient {
    /// Reads many items by their partition keys and ids, with few requests: a point read for each partition of which one
    /// item is asked for, and otherwise a query for up to 1,000 items of a partition.
    ///
    /// An item that does not exist is no error. An item that is asked for twice is read once and returned twice.
    ///
    /// ```no_run
    /// # use perihelion::{ContainerClient, Result};
    /// # use serde_json::Value;
    /// # async fn run(orders: ContainerClient) -> Result<()> {
    /// let response = orders.read_many::<Value>([("ada", "o-1"), ("bob", "o-7")]).await?;
    /// for order in response.found() {
    ///     println!("{order}");
    /// }
    /// println!("{} RU, missing: {:?}", response.charge, response.missing);
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_many<T: DeserializeOwned>(
        &self,
        items: impl IntoIterator<Item = impl Into<ItemIdentity>>,
    ) -> ReadMany<T> {
        ReadMany {
            container: self.clone(),
            items: items.into_iter().map(Into::into).collect(),
            parallel_max: PARALLEL_MAX,
            session_token: None,
            options: OperationOptions::new(),
            item: PhantomData,
        }
    }
}

/// A read of many items that is sent when it is awaited.
#[must_use = "nothing is sent before it is awaited"]
pub struct ReadMany<T> {
    container: ContainerClient,
    items: Vec<ItemIdentity>,
    parallel_max: NonZeroUsize,
    session_token: Option<String>,
    options: OperationOptions,
    item: PhantomData<fn() -> T>,
}

call_options!(impl[T] ReadMany<T>, "Sets how long the read may take, with all its requests.");

impl<T> ReadMany<T> {
    fn options_mut(&mut self) -> &mut OperationOptions {
        &mut self.options
    }

    /// Sets how many requests are sent at a time. Default: 8.
    pub fn parallel_max(mut self, requests: NonZeroUsize) -> ReadMany<T> {
        self.parallel_max = requests;
        self
    }

    /// Uses this session token instead of the client's own: that of a response, or of
    /// [`ContainerClient::session_token`].
    pub fn session_token(mut self, token: &str) -> ReadMany<T> {
        self.session_token = Some(token.to_owned());
        self
    }
}

impl<T: DeserializeOwned> ReadMany<T> {
    async fn send(self) -> Result<ReadManyResponse<T>> {
        let driver = self.container.driver().clone();
        let deadline = driver.call_deadline(&self.options)?;
        // The items that differ, and for each position of the list the one that is asked for there.
        let mut distinct: Vec<ItemIdentity> = Vec::with_capacity(self.items.len());
        let mut indexes: HashMap<ItemIdentity, usize> = HashMap::with_capacity(self.items.len());
        let asked = self.items.into_iter().map(|item| {
            *indexes.entry(item).or_insert_with_key(|item| {
                distinct.push(item.clone());
                distinct.len() - 1
            })
        });
        let asked: Vec<usize> = asked.collect();
        if asked.is_empty() {
            return ReadManyResponse::of(&[], &[], PartitionItems::default());
        }
        let request = PartitionRequests {
            driver,
            container: self.container,
            session_token: self.session_token,
            parallel_max: self.parallel_max,
            distinct,
            indexes,
            deadline: deadline.clone(),
        };
        let read = deadline.within(Box::pin(request.send())).await?;
        ReadManyResponse::of(&asked, &request.distinct, read)
    }
}

impl<T: DeserializeOwned + Send + 'static> IntoFuture for ReadMany<T> {
    type Output = Result<ReadManyResponse<T>>;
    type IntoFuture = BoxFuture<'static, Result<ReadManyResponse<T>>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

impl<T> fmt::Debug for ReadMany<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let container = self.container.id();
        f.debug_struct("ReadMany").field("container", &container).field("items", &self.items.len()).finish()
    }
}

/// The requests of a read, without the type of its items.
struct PartitionRequests {
    driver: CosmosDriver,
    container: ContainerClient,
    session_token: Option<String>,
    parallel_max: NonZeroUsize,
    distinct: Vec<ItemIdentity>,
    indexes: HashMap<ItemIdentity, usize>,
    deadline: CallDeadline,
}

/// What requests have read: items as JSON, by their index among those that differ, and what they cost.
#[derive(Default)]
struct PartitionItems {
    found: HashMap<usize, Bytes>,
    charge: f64,
    requests: u32,
    diagnostics: Vec<Diagnostics>,
    session: ContainerSession,
}

impl PartitionRequests {
    async fn send(&self) -> Result<PartitionItems> {
        let known = self.driver.container(self.container.name(), &self.deadline.options()?).await?;
        // The container may have been deleted and created again, possibly with another partition key.
        if check_keys(&self.distinct, known.partition_key()).is_ok() {
            match self.read_all(&known).await {
                Err(error) if is_container_recreated(&error) => {}
                read => return read,
            }
        }
        let newest = self.driver.refresh_container(&known, &self.deadline.options()?).await?;
        check_keys(&self.distinct, newest.partition_key())
            .map_err(|error| error.about(self.container.name().link()))?;
        self.read_all(&newest).await
    }

    async fn read_all(&self, container: &Arc<Container>) -> Result<PartitionItems> {
        let partitions = self.driver.partitions(container, &self.deadline.options()?).await?;
        let reads = plan(&self.distinct, container.partition_key(), partitions.map());
        let requests = reads.into_iter().map(|read| self.read(container, read));
        let responses = stream::iter(requests).buffer_unordered(self.parallel_max.get());
        responses.try_fold(PartitionItems::default(), async |all, one| Ok(all.merged(one))).await
    }

    async fn read(&self, container: &Arc<Container>, read: PartitionRead) -> Result<PartitionItems> {
        match read {
            PartitionRead::Point(index) => self.read_item(index).await,
            PartitionRead::Query { range, items } => {
                let paging = QueryOptions::new().with_range(range).with_parallel_max(NonZeroUsize::MIN);
                // One request for all keys, not one for each.
                self.query(container, paging.without_range_pruning(), &items).await
            }
        }
    }

    async fn read_item(&self, index: usize) -> Result<PartitionItems> {
        let ItemIdentity { key, id } = &self.distinct[index];
        let mut operation = Operation::read_item(self.container.name(), key.clone(), id);
        if let Some(token) = &self.session_token {
            operation = operation.with_session_token(token);
        }
        let mut read = PartitionItems { requests: 1, ..PartitionItems::default() };
        let options = self.deadline.options()?;
        let diagnostics = match Box::pin(self.driver.execute_operation(&operation, &options)).await {
            Ok(response) => {
                read.record_session(response.session_token());
                let (_, _, body, diagnostics) = response.into_parts();
                read.found.insert(index, body);
                Some(diagnostics)
            }
            Err(error) if is_missing_item(&error) => error.diagnostics().cloned(),
            Err(error) => return Err(error),
        };
        read.charge = diagnostics.as_ref().map_or(0.0, |diagnostics| diagnostics.totals().charge);
        read.diagnostics.extend(diagnostics);
        Ok(read)
    }

    async fn query(
        &self,
        container: &Arc<Container>,
        mut paging: QueryOptions,
        items: &[usize],
    ) -> Result<PartitionItems> {
        let definition = container.partition_key();
        let asked: Vec<&ItemIdentity> = items.iter().map(|&index| &self.distinct[index]).collect();
        let body = query_body(&asked, definition)?;
        if let Some(token) = &self.session_token {
            paging = paging.with_session_token(token);
        }
        let options = self.deadline.options()?;
        let pages = self.driver.query(self.container.name(), body, &paging, &options);
        let mut pages = Box::pin(pages).await?;
        let mut read = PartitionItems::default();
        while let Some(page) = Box::pin(pages.next_page()).await? {
            for row in page.rows {
                // A row that was not asked for has an equal value in the query language and another key: 0 and -0.
                let identity = identity_of(&row, definition);
                if let Some(index) = identity.and_then(|identity| self.indexes.get(&identity)) {
                    read.found.insert(*index, row);
                }
            }
            read.charge += page.charge;
            read.requests += page.requests;
            read.diagnostics.extend(page.diagnostics);
            read.record_session(page.session_token.as_deref());
        }
        Ok(read)
    }
}

impl PartitionItems {
    fn record_session(&mut self, token: Option<&str>) {
        if let Some(token) = token {
            self.session.record(token);
        }
    }

    fn merged(mut self, other: PartitionItems) -> PartitionItems {
        self.record_session(other.session.token(SessionScope::Unknown).as_deref());
        self.found.extend(other.found);
        self.charge += other.charge;
        self.requests += other.requests;
        self.diagnostics.extend(other.diagnostics);
        self.diagnostics.truncate(DIAGNOSTICS_MAX);
        self
    }
}

/// The response to a read of many items.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReadManyResponse<T> {
    /// The items in the order in which they were asked for; none for one that does not exist.
    pub items: Vec<Option<T>>,
    /// The items that do not exist, in the order in which they were asked for.
    pub missing: Vec<ItemIdentity>,
    /// The request units of all requests.
    pub charge: f64,
    /// The number of requests.
    pub requests: u32,
    /// The diagnostics of the requests, of 64 at most.
    pub diagnostics: Vec<Diagnostics>,
    /// The session token of the partitions that responded: a read with it sees at least what this one has seen.
    pub session_token: Option<String>,
}

impl<T> ReadManyResponse<T> {
    /// The items that exist, in the order in which they were asked for.
    pub fn found(&self) -> impl Iterator<Item = &T> {
        self.items.iter().flatten()
    }

    /// The items that exist, by value, in the order in which they were asked for.
    pub fn into_found(self) -> Vec<T> {
        self.items.into_iter().flatten().collect()
    }
}

impl<T: DeserializeOwned> ReadManyResponse<T> {
    fn of(asked: &[usize], distinct: &[ItemIdentity], read: PartitionItems) -> Result<ReadManyResponse<T>> {
        let missing = asked.iter().filter(|index| !read.found.contains_key(index));
        let missing = missing.map(|index| distinct[*index].clone()).collect();
        let item = |index: &usize| read.found.get(index).map(|item| from_body(item)).transpose();
        Ok(ReadManyResponse {
            items: asked.iter().map(item).collect::<Result<_>>()?,
            missing,
            charge: read.charge,
            requests: read.requests,
            session_token: read.session.token(SessionScope::Unknown),
            diagnostics: read.diagnostics,
        })
    }
}
