//! The copies of a partition in an account whose regions all write.
//!
//! Each region has a line of its own and answers from it at once. What it commits is *tentative*: it
//! travels to the hub, which settles conflicts in the order of arrival and tells every region what
//! stayed. A region shows its own tentative version of an item until it hears what became of it, and
//! the hub's version otherwise; so when everything has arrived, all copies are equal to the hub's.
//!
//! Nothing runs in the background. Whoever looks at a copy first takes in what has arrived by then: at
//! the hub, because that is where answers come from, and then at the copy itself.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::Guard;

use super::conflicts::{Conflict, Conflicts};
use super::contents::Contents;
use super::head::Head;
use super::inbox::{Inbox, Key, Letter};
use super::item::Item;
use super::line::{Line, Turn};
use super::log::{Change, ChangeKind};
use super::partition::{Commit, Identity, Moment};
use super::state::State;
use super::transaction::Transaction;
use crate::regions::{Meeting, RegionId, Topology, Verdict};

/// The region that settles: the first in failover order, which never changes where all write.
const HUB: RegionId = RegionId(0);
/// Letters on their way to one region at the most; beyond that writers have to wait.
const LETTERS_MAX: usize = 100_000;

/// One copy per region.
pub(super) struct Mesh {
    copies: Vec<Copy>,
    pub(super) conflicts: Mutex<Conflicts>,
}

struct Copy {
    line: Line,
    inbox: Inbox,
    /// Own changes of an item that have not been settled yet.
    unsettled: Mutex<HashMap<Key, u32>>,
}

/// A region is so far behind that nothing more can be sent to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooFarBehind;

impl Mesh {
    /// Every region has `contents`.
    pub(super) fn new(contents: &Contents, regions: usize) -> Mesh {
        let copy = |_| Copy {
            line: Line::new(contents.head.clone(), contents.state.clone()),
            inbox: Inbox::new(),
            unsettled: Mutex::default(),
        };
        Mesh { copies: (0..regions).map(copy).collect(), conflicts: Mutex::default() }
    }

    /// Decides what one region has of a partition that is being made.
    pub(super) fn set_copy(&mut self, region: RegionId, contents: Contents) {
        if let Some(copy) = self.copies.get_mut(region.index()) {
            copy.line = Line::new(contents.head, contents.state);
        }
    }

    /// What `region` has at `uptime`, by identity.
    pub(super) fn peek(&self, at: &Post<'_>, region: RegionId) -> Guard<Arc<Head>> {
        self.take_in(at, region);
        self.copy(region).line.peek()
    }

    /// What `region` has at `uptime`, to keep.
    pub(super) fn snapshot(&self, at: &Post<'_>, region: RegionId) -> Arc<State> {
        self.take_in(at, region);
        self.copy(region).line.snapshot()
    }

    /// What the hub had last, without taking anything in.
    pub(super) fn hub(&self) -> &Line {
        &self.copies[0].line
    }

    /// Whether a region could not keep up with one more commit.
    pub(super) fn check_room(&self) -> Result<(), TooFarBehind> {
        let full = self.copies.iter().any(|copy| copy.inbox.len() >= LETTERS_MAX);
        if full { Err(TooFarBehind) } else { Ok(()) }
    }

    /// The writer's turn at `region`, with everything that has arrived taken in.
    pub(super) fn turn(&self, at: &Post<'_>, region: RegionId) -> Turn<'_> {
        self.take_in(at, region);
        self.copy(region).line.turn()
    }

    /// Sends what was just committed at `region` on its way. Within the turn that committed it.
    pub(super) fn send(&self, at: &Post<'_>, region: RegionId, changes: &[Arc<Change>], commit: u64) {
        // What expired in one region expires in all of them.
        for change in changes.iter().filter(|change| change.kind != ChangeKind::Expire) {
            for letter in Letter::about(change, region, commit) {
                if region == HUB {
                    self.tell_all(at, at.uptime, &letter);
                } else {
                    *self.copy(region).unsettled().entry(letter.key.clone()).or_default() += 1;
                    self.copies[0].inbox.send(region, at.due(region, HUB, at.uptime), letter);
                }
            }
        }
    }

    /// Everything on its way arrives now, whatever the lag, and every turn is taken: for whoever is
    /// about to put something else in the place of this partition.
    pub(super) fn settle_and_close(&self, at: &Post<'_>) -> Vec<Turn<'_>> {
        let mut turns: Vec<Turn<'_>> = self.copies.iter().map(|copy| copy.line.turn()).collect();
        self.hear(at, &mut turns[0], Duration::MAX);
        for (region, turn) in (1..).zip(&mut turns[1..]) {
            self.learn(at, RegionId(region), turn, Duration::MAX);
        }
        turns
    }

    fn copy(&self, region: RegionId) -> &Copy {
        &self.copies[region.index()]
    }

    /// Takes in what has arrived at the hub and at `region`.
    fn take_in(&self, at: &Post<'_>, region: RegionId) {
        let hub = &self.copies[0];
        if hub.inbox.has_due(at.arrived(HUB)) {
            self.hear(at, &mut hub.line.turn(), at.arrived(HUB));
        }
        let copy = self.copy(region);
        if region != HUB && copy.inbox.has_due(at.arrived(region)) {
            self.learn(at, region, &mut copy.line.turn(), at.arrived(region));
        }
    }

    /// The hub settles what has arrived and tells everybody.
    fn hear(&self, at: &Post<'_>, turn: &mut Turn<'_>, until: Duration) {
        while let Some((due, letter)) = self.copies[0].inbox.take_due(until) {
            let due = if until == Duration::MAX { at.uptime } else { due };
            let head = turn.head();
            let present = head.get(&letter.key.epk, &letter.key.id);
            let (incoming, there) =
                (letter.item.as_ref().map(|item| item.value()), present.map(|item| item.value()));
            let verdict = head.schema.settlement.settle(Meeting {
                base: letter.base.as_ref().and_then(|base| std::str::from_utf8(base).ok()),
                incoming: incoming.as_ref(),
                present: present.zip(there.as_ref()).map(|(item, value)| (item.etag_str(), value)),
            });
            if verdict == Verdict::Record {
                let mut conflicts = self.conflicts.lock().unwrap_or_else(PoisonError::into_inner);
                conflicts.add(Conflict::of(&letter, present.cloned()));
            }
            let wanted = match verdict {
                Verdict::Accept => letter.item.clone(),
                Verdict::Reject | Verdict::Record => present.cloned(),
            };
            let kept = self.adopt(at, turn, &letter, wanted);
            self.tell_all(at, due, &Letter { item: kept, ..letter });
        }
    }

    /// A region learns what became of changes, its own and others'.
    fn learn(&self, at: &Post<'_>, region: RegionId, turn: &mut Turn<'_>, until: Duration) {
        let copy = self.copy(region);
        while let Some((_, letter)) = copy.inbox.take_due(until) {
            let mut unsettled = copy.unsettled();
            if letter.origin == region
                && let Some(count) = unsettled.get_mut(&letter.key)
            {
                *count -= 1;
                if *count == 0 {
                    unsettled.remove(&letter.key);
                }
            }
            let own_pending = unsettled.contains_key(&letter.key);
            drop(unsettled);
            let wanted = if own_pending {
                turn.head().get(&letter.key.epk, &letter.key.id).cloned()
            } else {
                letter.item.clone()
            };
            self.adopt(at, turn, &letter, wanted);
        }
    }

    /// Makes a copy hold exactly this version of an item, and says which version it holds.
    fn adopt(
        &self,
        at: &Post<'_>,
        turn: &mut Turn<'_>,
        letter: &Letter,
        wanted: Option<Arc<Item>>,
    ) -> Option<Arc<Item>> {
        let mut head = Head::clone(&turn.head());
        head.progress = head.progress.with(letter.origin, letter.commit);
        let mut transaction = Transaction::new(head, turn.state(), at.identity, at.ordinals, letter.at);
        // What breaks a unique key here loses: the hub decides, and it had the other one first.
        let kept = transaction.adopt(&letter.key, wanted.as_ref()).unwrap_or_else(|present| present);
        turn.commit(transaction.finish_always());
        kept
    }

    fn tell_all(&self, at: &Post<'_>, from: Duration, letter: &Letter) {
        for (region, copy) in (1..).zip(&self.copies[1..]) {
            let region = RegionId(region);
            copy.inbox.send(HUB, at.due(HUB, region, from), letter.clone());
        }
    }
}

impl Copy {
    fn unsettled(&self) -> MutexGuard<'_, HashMap<Key, u32>> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Letter {
    /// What the others have to know of a change: one letter, or two where an item got another id.
    fn about(change: &Change, origin: RegionId, commit: u64) -> Vec<Letter> {
        let letter = |before: Option<&Arc<Item>>, after: Option<&Arc<Item>>| {
            let item = after.or(before)?;
            let key = Key { epk: item.epk.clone(), id: item.id.clone() };
            let base = before.map(|item| item.etag());
            Some(Letter { origin, commit, key, base, item: after.cloned(), at: change.at })
        };
        match change.versions() {
            (Some(before), Some(after)) if before.id != after.id => {
                [letter(Some(before), None), letter(None, Some(after))].into_iter().flatten().collect()
            }
            (before, after) => letter(before, after).into_iter().collect(),
        }
    }
}

/// What it takes to deliver letters: the regions as they are, and the partition's own things.
pub(super) struct Post<'a> {
    pub(super) topology: &'a Topology,
    pub(super) identity: &'a Identity,
    pub(super) ordinals: &'a AtomicU64,
    pub(super) uptime: Duration,
}

impl Post<'_> {
    /// Up to when letters have arrived at a region: time stands still for one that is paused.
    fn arrived(&self, region: RegionId) -> Duration {
        self.topology.region(region).paused_at.map_or(self.uptime, |paused| paused.min(self.uptime))
    }

    fn due(&self, from: RegionId, to: RegionId, sent: Duration) -> Duration {
        // The same lag for all letters of a pair would do; drawn from the time sent it varies as set.
        let draw = f64::from(sent.subsec_micros() % 1_000) / 1_000.0;
        sent + self.topology.lag(from, to).at(draw)
    }
}

/// A local commit: the transaction's outcome, and its number among the region's own.
pub(super) fn commit<T, E>(
    mesh: &Mesh,
    at: &Post<'_>,
    moment: Moment,
    work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
) -> Option<Commit<T, E>> {
    let mut turn = mesh.turn(at, moment.region);
    if turn.is_retired() {
        return None;
    }
    let mut head = Head::clone(&turn.head());
    let (before, number) = (head.reach(), head.progress.of(moment.region) + 1);
    head.progress = head.progress.with(moment.region, number);
    let mut transaction =
        Transaction::new(head, turn.state(), at.identity, at.ordinals, moment.now).in_region(moment.region);
    let result = work(&mut transaction);
    let Some(outcome) = transaction.finish().filter(|_| result.is_ok()) else {
        return Some(Commit { result, reach: before, quorum_at: Duration::ZERO });
    };
    let changes = outcome.changes.clone();
    let head = turn.commit(outcome);
    mesh.send(at, moment.region, &changes, number);
    Some(Commit { result, reach: head.reach(), quorum_at: Duration::ZERO })
}
