//! Steps of an operator: regions, partitions, snapshots and time.

use std::time::Duration;

use crate::dice::Dice;
use crate::failure::{Failure, Promise, ensure};
use crate::model::Items;
use crate::stage::{LAG_MAX, Stage, lag};
use crate::world::World;

/// What an operator does to an account, whoever writes there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deed {
    LetTimePass,
    ChangeLag,
    Pause,
    Resume,
    Split,
    Merge,
}

impl Stage {
    pub(crate) async fn operate_on(&mut self, deed: Deed, dice: &mut Dice) -> Result<(), Failure> {
        match deed {
            Deed::LetTimePass => self.let_time_pass(dice),
            Deed::ChangeLag => self.change_lag(dice),
            Deed::Pause => self.pause(dice),
            Deed::Resume => self.resume(dice),
            Deed::Split => self.split(dice).await?,
            Deed::Merge => self.merge(dice).await?,
        }
        Ok(())
    }

    /// Lets time pass: mostly as long as a lag, seldom as long as a bound.
    fn let_time_pass(&mut self, dice: &mut Dice) {
        let milliseconds = dice.weighted(&[(6, 1), (8, 10), (6, 60), (3, 500), (1, 2_000)]);
        let milliseconds = if dice.chance(1) { 301_000 } else { dice.between(1, milliseconds) };
        self.tell(format!("{milliseconds} ms pass"));
        self.wait(Duration::from_millis(milliseconds as u64));
    }

    fn change_lag(&mut self, dice: &mut Dice) {
        let lag = lag(dice);
        let from = dice.chance(50).then(|| dice.pick(&self.regions).name);
        let to = dice.chance(70).then(|| dice.pick(&self.regions).name);
        self.tell(format!("lag {lag} from {from:?} to {to:?}"));
        self.operate().set_lag(from, to, lag).unwrap();
    }

    fn pause(&mut self, dice: &mut Dice) {
        let at = dice.below(self.regions.len());
        self.tell(format!("replication to region {at} pauses"));
        self.operate().pause_replication(self.regions[at].name, self.uptime()).unwrap();
        let age = self.age();
        // What it missed during the pause before may still be on its way.
        let before = self.regions[at].resumed.filter(|(resumed, _)| age < *resumed + LAG_MAX);
        self.regions[at].paused.get_or_insert(before.map_or(age, |(_, paused)| paused));
    }

    fn resume(&mut self, dice: &mut Dice) {
        let paused: Vec<usize> =
            (0..self.regions.len()).filter(|at| self.regions[*at].paused.is_some()).collect();
        if paused.is_empty() {
            return;
        }
        let at = *dice.pick(&paused);
        self.tell(format!("replication to region {at} resumes"));
        self.resume_region(at);
    }

    pub(crate) fn resume_region(&mut self, at: usize) {
        self.operate().resume_replication(self.regions[at].name, self.uptime()).unwrap();
        let age = self.age();
        let paused = self.regions[at].paused.take();
        self.regions[at].resumed = paused.map(|paused| (age, paused)).or(self.regions[at].resumed);
    }

    async fn split(&mut self, dice: &mut Dice) -> Result<(), Failure> {
        if self.ranges.len() >= 8 {
            return Ok(());
        }
        let id = dice.pick(&self.ranges).id;
        let halves = self.operate().split_partition("d", "c", id, None, self.uptime());
        let halves =
            halves.map_err(|error| Failure { promise: Promise::Layout, details: error.to_string() })?;
        self.tell(format!("range {id} splits into {halves:?}"));
        self.layout_changed().await
    }

    async fn merge(&mut self, dice: &mut Dice) -> Result<(), Failure> {
        if self.ranges.len() < 2 {
            return Ok(());
        }
        let first = dice.below(self.ranges.len() - 1);
        let last = dice.between(first + 1, (first + 2).min(self.ranges.len() - 1));
        let ids: Vec<u32> = self.ranges[first..=last].iter().map(|range| range.id).collect();
        let merged = self.operate().merge_partitions("d", "c", &ids, self.uptime());
        if self.regions.iter().any(|region| region.paused.is_some()) {
            return ensure(merged.is_err(), Promise::Layout, || "a paused region cannot follow".to_owned());
        }
        let merged =
            merged.map_err(|error| Failure { promise: Promise::Layout, details: error.to_string() })?;
        self.tell(format!("ranges {ids:?} merge into {merged}"));
        self.layout_changed().await
    }

    /// Saves everything under one of a few names.
    pub(crate) fn save_as(&mut self, dice: &mut Dice) -> String {
        let name = format!("s{}", dice.below(2));
        self.tell(format!("snapshot {name} is saved"));
        self.operate().save_snapshot(&name, self.now()).unwrap();
        name
    }

    /// Makes everything as it was under one of `names`, if there are any. Says which.
    pub(crate) async fn go_back(
        &mut self,
        names: Vec<String>,
        dice: &mut Dice,
    ) -> Result<Option<String>, Failure> {
        if names.is_empty() {
            return Ok(None);
        }
        let name = dice.pick(&names).clone();
        self.tell(format!("snapshot {name} is restored"));
        self.operate().restore_snapshot(&name).unwrap();
        self.layout_changed().await?;
        Ok(Some(name))
    }

    pub(crate) async fn layout_changed(&mut self) -> Result<(), Failure> {
        self.read_ranges().await?;
        self.splitting = self.splitting.filter(|id| self.ranges.iter().any(|range| range.id == *id));
        Ok(())
    }

    /// Requests that name a range are told to wait, or no longer.
    pub(crate) fn toggle_splitting(&mut self, dice: &mut Dice) {
        let (id, splitting) = match self.splitting.take() {
            Some(id) => (id, false),
            None => (dice.pick(&self.ranges).id, true),
        };
        self.tell(format!("range {id} is {}splitting", if splitting { "" } else { "no longer " }));
        self.operate().set_splitting("d", "c", id, splitting).unwrap();
        self.splitting = splitting.then_some(id);
    }
}

impl World {
    pub(crate) fn fail_over(&mut self, dice: &mut Dice) {
        let to = self.region(dice);
        self.tell(format!("region {to} writes from now on"));
        self.operate().fail_over(self.regions[usize::from(to)].name).unwrap();
        self.hub = to;
    }

    pub(crate) fn save_snapshot(&mut self, dice: &mut Dice) {
        let name = self.save_as(dice);
        let saved = self.histories.iter().map(|(key, history)| (key.clone(), history.newest().clone()));
        let saved = saved.collect();
        self.snapshots.insert(name, saved);
    }

    pub(crate) async fn restore_snapshot(&mut self, dice: &mut Dice) -> Result<(), Failure> {
        let names = self.snapshots.keys().cloned().collect();
        let Some(name) = self.go_back(names, dice).await? else { return Ok(()) };
        let lsns = self.probe(self.hub).await?;
        for (key, lsn) in lsns {
            let items: Items = self.snapshots[&name][&key].clone();
            self.histories.get_mut(&key).unwrap().restore(lsn, items);
        }
        // What was undone is not told, so whoever reads changes or pages begins anew.
        self.feeds.clear();
        self.cursors.clear();
        Ok(())
    }

    /// Everything acknowledged is there when the account is opened again; snapshots are not.
    pub(crate) async fn end_and_begin(&mut self, dice: &mut Dice) -> Result<(), Failure> {
        if !self.restart(dice).await? {
            return Ok(());
        }
        self.snapshots.clear();
        for (key, lsn) in self.probe(self.hub).await? {
            let newest = self.history(&key).lsn();
            ensure(lsn >= newest, Promise::Kept, || format!("{key} is at LSN {lsn}, and was at {newest}"))?;
        }
        Ok(())
    }
}
