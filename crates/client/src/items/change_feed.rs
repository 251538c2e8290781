//! `change_feed`: what was written, in order.

use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;

use driver::change_feed::{ChangeFeed, ChangeFeedMode, ChangeFeedOptions, ChangeFeedStart, ServiceChanges};
use driver::diagnostics::Diagnostics;
use serde::de::DeserializeOwned;

use super::query::{is_another_container, range_of};
use crate::container::ContainerClient;
use crate::serialize::from_body;
use crate::{FeedRange, OperationOptions, PartitionKey, Result};

impl ContainerClient {
    /// Follows what is written to the container, from now on unless it is told otherwise.
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

/// A change feed until it is started.
#[must_use = "nothing is sent before it is started"]
pub struct FollowChanges<T> {
    container: ContainerClient,
    key: Option<PartitionKey>,
    feed: ChangeFeedOptions,
    options: OperationOptions,
    change: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> FollowChanges<T> {
    /// Where to begin.
    pub fn from(mut self, start: ChangeFeedStart) -> FollowChanges<T> {
        self.feed = self.feed.with_start(start);
        self
    }

    /// Which changes are told.
    pub fn mode(mut self, mode: ChangeFeedMode) -> FollowChanges<T> {
        self.feed = self.feed.with_mode(mode);
        self
    }

    /// Follows the items of this key only, or of all keys that begin like it.
    pub fn partition_key(mut self, key: impl Into<PartitionKey>) -> FollowChanges<T> {
        self.key = Some(key.into());
        self
    }

    /// Follows this part of the container only: one of its [ranges](ContainerClient::feed_ranges). Readers that
    /// take one each see every change once.
    pub fn range(mut self, range: FeedRange) -> FollowChanges<T> {
        self.feed = self.feed.with_range(range);
        self
    }

    /// The most changes of a page.
    pub fn page_size(mut self, changes: NonZeroU32) -> FollowChanges<T> {
        self.feed = self.feed.with_page_items(changes);
        self
    }

    /// Goes on where an earlier reader of the same feed stopped, be it in another process.
    pub fn continuation(mut self, continuation: impl Into<String>) -> FollowChanges<T> {
        self.feed = self.feed.with_continuation(continuation);
        self
    }

    /// Sees at least what this session token has seen, instead of what this client has: one of an answer, or of
    /// [`ContainerClient::session_token`].
    pub fn session_token(mut self, token: &str) -> FollowChanges<T> {
        self.feed = self.feed.with_session_token(token);
        self
    }

    /// Options of each request of this feed.
    pub fn options(mut self, options: OperationOptions) -> FollowChanges<T> {
        self.options = options;
        self
    }

    /// Starts it. What is written after this call is in one of its pages.
    pub async fn start(self) -> Result<Changes<T>> {
        // A continuation belongs to the container it came from, and to no other of its name.
        let is_new = self.feed.continuation.is_none();
        let feed = match Box::pin(self.begin()).await {
            Err(error) if is_new && is_another_container(&error) => Box::pin(self.begin()).await?,
            feed => feed?,
        };
        Ok(Changes { feed, again: is_new.then(|| Box::new(self)), change: PhantomData })
    }

    async fn begin(&self) -> Result<ChangeFeed<ServiceChanges>> {
        let (driver, name) = (self.container.driver(), self.container.name());
        let mut feed = self.feed.clone();
        if let Some(key) = &self.key {
            feed = feed.with_range(range_of(key, &self.container).await?);
        }
        driver.change_feed(name, feed, &self.options).await
    }
}

impl<T> fmt::Debug for FollowChanges<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FollowChanges").field("feed", &self.feed).finish_non_exhaustive()
    }
}

/// A change feed that is read.
#[derive(Debug)]
pub struct Changes<T> {
    feed: ChangeFeed<ServiceChanges>,
    /// What to start again if the container turns out to be another one: until the first page.
    again: Option<Box<FollowChanges<T>>>,
    change: PhantomData<fn() -> T>,
}

/// Some changes, those of one logical partition in the order in which they were made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChangesPage<T> {
    /// The changes.
    pub items: Vec<T>,
    /// Whether there was nothing new anywhere: wait a while before the next page.
    pub caught_up: bool,
    /// Request units since the page before.
    pub charge: f64,
    /// Requests since the page before: those that found nothing new are among them.
    pub requests: u32,
    /// What happened to the last of them, newest first.
    pub diagnostics: Vec<Diagnostics>,
}

impl<T: DeserializeOwned> Changes<T> {
    /// The next changes, or word that there are none anywhere. Dropping the call loses nothing.
    ///
    /// Changes that do not fit into `T` are an error ([`Mismatch`](crate::ErrorKind::Mismatch)) and are not told again;
    /// where items of several shapes are stored, follow them as [`serde_json::Value`].
    pub async fn next_page(&mut self) -> Result<ChangesPage<T>> {
        let page = match (Box::pin(self.feed.next_page()).await, self.again.take()) {
            (Err(error), Some(follow)) if is_another_container(&error) => {
                self.feed = Box::pin(follow.begin()).await?;
                Box::pin(self.feed.next_page()).await?
            }
            // Another try of the same page is still the first one.
            (Err(error), again) => {
                self.again = again;
                return Err(error);
            }
            (page, _) => page?,
        };
        let items = page.items.iter().map(|item| from_body(item)).collect::<Result<_>>()?;
        let caught_up = page.caught_up();
        let (charge, requests, diagnostics) = (page.charge, page.requests, page.diagnostics);
        Ok(ChangesPage { items, caught_up, charge, requests, diagnostics })
    }

    /// Where to go on after the pages so far. Give it to [`FollowChanges::continuation`].
    pub fn continuation(&self) -> String {
        self.feed.continuation()
    }
}
