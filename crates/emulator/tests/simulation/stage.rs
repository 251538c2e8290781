//! The stage of every play: an account in several regions, its partition keys and ranges, and time.

use std::num::NonZeroU32;
use std::time::Duration;

use http::Method;
use perihelion_emulator::clock::Ticks;
use perihelion_emulator::gateway::Account;
use perihelion_emulator::regions::{Lag, Region, RegionId, Topology};
use protocol::account::ConsistencyLevel;
use protocol::container::PartitionKeyDefinition;

use crate::client::{Answer, TestAccount};
use crate::dice::Dice;
use crate::failure::Failure;
use crate::ring::{Key, Range, read_ranges};

pub(crate) const DOCS: &str = "/dbs/d/colls/c/docs";
const RANGES: &str = "/dbs/d/colls/c/pkranges";
const NAMES: [&str; 3] = ["West US", "East US", "North Europe"];
/// Account time that passes at the most while one request waits: more than any lag.
const WAIT_MAX: Duration = Duration::from_secs(4);

/// An account with one container.
pub(crate) struct Stage {
    account: TestAccount,
    pub(crate) level: ConsistencyLevel,
    pub(crate) regions: Vec<RegionState>,
    /// The region that writes, or settles what others write.
    pub(crate) hub: u8,
    pub(crate) keys: Vec<Key>,
    /// Different ids per partition key.
    pub(crate) ids: usize,
    pub(crate) ranges: Vec<Range>,
    pub(crate) splitting: Option<u32>,
    next_v: u64,
    pub(crate) told: Vec<String>,
}

/// One region.
#[derive(Clone, Debug)]
pub(crate) struct RegionState {
    pub(crate) name: &'static str,
    pub(crate) paused: bool,
}

/// What kind of account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenery {
    pub(crate) regions: usize,
    pub(crate) multi_write: bool,
    pub(crate) level: ConsistencyLevel,
}

type Headers<'a> = &'a [(&'a str, String)];

impl Stage {
    /// An account as the dice say, with an empty container.
    pub(crate) async fn new(scenery: Scenery, dice: &mut Dice) -> Stage {
        let Scenery { regions, multi_write, level } = scenery;
        let lag = lag(dice);
        let account = TestAccount::with(|settings| {
            let regions = NAMES[..regions].iter().map(|name| Region::new(*name, 0)).collect();
            settings.topology = Topology::new(regions, multi_write, level, lag).unwrap();
            settings.partitions = NonZeroU32::new(dice.between(1, 3) as u32);
        });
        account
            .create_container("d", r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#)
            .await;
        let definition: PartitionKeyDefinition =
            serde_json::from_str(r#"{"paths":["/pk"],"kind":"Hash","version":2}"#).unwrap();
        let keys: Vec<Key> =
            (0..dice.between(3, 8)).map(|at| Key::new(format!("k{at}"), &definition)).collect();
        let mut stage = Stage {
            account,
            level,
            regions: NAMES[..regions].iter().map(|name| RegionState { name, paused: false }).collect(),
            hub: 0,
            ids: dice.between(2, 6),
            keys,
            ranges: Vec::new(),
            splitting: None,
            next_v: 1,
            told: Vec::new(),
        };
        stage.tell(format!("{scenery:?}, lag {lag}, {} keys", stage.keys.len()));
        stage.read_ranges().await.unwrap();
        stage
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
    pub(crate) fn operate(&self) -> &Account {
        &self.account.account
    }

    pub(crate) fn now(&self) -> Ticks {
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
