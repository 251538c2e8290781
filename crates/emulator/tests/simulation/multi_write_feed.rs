//! Change feeds of a multi-write account: the last version that a reader received is the final one.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::client::TestResponse;
use crate::failure::{Failure, Guarantee, ensure};
use crate::feed::{FeedMode, PAGES_MAX, Page, key_of};
use crate::lineage::ItemName;
use crate::multi_write::MultiWriteSimulation;
use crate::partition_ranges::Lease;
use crate::seeded_random::SeededRandom;
use crate::writes::summary;

const READERS_MAX: usize = 4;

/// A reader of the change feed, in one region or another.
pub(crate) struct MultiWriteFeedReader {
    mode: FeedMode,
    region: u8,
    leases: Vec<Lease>,
    page_size: usize,
    /// The version that was received last, by item, or that existed at the start; none for a deleted item.
    delivered: BTreeMap<ItemName, Option<u64>>,
}

impl MultiWriteSimulation {
    /// Starts another feed: from the beginning, or all versions from now on.
    pub(crate) async fn begin_feed(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        if self.feeds.len() >= READERS_MAX {
            return Ok(());
        }
        let (mode, region) = (*rng.pick(&[FeedMode::Latest, FeedMode::All]), self.random_region(rng));
        let (leases, page_size) = (self.draw_leases(rng), rng.between(1, 5));
        let mut reader = MultiWriteFeedReader { mode, region, leases, page_size, delivered: BTreeMap::new() };
        let line = format!("feed {}: {mode:?} in {region}, {:?}", self.feeds.len(), reader.leases);
        self.log_line(line);
        if mode == FeedMode::All {
            for at in 0..reader.leases.len() {
                let lease = &reader.leases[at];
                let response = self.ask_feed(mode, lease, (region, page_size), Some("*")).await;
                ensure(response.status == 304, Guarantee::Response, || {
                    format!("from now: {}", summary(&response))
                })?;
                reader.leases[at].position = response.header("etag").map(str::to_owned);
            }
            for key in self.keys.clone() {
                for (id, version) in self.items(region, &key).await? {
                    reader.delivered.insert((key.name.clone(), id), version.body["v"].as_u64());
                }
            }
        }
        self.feeds.push(reader);
        Ok(())
    }

    pub(crate) async fn read_feed(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        if self.feeds.is_empty() {
            return Ok(());
        }
        let at = rng.below(self.feeds.len());
        // The order of all versions differs between regions, so such a reader stays in its region.
        if self.feeds[at].mode == FeedMode::Latest && rng.chance(20) {
            self.feeds[at].region = self.random_region(rng);
        }
        let lease = rng.below(self.feeds[at].leases.len());
        self.read_feed_page(at, lease).await.map(drop)
    }

    async fn read_feed_page(&mut self, at: usize, lease: usize) -> Result<bool, Failure> {
        let mut reader = self.feeds.remove(at);
        let place = reader.leases[lease].clone();
        let where_to = (reader.region, reader.page_size);
        let response = self.ask_feed(reader.mode, &place, where_to, place.position.as_deref()).await;
        let changes = changes_of(reader.mode, &response);
        let etag = response.header("etag").unwrap_or("-");
        let line = format!(
            "feed {at} in {}: {place:?} → {} to {etag}: {changes:?}",
            reader.region,
            summary(&response)
        );
        self.log_line(line);
        let page = self.turn_page(&mut reader.leases, lease, &response).await;
        for (item, v) in changes {
            ensure(v.is_none_or(|v| self.lineage.contains(&item, v)), Guarantee::FeedOrder, || {
                format!("nobody wrote {v:?} of {item:?}")
            })?;
            reader.delivered.insert(item, v);
        }
        self.feeds.insert(at, reader);
        page.map(|page| page != Page::End)
    }

    /// Reads every feed to its end and checks that it delivered the final version of each item.
    pub(crate) async fn drain_feeds(&mut self, last: &BTreeMap<ItemName, u64>) -> Result<(), Failure> {
        for at in 0..self.feeds.len() {
            let (mut lease, mut pages) = (0, 0);
            while lease < self.feeds[at].leases.len() {
                let more = self.read_feed_page(at, lease).await?;
                lease += usize::from(!more);
                pages += 1;
                ensure(pages < PAGES_MAX, Guarantee::FeedComplete, || "the feed has no end".to_owned())?;
            }
            let reader = &self.feeds[at];
            for key in self.keys.iter().filter(|key| reader.leases.iter().any(|lease| lease.covers(key))) {
                for id in 0..self.ids {
                    let item = (key.name.clone(), format!("i{id}"));
                    let (ended, delivered) =
                        (last.get(&item).copied(), reader.delivered.get(&item).copied().flatten());
                    // Only the feed of all versions contains deletions.
                    let holds = ended == delivered || (ended.is_none() && reader.mode == FeedMode::Latest);
                    ensure(holds, Guarantee::FeedComplete, || {
                        format!("feed {at} has told {delivered:?} last of {item:?}, which ended as {ended:?}")
                    })?;
                }
            }
        }
        Ok(())
    }
}

/// The items of a page with their versions.
fn changes_of(mode: FeedMode, response: &TestResponse) -> Vec<(ItemName, Option<u64>)> {
    if response.status != 200 {
        return Vec::new();
    }
    let change = |row: &Value| {
        let key = key_of(mode, row).to_owned();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        match mode {
            FeedMode::Latest => ((key, text(&row["id"])), row["v"].as_u64()),
            FeedMode::All if row["metadata"]["operationType"] == "delete" => {
                ((key, text(&row["metadata"]["id"])), None)
            }
            FeedMode::All => ((key, text(&row["current"]["id"])), row["current"]["v"].as_u64()),
        }
    };
    response.json()["Documents"].as_array().unwrap().iter().map(change).collect()
}
