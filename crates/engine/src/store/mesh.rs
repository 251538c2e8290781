//! The copies of a partition in an account whose regions all write.
//!
//! Each region has a line of its own and answers from it at once. What it commits is *tentative*: it
//! travels to the hub, which settles conflicts in the order of arrival and tells every region what
//! stayed. A region shows its own tentative version of an item until it hears what became of it, and
//! the hub's version otherwise; so when everything has arrived, all copies are equal to the hub's.
//!
//! Nothing runs in the background. Whoever looks at a copy first takes in what has arrived by then: at
//! the hub, because that is where answers come from, and then at the copy itself.
//!
//! Where the account is kept, every step of a copy is one record: what it changes, how far the copy is
//! then, and the letters that this sends or ends (`kept`). A step that cannot be written down is not
//! made, and the letter that asked for it stays where it is.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::Guard;

use super::conflicts::{Conflict, Conflicts};
use super::contents::Contents;
use super::head::Head;
use super::inbox::{Inbox, Key, Letter, Place};
use super::kept::{KeptCopy, KeptMesh};
use super::line::{Line, Turn};
use super::partition::{WriteContext, WriteOutcome};
use super::post::Post;
use super::state::PartitionState;
use super::transaction::{Outcome, Transaction};
use crate::disk::{Batch, DiskError, MeshEntry, Space};
use crate::items::Item;
use crate::items::{Change, ChangeKind};
use crate::regions::{Meeting, RegionId, Verdict};

/// The region that settles: the first in failover order, which never changes where all write.
pub(super) const HUB: RegionId = RegionId(0);
/// Letters on their way to one region at the most; beyond that writers have to wait.
const LETTERS_MAX: usize = 100_000;
/// Letters to each region that whoever commits lets arrive, while others are about to take over.
const LETTERS_EACH: u64 = 2;

/// One copy per region.
pub(super) struct Mesh {
    copies: Vec<Copy>,
    pub(super) conflicts: Mutex<Conflicts>,
    /// The hub's letters up to this one are no longer on disk: everybody has them.
    freed: AtomicU64,
}

struct Copy {
    line: Line,
    inbox: Inbox,
    /// Own changes of an item that have not been settled yet.
    unsettled: Mutex<HashMap<Key, u32>>,
    /// The number of the last letter it sent. Changes in its turn.
    sent: AtomicU64,
    /// The number of the last of the hub's letters that it has taken in. Changes in its turn, after it
    /// was written down.
    taken: AtomicU64,
}

/// Which letters have arrived.
#[derive(Clone, Copy)]
struct Arrived {
    /// Those that are due by then,
    until: Duration,
    /// and of those so many at the most.
    letters_max: u64,
}

impl Arrived {
    fn by(until: Duration) -> Arrived {
        Arrived { until, letters_max: u64::MAX }
    }

    /// One after the other; each is to be taken out before the next.
    fn letters(self, inbox: &Inbox) -> impl Iterator<Item = (Place, Letter)> {
        (0..self.letters_max).map_while(move |_| inbox.first_due(self.until))
    }
}

/// A region is so far behind that nothing more can be sent to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooFarBehind;

impl Mesh {
    /// Every region has `contents`.
    pub(super) fn new(contents: &Contents, regions: usize) -> Mesh {
        let copies = (0..regions).map(|_| Copy::new(contents.clone()));
        Mesh { copies: copies.collect(), conflicts: Mutex::default(), freed: AtomicU64::new(0) }
    }

    /// The copies that were kept, `contents` for each region. What was on its way sets out again.
    pub(super) fn restored(at: &Post<'_>, contents: Vec<Contents>, kept: KeptMesh) -> Mesh {
        let KeptMesh { copies: kept, letters, conflicts } = kept;
        let last = kept.get(&HUB.0).map_or(0, |hub| hub.conflicts);
        let copies: Vec<Copy> = contents.into_iter().map(Copy::new).collect();
        for (region, copy) in (0..).zip(&copies) {
            if let Some(kept) = kept.get(&region) {
                copy.sent.store(kept.sent, Ordering::Relaxed);
                copy.taken.store(kept.taken, Ordering::Relaxed);
            }
        }
        let oldest = letters.keys().find(|(from, _)| *from == HUB.0).map(|(_, number)| *number);
        let freed = oldest.map_or(copies[0].sent.load(Ordering::Relaxed), |oldest| oldest.saturating_sub(1));
        for ((from, number), letter) in letters {
            let from = RegionId(from);
            let receivers = (0..).map(RegionId).zip(&copies).filter(|(region, copy)| match from == HUB {
                true => *region != HUB && copy.taken.load(Ordering::Relaxed) < number,
                false => *region == HUB,
            });
            for (region, copy) in receivers {
                if letter.origin == region && region != HUB {
                    *copy.unsettled().entry(letter.key.clone()).or_default() += 1;
                }
                copy.inbox.send(from, at.due_again(from, region), letter.clone());
            }
            if let Some(sender) = copies.get(from.index()).filter(|_| from != HUB) {
                *sender.unsettled().entry(letter.key.clone()).or_default() += 1;
            }
        }
        let conflicts = Mutex::new(Conflicts::restored(conflicts, last));
        Mesh { copies, conflicts, freed: AtomicU64::new(freed) }
    }

    /// Adds all that is kept of it besides items and logs, when nothing is on its way.
    pub(super) fn put(&self, at: &Post<'_>, batch: &mut Batch) {
        let conflicts = self.conflicts.lock().unwrap_or_else(PoisonError::into_inner);
        for (region, copy) in (0..).map(RegionId).zip(&self.copies) {
            let last = if region == HUB { conflicts.last() } else { 0 };
            at.put_copy(batch, region, &copy.kept(&copy.line.peek(), last));
        }
        for conflict in conflicts.all() {
            let key = at.key(MeshEntry::Conflict(conflict.number));
            batch.put(Space::Mesh, &key, |to| conflict.put(to));
        }
    }

    /// Forgets a conflict; says whether it was there.
    pub(super) fn remove_conflict(&self, at: &Post<'_>, number: u64) -> Result<bool, DiskError> {
        let mut conflicts = self.conflicts.lock().unwrap_or_else(PoisonError::into_inner);
        if conflicts.contains(number) {
            at.keep(|batch| batch.remove(Space::Mesh, &at.key(MeshEntry::Conflict(number))))?;
        }
        Ok(conflicts.remove(number))
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
    pub(super) fn snapshot(&self, at: &Post<'_>, region: RegionId) -> Arc<PartitionState> {
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

    /// Whether `region` is staler than agreed: what others wrote has waited for it, or for the hub, longer
    /// than half of the time that it may be behind. The other half is for the way.
    pub(super) fn is_too_stale(&self, at: &Post<'_>, region: RegionId) -> bool {
        self.take_in(at, region);
        let waited = at.uptime.checked_sub(at.topology.staleness.interval / 2);
        waited.is_some_and(|since| {
            self.copy(region).inbox.has_due(since) || self.copies[0].inbox.has_due(since)
        })
    }

    /// The writer's turn at `region`, with everything that has arrived taken in.
    pub(super) fn turn(&self, at: &Post<'_>, region: RegionId) -> Turn<'_> {
        self.take_in(at, region);
        self.copy(region).line.turn()
    }

    /// The letters about what is to be committed at `region`, in its turn.
    fn letters(&self, region: RegionId, changes: &[Arc<Change>], commit: u64) -> Vec<Letter> {
        // What expired in one region expires in all of them.
        let changes = changes.iter().filter(|change| change.kind != ChangeKind::Expire);
        let mut letters: Vec<Letter> =
            changes.flat_map(|change| Letter::about(change, region, commit)).collect();
        let first = self.copy(region).sent.load(Ordering::Relaxed) + 1;
        (first..).zip(&mut letters).for_each(|(number, letter)| letter.number = number);
        letters
    }

    /// Sends them on their way. Within the turn that committed what they are about.
    fn send(&self, at: &Post<'_>, region: RegionId, letters: Vec<Letter>) {
        let copy = self.copy(region);
        copy.sent.fetch_add(letters.len() as u64, Ordering::Relaxed);
        for letter in letters {
            if region == HUB {
                self.tell_all(at, at.uptime, &letter);
            } else {
                *copy.unsettled().entry(letter.key.clone()).or_default() += 1;
                self.copies[0].inbox.send(region, at.due(region, HUB, at.uptime), letter);
            }
        }
    }

    /// Everything on its way arrives now, whatever the lag: for whoever is about to put something else in
    /// the place of this partition. What cannot be written down is still on its way afterwards.
    pub(super) fn settle(&self, at: &Post<'_>, turns: &mut [Turn<'_>]) -> Result<(), DiskError> {
        let now = Arrived::by(Duration::MAX);
        self.hear(at, &mut turns[0], now)?;
        for (region, turn) in (1..).zip(&mut turns[1..]) {
            self.learn(at, RegionId(region), turn, now)?;
        }
        Ok(())
    }

    /// The same, so many letters to each region at the most, while the others write. Says how many are left.
    pub(super) fn settle_some(&self, at: &Post<'_>, letters_max: u64) -> Result<u64, DiskError> {
        let now = Arrived { until: Duration::MAX, letters_max };
        self.hear(at, &mut self.copies[0].line.turn(), now)?;
        for (region, copy) in (1..).zip(&self.copies[1..]) {
            self.learn(at, RegionId(region), &mut copy.line.turn(), now)?;
        }
        Ok(self.letters_under_way())
    }

    /// How many letters are on their way, to whichever region.
    pub(super) fn letters_under_way(&self) -> u64 {
        self.copies.iter().map(|copy| copy.inbox.len() as u64).sum()
    }

    /// Every region's line, the hub's first.
    pub(super) fn lines(&self) -> impl Iterator<Item = &Line> {
        self.copies.iter().map(|copy| &copy.line)
    }

    fn copy(&self, region: RegionId) -> &Copy {
        &self.copies[region.index()]
    }

    /// Takes in what has arrived at the hub and at `region`. What cannot be written down has not arrived.
    fn take_in(&self, at: &Post<'_>, region: RegionId) {
        let hub = &self.copies[0];
        if hub.inbox.has_due(at.arrived(HUB)) {
            let _ = self.hear(at, &mut hub.line.turn(), Arrived::by(at.arrived(HUB)));
        }
        let copy = self.copy(region);
        if region != HUB && copy.inbox.has_due(at.arrived(region)) {
            let _ = self.learn(at, region, &mut copy.line.turn(), Arrived::by(at.arrived(region)));
        }
    }

    /// The hub settles what has arrived and tells everybody.
    fn hear(&self, at: &Post<'_>, turn: &mut Turn<'_>, arrived: Arrived) -> Result<(), DiskError> {
        let hub = &self.copies[0];
        for (place, letter) in arrived.letters(&hub.inbox) {
            let due = if arrived.until == Duration::MAX { at.uptime } else { place.0 };
            let head = turn.head();
            let present = head.get(&letter.key.epk, &letter.key.id);
            let verdict = verdict(&head, &letter, present);
            let wanted = match verdict {
                Verdict::Accept => letter.item.clone(),
                Verdict::Reject | Verdict::Record => present.cloned(),
            };
            let lost = (verdict == Verdict::Record).then(|| Conflict::of(&letter, present.cloned()));
            let (kept, outcome) = adopt(at, turn, &letter, wanted);
            let number = hub.sent.load(Ordering::Relaxed) + 1;
            let told = Letter { item: kept, number, ..letter.clone() };
            let mut conflicts = self.conflicts.lock().unwrap_or_else(PoisonError::into_inner);
            at.keep(|batch| {
                at.put_outcome(batch, HUB, turn.state(), &outcome);
                let last = conflicts.last() + u64::from(lost.is_some());
                at.put_copy(batch, HUB, &KeptCopy { sent: number, ..hub.kept(&outcome.head, last) });
                batch.remove(Space::Mesh, &at.key(MeshEntry::Letter(letter.origin.0, letter.number)));
                at.put_letter(batch, HUB, &told);
                if let Some(lost) = &lost {
                    let key = at.key(MeshEntry::Conflict(last));
                    batch.put(Space::Mesh, &key, |to| lost.put(to));
                    if let Some(oldest) = conflicts.yields() {
                        batch.remove(Space::Mesh, &at.key(MeshEntry::Conflict(oldest)));
                    }
                }
            })?;
            hub.inbox.take(place);
            lost.into_iter().for_each(|lost| conflicts.add(lost));
            drop(conflicts);
            hub.sent.store(number, Ordering::Relaxed);
            turn.commit(outcome);
            self.tell_all(at, due, &told);
        }
        Ok(())
    }

    /// A region learns what became of changes, its own and others'.
    fn learn(
        &self,
        at: &Post<'_>,
        region: RegionId,
        turn: &mut Turn<'_>,
        arrived: Arrived,
    ) -> Result<(), DiskError> {
        let copy = self.copy(region);
        for (place, letter) in arrived.letters(&copy.inbox) {
            let own = u32::from(letter.origin == region);
            let unsettled = copy.unsettled().get(&letter.key).map_or(0, |count| count.saturating_sub(own));
            let wanted = if unsettled > 0 {
                turn.head().get(&letter.key.epk, &letter.key.id).cloned()
            } else {
                letter.item.clone()
            };
            let (_, outcome) = adopt(at, turn, &letter, wanted);
            let (freed, everywhere) =
                (self.freed.load(Ordering::Relaxed), self.everywhere(region, letter.number));
            at.keep(|batch| {
                at.put_outcome(batch, region, turn.state(), &outcome);
                at.put_copy(batch, region, &KeptCopy { taken: letter.number, ..copy.kept(&outcome.head, 0) });
                for number in freed + 1..=everywhere {
                    batch.remove(Space::Mesh, &at.key(MeshEntry::Letter(HUB.0, number)));
                }
            })?;
            copy.inbox.take(place);
            copy.taken.store(letter.number, Ordering::Relaxed);
            self.freed.fetch_max(everywhere, Ordering::Relaxed);
            copy.settle(&letter.key, unsettled);
            turn.commit(outcome);
        }
        Ok(())
    }

    /// Up to which of the hub's letters every region has them, when `region` has them up to `number`.
    fn everywhere(&self, region: RegionId, number: u64) -> u64 {
        let others = (1..).map(RegionId).zip(&self.copies[1..]).filter(|(other, _)| *other != region);
        others.map(|(_, copy)| copy.taken.load(Ordering::Relaxed)).fold(number, u64::min)
    }

    fn tell_all(&self, at: &Post<'_>, from: Duration, letter: &Letter) {
        for (region, copy) in (1..).zip(&self.copies[1..]) {
            let region = RegionId(region);
            copy.inbox.send(HUB, at.due(HUB, region, from), letter.clone());
        }
    }
}

impl Copy {
    fn new(contents: Contents) -> Copy {
        Copy {
            line: Line::new(contents.head, contents.state),
            inbox: Inbox::new(),
            unsettled: Mutex::default(),
            sent: AtomicU64::new(0),
            taken: AtomicU64::new(0),
        }
    }

    fn unsettled(&self) -> MutexGuard<'_, HashMap<Key, u32>> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how many own changes of an item are still to be settled.
    fn settle(&self, key: &Key, left: u32) {
        match left {
            0 => drop(self.unsettled().remove(key)),
            left => drop(self.unsettled().insert(key.clone(), left)),
        }
    }

    /// How far it is, with this head.
    fn kept(&self, head: &Head, conflicts: u64) -> KeptCopy {
        let (sent, taken) = (self.sent.load(Ordering::Relaxed), self.taken.load(Ordering::Relaxed));
        KeptCopy { sent, taken, conflicts, progress: head.versions.clone() }
    }
}

impl Letter {
    /// What the others have to know of a change: one letter, or two where an item got another id.
    fn about(change: &Change, origin: RegionId, commit: u64) -> Vec<Letter> {
        let letter = |before: Option<&Arc<Item>>, after: Option<&Arc<Item>>| {
            let item = after.or(before)?;
            let key = Key { epk: item.epk.clone(), id: item.id.clone() };
            let base = before.map(|item| item.etag());
            Some(Letter { origin, commit, number: 0, key, base, item: after.cloned(), at: change.at })
        };
        match change.versions() {
            (Some(before), Some(after)) if before.id != after.id => {
                [letter(Some(before), None), letter(None, Some(after))].into_iter().flatten().collect()
            }
            (before, after) => letter(before, after).into_iter().collect(),
        }
    }
}

/// What becomes of the version in a letter, where the hub has `present`.
fn verdict(head: &Head, letter: &Letter, present: Option<&Arc<Item>>) -> Verdict {
    let (incoming, there) = (letter.item.as_ref().map(|item| item.value()), present.map(|item| item.value()));
    head.schema.settlement.settle(Meeting {
        base: letter.base.as_ref().and_then(|base| std::str::from_utf8(base).ok()),
        incoming: incoming.as_ref(),
        present: present.zip(there.as_ref()).map(|(item, value)| (item.etag_str(), value)),
    })
}

/// What makes a copy hold exactly this version of an item, and which version it holds then.
fn adopt(
    at: &Post<'_>,
    turn: &Turn<'_>,
    letter: &Letter,
    wanted: Option<Arc<Item>>,
) -> (Option<Arc<Item>>, Outcome) {
    let mut head = Head::clone(&turn.head());
    head.versions = head.versions.with(letter.origin, letter.commit);
    let mut transaction = Transaction::new(head, turn.state(), at.identity, at.ordinals, letter.at);
    // What breaks a unique key here loses: the hub decides, and it had the other one first.
    let kept = transaction.adopt(&letter.key, wanted.as_ref()).unwrap_or_else(|present| present);
    (kept, transaction.finish_always())
}

/// A local commit: the transaction's outcome, and its number among the region's own.
pub(super) fn commit<T, E: From<DiskError>>(
    mesh: &Mesh,
    at: &Post<'_>,
    moment: WriteContext,
    work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
) -> Option<WriteOutcome<T, E>> {
    let region = moment.region;
    let mut turn = mesh.turn(at, region);
    if turn.is_retired() {
        return None;
    }
    let mut head = Head::clone(&turn.head());
    let (before, number) = (head.progress(), head.versions.of(region) + 1);
    head.versions = head.versions.with(region, number);
    let mut transaction =
        Transaction::new(head, turn.state(), at.identity, at.ordinals, moment.now).in_region(region);
    let result = work(&mut transaction);
    let Some(outcome) = transaction.finish().filter(|_| result.is_ok()) else {
        return Some(WriteOutcome { result, progress: before, quorum_at: Duration::ZERO });
    };
    let letters = mesh.letters(region, &outcome.changes, number);
    let copy = mesh.copy(region);
    let kept = at.keep(|batch| {
        at.put_outcome(batch, region, turn.state(), &outcome);
        let last = mesh.conflicts.lock().unwrap_or_else(PoisonError::into_inner).last();
        let mut now = copy.kept(&outcome.head, if region == HUB { last } else { 0 });
        now.sent += letters.len() as u64;
        at.put_copy(batch, region, &now);
        letters.iter().for_each(|letter| at.put_letter(batch, region, letter));
    });
    if let Err(error) = kept {
        return Some(WriteOutcome { result: Err(error.into()), progress: before, quorum_at: Duration::ZERO });
    }
    let head = turn.commit(outcome);
    mesh.send(at, region, letters);
    drop(turn);
    if mesh.hub().helps() {
        // What cannot be written down is left to whoever is to close it.
        let _ = mesh.settle_some(at, LETTERS_EACH);
    }
    Some(WriteOutcome { result, progress: head.progress(), quorum_at: Duration::ZERO })
}
