//! An account, its clients, and what both should be: everything a step works with.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use http::Method;
use perihelion_emulator::regions::{Lag, Region, RegionId, Topology};
use protocol::account::ConsistencyLevel;
use protocol::container::PartitionKeyDefinition;

use crate::client::{Answer, TestAccount};
use crate::dice::Dice;
use crate::failure::{Failure, Promise, ensure};
use crate::feed::FeedReader;
use crate::model::{Change, History, Items};
use crate::query::Cursor;
use crate::ring::{Key, Range, read_ranges};
use crate::session::Session;

pub(crate) const DOCS: &str = "/dbs/d/colls/c/docs";
const RANGES: &str = "/dbs/d/colls/c/pkranges";
const NAMES: [&str; 3] = ["West US", "East US", "North Europe"];
/// Account time that passes at the most while one request waits: more than any lag.
const WAIT_MAX: Duration = Duration::from_secs(4);
/// The bound of bounded staleness.
const STALENESS: Duration = Duration::from_secs(300);

/// Everything.
pub(crate) struct World {
    account: TestAccount,
    pub(crate) level: ConsistencyLevel,
    pub(crate) regions: Vec<RegionState>,
    /// The region that writes.
    pub(crate) hub: u8,
    pub(crate) keys: Vec<Key>,
    /// Different ids per partition key.
    pub(crate) ids: usize,
    /// By partition key.
    pub(crate) histories: BTreeMap<String, History>,
    pub(crate) snapshots: BTreeMap<String, BTreeMap<String, Items>>,
    pub(crate) ranges: Vec<Range>,
    pub(crate) splitting: Option<u32>,
    pub(crate) sessions: Vec<Session>,
    /// Entity tags that clients have seen and may use later.
    pub(crate) tags: Vec<(String, String, String)>,
    pub(crate) feeds: Vec<FeedReader>,
    pub(crate) cursors: Vec<Cursor>,
    /// By region and partition key, the LSN of the last answer that was not strong.
    progress: BTreeMap<(u8, String), u64>,
    next_v: u64,
    pub(crate) told: Vec<String>,
}

/// One region.
#[derive(Clone, Debug)]
pub(crate) struct RegionState {
    pub(crate) name: &'static str,
    pub(crate) paused: bool,
}

type Headers<'a> = &'a [(&'a str, String)];

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
        let lag = lag(dice);
        let account = TestAccount::with(|settings| {
            let regions = NAMES[..regions].iter().map(|name| Region::new(*name, 0)).collect();
            settings.topology = Topology::new(regions, false, level, lag).unwrap();
            settings.partitions = NonZeroU32::new(dice.between(1, 3) as u32);
        });
        account
            .create_container("d", r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#)
            .await;
        let definition: PartitionKeyDefinition =
            serde_json::from_str(r#"{"paths":["/pk"],"kind":"Hash","version":2}"#).unwrap();
        let keys: Vec<Key> =
            (0..dice.between(3, 8)).map(|at| Key::new(format!("k{at}"), &definition)).collect();
        let mut world = World {
            account,
            level,
            regions: NAMES[..regions].iter().map(|name| RegionState { name, paused: false }).collect(),
            hub: 0,
            ids: dice.between(2, 6),
            histories: keys.iter().map(|key| (key.name.clone(), History::default())).collect(),
            keys,
            snapshots: BTreeMap::new(),
            ranges: Vec::new(),
            splitting: None,
            sessions: (0..3).map(|_| Session::default()).collect(),
            tags: Vec::new(),
            feeds: Vec::new(),
            cursors: Vec::new(),
            progress: BTreeMap::new(),
            next_v: 1,
            told: Vec::new(),
        };
        world.tell(format!("{regions} regions, {level:?}, lag {lag}, {} keys", world.keys.len()));
        world.read_ranges().await.unwrap();
        world
    }

    /// Adds a line to the history.
    pub(crate) fn tell(&mut self, line: String) {
        self.told.push(line);
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.account.clock.uptime()
    }

    pub(crate) fn wait(&self, time: Duration) {
        self.account.clock.advance(time);
    }

    /// The account itself, for what an operator does.
    pub(crate) fn operate(&self) -> &perihelion_emulator::gateway::Account {
        &self.account.account
    }

    pub(crate) fn now(&self) -> perihelion_emulator::clock::Ticks {
        self.account.clock.now()
    }

    /// A number nobody had before.
    pub(crate) fn new_v(&mut self) -> u64 {
        self.next_v += 1;
        self.next_v
    }

    pub(crate) fn key(&self, dice: &mut Dice) -> Key {
        dice.pick(&self.keys).clone()
    }

    pub(crate) fn region(&self, dice: &mut Dice) -> u8 {
        dice.below(self.regions.len()) as u8
    }

    pub(crate) fn history(&self, key: &str) -> &History {
        &self.histories[key]
    }

    /// Sends a request. Account time passes for as long as the answer is waited for.
    pub(crate) async fn send(
        &self,
        region: u8,
        method: Method,
        path: &str,
        headers: Headers<'_>,
        body: &str,
    ) -> Answer {
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let answer = self.account.send_in(RegionId(region), method, path, &headers, body);
        tokio::pin!(answer);
        let mut waited = Duration::ZERO;
        let step = Duration::from_millis(1);
        loop {
            // The runtime's time is paused as well: it jumps to the next timer.
            tokio::select! {
                biased;
                answer = &mut answer => return answer,
                () = tokio::time::sleep(step) => {
                    if waited < WAIT_MAX {
                        self.wait(step);
                        waited += step;
                    }
                }
            }
        }
    }

    /// Reads the ranges anew.
    pub(crate) async fn read_ranges(&mut self) -> Result<Vec<Range>, Failure> {
        let answer = self.send(self.hub, Method::GET, RANGES, &[], "").await;
        self.ranges = read_ranges(&answer.json())?;
        Ok(self.ranges.clone())
    }

    /// The partition keys within one range.
    pub(crate) fn keys_of(&self, range: u32) -> Vec<Key> {
        let range = self.ranges.iter().find(|known| known.id == range);
        let within = |key: &&Key| range.is_some_and(|range| range.epks.contains(&key.epk));
        self.keys.iter().filter(within).cloned().collect()
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
        if level == ConsistencyLevel::BoundedStaleness && !self.regions[usize::from(region)].paused {
            let now = self.uptime();
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

/// The LSN an answer states.
pub(crate) fn lsn_of(answer: &Answer) -> u64 {
    answer.header("lsn").expect("answers about items state their LSN").parse().unwrap()
}

/// A lag of any size up to a second and a half.
pub(crate) fn lag(dice: &mut Dice) -> Lag {
    let (low, more) =
        (dice.weighted(&[(2, 0), (4, 20), (2, 200), (1, 1000)]), dice.weighted(&[(3, 0), (3, 30), (1, 500)]));
    let milliseconds = |count: usize| Duration::from_millis(count as u64);
    Lag::between(milliseconds(low), milliseconds(low + more)).unwrap()
}
