//! The change feed: what was written, in order, over feed ranges.
//!
//! A [`ChangeFeed`] keeps one cursor per EPK range (`cursor`) and reads them one after another; within a
//! logical partition changes come in the order they were made. It asks through a [`ChangeSource`] and
//! so knows neither requests nor regions. An EPK range that splits continues as its parts, each from where
//! the whole had come to; nothing is lost and nothing is repeated.
//!
//! The feed never ends. A page that says it is [caught up](ChangePage::caught_up) means that there was
//! nothing new anywhere: wait a while, or go away and come back with the continuation.

mod cursor;
mod service;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use protocol::partition::EpkRange;

pub use self::cursor::FeedPosition;
pub use self::service::ServiceChanges;

use self::cursor::{Continuation, RangeCursor};
use crate::diagnostics::{Diagnostics, Recent};
use crate::error::{Error, ErrorKind};
use crate::operation::ResponseHeaders;
use crate::query::PageError;
use crate::query::response_totals::ResponseTotals;
use crate::query::rows;

/// Which changes a feed contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangeFeedMode {
    /// Each item as it is now, once, however often it was changed in between. Deletes are left out.
    #[default]
    LatestVersion,
    /// Every change, deletes included, as far back as the container keeps them.
    AllVersionsAndDeletes,
}

/// Where a feed begins that does not continue from a continuation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeFeedStart {
    /// With the first change there ever was. Not for all versions and deletes.
    Beginning,
    /// With what is changed from now on.
    #[default]
    Now,
    /// With what was changed after this time, to the second. Not for all versions and deletes.
    After(SystemTime),
}

/// How a feed is read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChangeFeedOptions {
    /// Which changes. Default: the latest version of each item.
    pub mode: ChangeFeedMode,
    /// Where to begin. Default: now.
    pub start: ChangeFeedStart,
    /// The most changes of a page; those of one transaction stay together. Default: what the service gives.
    pub page_items: Option<NonZeroU32>,
    /// Requests at a time. Default: 8.
    pub parallel_max: NonZeroUsize,
    /// The part of the container to watch. Default: all of it.
    pub range: Option<EpkRange>,
    /// Where an earlier reader of the same feed stopped; the start is then of no account.
    pub continuation: Option<String>,
    /// The session token whose changes the feed contains at least, instead of this driver's. Default: none.
    pub session_token: Option<String>,
}

impl Default for ChangeFeedOptions {
    fn default() -> ChangeFeedOptions {
        ChangeFeedOptions {
            mode: ChangeFeedMode::default(),
            start: ChangeFeedStart::default(),
            page_items: None,
            parallel_max: NonZeroUsize::new(8).expect("8 is not zero"),
            range: None,
            continuation: None,
            session_token: None,
        }
    }
}

impl ChangeFeedOptions {
    /// Options with the default values.
    pub fn new() -> ChangeFeedOptions {
        ChangeFeedOptions::default()
    }

    /// Sets which changes the feed contains.
    #[must_use]
    pub fn with_mode(self, mode: ChangeFeedMode) -> ChangeFeedOptions {
        ChangeFeedOptions { mode, ..self }
    }

    /// Sets where to begin.
    #[must_use]
    pub fn with_start(self, start: ChangeFeedStart) -> ChangeFeedOptions {
        ChangeFeedOptions { start, ..self }
    }

    /// Sets the most changes of a page.
    #[must_use]
    pub fn with_page_items(self, items: NonZeroU32) -> ChangeFeedOptions {
        ChangeFeedOptions { page_items: Some(items), ..self }
    }

    /// Watches a part of the container only.
    #[must_use]
    pub fn with_range(self, range: EpkRange) -> ChangeFeedOptions {
        ChangeFeedOptions { range: Some(range), ..self }
    }

    /// Sees at least what this session token has seen, instead of what this driver has. It may be of several
    /// partitions, between commas: each is asked for its own part.
    #[must_use]
    pub fn with_session_token(self, token: impl Into<String>) -> ChangeFeedOptions {
        ChangeFeedOptions { session_token: Some(token.into()), ..self }
    }

    /// Continues where an earlier reader stopped.
    #[must_use]
    pub fn with_continuation(self, continuation: impl Into<String>) -> ChangeFeedOptions {
        ChangeFeedOptions { continuation: Some(continuation.into()), ..self }
    }
}

/// Serves requests for changes. The driver does, through its pipeline; tests do, with plain values.
pub trait ChangeSource: Send + Sync + 'static {
    /// A call begins that may need several requests. Its deadline, if it has one, counts from here.
    fn begin_call(&self) -> Result<(), Error> {
        Ok(())
    }

    /// The changed items, as JSON.
    fn changes(&self, request: ChangeRequest) -> impl Future<Output = Result<Changes, PageError>> + Send;

    /// The parts of `range` that one partition each owns, in order. `afresh` when what was known turned
    /// out to be wrong.
    fn divide(
        &self,
        range: EpkRange,
        afresh: bool,
    ) -> impl Future<Output = Result<Vec<EpkRange>, Error>> + Send;
}

/// A request for one page of changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeRequest {
    /// The EPK range; one partition owns it, or did.
    pub range: EpkRange,
    /// Which changes to read.
    pub mode: ChangeFeedMode,
    /// The position after which changes are read.
    pub since: FeedPosition,
    /// The most changes wanted.
    pub items_max: Option<NonZeroU32>,
}

/// One page of changes of an EPK range.
#[derive(Clone, Debug)]
pub struct Changes {
    /// `{"Documents": […]}`; empty when nothing changed.
    pub body: Bytes,
    /// The continuation after these changes.
    pub etag: String,
    /// The last change the partition had made by then, wherever in it; none where it does not say.
    pub lsn: Option<u64>,
    /// Request units of the page.
    pub charge: f64,
    /// The diagnostics of the request, if it was one to the service.
    pub diagnostics: Option<Diagnostics>,
    /// The headers of the response.
    pub headers: ResponseHeaders,
}

impl Changes {
    /// The changes, each as JSON.
    pub fn items(&self) -> Result<Vec<Bytes>, Error> {
        if self.body.is_empty() { Ok(Vec::new()) } else { rows::plain(&self.body) }
    }
}

/// Some changes, all of one EPK range.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChangePage {
    /// The changes, each as JSON: items, or envelopes of all versions and deletes.
    pub items: Vec<Bytes>,
    /// The range they are from; none when there was nothing new anywhere.
    pub range: Option<EpkRange>,
    /// Request units since the page before.
    pub charge: f64,
    /// Requests since the page before: those that found nothing new are among them.
    pub requests: u32,
    /// What happened to the last of them, newest first.
    pub diagnostics: Vec<Diagnostics>,
    /// The session token of the partitions that responded since the page before.
    pub session_token: Option<String>,
}

impl ChangePage {
    /// Whether there was nothing new anywhere.
    pub fn caught_up(&self) -> bool {
        self.range.is_none()
    }
}

/// A reader of changes.
#[derive(Debug)]
pub struct ChangeFeed<S> {
    source: Arc<S>,
    options: ChangeFeedOptions,
    fingerprint: u64,
    cursors: Vec<RangeCursor>,
    /// The index of the range that is read next.
    turn: usize,
    spent: Spent,
}

/// What was asked since the last page.
#[derive(Debug, Default)]
struct Spent {
    charge: f64,
    requests: u32,
    diagnostics: Recent,
    totals: ResponseTotals,
}

impl Spent {
    fn add(&mut self, changes: &mut Changes) {
        self.charge += changes.charge;
        self.requests += 1;
        self.totals.add(&std::mem::take(&mut changes.headers));
        if let Some(diagnostics) = changes.diagnostics.take() {
            self.diagnostics.push(diagnostics);
        }
    }

    /// A page that tells of it; the next one begins anew.
    fn page(&mut self, items: Vec<Bytes>, range: Option<EpkRange>) -> ChangePage {
        let Spent { charge, requests, mut diagnostics, totals } = std::mem::take(self);
        let (diagnostics, session_token) = (diagnostics.take(), totals.session_token());
        ChangePage { items, range, charge, requests, diagnostics, session_token }
    }
}

impl<S: ChangeSource> ChangeFeed<S> {
    /// A reader of the container of this `_rid`. Starting from now asks every partition where it is, so
    /// that no change after this call is missed.
    pub async fn start(
        source: Arc<S>,
        container_rid: &str,
        options: ChangeFeedOptions,
    ) -> Result<ChangeFeed<S>, Error> {
        let part = options.range.clone().unwrap_or(EpkRange::FULL);
        let fingerprint = cursor::fingerprint(container_rid, options.mode, &part);
        let begun = match &options.continuation {
            Some(text) => Continuation::parse(text, fingerprint)?.0,
            None => vec![RangeCursor { range: part, since: since(options.mode, options.start)? }],
        };
        let mut feed = ChangeFeed {
            source,
            options,
            fingerprint,
            cursors: Vec::new(),
            turn: 0,
            spent: Spent::default(),
        };
        for RangeCursor { range, since } in begun {
            let parts = feed.source.divide(range, false).await?;
            feed.cursors.extend(parts.into_iter().map(|range| RangeCursor { range, since: since.clone() }));
        }
        feed.settle_now().await?;
        Ok(feed)
    }

    /// The next changes of the range that is read next, or an empty page when there are none anywhere.
    ///
    /// Dropping the call loses nothing: a cursor moves on only when its changes are handed out.
    pub async fn next_page(&mut self) -> Result<ChangePage, Error> {
        self.source.begin_call()?;
        let mut quiet = 0;
        while quiet < self.cursors.len() {
            let at = self.turn % self.cursors.len();
            let Some((items, etag)) = self.ask(at).await? else {
                // Divided: its parts are to be asked before one can say that all is quiet.
                quiet = 0;
                continue;
            };
            self.cursors[at].since = FeedPosition::Etag(etag);
            self.turn = (at + 1) % self.cursors.len();
            if !items.is_empty() {
                let range = Some(self.cursors[at].range.clone());
                return Ok(self.spent.page(items, range));
            }
            quiet += 1;
        }
        Ok(self.spent.page(Vec::new(), None))
    }

    /// Where to continue after the pages so far, in this process or another.
    pub fn continuation(&self) -> String {
        Continuation(self.cursors.clone()).to_text(self.fingerprint)
    }

    /// The ranges that are read, in EPK order.
    pub fn ranges(&self) -> impl Iterator<Item = &EpkRange> {
        self.cursors.iter().map(|cursor| &cursor.range)
    }

    /// What is new at one cursor, and where it continues; none when it was divided.
    async fn ask(&mut self, at: usize) -> Result<Option<(Vec<Bytes>, String)>, Error> {
        let request = self.request(&self.cursors[at]);
        match self.source.changes(request).await {
            Ok(mut changes) => {
                self.spent.add(&mut changes);
                Ok(Some((changes.items()?, changes.etag)))
            }
            Err(PageError::Failed(error)) => Err(error),
            Err(PageError::Gone) => {
                self.divide(at).await?;
                Ok(None)
            }
        }
    }

    fn request(&self, cursor: &RangeCursor) -> ChangeRequest {
        ChangeRequest {
            range: cursor.range.clone(),
            mode: self.options.mode,
            since: cursor.since.clone(),
            items_max: self.options.page_items,
        }
    }

    /// Puts the parts of a cursor in its place.
    async fn divide(&mut self, at: usize) -> Result<(), Error> {
        let RangeCursor { range, since } = self.cursors[at].clone();
        let parts = self.source.divide(range.clone(), true).await?;
        if parts == [range] {
            let message = "a partition says that it is gone and nothing has taken its place";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        let parts = parts.into_iter().map(|range| RangeCursor { range, since: since.clone() });
        self.cursors.splice(at..=at, parts);
        Ok(())
    }

    /// Asks every cursor that begins now where now is: a partition that is asked later would leave out
    /// what was changed until then.
    async fn settle_now(&mut self) -> Result<(), Error> {
        loop {
            let waiting: Vec<usize> =
                (0..self.cursors.len()).filter(|at| self.cursors[*at].since == FeedPosition::Now).collect();
            if waiting.is_empty() {
                return Ok(());
            }
            let mut gone = Vec::new();
            for chunk in waiting.chunks(self.options.parallel_max.get()) {
                let mut asked: FuturesUnordered<_> = chunk
                    .iter()
                    .map(|at| {
                        let (source, request) = (Arc::clone(&self.source), self.request(&self.cursors[*at]));
                        async move { (*at, source.changes(request).await) }
                    })
                    .collect();
                while let Some((at, response)) = asked.next().await {
                    match response {
                        Ok(mut changes) => {
                            self.spent.add(&mut changes);
                            self.cursors[at].since = FeedPosition::Etag(changes.etag);
                        }
                        Err(PageError::Gone) => gone.push(at),
                        Err(PageError::Failed(error)) => return Err(error),
                    }
                }
            }
            // From the end, so that the places of the others stay what they are.
            gone.sort_unstable();
            for at in gone.into_iter().rev() {
                self.divide(at).await?;
            }
        }
    }
}

/// What a start means to the service; all versions and deletes are not kept from the beginning.
pub fn since(mode: ChangeFeedMode, start: ChangeFeedStart) -> Result<FeedPosition, Error> {
    match (mode, start) {
        (_, ChangeFeedStart::Now) => Ok(FeedPosition::Now),
        (ChangeFeedMode::LatestVersion, ChangeFeedStart::Beginning) => Ok(FeedPosition::Beginning),
        (ChangeFeedMode::LatestVersion, ChangeFeedStart::After(time)) => Ok(FeedPosition::time(time)),
        (ChangeFeedMode::AllVersionsAndDeletes, _) => {
            let message = "all versions and deletes can be read from now on or from a continuation, not from the \
                           beginning or a time: start now and keep the continuation";
            Err(Error::new(ErrorKind::BadRequest, message))
        }
    }
}
