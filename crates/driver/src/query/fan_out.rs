//! One cursor per EPK range, and the requests in progress for them.
//!
//! A [`FanOut`] keeps cursors in EPK order, asks for pages ahead of need within bounds,
//! and divides a cursor whose range was split. What the pages mean, and where the children of a
//! divided cursor begin, is decided by the merge. Requests are dropped with the `FanOut`.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use protocol::partition::EpkRange;

use super::response_totals::ResponseTotals;
use super::source::{Page, PageError, PageRequest, PageSource};
use crate::diagnostics::Recent;
use crate::error::{Error, ErrorKind};

/// How often the service may respond 410 for an EPK range that one partition owns.
const GONE_MAX: u32 = 8;

/// A cursor over one EPK range.
#[derive(Debug)]
pub(super) struct RangeCursor<T> {
    id: u64,
    pub(super) range: EpkRange,
    /// The body of the page requests.
    body: Bytes,
    next: CursorState,
    fetching: bool,
    gone: u32,
    /// Pages that were not looked at yet, each with the continuation that brought it.
    pub(super) pages: VecDeque<(Option<String>, Page)>,
    /// The state of the merge for this range.
    pub(super) state: T,
}

/// What a cursor does next.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CursorState {
    /// Asks for the page after this one; the first one without.
    Page(Option<String>),
    /// Is replaced by cursors over these ranges, which continue after this page.
    Divide(Vec<EpkRange>, Option<String>),
    /// Nothing: that was all.
    End,
}

impl<T> RangeCursor<T> {
    /// Whether no more pages will come.
    pub(super) fn is_done(&self) -> bool {
        self.next == CursorState::End && self.pages.is_empty()
    }

    /// What it does next.
    pub(super) fn next(&self) -> &CursorState {
        &self.next
    }
}

/// What a cursor starts with.
#[derive(Debug)]
pub(super) struct RangeStart<T> {
    pub(super) range: EpkRange,
    pub(super) body: Bytes,
    pub(super) continuation: Option<String>,
    pub(super) state: T,
}

/// The bounds of prefetching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefetch {
    /// Requests at a time.
    pub(super) requests_max: usize,
    /// Pages kept of one cursor.
    pub(super) pages_each: usize,
    /// Pages kept of all cursors beyond the first of each that needs one.
    pub(super) pages_max: usize,
    /// The most rows of a page.
    pub(super) items_max: Option<NonZeroU32>,
}

/// Cursors, in EPK order.
pub(super) struct FanOut<S, T> {
    source: Arc<S>,
    pub(super) cursors: Vec<RangeCursor<T>>,
    in_flight: FuturesUnordered<BoxFuture<'static, Arrival>>,
    /// Counts the caller's calls, each of which has a deadline of its own.
    call: u64,
    next_id: u64,
    ahead: Prefetch,
    /// Request units of all pages so far.
    pub(super) charge: f64,
    /// How many requests were sent.
    pub(super) requests: u32,
    /// What happened to the last of them.
    pub(super) diagnostics: Recent,
    /// What their responses say together.
    pub(super) totals: ResponseTotals,
}

/// What became of a request.
struct Arrival {
    /// The cursor that it was for.
    cursor: u64,
    /// The call that started it.
    call: u64,
    result: FetchResult,
}

enum FetchResult {
    Page(Option<String>, Result<Box<Page>, PageError>),
    Divided(Result<Vec<EpkRange>, Error>),
}

impl<S: PageSource, T> FanOut<S, T> {
    pub(super) fn new(source: Arc<S>, ahead: Prefetch, starts: Vec<RangeStart<T>>) -> FanOut<S, T> {
        let mut fan_out = FanOut {
            source,
            cursors: Vec::with_capacity(starts.len()),
            in_flight: FuturesUnordered::new(),
            call: 0,
            next_id: 0,
            ahead,
            charge: 0.0,
            requests: 0,
            diagnostics: Recent::default(),
            totals: ResponseTotals::default(),
        };
        fan_out.cursors = starts.into_iter().map(|start| fan_out.cursor(start)).collect();
        fan_out
    }

    fn cursor(&mut self, start: RangeStart<T>) -> RangeCursor<T> {
        let id = self.next_id;
        self.next_id += 1;
        RangeCursor {
            id,
            range: start.range,
            body: start.body,
            next: CursorState::Page(start.continuation),
            fetching: false,
            gone: 0,
            pages: VecDeque::new(),
            state: start.state,
        }
    }

    /// Puts cursors in the place of the one at `at`.
    pub(super) fn replace(&mut self, at: usize, starts: Vec<RangeStart<T>>) {
        let children: Vec<RangeCursor<T>> = starts.into_iter().map(|start| self.cursor(start)).collect();
        self.cursors.splice(at..=at, children);
    }

    /// Takes the cursor at `at` away.
    pub(super) fn remove(&mut self, at: usize) -> RangeCursor<T> {
        self.cursors.remove(at)
    }

    /// The most rows the next pages should have.
    pub(super) fn limit_items(&mut self, items_max: Option<NonZeroU32>) {
        self.ahead.items_max = items_max;
    }

    /// The caller asks for more: its deadline counts from now.
    pub(super) fn begin_call(&mut self) -> Result<(), Error> {
        self.call += 1;
        self.source.begin_call()
    }

    /// Waits for the next event: a page has arrived, or an EPK range was divided. `needs` says of
    /// which cursors a page is needed now; for the others pages are asked for as far as bounds allow.
    ///
    /// Dropping the wait loses nothing: what is in progress stays in progress.
    pub(super) async fn next_arrival(
        &mut self,
        needs: impl Fn(usize, &RangeCursor<T>) -> bool,
    ) -> Result<(), Error> {
        self.schedule(needs);
        let Some(arrival) = self.in_flight.next().await else {
            debug_assert!(false, "a caller waits only when a page is needed");
            return Err(Error::new(ErrorKind::BadResponse, "the query waits for nothing"));
        };
        self.apply(arrival)
    }

    /// Starts requests for pages.
    fn schedule(&mut self, needs: impl Fn(usize, &RangeCursor<T>) -> bool) {
        let mut spare = self.ahead.pages_max.saturating_sub(
            self.cursors.iter().map(|cursor| cursor.pages.len() + usize::from(cursor.fetching)).sum(),
        );
        // First what is needed, then what may be.
        for needed in [true, false] {
            for at in 0..self.cursors.len() {
                if self.in_flight.len() >= self.ahead.requests_max {
                    return;
                }
                let cursor = &self.cursors[at];
                if cursor.fetching || !matches!(cursor.next, CursorState::Page(_)) {
                    continue;
                }
                let wanted = if needed {
                    cursor.pages.is_empty() && needs(at, cursor)
                } else {
                    spare > 0 && cursor.pages.len() < self.ahead.pages_each
                };
                if wanted {
                    spare = spare.saturating_sub(1);
                    self.fetch(at);
                }
            }
        }
    }

    fn fetch(&mut self, at: usize) {
        let cursor = &mut self.cursors[at];
        let CursorState::Page(continuation) = &cursor.next else { return };
        let request = PageRequest {
            range: cursor.range.clone(),
            body: cursor.body.clone(),
            continuation: continuation.clone(),
            items_max: self.ahead.items_max,
        };
        cursor.fetching = true;
        self.requests += 1;
        let (cursor, call, source) = (cursor.id, self.call, Arc::clone(&self.source));
        self.in_flight.push(Box::pin(async move {
            let from = request.continuation.clone();
            let result = FetchResult::Page(from, source.page(request).await.map(Box::new));
            Arrival { cursor, call, result }
        }));
    }

    fn apply(&mut self, arrival: Arrival) -> Result<(), Error> {
        let Arrival { cursor: id, call, result } = arrival;
        // A cursor that was taken away no longer waits for its page.
        let cursor = self.cursors.iter_mut().find(|cursor| cursor.id == id);
        match result {
            FetchResult::Page(from, Ok(mut page)) => {
                self.charge += page.charge;
                self.totals.add(&std::mem::take(&mut page.headers));
                if let Some(diagnostics) = page.diagnostics.take() {
                    self.diagnostics.push(diagnostics);
                }
                let Some(cursor) = cursor else { return Ok(()) };
                cursor.fetching = false;
                cursor.gone = 0;
                cursor.next = match &page.continuation {
                    Some(continuation) => CursorState::Page(Some(continuation.clone())),
                    None => CursorState::End,
                };
                cursor.pages.push_back((from, *page));
                Ok(())
            }
            FetchResult::Page(_, Err(PageError::Gone)) => {
                let Some(cursor) = cursor else { return Ok(()) };
                let (range, source) = (cursor.range.clone(), Arc::clone(&self.source));
                let call = self.call;
                self.in_flight.push(Box::pin(async move {
                    let result = FetchResult::Divided(source.divide(range, true).await);
                    Arrival { cursor: id, call, result }
                }));
                Ok(())
            }
            FetchResult::Page(_, Err(PageError::Failed(error))) | FetchResult::Divided(Err(error)) => {
                if let Some(cursor) = cursor {
                    cursor.fetching = false;
                }
                // A request that an earlier call started ahead of need had the time of that call: it is sent again, in
                // the time of this one.
                if call != self.call && error.kind() == ErrorKind::DeadlineExceeded {
                    return Ok(());
                }
                Err(error)
            }
            FetchResult::Divided(Ok(parts)) => {
                let Some(cursor) = cursor else { return Ok(()) };
                cursor.fetching = false;
                if parts == [cursor.range.clone()] {
                    cursor.gone += 1;
                    if cursor.gone > GONE_MAX {
                        let message = "a partition says that it is gone and nothing has taken its place";
                        return Err(Error::new(ErrorKind::Unavailable, message));
                    }
                } else if let CursorState::Page(continuation) = &cursor.next {
                    cursor.next = CursorState::Divide(parts, continuation.clone());
                }
                Ok(())
            }
        }
    }
}

impl<S, T: std::fmt::Debug> std::fmt::Debug for FanOut<S, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FanOut").field("cursors", &self.cursors).field("requests", &self.requests).finish()
    }
}
