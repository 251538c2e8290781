//! The stage of every play: an account in several regions, its partition keys and ranges, and time.
//! How it is asked is in `ask`, how it ends and begins anew in `restart`.

use std::cell::Cell;
use std::num::NonZeroU32;
use std::time::Duration;

use perihelion_emulator::clock::{Clock, Ticks};
use perihelion_emulator::engine::account::{Account, AccountSettings};
use perihelion_emulator::regions::{Lag, Region, Topology};
use protocol::account::ConsistencyLevel;
use protocol::container::PartitionKeyDefinition;

use crate::client::{Answer, NOW_SECONDS, TestAccount};
use crate::dice::Dice;
use crate::failure::{Failure, Promise, ensure};
use crate::restart::Scratch;
use crate::ring::{Key, Range};

pub(crate) const DOCS: &str = "/dbs/d/colls/c/docs";
/// The bound of bounded staleness.
pub(crate) const STALENESS: Duration = Duration::from_secs(300);
/// More than any lag: what was on its way when a region was paused may be older than the pause by this.
pub(crate) const LAG_MAX: Duration = Duration::from_secs(2);
const NAMES: [&str; 3] = ["West US", "East US", "North Europe"];

/// An account with one container.
pub(crate) struct Stage {
    pub(crate) account: TestAccount,
    pub(crate) settings: AccountSettings,
    /// Where it is kept, if anywhere.
    pub(crate) kept: Option<Scratch>,
    /// How long it ran before it was opened again.
    pub(crate) ran: Duration,
    /// The age at which the last request was made.
    pub(crate) asked: Cell<Duration>,
    pub(crate) level: ConsistencyLevel,
    multi_write: bool,
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
    /// The age at which replication to it was paused.
    pub(crate) paused: Option<Duration>,
    /// The ages at which it was last resumed, and had been paused before that.
    pub(crate) resumed: Option<(Duration, Duration)>,
}

/// What kind of account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenery {
    pub(crate) regions: usize,
    pub(crate) multi_write: bool,
    pub(crate) level: ConsistencyLevel,
    pub(crate) kept: bool,
}

impl Stage {
    /// An account as the dice say, with an empty container.
    pub(crate) async fn new(scenery: Scenery, dice: &mut Dice) -> Stage {
        let Scenery { regions, multi_write, level, kept } = scenery;
        let lag = lag(dice);
        let places = NAMES[..regions].iter().map(|name| Region::new(*name, 0)).collect();
        let settings = AccountSettings {
            topology: Topology::new(places, multi_write, level, lag).unwrap(),
            partitions: NonZeroU32::new(dice.between(1, 3) as u32),
            ..TestAccount::settings()
        };
        let kept = kept.then(Scratch::new);
        let clock = Clock::manual(Ticks(NOW_SECONDS * 10_000_000));
        let account = TestAccount::over(
            match &kept {
                Some(scratch) => scratch.open(&settings).unwrap(),
                None => Account::new(settings.clone()),
            },
            clock,
        );
        account
            .create_container("d", r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#)
            .await;
        let definition: PartitionKeyDefinition =
            serde_json::from_str(r#"{"paths":["/pk"],"kind":"Hash","version":2}"#).unwrap();
        let keys: Vec<Key> =
            (0..dice.between(3, 8)).map(|at| Key::new(format!("k{at}"), &definition)).collect();
        let mut stage = Stage {
            account,
            settings,
            kept,
            ran: Duration::ZERO,
            asked: Cell::default(),
            level,
            multi_write,
            regions: NAMES[..regions]
                .iter()
                .map(|name| RegionState { name, paused: None, resumed: None })
                .collect(),
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

    /// The same, with the time before it was opened again.
    pub(crate) fn age(&self) -> Duration {
        self.ran + self.uptime()
    }

    pub(crate) fn wait(&self, time: Duration) {
        self.account.clock.advance(time);
    }

    /// The account itself, for what an operator does.
    pub(crate) fn operate(&self) -> &Account {
        &self.account.hosted.account
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

    /// A region to ask for more than an item: the one that writes, where the dice choose one that is staler
    /// than agreed.
    pub(crate) fn fresh_region(&self, dice: &mut Dice) -> u8 {
        let region = self.region(dice);
        if self.may_be_too_stale(region) { self.hub } else { region }
    }

    /// Whether a region may have to refuse what needs bounded staleness.
    pub(crate) fn may_be_too_stale(&self, region: u8) -> bool {
        let bound = if self.multi_write { STALENESS / 2 } else { STALENESS };
        let is_behind = |region: u8| {
            let paused = self.regions[usize::from(region)].paused;
            paused.is_some_and(|at| at + bound < self.age() + LAG_MAX)
        };
        let behind = match self.multi_write {
            // What one region writes reaches another by way of the hub.
            true => is_behind(region) || is_behind(self.hub),
            false => region != self.hub && is_behind(region),
        };
        self.level == ConsistencyLevel::BoundedStaleness && behind
    }

    /// Whether an answer to a read says that its region is staler than agreed. That must be so.
    pub(crate) fn is_too_stale(&self, region: u8, answer: &Answer) -> Result<bool, Failure> {
        let refused = answer.status == 503;
        ensure(!refused || self.may_be_too_stale(region), Promise::Staleness, || {
            format!("{} where nothing is stale", answer.status)
        })?;
        Ok(refused)
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
