//! `change_feed`: reads the changes of a container, page by page.

use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;

use driver::change_feed::{ChangeFeed, ChangeFeedMode, ChangeFeedOptions, ChangeFeedStart, ServiceChanges};
use driver::diagnostics::Diagnostics;
use serde::de::DeserializeOwned;

use super::query::{is_container_recreated, key_range};
use crate::container::ContainerClient;
use crate::serialize::from_body;
use crate::{FeedRange, OperationOptions, PartitionKey, Result};

impl ContainerClient {
    /// Reads the changes of the container; from now on unless [`from`](FollowChanges::from) sets another start.
    pub fn change_feed<T: DeserializeOwned>(&self) -> FollowChanges<T> {
        FollowChanges {
            container: self.clone(),
            key: None,
            feed: ChangeFeedOptions::new(),
            options: OperationOptions::new(),
            change: PhantomData,
        }
    }
}

/// A change feed with its options, before it is [started](FollowChanges::start).
#[must_use = "nothing is sent before it is started"]
pub struct FollowChanges<T> {
    container: ContainerClient,
    key: Option<PartitionKey>,
    feed: ChangeFeedOptions,
    options: OperationOptions,
    change: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> FollowChanges<T> {
    /// Sets where the feed starts. Default: now.
    pub fn from(mut self, start: ChangeFeedStart) -> FollowChanges<T> {
        self.feed = self.feed.with_start(start);
        self
    }

    /// Sets the mode of the feed. Default: the latest version of each item.
    pub fn mode(mut self, mode: ChangeFeedMode) -> FollowChanges<T> {
        self.feed = self.feed.with_mode(mode);
        self
    }

    /// Limits the feed to items of this partition key, or of all keys with this prefix.
    pub fn partition_key(mut self, key: impl Into<PartitionKey>) -> FollowChanges<T> {
        self.key = Some(key.into());
        self
    }

    /// Limits the feed to one of the container's [feed ranges](ContainerClient::feed_ranges). Readers of different
    /// ranges together get every change once.
    pub fn range(mut self, range: FeedRange) -> FollowChanges<T> {
        self.feed = self.feed.with_range(range);
        self
    }

    /// Sets the largest number of changes in a page.
    pub fn page_size(mut self, changes: NonZeroU32) -> FollowChanges<T> {
        self.feed = self.feed.with_page_items(changes);
        self
    }

    /// Continues where an earlier reader of the same feed stopped, which may have run in another process.
    pub fn continuation(mut self, continuation: impl Into<String>) -> FollowChanges<T> {
        self.feed = self.feed.with_continuation(continuation);
        self
    }

    /// Uses this session token instead of the client's own: that of a response, or of
    /// [`ContainerClient::session_token`].
    pub fn session_token(mut self, token: &str) -> FollowChanges<T> {
        self.feed = self.feed.with_session_token(token);
        self
    }

    /// Sets the options of each request of this feed.
    pub fn options(mut self, options: OperationOptions) -> FollowChanges<T> {
        self.options = options;
        self
    }

    /// Starts the feed. Everything that is written after this call is in one of its pages.
    pub async fn start(self) -> Result<Changes<T>> {
        // A continuation is not valid for a container that was created again under the same name.
        let is_new = self.feed.continuation.is_none();
        let feed = match Box::pin(self.open()).await {
            Err(error) if is_new && is_container_recreated(&error) => Box::pin(self.open()).await?,
            feed => feed?,
        };
        Ok(Changes { feed, restart: is_new.then(|| Box::new(self)), change: PhantomData })
    }

    async fn open(&self) -> Result<ChangeFeed<ServiceChanges>> {
        let (driver, name) = (self.container.driver(), self.container.name());
        let mut feed = self.feed.clone();
        if let Some(key) = &self.key {
            feed = feed.with_range(key_range(key, &self.container, &self.options).await?);
        }
        driver.change_feed(name, feed, &self.options).await
    }
}

impl<T> fmt::Debug for FollowChanges<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FollowChanges").field("feed", &self.feed).finish_non_exhaustive()
    }
}

/// A change feed that is being read.
#[derive(Debug)]
pub struct Changes<T> {
    feed: ChangeFeed<ServiceChanges>,
    /// The feed to start again if the container was deleted and created again; none after the first page.
    restart: Option<Box<FollowChanges<T>>>,
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
}

impl<T: DeserializeOwned> Changes<T> {
    /// Reads the next page; it is empty if there are no new changes. Dropping the future loses no changes.
    ///
    /// Changes that do not fit into `T` are an error ([`Mismatch`](crate::ErrorKind::Mismatch)) and are not returned
    /// again; if the container has items of several types, read them as [`serde_json::Value`].
    pub async fn next_page(&mut self) -> Result<ChangesPage<T>> {
        let page = match (Box::pin(self.feed.next_page()).await, self.restart.take()) {
            (Err(error), Some(follow)) if is_container_recreated(&error) => {
                self.feed = Box::pin(follow.open()).await?;
                Box::pin(self.feed.next_page()).await?
            }
            // After any other error the next call reads the first page again.
            (Err(error), again) => {
                self.restart = again;
                return Err(error);
            }
            (page, _) => page?,
        };
        let items = page.items.iter().map(|item| from_body(item)).collect::<Result<_>>()?;
        let caught_up = page.caught_up();
        let (charge, requests, diagnostics) = (page.charge, page.requests, page.diagnostics);
        Ok(ChangesPage { items, caught_up, charge, requests, diagnostics })
    }

    /// The continuation after the pages so far, for [`FollowChanges::continuation`].
    pub fn continuation(&self) -> String {
        self.feed.continuation()
    }
}
