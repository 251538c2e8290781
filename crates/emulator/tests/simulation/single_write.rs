//! A simulation of an account with one write region: the account, its clients, and the model.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use http::Method;
use protocol::account::ConsistencyLevel;

use crate::client::TestResponse;
use crate::failure::{Failure, Guarantee, ensure};
use crate::feed::FeedReader;
use crate::fixture::{DOCS, Fixture, FixtureOptions, STALENESS, lsn_of};
use crate::model::{Change, History, Items};
use crate::query::Cursor;
use crate::seeded_random::SeededRandom;
use crate::session::Session;

/// The state of a single-write simulation.
pub(crate) struct SingleWriteSimulation {
    pub(crate) fixture: Fixture,
    /// The expected history of each partition key.
    pub(crate) histories: BTreeMap<String, History>,
    pub(crate) snapshots: BTreeMap<String, BTreeMap<String, Items>>,
    pub(crate) sessions: Vec<Session>,
    /// Entity tags that clients have seen and may use later.
    pub(crate) tags: Vec<(String, String, String)>,
    pub(crate) feeds: Vec<FeedReader>,
    pub(crate) cursors: Vec<Cursor>,
    /// The LSN of the last response that was not strong, by region and partition key.
    progress: BTreeMap<(u8, String), u64>,
}

impl Deref for SingleWriteSimulation {
    type Target = Fixture;

    fn deref(&self) -> &Fixture {
        &self.fixture
    }
}

impl DerefMut for SingleWriteSimulation {
    fn deref_mut(&mut self) -> &mut Fixture {
        &mut self.fixture
    }
}

impl SingleWriteSimulation {
    /// An account drawn from `rng`, with an empty container.
    pub(crate) async fn new(rng: &mut SeededRandom) -> SingleWriteSimulation {
        let regions = rng.weighted(&[(1, 1), (2, 2), (5, 3)]);
        let level = rng.weighted(&[
            (5, ConsistencyLevel::Session),
            (2, ConsistencyLevel::Strong),
            (2, ConsistencyLevel::BoundedStaleness),
            (1, ConsistencyLevel::ConsistentPrefix),
            (1, ConsistencyLevel::Eventual),
        ]);
        let stage =
            Fixture::new(FixtureOptions { regions, multi_write: false, level, stored: rng.chance(25) }, rng)
                .await;
        SingleWriteSimulation {
            histories: stage.keys.iter().map(|key| (key.name.clone(), History::default())).collect(),
            fixture: stage,
            snapshots: BTreeMap::new(),
            sessions: (0..3).map(|_| Session::default()).collect(),
            tags: Vec::new(),
            feeds: Vec::new(),
            cursors: Vec::new(),
            progress: BTreeMap::new(),
        }
    }

    pub(crate) fn history(&self, key: &str) -> &History {
        &self.histories[key]
    }

    /// The current LSN of each partition key in a region.
    pub(crate) async fn probe(&mut self, region: u8) -> Result<BTreeMap<String, u64>, Failure> {
        let mut lsns = BTreeMap::new();
        for key in self.keys.clone() {
            let headers = [("x-ms-documentdb-partitionkey", key.header.clone())];
            let response = self.send(region, Method::GET, &format!("{DOCS}/nobody"), &headers, "").await;
            ensure(response.status == 404, Guarantee::Response, || format!("probing: {}", response.status))?;
            lsns.insert(key.name.clone(), lsn_of(&response));
        }
        Ok(lsns)
    }

    /// Checks the LSN that a response about `key` states; other checks rely on it.
    pub(crate) fn check_lsn(
        &mut self,
        region: u8,
        key: &str,
        level: ConsistencyLevel,
        response: &TestResponse,
    ) -> Result<u64, Failure> {
        let lsn = lsn_of(response);
        let newest = self.histories[key].lsn();
        let must_be_newest = region == self.hub || level == ConsistencyLevel::Strong;
        ensure(!must_be_newest || lsn >= newest, Guarantee::Newest, || {
            format!("region {region} answers about {key} at LSN {lsn}; LSN {newest} was acknowledged")
        })?;
        if level == ConsistencyLevel::BoundedStaleness {
            // The age at the request: a rule may have delayed the response.
            let now = self.last_request_age.get();
            let missing = self.histories[key].changes_after(lsn).find(|change| change.at + STALENESS < now);
            ensure(missing.is_none(), Guarantee::Staleness, || {
                format!("region {region} at LSN {lsn} misses {missing:?} of {key}")
            })?;
        }
        if level != ConsistencyLevel::Strong {
            let before = self.progress.entry((region, key.to_owned())).or_default();
            let was = std::mem::replace(before, lsn);
            ensure(was <= lsn, Guarantee::Progress, || {
                format!("region {region} answered about {key} at LSN {was}, and now at {lsn}")
            })?;
        }
        Ok(lsn)
    }

    /// Records a committed change.
    pub(crate) fn record(&mut self, key: &str, change: Change) -> Result<(), Failure> {
        let history = self.histories.get_mut(key).unwrap();
        let (last, lsn) = (history.lsn(), change.lsn);
        ensure(last <= lsn, Guarantee::Progress, || format!("{key} had LSN {last}, and now {lsn}"))?;
        history.record(change);
        Ok(())
    }

    /// Records the response in a session.
    pub(crate) fn session_observe(&mut self, session: usize, response: &TestResponse) {
        let Some(token) = response.header("x-ms-session-token") else { return };
        let range = response.header("x-ms-documentdb-partitionkeyrangeid").unwrap().parse().unwrap();
        let keys = self.keys_in_range(range);
        self.sessions[session].observe(token, lsn_of(response), keys.iter().map(|key| key.name.as_str()));
    }
}
