//! Queries over many partitions: plan, fan out, merge, page.
//!
//! ```text
//!  query ─► plan ─► fan_out: one cursor per EPK range ─► PageSource
//!                      │
//!       sequential, merge_ordered, aggregate, hybrid ─► distinct ─► offset_limit ─► QueryPage
//! ```
//!
//! [`QueryPages`] hands out pages of rows, and continuations that any process can continue from. It
//! asks through a [`PageSource`] and so knows neither requests nor regions. A partition that splits while
//! it is read loses and repeats no row: rows that depend on one document each continue at the service's
//! continuation, ordered rows at the last keys that were handed out, and everything else starts that
//! range over.

mod aggregate;
mod continuation;
mod distinct;
mod fan_out;
mod hybrid;
mod merge_ordered;
mod offset_limit;
mod options;
mod plan;
mod position;
pub(crate) mod response_totals;
pub(crate) mod rows;
mod sequential;
pub(crate) mod service;
mod source;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::Arc;

use bytes::Bytes;
use protocol::container::PartitionKeyDefinition;
use protocol::partition::EpkRange;
use protocol::query::{DistinctType, IndexMetrics, QueryMetrics};
use sql::Value;
use sql::value::{SmolStr, write_json};

pub use self::options::QueryOptions;
pub use self::service::ServicePages;
pub use self::source::{Page, PageError, PageRequest, PageSource};

use self::aggregate::Groups;
use self::continuation::{Continuation, RangeStream, StreamStart, fingerprint};
use self::distinct::Distinct;
use self::fan_out::Prefetch;
use self::hybrid::HybridSearch;
use self::merge_ordered::MergeOrdered;
use self::offset_limit::OffsetLimit;
use self::plan::{Grouping, Merge, Plan};
use self::response_totals::ResponseTotals;
use self::rows::GroupRow;
use self::sequential::{AfterSplit, PageStep, SequentialPages};
use crate::diagnostics::{Diagnostics, Recent};
use crate::error::Error;

/// Rows of a page by default.
const PAGE_ROWS: usize = 1000;
/// Pages kept of all ranges beyond those that are needed.
const PAGES_AHEAD_MAX: usize = 16;

/// A page of rows.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct QueryPage {
    /// The rows, each as JSON.
    pub rows: Vec<Bytes>,
    /// Whether there may be more: ask for the next page, or for the [continuation](QueryPages::continuation).
    pub has_more: bool,
    /// Request units since the page before.
    pub charge: f64,
    /// Requests since the page before.
    pub requests: u32,
    /// What happened to the last of them, newest first.
    pub diagnostics: Vec<Diagnostics>,
    /// The session token of the partitions that responded since the page before.
    pub session_token: Option<String>,
    /// The query metrics of the responses since the page before, if the requests asked for them.
    pub query_metrics: Option<QueryMetrics>,
    /// The index metrics of the responses since the page before, if the requests asked for them.
    pub index_metrics: Option<IndexMetrics>,
}

/// A query in progress.
#[derive(Debug)]
pub struct QueryPages<S> {
    runner: Runner<S>,
    distinct: Distinct,
    window: OffsetLimit,
    fingerprint: u64,
    page_items: Option<NonZeroU32>,
    /// Rows that are ready, of a page that is not full yet.
    ready: Vec<Bytes>,
    /// Rows handed out since the beginning, for results that are worked out as a whole.
    handed_out: u64,
    /// Rows to leave out because an earlier run handed them out.
    replay: u64,
    /// What was already reported of charge and requests.
    reported: (f64, u32),
    done: bool,
}

#[derive(Debug)]
enum Runner<S> {
    InTurn(SequentialPages<S>),
    Ordered(MergeOrdered<S>),
    Whole(Whole<S>),
    Hybrid(HybridSearch<S>),
}

impl<S: PageSource> Runner<S> {
    /// The diagnostics and headers of the responses since the page before.
    fn responses(&mut self) -> (&mut Recent, &mut ResponseTotals) {
        match self {
            Runner::InTurn(SequentialPages { fan_out, .. })
            | Runner::Whole(Whole { pages: SequentialPages { fan_out, .. }, .. })
            | Runner::Hybrid(HybridSearch { pages: SequentialPages { fan_out, .. }, .. }) => {
                (&mut fan_out.diagnostics, &mut fan_out.totals)
            }
            Runner::Ordered(MergeOrdered { fan_out, .. }) => (&mut fan_out.diagnostics, &mut fan_out.totals),
        }
    }

    /// A call begins, which has a deadline of its own.
    fn begin_call(&mut self) -> Result<(), Error> {
        match self {
            Runner::InTurn(pages) => pages.fan_out.begin_call(),
            Runner::Ordered(merge) => merge.fan_out.begin_call(),
            Runner::Whole(whole) => whole.pages.fan_out.begin_call(),
            Runner::Hybrid(search) => search.pages.fan_out.begin_call(),
        }
    }

    /// Whether no further row will come. A last page then says so, instead of one more that is empty.
    fn is_exhausted(&self) -> bool {
        match self {
            Runner::InTurn(pages) => pages.streams().is_empty(),
            Runner::Ordered(merge) => merge.streams().is_empty(),
            Runner::Whole(whole) => whole.rows.as_ref().is_some_and(VecDeque::is_empty),
            Runner::Hybrid(search) => search.is_exhausted(),
        }
    }
}

/// A result that is worked out before its first row is known.
#[derive(Debug)]
struct Whole<S> {
    pages: SequentialPages<S>,
    kind: WholeKind,
    rows: Option<VecDeque<Value>>,
}

#[derive(Debug)]
enum WholeKind {
    /// All groups, and those of the range in progress.
    Groups(Grouping, Groups, Groups),
    /// Distinct rows, and the name of their count.
    Count(Distinct, u64, Option<String>),
}

impl<S: PageSource> QueryPages<S> {
    /// Plans the query in `body`, which the service would read as it is, over the container of this
    /// `_rid` and key. Fails if the continuation is not one of this very query.
    pub async fn start(
        source: Arc<S>,
        body: Bytes,
        container_rid: &str,
        definition: &PartitionKeyDefinition,
        options: &QueryOptions,
    ) -> Result<QueryPages<S>, Error> {
        let part = options.range.clone().unwrap_or(EpkRange::FULL);
        let fingerprint = fingerprint(&body, &format!("{container_rid}{part}"));
        let from = match &options.continuation {
            Some(text) => Some(Continuation::parse(text, fingerprint)?),
            None => None,
        };
        let plan = plan::plan(&*source, &body, definition).await?;
        let mut window = plan.window;
        let mut distinct = Distinct::new(plan.distinct);
        let mut replay = 0;
        let ranges: Vec<RangeStream> = match from {
            Some(Continuation::Streams { streams, window: left, last, seen_rows: met }) => {
                window = left;
                distinct = distinct.resume(last.as_deref(), met)?;
                streams
            }
            other => {
                if let Some(Continuation::Replay { rows }) = other {
                    replay = rows;
                }
                let parts = match options.range_pruning {
                    true => plan.ranges.iter().filter_map(|range| range.intersect(&part)).collect(),
                    false => vec![part],
                };
                parts.into_iter().map(|range| RangeStream { range, from: StreamStart::Start }).collect()
            }
        };
        let mut streams = Vec::with_capacity(ranges.len());
        for RangeStream { range, from } in ranges {
            let parts = source.divide(range, false).await?;
            streams.extend(parts.into_iter().map(|range| RangeStream { range, from: from.clone() }));
        }
        let runner = runner(source, plan, streams, options);
        Ok(QueryPages {
            runner,
            distinct,
            window,
            fingerprint,
            page_items: options.page_items,
            ready: Vec::new(),
            handed_out: 0,
            replay,
            reported: (0.0, 0),
            done: false,
        })
    }

    /// The next page; none after the last. After an error the same page can be asked for again.
    /// Dropping the call before it is done loses no row.
    pub async fn next_page(&mut self) -> Result<Option<QueryPage>, Error> {
        if self.done {
            return Ok(None);
        }
        self.runner.begin_call()?;
        let rows_max = self.page_items.map_or(PAGE_ROWS, |items| items.get() as usize);
        self.fill(rows_max).await?;
        self.done |= self.runner.is_exhausted();
        let rows = std::mem::take(&mut self.ready);
        self.handed_out += rows.len() as u64;
        let (charge, requests) = self.cost();
        let (diagnostics, totals) = self.runner.responses();
        let (session_token, query_metrics, index_metrics) = totals.take();
        let page = QueryPage {
            rows,
            has_more: !self.done,
            charge: charge - self.reported.0,
            requests: requests - self.reported.1,
            diagnostics: diagnostics.take(),
            session_token,
            query_metrics,
            index_metrics,
        };
        self.reported = (charge, requests);
        Ok(Some(page))
    }

    /// Gets rows ready until a page is full or there are no more.
    async fn fill(&mut self, rows_max: usize) -> Result<(), Error> {
        loop {
            if self.window.is_closed() {
                self.done = true;
                return Ok(());
            }
            match &mut self.runner {
                Runner::InTurn(pages) => {
                    // A page of the service is a page of ours, so that going on needs no place within it.
                    if !self.ready.is_empty() {
                        return Ok(());
                    }
                    match pages.next(items_max(self.page_items, &self.window)).await? {
                        Some(PageStep::Page(body)) => {
                            for row in rows::plain(&body)? {
                                self.offer(row)?;
                            }
                        }
                        Some(PageStep::Restarted | PageStep::RangeDone) => {}
                        None => self.done = true,
                    }
                }
                Runner::Ordered(merge) => {
                    if self.ready.len() >= rows_max {
                        return Ok(());
                    }
                    match merge.next().await? {
                        Some(row) => self.offer(row)?,
                        None => self.done = true,
                    }
                }
                Runner::Hybrid(search) => {
                    if self.ready.len() >= rows_max {
                        return Ok(());
                    }
                    match search.next().await? {
                        Some(row) => self.offer(row)?,
                        None => self.done = true,
                    }
                }
                Runner::Whole(whole) => {
                    if self.ready.len() >= rows_max {
                        return Ok(());
                    }
                    match whole.next().await? {
                        Some(row) => {
                            let mut text = Vec::new();
                            write_json(&row, &mut text);
                            self.offer(text.into())?;
                        }
                        None => self.done = true,
                    }
                }
            }
            if self.done {
                return Ok(());
            }
        }
    }

    /// Hands a row on, unless DISTINCT, OFFSET or LIMIT, or an earlier run, speaks against it.
    fn offer(&mut self, row: Bytes) -> Result<(), Error> {
        if !self.distinct.is_new(&row)? || !self.window.admits_next() {
            return Ok(());
        }
        if self.replay > 0 {
            self.replay -= 1;
            self.handed_out += 1;
            return Ok(());
        }
        self.ready.push(row);
        Ok(())
    }

    /// Where to continue after the pages so far, in this process or another; none after the last. Made when
    /// it is asked for, since it grows with the number of partitions and, for DISTINCT over rows in no
    /// order, with the number of rows.
    pub fn continuation(&self) -> Option<String> {
        if self.done {
            return None;
        }
        let streams = match &self.runner {
            Runner::InTurn(pages) => pages.streams(),
            Runner::Ordered(merge) => merge.streams(),
            Runner::Whole(_) | Runner::Hybrid(_) => {
                return Some(Continuation::Replay { rows: self.handed_out }.to_text(self.fingerprint));
            }
        };
        let (last, met) = self.distinct.saved_state();
        Some(
            Continuation::Streams { streams, window: self.window, last, seen_rows: met }
                .to_text(self.fingerprint),
        )
    }

    fn cost(&self) -> (f64, u32) {
        match &self.runner {
            Runner::InTurn(pages) => (pages.fan_out.charge, pages.fan_out.requests),
            Runner::Ordered(merge) => (merge.fan_out.charge, merge.fan_out.requests),
            Runner::Whole(whole) => (whole.pages.fan_out.charge, whole.pages.fan_out.requests),
            Runner::Hybrid(search) => (search.pages.fan_out.charge, search.pages.fan_out.requests),
        }
    }
}

fn runner<S: PageSource>(
    source: Arc<S>,
    plan: Plan,
    streams: Vec<RangeStream>,
    options: &QueryOptions,
) -> Runner<S> {
    let ahead = Prefetch {
        requests_max: options.parallel_max.get(),
        pages_each: 2,
        pages_max: PAGES_AHEAD_MAX.max(options.parallel_max.get()),
        items_max: options.page_items,
    };
    let Plan { template, merge, distinct, .. } = plan;
    match merge {
        Merge::Ordered(ordering) => {
            Runner::Ordered(MergeOrdered::new(source, ahead, template, ordering, streams))
        }
        Merge::Concatenate => {
            let after_split = match distinct {
                DistinctType::None => AfterSplit::Continue,
                DistinctType::Ordered | DistinctType::Unordered => AfterSplit::Restart,
            };
            Runner::InTurn(SequentialPages::new(source, ahead, after_split, template.body("true"), streams))
        }
        Merge::Grouped(grouping) => {
            let kind = WholeKind::Groups(grouping, Groups::default(), Groups::default());
            Runner::Whole(Whole::new(source, ahead, template.body("true"), streams, kind))
        }
        Merge::Hybrid(hybrid) => Runner::Hybrid(HybridSearch::new(source, ahead, hybrid, streams)),
        Merge::CountDistinct(name) => {
            let kind = WholeKind::Count(Distinct::new(DistinctType::Unordered), 0, name);
            Runner::Whole(Whole::new(source, ahead, template.body("true"), streams, kind))
        }
    }
}

impl<S: PageSource> Whole<S> {
    fn new(
        source: Arc<S>,
        ahead: Prefetch,
        body: Bytes,
        streams: Vec<RangeStream>,
        kind: WholeKind,
    ) -> Whole<S> {
        let ahead = Prefetch { items_max: None, ..ahead };
        let pages = SequentialPages::new(source, ahead, AfterSplit::Restart, body, streams);
        Whole { pages, kind, rows: None }
    }

    async fn next(&mut self) -> Result<Option<Value>, Error> {
        loop {
            if let Some(rows) = &mut self.rows {
                return Ok(rows.pop_front());
            }
            let turn = self.pages.next(None).await?;
            match (&mut self.kind, turn) {
                (WholeKind::Groups(grouping, _, current), Some(PageStep::Page(body))) => {
                    for row in group_rows(grouping, &body)? {
                        current.add(row, &grouping.output)?;
                    }
                }
                (WholeKind::Groups(_, _, current), Some(PageStep::Restarted)) => *current = Groups::default(),
                (WholeKind::Groups(_, all, current), Some(PageStep::RangeDone)) => {
                    all.merge(std::mem::take(current))?;
                }
                (WholeKind::Groups(grouping, all, _), None) => {
                    self.rows = Some(std::mem::take(all).finish(grouping).into());
                }
                (WholeKind::Count(distinct, count, _), Some(PageStep::Page(body))) => {
                    for row in rows::plain(&body)? {
                        *count += u64::from(distinct.is_new(&row)?);
                    }
                }
                (WholeKind::Count(..), Some(PageStep::Restarted | PageStep::RangeDone)) => {}
                (WholeKind::Count(_, count, name), None) => {
                    let count = Value::from(*count as f64);
                    let row = match name {
                        Some(name) => Value::object([(SmolStr::new(name), count)]),
                        None => count,
                    };
                    self.rows = Some(VecDeque::from([row]));
                }
            }
        }
    }
}

/// The rows of a page of groups, in whichever envelope they are.
fn group_rows(grouping: &Grouping, body: &Bytes) -> Result<Vec<GroupRow>, Error> {
    let bare = !grouping.by_key && !matches!(grouping.output, plan::GroupOutput::Object(_));
    if bare {
        let rows = rows::values(body)?;
        return Ok(rows.into_iter().map(|payload| GroupRow { keys: Vec::new(), payload }).collect());
    }
    rows::grouped(body)
}

/// The most rows to ask for at once: no more than a page, and no more than are needed.
fn items_max(page_items: Option<NonZeroU32>, window: &OffsetLimit) -> Option<NonZeroU32> {
    let needed = window.needed().map(|needed| u32::try_from(needed).unwrap_or(u32::MAX));
    match (page_items, needed.and_then(NonZeroU32::new)) {
        (Some(page), Some(needed)) => Some(page.min(needed)),
        (page, needed) => page.or(needed),
    }
}
