//! `change_feed`: reads the changes of a container, page by page.

use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use driver::change_feed::{
    ChangeFeed, ChangeFeedMode, ChangeFeedOptions, ChangeFeedStart, ChangePage, ServiceChanges,
};
use driver::diagnostics::Diagnostics;
use driver::{CosmosDriver, Error, ErrorKind, Sleep};
use futures::{FutureExt, Stream, StreamExt, TryStreamExt, stream};
use serde::de::DeserializeOwned;

use super::query::{is_container_recreated, key_range};
use crate::call_options::call_options;
use crate::container::ContainerClient;
use crate::pages::{PageReader, PageStream, entries};
use crate::serialize::from_body;
use crate::{FeedRange, OperationOptions, PartitionKey, Result};

impl ContainerClient {
    /// Reads the changes of the container; from now on unless [`from`](FollowChanges::from) sets another start.
    pub fn change_feed<T: DeserializeOwned>(&self) -> FollowChanges<T> {
        let request = FeedRequest {
            container: self.clone(),
            key: None,
            feed: ChangeFeedOptions::new(),
            options: OperationOptions::new(),
        };
        FollowChanges { request, poll_interval: POLL_INTERVAL, change: PhantomData }
    }
}

/// How long a stream waits after it has read all changes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A change feed with its options, before it is [started](FollowChanges::start).
#[must_use = "nothing is sent before it is started"]
pub struct FollowChanges<T> {
    request: FeedRequest,
    poll_interval: Duration,
    change: PhantomData<fn() -> T>,
}

/// A change feed with its options, without the type of its changes.
#[derive(Debug)]
struct FeedRequest {
    container: ContainerClient,
    key: Option<PartitionKey>,
    feed: ChangeFeedOptions,
    options: OperationOptions,
}

call_options!(impl[T] FollowChanges<T>, "Sets how long each page may take, with all its requests.");

impl<T> FollowChanges<T> {
    fn options_mut(&mut self) -> &mut OperationOptions {
        &mut self.request.options
    }

    fn map_feed(mut self, change: impl FnOnce(ChangeFeedOptions) -> ChangeFeedOptions) -> FollowChanges<T> {
        self.request.feed = change(self.request.feed);
        self
    }
}

impl<T: DeserializeOwned> FollowChanges<T> {
    /// Sets where the feed starts. Default: now.
    pub fn from(self, start: ChangeFeedStart) -> FollowChanges<T> {
        self.map_feed(|feed| feed.with_start(start))
    }

    /// Sets the mode of the feed. Default: the latest version of each item.
    pub fn mode(self, mode: ChangeFeedMode) -> FollowChanges<T> {
        self.map_feed(|feed| feed.with_mode(mode))
    }

    /// Limits the feed to items of this partition key, or of all keys with this prefix.
    pub fn partition_key(mut self, key: impl Into<PartitionKey>) -> FollowChanges<T> {
        self.request.key = Some(key.into());
        self
    }

    /// Limits the feed to one of the container's [feed ranges](ContainerClient::feed_ranges). Readers of different
    /// ranges together get every change once.
    pub fn range(self, range: FeedRange) -> FollowChanges<T> {
        self.map_feed(|feed| feed.with_range(range))
    }

    /// Sets the largest number of changes in a page.
    pub fn page_size(self, changes: NonZeroU32) -> FollowChanges<T> {
        self.map_feed(|feed| feed.with_page_items(changes))
    }

    /// Continues where an earlier reader of the same feed stopped, which may have run in another process.
    pub fn continuation(self, continuation: impl Into<String>) -> FollowChanges<T> {
        self.map_feed(|feed| feed.with_continuation(continuation))
    }

    /// Uses this session token instead of the client's own: that of a response, or of
    /// [`ContainerClient::session_token`].
    pub fn session_token(self, token: &str) -> FollowChanges<T> {
        self.map_feed(|feed| feed.with_session_token(token))
    }

    /// Sets how long a stream waits after a page without changes before it asks again. Default: 1 s.
    pub fn poll_interval(mut self, interval: Duration) -> FollowChanges<T> {
        self.poll_interval = interval;
        self
    }

    /// Starts the feed. Everything that is written after this call is in one of its pages.
    pub async fn start(self) -> Result<Changes<T>> {
        let FollowChanges { request, poll_interval, .. } = self;
        // A continuation is not valid for a container that was created again under the same name.
        let may_restart = request.feed.continuation.is_none();
        let feed = match Box::pin(request.open()).await {
            Err(error) if may_restart && is_container_recreated(&error) => Box::pin(request.open()).await?,
            feed => feed?,
        };
        let (driver, continuation) = (request.container.driver().clone(), feed.continuation());
        let pages = PageStream::new(FeedReader { feed, request: Box::new(request), may_restart });
        Ok(Changes { pages, continuation, driver, poll_interval, wait: None, change: PhantomData })
    }

    /// The changes as a stream, which starts the feed when it is first polled and ends only with an error. It waits for
    /// the [poll interval](FollowChanges::poll_interval) whenever it has read all changes.
    ///
    /// A service that goes on after an error uses [`start`](FollowChanges::start): its pages continue where they failed,
    /// and have continuations.
    pub fn stream(self) -> impl Stream<Item = Result<T>> + Send
    where
        T: Send,
    {
        let pages = stream::once(self.start()).try_flatten();
        entries(Box::pin(pages.map_ok(|page| page.items)))
    }
}

impl FeedRequest {
    async fn open(&self) -> Result<ChangeFeed<ServiceChanges>> {
        let (driver, name) = (self.container.driver(), self.container.name());
        let deadline = driver.call_deadline(&self.options)?;
        let open = async {
            let mut feed = self.feed.clone();
            if let Some(key) = &self.key {
                let options = deadline.options()?;
                feed.range = Some(key_range(key, feed.range.as_ref(), &self.container, &options).await?);
            }
            driver.change_feed(name, feed, &self.options).await
        };
        deadline.within(Box::pin(open)).await
    }
}

impl<T> fmt::Debug for FollowChanges<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FollowChanges").field("feed", &self.request.feed).finish_non_exhaustive()
    }
}

/// Reads the pages of a change feed.
struct FeedReader {
    feed: ChangeFeed<ServiceChanges>,
    request: Box<FeedRequest>,
    /// Whether the feed is started again if the container was deleted and created again: before the first page.
    may_restart: bool,
}

impl PageReader for FeedReader {
    /// A page, and the continuation after it.
    type Page = (ChangePage, String);

    async fn read(&mut self) -> Result<Option<Self::Page>> {
        let deadline = self.request.container.driver().call_deadline(&self.request.options)?;
        let page = match deadline.within(Box::pin(self.feed.next_page())).await {
            Err(error) if self.may_restart && is_container_recreated(&error) => {
                self.may_restart = false;
                self.feed = Box::pin(self.request.open()).await?;
                deadline.within(Box::pin(self.feed.next_page())).await?
            }
            page => page?,
        };
        self.may_restart = false;
        Ok(Some((page, self.feed.continuation())))
    }
}

/// A change feed that is being read: a [`Stream`](crate::Stream) of pages that never ends.
///
/// The stream waits for the [poll interval](FollowChanges::poll_interval) after a page without changes;
/// [`next_page`](Changes::next_page) asks at once. After an error, the next page is the one that failed, unless its
/// changes do not fit into `T` ([`Mismatch`](crate::ErrorKind::Mismatch)): these are not returned again. If the
/// container has items of several types, read them as [`serde_json::Value`].
///
/// ```no_run
/// # use perihelion::{ContainerClient, Result};
/// # use futures::TryStreamExt;
/// # async fn run(orders: ContainerClient) -> Result<()> {
/// let mut changes = orders.change_feed::<serde_json::Value>().start().await?;
/// while let Some(page) = changes.try_next().await? {
///     println!("{} changes; continue with {}", page.items.len(), page.continuation);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Changes<T> {
    pages: PageStream<FeedReader>,
    continuation: String,
    driver: CosmosDriver,
    poll_interval: Duration,
    /// The wait before the next request of the stream, if the last page had no changes.
    wait: Option<Sleep>,
    change: PhantomData<fn() -> T>,
}

/// A page of changes. The changes of one logical partition are in the order in which they were made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChangesPage<T> {
    /// The changes of this page.
    pub items: Vec<T>,
    /// Whether no partition had new changes: wait a while before the next page.
    pub caught_up: bool,
    /// The request units since the page before.
    pub charge: f64,
    /// The number of requests since the page before, including those that found no changes.
    pub requests: u32,
    /// The diagnostics of the last requests, newest first.
    pub diagnostics: Vec<Diagnostics>,
    /// The session token of the partitions that responded since the page before: a read with it sees at least what this
    /// page shows.
    pub session_token: Option<String>,
    /// The continuation after this page, for [`FollowChanges::continuation`].
    pub continuation: String,
}

impl<T: DeserializeOwned> Changes<T> {
    /// Reads the next page at once; it is empty if there are no new changes. Dropping the future loses no changes.
    pub async fn next_page(&mut self) -> Result<ChangesPage<T>> {
        self.wait = None;
        match self.next().await {
            Some(page) => page,
            None => Err(Error::new(ErrorKind::Stopped, "the change feed has ended; start it again")),
        }
    }

    /// The continuation after the pages so far, for [`FollowChanges::continuation`].
    pub fn continuation(&self) -> String {
        self.continuation.clone()
    }
}

impl<T: DeserializeOwned> Stream for Changes<T> {
    type Item = Result<ChangesPage<T>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let changes = self.get_mut();
        if let Some(wait) = &mut changes.wait {
            ready!(wait.poll_unpin(context));
            changes.wait = None;
        }
        let page = ready!(changes.pages.poll_next_unpin(context));
        Poll::Ready(page.map(|page| {
            let (page, continuation) = page?;
            changes.continuation.clone_from(&continuation);
            let caught_up = page.caught_up();
            changes.wait = caught_up.then(|| changes.driver.sleep(changes.poll_interval));
            Ok(ChangesPage {
                items: page.items.iter().map(|item| from_body(item)).collect::<Result<_>>()?,
                caught_up,
                charge: page.charge,
                requests: page.requests,
                diagnostics: page.diagnostics,
                session_token: page.session_token,
                continuation,
            })
        }))
    }
}

impl<T> fmt::Debug for Changes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("pages", &self.pages).finish_non_exhaustive()
    }
}
