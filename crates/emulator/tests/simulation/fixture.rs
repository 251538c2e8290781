//! The fixture of every simulation: an account in several regions, its partition keys and ranges, and time.
//! `requests` sends requests to it, `restart` closes and reopens it.

use std::cell::Cell;
use std::num::NonZeroU32;
use std::time::Duration;

use perihelion_emulator::clock::{Clock, Ticks};
use perihelion_emulator::engine::account::{Account, AccountSettings};
use perihelion_emulator::regions::{Lag, Region, Topology};
use protocol::account::ConsistencyLevel;
use protocol::container::PartitionKeyDefinition;

use crate::client::{NOW_SECONDS, TestAccount, TestResponse};
use crate::failure::{Failure, Guarantee, ensure};
use crate::partition_ranges::{Key, PhysicalRange};
use crate::restart::DataDirectory;
use crate::seeded_random::SeededRandom;

pub(crate) const DOCS: &str = "/dbs/d/colls/c/docs";
/// The bound of bounded staleness.
pub(crate) const STALENESS: Duration = Duration::from_secs(300);
/// More than any lag: a write in transit when a region was paused may be older than the pause by this.
pub(crate) const LAG_MAX: Duration = Duration::from_secs(2);
const NAMES: [&str; 3] = ["West US", "East US", "North Europe"];

/// An account with one container, and what the simulation knows about it.
pub(crate) struct Fixture {
    pub(crate) account: TestAccount,
    pub(crate) settings: AccountSettings,
    /// The data directory, if the account has one.
    pub(crate) directory: Option<DataDirectory>,
    /// The total uptime before the last restart.
    pub(crate) uptime_before_restart: Duration,
    /// The age at which the last request was made.
    pub(crate) last_request_age: Cell<Duration>,
    pub(crate) level: ConsistencyLevel,
    multi_write: bool,
    pub(crate) regions: Vec<RegionState>,
    /// The write region, or the hub of a multi-write account.
    pub(crate) hub: u8,
    pub(crate) keys: Vec<Key>,
    /// The number of different ids per partition key.
    pub(crate) ids: usize,
    pub(crate) ranges: Vec<PhysicalRange>,
    pub(crate) splitting: Option<u32>,
    last_version: u64,
    pub(crate) log: Vec<String>,
}

/// The state of one region.
#[derive(Clone, Debug)]
pub(crate) struct RegionState {
    pub(crate) name: &'static str,
    /// The age at which replication to it was paused.
    pub(crate) paused: Option<Duration>,
    /// The ages at which it was last resumed, and had been paused before that.
    pub(crate) resumed: Option<(Duration, Duration)>,
}

/// The options of a fixture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixtureOptions {
    pub(crate) regions: usize,
    pub(crate) multi_write: bool,
    pub(crate) level: ConsistencyLevel,
    pub(crate) stored: bool,
}

impl Fixture {
    /// An account drawn from `rng`, with an empty container.
    pub(crate) async fn new(options: FixtureOptions, rng: &mut SeededRandom) -> Fixture {
        let FixtureOptions { regions, multi_write, level, stored } = options;
        let lag = random_lag(rng);
        let region_list = NAMES[..regions].iter().map(|name| Region::new(*name, 0)).collect();
        let settings = AccountSettings {
            topology: Topology::new(region_list, multi_write, level, lag).unwrap(),
            partitions: NonZeroU32::new(rng.between(1, 3) as u32),
            ..TestAccount::settings()
        };
        let directory = stored.then(DataDirectory::new);
        let clock = Clock::manual(Ticks(NOW_SECONDS * 10_000_000));
        let account = TestAccount::over(
            match &directory {
                Some(directory) => directory.open(&settings).unwrap(),
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
            (0..rng.between(3, 8)).map(|at| Key::new(format!("k{at}"), &definition)).collect();
        let mut stage = Fixture {
            account,
            settings,
            directory,
            uptime_before_restart: Duration::ZERO,
            last_request_age: Cell::default(),
            level,
            multi_write,
            regions: NAMES[..regions]
                .iter()
                .map(|name| RegionState { name, paused: None, resumed: None })
                .collect(),
            hub: 0,
            ids: rng.between(2, 6),
            keys,
            ranges: Vec::new(),
            splitting: None,
            last_version: 1,
            log: Vec::new(),
        };
        stage.log_line(format!("{options:?}, lag {lag}, {} keys", stage.keys.len()));
        stage.read_ranges().await.unwrap();
        stage
    }

    /// Adds a line to the log of the run.
    pub(crate) fn log_line(&mut self, line: String) {
        self.log.push(line);
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.account.clock.uptime()
    }

    /// The uptime including the time before restarts.
    pub(crate) fn age(&self) -> Duration {
        self.uptime_before_restart + self.uptime()
    }

    pub(crate) fn wait(&self, time: Duration) {
        self.account.clock.advance(time);
    }

    /// The engine's account, for operator actions.
    pub(crate) fn engine_account(&self) -> &Account {
        &self.account.hosted.account
    }

    pub(crate) fn now(&self) -> Ticks {
        self.account.clock.now()
    }

    /// A version number that was not used before.
    pub(crate) fn next_version(&mut self) -> u64 {
        self.last_version += 1;
        self.last_version
    }

    pub(crate) fn random_key(&self, rng: &mut SeededRandom) -> Key {
        rng.pick(&self.keys).clone()
    }

    pub(crate) fn random_region(&self, rng: &mut SeededRandom) -> u8 {
        rng.below(self.regions.len()) as u8
    }

    /// A random region for feeds and queries; the hub instead of one that violates bounded staleness.
    pub(crate) fn random_fresh_region(&self, rng: &mut SeededRandom) -> u8 {
        let region = self.random_region(rng);
        if self.may_be_too_stale(region) { self.hub } else { region }
    }

    /// Whether a region may reject reads because of bounded staleness.
    pub(crate) fn may_be_too_stale(&self, region: u8) -> bool {
        let bound = if self.multi_write { STALENESS / 2 } else { STALENESS };
        let is_behind = |region: u8| {
            let paused = self.regions[usize::from(region)].paused;
            paused.is_some_and(|at| at + bound < self.age() + LAG_MAX)
        };
        let behind = match self.multi_write {
            // Writes of one region reach another through the hub.
            true => is_behind(region) || is_behind(self.hub),
            false => region != self.hub && is_behind(region),
        };
        self.level == ConsistencyLevel::BoundedStaleness && behind
    }

    /// Whether a read was rejected because of bounded staleness, which must be justified.
    pub(crate) fn is_too_stale(&self, region: u8, response: &TestResponse) -> Result<bool, Failure> {
        let rejected = response.status == 503;
        ensure(!rejected || self.may_be_too_stale(region), Guarantee::Staleness, || {
            format!("{} where nothing is stale", response.status)
        })?;
        Ok(rejected)
    }

    /// The partition keys within one range.
    pub(crate) fn keys_in_range(&self, range: u32) -> Vec<Key> {
        let range = self.ranges.iter().find(|known| known.id == range);
        let within = |key: &&Key| range.is_some_and(|range| range.epks.contains(&key.epk));
        self.keys.iter().filter(within).cloned().collect()
    }
}

/// The LSN that a response states.
pub(crate) fn lsn_of(response: &TestResponse) -> u64 {
    response.header("lsn").expect("answers about items state their LSN").parse().unwrap()
}

/// A random lag of up to a second and a half.
pub(crate) fn random_lag(rng: &mut SeededRandom) -> Lag {
    let (low, more) =
        (rng.weighted(&[(2, 0), (4, 20), (2, 200), (1, 1000)]), rng.weighted(&[(3, 0), (3, 30), (1, 500)]));
    let milliseconds = |count: usize| Duration::from_millis(count as u64);
    Lag::between(milliseconds(low), milliseconds(low + more)).unwrap()
}
