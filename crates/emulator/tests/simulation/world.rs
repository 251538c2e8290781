//! One region writes: the account, its clients, and what both should be.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use http::Method;
use protocol::account::ConsistencyLevel;

use crate::client::Answer;
use crate::dice::Dice;
use crate::failure::{Failure, Promise, ensure};
use crate::feed::FeedReader;
use crate::model::{Change, History, Items};
use crate::query::Cursor;
use crate::session::Session;
use crate::stage::{DOCS, STALENESS, Scenery, Stage, lsn_of};

/// Everything a step works with.
pub(crate) struct World {
    pub(crate) stage: Stage,
    /// By partition key.
    pub(crate) histories: BTreeMap<String, History>,
    pub(crate) snapshots: BTreeMap<String, BTreeMap<String, Items>>,
    pub(crate) sessions: Vec<Session>,
    /// Entity tags that clients have seen and may use later.
    pub(crate) tags: Vec<(String, String, String)>,
    pub(crate) feeds: Vec<FeedReader>,
    pub(crate) cursors: Vec<Cursor>,
    /// By region and partition key, the LSN of the last answer that was not strong.
    progress: BTreeMap<(u8, String), u64>,
}

impl Deref for World {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.stage
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Stage {
        &mut self.stage
    }
}

impl World {
    /// An account as the dice say, with an empty container.
    pub(crate) async fn new(dice: &mut Dice) -> World {
        let regions = dice.weighted(&[(1, 1), (2, 2), (5, 3)]);
        let level = dice.weighted(&[
            (5, ConsistencyLevel::Session),
            (2, ConsistencyLevel::Strong),
            (2, ConsistencyLevel::BoundedStaleness),
            (1, ConsistencyLevel::ConsistentPrefix),
            (1, ConsistencyLevel::Eventual),
        ]);
        let stage =
            Stage::new(Scenery { regions, multi_write: false, level, kept: dice.chance(25) }, dice).await;
        World {
            histories: stage.keys.iter().map(|key| (key.name.clone(), History::default())).collect(),
            stage,
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

    /// The LSN at which a region answers about each partition key, right now.
    pub(crate) async fn probe(&mut self, region: u8) -> Result<BTreeMap<String, u64>, Failure> {
        let mut lsns = BTreeMap::new();
        for key in self.keys.clone() {
            let headers = [("x-ms-documentdb-partitionkey", key.header.clone())];
            let answer = self.send(region, Method::GET, &format!("{DOCS}/nobody"), &headers, "").await;
            ensure(answer.status == 404, Promise::Answer, || format!("probing: {}", answer.status))?;
            lsns.insert(key.name.clone(), lsn_of(&answer));
        }
        Ok(lsns)
    }

    /// Checks the LSN that an answer about `key` states, which everything else is checked by.
    pub(crate) fn check_lsn(
        &mut self,
        region: u8,
        key: &str,
        level: ConsistencyLevel,
        answer: &Answer,
    ) -> Result<u64, Failure> {
        let lsn = lsn_of(answer);
        let newest = self.histories[key].lsn();
        let must_be_newest = region == self.hub || level == ConsistencyLevel::Strong;
        ensure(!must_be_newest || lsn >= newest, Promise::Newest, || {
            format!("region {region} answers about {key} at LSN {lsn}; LSN {newest} was acknowledged")
        })?;
        if level == ConsistencyLevel::BoundedStaleness {
            // When it was asked: the answer may have been held up.
            let now = self.asked.get();
            let missing = self.histories[key].changes_after(lsn).find(|change| change.at + STALENESS < now);
            ensure(missing.is_none(), Promise::Staleness, || {
                format!("region {region} at LSN {lsn} misses {missing:?} of {key}")
            })?;
        }
        if level != ConsistencyLevel::Strong {
            let before = self.progress.entry((region, key.to_owned())).or_default();
            let was = std::mem::replace(before, lsn);
            ensure(was <= lsn, Promise::Progress, || {
                format!("region {region} answered about {key} at LSN {was}, and now at {lsn}")
            })?;
        }
        Ok(lsn)
    }

    /// Remembers what was committed.
    pub(crate) fn record(&mut self, key: &str, change: Change) -> Result<(), Failure> {
        let history = self.histories.get_mut(key).unwrap();
        let (last, lsn) = (history.lsn(), change.lsn);
        ensure(last <= lsn, Promise::Progress, || format!("{key} had LSN {last}, and now {lsn}"))?;
        history.record(change);
        Ok(())
    }

    /// A session has had an answer about `key`.
    pub(crate) fn session_saw(&mut self, session: usize, answer: &Answer) {
        let Some(token) = answer.header("x-ms-session-token") else { return };
        let range = answer.header("x-ms-documentdb-partitionkeyrangeid").unwrap().parse().unwrap();
        let keys = self.keys_of(range);
        self.sessions[session].saw(token, lsn_of(answer), keys.iter().map(|key| key.name.as_str()));
    }
}
