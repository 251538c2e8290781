//! Steps of an operator: replication, splits and merges, snapshots and time.

use std::time::Duration;

use crate::failure::{Failure, Guarantee, ensure};
use crate::fixture::{Fixture, LAG_MAX, random_lag};
use crate::model::Items;
use crate::seeded_random::SeededRandom;
use crate::single_write::SingleWriteSimulation;

/// An action of an operator, for both kinds of accounts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OperatorAction {
    AdvanceClock,
    ChangeLag,
    Pause,
    Resume,
    Split,
    Merge,
}

impl Fixture {
    pub(crate) async fn run_operator_action(
        &mut self,
        action: OperatorAction,
        rng: &mut SeededRandom,
    ) -> Result<(), Failure> {
        match action {
            OperatorAction::AdvanceClock => self.advance_clock(rng),
            OperatorAction::ChangeLag => self.change_lag(rng),
            OperatorAction::Pause => self.pause(rng),
            OperatorAction::Resume => self.resume(rng),
            OperatorAction::Split => self.split(rng).await?,
            OperatorAction::Merge => self.merge(rng).await?,
        }
        Ok(())
    }

    /// Advances the clock: mostly by about a lag, seldom by the staleness bound.
    fn advance_clock(&mut self, rng: &mut SeededRandom) {
        let milliseconds = rng.weighted(&[(6, 1), (8, 10), (6, 60), (3, 500), (1, 2_000)]);
        let milliseconds = if rng.chance(1) { 301_000 } else { rng.between(1, milliseconds) };
        self.log_line(format!("{milliseconds} ms pass"));
        self.wait(Duration::from_millis(milliseconds as u64));
    }

    fn change_lag(&mut self, rng: &mut SeededRandom) {
        let lag = random_lag(rng);
        let from = rng.chance(50).then(|| rng.pick(&self.regions).name);
        let to = rng.chance(70).then(|| rng.pick(&self.regions).name);
        self.log_line(format!("lag {lag} from {from:?} to {to:?}"));
        self.engine_account().set_lag(from, to, lag).unwrap();
    }

    fn pause(&mut self, rng: &mut SeededRandom) {
        let at = rng.below(self.regions.len());
        self.log_line(format!("replication to region {at} pauses"));
        self.engine_account().pause_replication(self.regions[at].name, self.uptime()).unwrap();
        let age = self.age();
        // Writes that it missed during the previous pause may still be in transit.
        let before = self.regions[at].resumed.filter(|(resumed, _)| age < *resumed + LAG_MAX);
        self.regions[at].paused.get_or_insert(before.map_or(age, |(_, paused)| paused));
    }

    fn resume(&mut self, rng: &mut SeededRandom) {
        let paused: Vec<usize> =
            (0..self.regions.len()).filter(|at| self.regions[*at].paused.is_some()).collect();
        if paused.is_empty() {
            return;
        }
        let at = *rng.pick(&paused);
        self.log_line(format!("replication to region {at} resumes"));
        self.resume_region(at);
    }

    pub(crate) fn resume_region(&mut self, at: usize) {
        self.engine_account().resume_replication(self.regions[at].name, self.uptime()).unwrap();
        let age = self.age();
        let paused = self.regions[at].paused.take();
        self.regions[at].resumed = paused.map(|paused| (age, paused)).or(self.regions[at].resumed);
    }

    async fn split(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        if self.ranges.len() >= 8 {
            return Ok(());
        }
        let id = rng.pick(&self.ranges).id;
        let halves = self.engine_account().split_partition("d", "c", id, None, self.uptime());
        let halves =
            halves.map_err(|error| Failure { guarantee: Guarantee::Layout, details: error.to_string() })?;
        self.log_line(format!("range {id} splits into {halves:?}"));
        self.layout_changed().await
    }

    async fn merge(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        if self.ranges.len() < 2 {
            return Ok(());
        }
        let first = rng.below(self.ranges.len() - 1);
        let last = rng.between(first + 1, (first + 2).min(self.ranges.len() - 1));
        let ids: Vec<u32> = self.ranges[first..=last].iter().map(|range| range.id).collect();
        let merged = self.engine_account().merge_partitions("d", "c", &ids, self.uptime());
        if self.regions.iter().any(|region| region.paused.is_some()) {
            return ensure(merged.is_err(), Guarantee::Layout, || "a paused region cannot follow".to_owned());
        }
        let merged =
            merged.map_err(|error| Failure { guarantee: Guarantee::Layout, details: error.to_string() })?;
        self.log_line(format!("ranges {ids:?} merge into {merged}"));
        self.layout_changed().await
    }

    /// Saves a snapshot under one of a few names.
    pub(crate) fn save_as(&mut self, rng: &mut SeededRandom) -> String {
        let name = format!("s{}", rng.below(2));
        self.log_line(format!("snapshot {name} is saved"));
        self.engine_account().save_snapshot(&name, self.now()).unwrap();
        name
    }

    /// Restores one of the snapshots in `names`, if there are any, and returns its name.
    pub(crate) async fn go_back(
        &mut self,
        names: Vec<String>,
        rng: &mut SeededRandom,
    ) -> Result<Option<String>, Failure> {
        if names.is_empty() {
            return Ok(None);
        }
        let name = rng.pick(&names).clone();
        self.log_line(format!("snapshot {name} is restored"));
        self.engine_account().restore_snapshot(&name).unwrap();
        self.layout_changed().await?;
        Ok(Some(name))
    }

    pub(crate) async fn layout_changed(&mut self) -> Result<(), Failure> {
        self.read_ranges().await?;
        self.splitting = self.splitting.filter(|id| self.ranges.iter().any(|range| range.id == *id));
        Ok(())
    }

    /// Locks a range, so that requests by its id get 410, or unlocks it.
    pub(crate) fn toggle_splitting(&mut self, rng: &mut SeededRandom) {
        let (id, splitting) = match self.splitting.take() {
            Some(id) => (id, false),
            None => (rng.pick(&self.ranges).id, true),
        };
        self.log_line(format!("range {id} is {}splitting", if splitting { "" } else { "no longer " }));
        self.engine_account().set_splitting("d", "c", id, splitting).unwrap();
        self.splitting = splitting.then_some(id);
    }
}

impl SingleWriteSimulation {
    pub(crate) fn fail_over(&mut self, rng: &mut SeededRandom) {
        let to = self.random_region(rng);
        self.log_line(format!("region {to} writes from now on"));
        self.engine_account().fail_over(self.regions[usize::from(to)].name).unwrap();
        self.hub = to;
    }

    pub(crate) fn save_snapshot(&mut self, rng: &mut SeededRandom) {
        let name = self.save_as(rng);
        let saved = self.histories.iter().map(|(key, history)| (key.clone(), history.newest().clone()));
        let saved = saved.collect();
        self.snapshots.insert(name, saved);
    }

    pub(crate) async fn restore_snapshot(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        let names = self.snapshots.keys().cloned().collect();
        let Some(name) = self.go_back(names, rng).await? else { return Ok(()) };
        let lsns = self.probe(self.hub).await?;
        for (key, lsn) in lsns {
            let items: Items = self.snapshots[&name][&key].clone();
            self.histories.get_mut(&key).unwrap().restore(lsn, items);
        }
        // Feeds do not contain undone changes, so feeds and queries start again.
        self.feeds.clear();
        self.cursors.clear();
        Ok(())
    }

    /// Restarts the account and checks that acknowledged writes survive; snapshots do not.
    pub(crate) async fn end_and_begin(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        if !self.restart(rng).await? {
            return Ok(());
        }
        self.snapshots.clear();
        for (key, lsn) in self.probe(self.hub).await? {
            let newest = self.history(&key).lsn();
            ensure(lsn >= newest, Guarantee::Durability, || {
                format!("{key} is at LSN {lsn}, and was at {newest}")
            })?;
        }
        Ok(())
    }
}
