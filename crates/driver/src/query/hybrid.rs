//! ORDER BY RANK: several scores of the same documents, fused by their ranks.
//!
//! How rare a word is depends on all documents of the container, so every partition is asked for its counts
//! first. With their sums each score becomes a query of its own, which every partition answers with the
//! documents that score best and all their scores. Those of all partitions are ranked by each score, and the
//! sums of the reciprocal ranks are what the result is ordered by.
//!
//! Nothing is certain before the last page, so the result is worked out as a whole.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use protocol::partition::EpkRange;
use protocol::query::{HybridSearchQueryInfo, SortOrder};
use serde::Deserialize;

use super::continuation::{RangeStream, StreamStart};
use super::fan_out::{FanOut, Prefetch};
use super::plan::Template;
use super::rows::{self, ScoredRow};
use super::sequential::{AfterSplit, PageStep, SequentialPages};
use super::source::PageSource;
use crate::error::{Error, ErrorKind};

/// Keeps the first ranks from outweighing all others.
const FUSION_CONSTANT: f64 = 60.0;

const DOCUMENT_COUNT: &str = "{documentdb-formattablehybridsearchquery-totaldocumentcount}";

/// What is asked, and how the responses are put together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Hybrid {
    /// Asks a partition for its counts; none when no score depends on them.
    statistics: Option<Template>,
    components: Vec<Component>,
}

/// One of the scores.
#[derive(Clone, Debug, PartialEq)]
struct Component {
    /// The documents that score best, with places for the counts.
    query: Template,
    order: SortOrder,
    weight: f64,
}

impl Hybrid {
    /// Reads the gateway's plan. `template` makes a query of a text and the caller's parameters.
    pub(super) fn of(
        info: &HybridSearchQueryInfo,
        template: impl Fn(&str) -> Template,
    ) -> Result<Hybrid, Error> {
        let component = |(at, part): (usize, &protocol::query::QueryInfo)| {
            let order = *part.order_by.first()?;
            let weight = info.component_weights.get(at).copied().unwrap_or(1.0);
            Some(Component { query: template(&part.rewritten_query), order, weight })
        };
        let components: Option<Vec<Component>> =
            info.component_query_infos.iter().enumerate().map(component).collect();
        let components = components.filter(|components| !components.is_empty()).ok_or_else(|| {
            let message =
                "the service's plan of this hybrid search has no scores; rank by one score at a time";
            Error::new(ErrorKind::BadResponse, message)
        })?;
        let statistics = info.requires_global_statistics.then(|| template(&info.global_statistics_query));
        Ok(Hybrid { statistics, components })
    }
}

/// How many documents there are, and how common the words of each text score are.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Statistics {
    document_count: f64,
    full_text_statistics: Vec<TextStatistics>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TextStatistics {
    total_word_count: f64,
    hit_counts: Vec<f64>,
}

impl Statistics {
    fn add(&mut self, other: &Statistics) {
        self.document_count += other.document_count;
        grow(&mut self.full_text_statistics, other.full_text_statistics.len());
        for (own, other) in self.full_text_statistics.iter_mut().zip(&other.full_text_statistics) {
            own.total_word_count += other.total_word_count;
            grow(&mut own.hit_counts, other.hit_counts.len());
            own.hit_counts.iter_mut().zip(&other.hit_counts).for_each(|(own, other)| *own += other);
        }
    }

    /// The text of a query, with these figures in their places.
    fn put_into(&self, text: &str) -> String {
        let mut text = text.replace(DOCUMENT_COUNT, &self.document_count.to_string());
        for (at, score) in self.full_text_statistics.iter().enumerate() {
            let place = |what: &str| format!("{{documentdb-formattablehybridsearchquery-{what}-{at}}}");
            let hits: Vec<String> = score.hit_counts.iter().map(f64::to_string).collect();
            text = text
                .replace(&place("totalwordcount"), &score.total_word_count.to_string())
                .replace(&place("hitcountsarray"), &format!("[{}]", hits.join(",")));
        }
        text
    }
}

fn grow<T: Default>(list: &mut Vec<T>, length: usize) {
    if list.len() < length {
        list.resize_with(length, T::default);
    }
}

/// A hybrid search in progress.
#[derive(Debug)]
pub(super) struct HybridSearch<S> {
    source: Arc<S>,
    ahead: Prefetch,
    hybrid: Hybrid,
    /// Where documents are looked for.
    streams: Vec<RangeStream>,
    phase: Phase,
    /// What is asked in this phase; of charges and requests, those of the phases before as well.
    pub(super) pages: SequentialPages<S>,
    statistics: Statistics,
    /// What the range in progress has counted so far.
    counted: Statistics,
    /// By document, each once however many scores it is good in.
    found: BTreeMap<Box<str>, ScoredRow>,
    ready: Option<VecDeque<Bytes>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing was asked yet.
    Begin,
    /// The partitions are counting.
    Counting,
    /// The score at this place is asked for.
    Scoring(usize),
}

impl<S: PageSource> HybridSearch<S> {
    pub(super) fn new(
        source: Arc<S>,
        ahead: Prefetch,
        hybrid: Hybrid,
        streams: Vec<RangeStream>,
    ) -> HybridSearch<S> {
        let ahead = Prefetch { items_max: None, ..ahead };
        let pages =
            SequentialPages::new(Arc::clone(&source), ahead, AfterSplit::Restart, Bytes::new(), Vec::new());
        HybridSearch {
            source,
            ahead,
            hybrid,
            streams,
            phase: Phase::Begin,
            pages,
            statistics: Statistics::default(),
            counted: Statistics::default(),
            found: BTreeMap::new(),
            ready: None,
        }
    }

    /// Whether no further row will come.
    pub(super) fn is_exhausted(&self) -> bool {
        self.ready.as_ref().is_some_and(VecDeque::is_empty)
    }

    /// The next row; none at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(rows) = &mut self.ready {
                return Ok(rows.pop_front());
            }
            match (self.phase, self.pages.next(None).await?) {
                (Phase::Begin, _) => self.begin().await?,
                (Phase::Counting, Some(PageStep::Page(body))) => {
                    for counted in rows::read::<Statistics>(&body)? {
                        self.counted.add(&counted);
                    }
                }
                (Phase::Counting, Some(PageStep::Restarted)) => self.counted = Statistics::default(),
                (Phase::Counting, Some(PageStep::RangeDone)) => {
                    self.statistics.add(&std::mem::take(&mut self.counted));
                }
                (Phase::Counting, None) => self.score(0),
                (Phase::Scoring(_), Some(PageStep::Page(body))) => {
                    for row in rows::scored(&body)? {
                        self.found.insert(row.rid.clone(), row);
                    }
                }
                // A document that comes again is the same document.
                (Phase::Scoring(_), Some(PageStep::Restarted | PageStep::RangeDone)) => {}
                (Phase::Scoring(at), None) if at + 1 < self.hybrid.components.len() => self.score(at + 1),
                (Phase::Scoring(_), None) => {
                    let found = std::mem::take(&mut self.found).into_values().collect();
                    self.ready = Some(fuse(&self.hybrid.components, found)?);
                }
            }
        }
    }

    async fn begin(&mut self) -> Result<(), Error> {
        let Some(statistics) = &self.hybrid.statistics else {
            self.score(0);
            return Ok(());
        };
        let body = statistics.body("true");
        // All of the container, whatever part of it is searched: that is what makes a word rare.
        let parts = self.source.divide(EpkRange::FULL, false).await?;
        let streams =
            parts.into_iter().map(|range| RangeStream { range, from: StreamStart::Start }).collect();
        self.ask(Phase::Counting, body, streams);
        Ok(())
    }

    fn score(&mut self, at: usize) {
        let query = &self.hybrid.components[at].query;
        let body = query.with_text(|text| self.statistics.put_into(text)).body("true");
        self.ask(Phase::Scoring(at), body, self.streams.clone());
    }

    fn ask(&mut self, phase: Phase, body: Bytes, streams: Vec<RangeStream>) {
        let pages =
            SequentialPages::new(Arc::clone(&self.source), self.ahead, AfterSplit::Restart, body, streams);
        let before = std::mem::replace(&mut self.pages, pages).fan_out;
        let FanOut { charge, requests, diagnostics, totals, .. } = before;
        let fan_out = &mut self.pages.fan_out;
        (fan_out.charge, fan_out.requests) = (charge, requests);
        (fan_out.diagnostics, fan_out.totals) = (diagnostics, totals);
        self.phase = phase;
    }
}

/// The documents by the sum of their weighted reciprocal ranks, the best first; those of one score by that.
fn fuse(components: &[Component], found: Vec<ScoredRow>) -> Result<VecDeque<Bytes>, Error> {
    if found.iter().any(|row| row.scores.len() != components.len()) {
        let message = "the service did not respond with a score for each part of the rank";
        return Err(Error::new(ErrorKind::BadResponse, message));
    }
    let mut totals = vec![0.0; found.len()];
    for (at, component) in components.iter().enumerate() {
        let score = |row: usize| found[row].scores[at];
        let mut order: Vec<usize> = (0..found.len()).collect();
        order.sort_by(|&left, &right| match component.order {
            SortOrder::Ascending => score(left).total_cmp(&score(right)),
            SortOrder::Descending => score(right).total_cmp(&score(left)),
        });
        let mut rank = 0.0;
        for (place, &row) in order.iter().enumerate() {
            // Equal scores share a rank.
            let is_tied = place > 0 && score(order[place - 1]) == score(row);
            rank += if is_tied { 0.0 } else { 1.0 };
            totals[row] += component.weight.abs() / (FUSION_CONSTANT + rank);
        }
    }
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by(|&left, &right| totals[right].total_cmp(&totals[left]));
    Ok(order.into_iter().map(|row| found[row].payload.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(rid: &str, scores: &[f64]) -> ScoredRow {
        ScoredRow { rid: rid.into(), scores: scores.into(), payload: Bytes::from(rid.to_owned()) }
    }

    fn component(order: SortOrder, weight: f64) -> Component {
        Component { query: Template::of_text(""), order, weight }
    }

    #[test]
    fn counts_of_all_partitions_are_put_in_their_places() {
        let mut sum = Statistics::default();
        for text in [
            r#"{"documentCount":3,"fullTextStatistics":[{"totalWordCount":10,"hitCounts":[1,0]},{"totalWordCount":4,"hitCounts":[2]}]}"#,
            // A partition without documents has nothing to say.
            r#"{"documentCount":0,"fullTextStatistics":[{"hitCounts":[0,0]},{}]}"#,
            r#"{"documentCount":2,"fullTextStatistics":[{"totalWordCount":5,"hitCounts":[1,2]},{"totalWordCount":1,"hitCounts":[1]}]}"#,
        ] {
            sum.add(&serde_json::from_str(text).expect("statistics"));
        }
        let text = "S(c.t, {documentdb-formattablehybridsearchquery-totaldocumentcount}, \
                    {documentdb-formattablehybridsearchquery-totalwordcount-0}, \
                    {documentdb-formattablehybridsearchquery-hitcountsarray-0}, \
                    {documentdb-formattablehybridsearchquery-hitcountsarray-1})";
        assert_eq!(sum.put_into(text), "S(c.t, 5, 15, [2,2], [3])");
    }

    #[test]
    fn the_best_in_sum_comes_first_and_equal_scores_share_a_rank() {
        let (up, down) = (SortOrder::Ascending, SortOrder::Descending);
        for (components, rows, expected) in [
            // One score alone.
            (vec![component(down, 1.0)], vec![row("a", &[1.0]), row("b", &[3.0]), row("c", &[2.0])], "bca"),
            (vec![component(up, 1.0)], vec![row("a", &[1.0]), row("b", &[3.0]), row("c", &[2.0])], "acb"),
            // First and third is a little better than second twice, and both than first and last.
            (
                vec![component(down, 1.0), component(up, 1.0)],
                vec![
                    row("a", &[9.0, 9.0]),
                    row("b", &[8.0, 2.0]),
                    row("c", &[1.0, 1.5]),
                    row("d", &[0.0, 7.0]),
                ],
                "cbad",
            ),
            // Weights decide.
            (
                vec![component(down, 1.0), component(down, 5.0)],
                vec![row("a", &[2.0, 1.0]), row("b", &[1.0, 2.0])],
                "ba",
            ),
            // Two that are tied leave no gap behind them.
            (
                vec![component(down, 1.0), component(down, 1.0)],
                vec![row("a", &[5.0, 1.0]), row("b", &[5.0, 2.0]), row("c", &[4.0, 3.0])],
                "bca",
            ),
        ] {
            let order = fuse(&components, rows).expect("scores");
            let order: String = order.iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect();
            assert_eq!(order, expected);
        }
        let missing = fuse(&[component(down, 1.0)], vec![row("a", &[])]).expect_err("no score");
        assert_eq!(missing.kind(), ErrorKind::BadResponse);
    }
}
