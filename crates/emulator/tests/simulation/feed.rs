//! Steps that read change feeds: several readers, each with its own scopes and continuations.

use std::collections::BTreeMap;

use http::Method;
use serde_json::Value;

use crate::client::TestResponse;
use crate::failure::{Failure, Guarantee, ensure};
use crate::fixture::{DOCS, Fixture, lsn_of};
use crate::model::{Change, History, plain};
use crate::partition_ranges::{Lease, ReadScope};
use crate::seeded_random::SeededRandom;
use crate::single_write::SingleWriteSimulation;
use crate::writes::summary;

const READERS_MAX: usize = 5;
/// More pages than a feed can have.
pub(crate) const PAGES_MAX: usize = 400;

/// Which changes a feed contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FeedMode {
    Latest,
    All,
}

/// One reader of the change feed.
pub(crate) struct FeedReader {
    mode: FeedMode,
    leases: Vec<Lease>,
    page_size: usize,
    /// By partition key, the LSN after which it reads.
    start: BTreeMap<String, u64>,
    delivered: DeliveredChanges,
}

/// The changes that a reader has received.
#[derive(Default)]
struct DeliveredChanges {
    /// The number of changes, by partition key.
    changes: BTreeMap<String, usize>,
    /// The LSN of the last version, by partition key and id.
    versions: BTreeMap<(String, String), u64>,
}

impl DeliveredChanges {
    /// Checks the next change of a partition key in all-versions mode: exactly the one that comes next.
    fn change(&mut self, key: &str, start: u64, history: &History, row: &Value) -> Result<u64, Failure> {
        let count = self.changes.entry(key.to_owned()).or_default();
        let expected = history.changes_after(start).nth(*count);
        *count += 1;
        ensure(expected.is_some_and(|expected| matches(row, expected)), Guarantee::FeedOrder, || {
            format!("{row}\n  instead of change {count} of {key}, {expected:?}")
        })?;
        Ok(expected.map_or(0, |change| change.lsn))
    }

    /// Checks a version of an item in latest-version mode: the one at `lsn`, and never twice.
    fn version(&mut self, key: &str, lsn: u64, history: &History, row: &Value) -> Result<u64, Failure> {
        let id = row["id"].as_str().unwrap().to_owned();
        let at = history.at(lsn);
        let expected = at.get(&id);
        let holds = expected.is_some_and(|version| plain(row) == version.body && row["_lsn"] == version.lsn);
        ensure(holds, Guarantee::FeedOrder, || format!("{row}\n  at LSN {lsn} there was {expected:?}"))?;
        let delivered = expected.map_or(0, |version| version.lsn);
        let before = self.versions.insert((key.to_owned(), id), delivered).unwrap_or(0);
        ensure(before < delivered, Guarantee::FeedOrder, || {
            format!("{row}\n  comes after LSN {before} of the same item")
        })?;
        Ok(delivered)
    }

    /// Checks that the reader has received all changes of a partition key.
    fn is_complete(&self, mode: FeedMode, key: &str, start: u64, history: &History) -> Result<(), Failure> {
        match mode {
            FeedMode::All => {
                let count = self.changes.get(key).copied().unwrap_or(0);
                let missing: Vec<&Change> = history.changes_after(start).skip(count).collect();
                ensure(missing.is_empty(), Guarantee::FeedComplete, || {
                    format!("missing of {key}: {missing:?}")
                })
            }
            FeedMode::Latest => {
                let delivered =
                    |id: &String| self.versions.get(&(key.to_owned(), id.clone())).copied().unwrap_or(0);
                let missing =
                    history.newest().iter().find(|(id, item)| item.lsn > start && delivered(id) != item.lsn);
                ensure(missing.is_none(), Guarantee::FeedComplete, || {
                    format!("missing of {key}: {missing:?}")
                })
            }
        }
    }
}

fn matches(row: &Value, change: &Change) -> bool {
    let metadata = &row["metadata"];
    let same_item = match &change.version {
        Some(version) => plain(&row["current"]) == version.body,
        None => metadata["id"] == change.id.as_str(),
    };
    same_item && metadata["lsn"] == change.lsn && metadata["operationType"] == change.kind.name()
}

/// The partition key that a row is about.
pub(crate) fn key_of(mode: FeedMode, row: &Value) -> &str {
    let key = match mode {
        FeedMode::Latest => &row["pk"],
        FeedMode::All if row["metadata"]["operationType"] == "delete" => {
            &row["metadata"]["partitionKey"]["pk"]
        }
        FeedMode::All => &row["current"]["pk"],
    };
    key.as_str().unwrap_or_default()
}

/// The outcome of reading a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// Changes, and the continuation.
    Changes,
    /// No changes so far.
    End,
    /// The range was replaced, or is about to be.
    Later,
}

impl Fixture {
    /// Draws the scopes of a new reader.
    pub(crate) fn draw_leases(&self, rng: &mut SeededRandom) -> Vec<Lease> {
        match rng.below(4) {
            0 => vec![Lease::new(ReadScope::AllPartitions)],
            1 => vec![Lease::new(ReadScope::Key(self.random_key(rng).header))],
            2 => vec![Lease::new(ReadScope::EpkRange(rng.pick(&self.ranges).epks.clone()))],
            _ => Lease::per_range(&self.ranges),
        }
    }

    /// Reads a page after `position`.
    pub(crate) async fn ask_feed(
        &self,
        mode: FeedMode,
        lease: &Lease,
        (region, page_size): (u8, usize),
        position: Option<&str>,
    ) -> TestResponse {
        let mut headers = lease.headers();
        let mode = match mode {
            FeedMode::Latest => "Incremental Feed",
            FeedMode::All => "Full-Fidelity Feed",
        };
        headers.push(("a-im", mode.to_owned()));
        headers.push(("x-ms-max-item-count", page_size.to_string()));
        headers.extend(position.map(|position| ("if-none-match", position.to_owned())));
        self.send(region, Method::GET, DOCS, &headers, "").await
    }

    /// Continues after a page, in the ranges that replaced its range if necessary.
    pub(crate) async fn turn_page(
        &mut self,
        leases: &mut Vec<Lease>,
        at: usize,
        response: &TestResponse,
    ) -> Result<Page, Failure> {
        match (response.status, response.header("x-ms-substatus")) {
            (410, Some("1002")) => {
                let ranges = self.read_ranges().await?;
                let gone = leases.remove(at);
                leases.extend(gone.split_over(&ranges));
                Ok(Page::Later)
            }
            (410, Some("1007")) => Ok(Page::Later),
            (200 | 304, _) => {
                leases[at].position = response.header("etag").map(str::to_owned);
                Ok(if response.status == 200 { Page::Changes } else { Page::End })
            }
            _ => Err(Failure { guarantee: Guarantee::Response, details: summary(response) }),
        }
    }
}

impl SingleWriteSimulation {
    /// Starts another feed with a random scope, from now or from the beginning.
    pub(crate) async fn begin_feed(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        if self.feeds.len() >= READERS_MAX {
            return Ok(());
        }
        let mode = *rng.pick(&[FeedMode::Latest, FeedMode::All]);
        let region = self.random_fresh_region(rng);
        let leases = self.draw_leases(rng);
        let from_now = mode == FeedMode::All || rng.chance(30);
        let start = if from_now { self.probe(region).await? } else { BTreeMap::new() };
        let line = format!("feed {}: {mode:?} in {region}, from {start:?}, {leases:?}", self.feeds.len());
        self.log_line(line);
        let mut reader = FeedReader {
            mode,
            leases,
            page_size: rng.between(1, 6),
            start,
            delivered: DeliveredChanges::default(),
        };
        if from_now {
            for at in 0..reader.leases.len() {
                let response =
                    self.ask_feed(mode, &reader.leases[at], (region, reader.page_size), Some("*")).await;
                if response.status == 410 {
                    return Ok(());
                }
                ensure(response.status == 304, Guarantee::Response, || {
                    format!("from now: {}", summary(&response))
                })?;
                reader.leases[at].position = response.header("etag").map(str::to_owned);
            }
            // A request was delayed, so the start of the feed is not known exactly.
            if self.probe(region).await? != reader.start {
                return Ok(());
            }
        }
        self.feeds.push(reader);
        Ok(())
    }

    /// Lets a reader read one page or more, in any region.
    pub(crate) async fn read_feed(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        if self.feeds.is_empty() {
            return Ok(());
        }
        let at = rng.below(self.feeds.len());
        let region = self.random_fresh_region(rng);
        for _ in 0..rng.between(1, 3) {
            let lease = rng.below(self.feeds[at].leases.len());
            self.read_feed_page(at, lease, region).await?;
        }
        Ok(())
    }

    /// Reads one page and returns whether it had changes.
    async fn read_feed_page(&mut self, at: usize, lease: usize, region: u8) -> Result<bool, Failure> {
        let mut reader = self.feeds.remove(at);
        let position = reader.leases[lease].position.clone();
        let response = self
            .ask_feed(reader.mode, &reader.leases[lease], (region, reader.page_size), position.as_deref())
            .await;
        let more = self.take_feed_page(&mut reader, lease, &response).await;
        let etag = response.header("etag").unwrap_or("-");
        self.log_line(format!(
            "feed {at} in {region}: {:?} after {position:?} → {} to {etag}: {}",
            reader.leases[lease.min(reader.leases.len() - 1)].scope,
            summary(&response),
            String::from_utf8_lossy(&response.body)
        ));
        self.feeds.insert(at, reader);
        more
    }

    async fn take_feed_page(
        &mut self,
        reader: &mut FeedReader,
        lease: usize,
        response: &TestResponse,
    ) -> Result<bool, Failure> {
        match self.turn_page(&mut reader.leases, lease, response).await? {
            Page::Changes => {}
            Page::End => return Ok(false),
            Page::Later => return Ok(true),
        }
        let lsn = lsn_of(response);
        let mut last = 0;
        for row in response.json()["Documents"].as_array().unwrap() {
            let key = key_of(reader.mode, row).to_owned();
            let requested =
                self.keys.iter().any(|known| known.name == key && reader.leases[lease].covers(known));
            ensure(requested, Guarantee::FeedOrder, || format!("{row}\n  was not asked for"))?;
            let (start, history) = (reader.start.get(&key).copied().unwrap_or(0), &self.histories[&key]);
            let delivered = match reader.mode {
                FeedMode::All => reader.delivered.change(&key, start, history, row)?,
                FeedMode::Latest => reader.delivered.version(&key, lsn, history, row)?,
            };
            ensure(last <= delivered && delivered <= lsn, Guarantee::FeedOrder, || {
                format!("{row}\n  with LSN {delivered} comes after {last} on a page of LSN {lsn}")
            })?;
            last = delivered;
        }
        Ok(true)
    }

    /// Reads every feed to its end and checks that it was complete.
    pub(crate) async fn drain_feeds(&mut self, region: u8) -> Result<(), Failure> {
        for at in 0..self.feeds.len() {
            let (mut lease, mut pages) = (0, 0);
            while lease < self.feeds[at].leases.len() {
                let more = self.read_feed_page(at, lease, region).await?;
                lease += usize::from(!more);
                pages += 1;
                ensure(pages < PAGES_MAX, Guarantee::FeedComplete, || "the feed has no end".to_owned())?;
            }
            let reader = &self.feeds[at];
            for key in self.keys.iter().filter(|key| reader.leases.iter().any(|lease| lease.covers(key))) {
                let start = reader.start.get(&key.name).copied().unwrap_or(0);
                reader.delivered.is_complete(reader.mode, &key.name, start, &self.histories[&key.name])?;
            }
        }
        Ok(())
    }
}
