//! Workers at work: each does what is due, one thing at a time, and writes down how it went.
//!
//! The load is steady: a turn that comes while the worker is still busy with an earlier one is left out and
//! counted, so that a fault is not followed by a flood that nobody asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::TryStreamExt as _;
use perihelion::{ContainerClient, Error, Query};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep_until, timeout};

use crate::ledger::{Fate, Finding, Ledger};
use crate::report::{Breach, Promise};
use crate::sample::{Class, Sample};
use crate::schedule::Schedule;
use crate::workload::Due;

/// An item, as it is stored.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(crate) id: String,
    pub(crate) pk: String,
    /// Who owns it; nobody, if it was made and is never written again.
    pub(crate) owner: Option<usize>,
    pub(crate) version: u64,
}

impl Stored {
    /// One of a worker's items.
    pub(crate) fn owned(worker: usize, item: usize, version: u64) -> Stored {
        let id = owned_id(worker, item);
        Stored { pk: id.clone(), id, owner: Some(worker), version }
    }

    /// One that a worker makes in a turn.
    pub(crate) fn made(worker: usize, turn: u64) -> Stored {
        let id = made_id(worker, turn);
        Stored { pk: id.clone(), id, owner: None, version: 1 }
    }
}

pub(crate) fn owned_id(worker: usize, item: usize) -> String {
    format!("w{worker}-i{item}")
}

pub(crate) fn made_id(worker: usize, turn: u64) -> String {
    format!("w{worker}-t{turn}")
}

/// How far all workers together are.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) done: AtomicU64,
    pub(crate) failed: AtomicU64,
}

/// What all workers share.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) schedule: Schedule,
    pub(crate) container: ContainerClient,
    pub(crate) ledger: Ledger,
    pub(crate) start: Instant,
    pub(crate) counters: Counters,
}

/// What one worker wrote down.
#[derive(Debug, Default)]
pub(crate) struct Diary {
    pub(crate) samples: Vec<Sample>,
    pub(crate) breaches: Vec<Breach>,
    /// Turns that were left out.
    pub(crate) skipped: u64,
    /// Undecided writes that were seen over later ones.
    pub(crate) resurfaced: u64,
}

/// Does everything that is due for one worker.
pub(crate) async fn work(site: Arc<Site>, worker: usize) -> Diary {
    let mut diary = Diary::default();
    let Schedule { load, seed, end, .. } = &site.schedule;
    for turn in 0..load.turns(worker, *end) {
        if site.start.elapsed() >= load.due_at(worker, turn + 1) {
            diary.skipped += 1;
            continue;
        }
        sleep_until(site.start + load.due_at(worker, turn)).await;
        match load.due(*seed, worker, turn) {
            Due::Read { owner, item } => site.read(&mut diary, owner, item).await,
            Due::Query { owner } => site.query(&mut diary, owner).await,
            Due::Upsert { item } => site.upsert(&mut diary, worker, item).await,
            Due::Create => site.create(&mut diary, worker, turn).await,
        }
    }
    diary
}

impl Site {
    async fn read(&self, diary: &mut Diary, owner: usize, item: usize) {
        let floor = self.ledger.history(owner, item).acknowledged();
        let id = owned_id(owner, item);
        let began = self.start.elapsed();
        let read = self.container.read_item::<Stored>(id.as_str(), &id).await;
        let took = self.start.elapsed() - began;
        let sample = Sample::new(Class::Read, began, took, failure(&read));
        match read {
            Ok(response) => {
                self.note(diary, sample.with(Some(response.diagnostics())), || {
                    format!("read {id}: {}", response.diagnostics().summary())
                });
                self.judge(diary, owner, item, floor, response.value().version);
            }
            Err(error) => self.note_failure(diary, sample, &error, &format!("read {id}")),
        }
    }

    /// All items of a worker, in order, from all partitions.
    async fn query(&self, diary: &mut Diary, owner: usize) {
        let load = &self.schedule.load;
        let floors: Vec<u64> =
            (0..load.items).map(|item| self.ledger.history(owner, item).acknowledged()).collect();
        let query = Query::new("SELECT * FROM c WHERE c.owner = @owner ORDER BY c.id");
        let rows = self.container.query_items::<Stored>(query.with_parameter("@owner", owner)).stream();
        let began = self.start.elapsed();
        // Each request of a query has the deadline; whoever asks gives the whole query no more.
        let found = timeout(load.deadline, rows.try_collect::<Vec<Stored>>()).await;
        let took = self.start.elapsed() - began;
        let found = match found {
            Err(_) => {
                let sample = Sample::new(Class::Read, began, took, Some("query_not_done_in_time"));
                return self.note(diary, sample, || format!("query of w{owner} after {took:?}"));
            }
            Ok(Err(error)) => {
                let sample = Sample::new(Class::Read, began, took, failure(&Err::<(), _>(error.clone())));
                return self.note_failure(diary, sample, &error, &format!("query of w{owner}"));
            }
            Ok(Ok(found)) => found,
        };
        self.note(diary, Sample::new(Class::Read, began, took, None), || format!("query of w{owner}"));
        let mut expected: Vec<(String, usize)> =
            (0..load.items).map(|item| (owned_id(owner, item), item)).collect();
        expected.sort();
        if !found.iter().map(|row| &row.id).eq(expected.iter().map(|(id, _)| id)) {
            let ids: Vec<&str> = found.iter().map(|row| row.id.as_str()).collect();
            let example = format!("query of w{owner} at {began:?} found {ids:?}");
            return diary.breaches.push(Breach::new(Promise::QueriesAreExact, example));
        }
        for (row, (_, item)) in found.iter().zip(&expected) {
            self.judge(diary, owner, *item, floors[*item], row.version);
        }
    }

    async fn upsert(&self, diary: &mut Diary, worker: usize, item: usize) {
        let version = self.ledger.history(worker, item).begin();
        let stored = Stored::owned(worker, item, version);
        let began = self.start.elapsed();
        let written = self.container.upsert_item(stored.pk.as_str(), &stored).await;
        let fate = Fate::of(written.as_ref().err().map(Error::kind));
        self.ledger.history(worker, item).end(version, fate);
        self.wrote(diary, began, written, &format!("upsert {} version {version}", stored.id));
    }

    async fn create(&self, diary: &mut Diary, worker: usize, turn: u64) {
        let stored = Stored::made(worker, turn);
        let began = self.start.elapsed();
        let made = self.container.create_item(stored.pk.as_str(), &stored).await;
        self.ledger.made(worker, turn, Fate::of(made.as_ref().err().map(Error::kind)));
        self.wrote(diary, began, made, &format!("create {}", stored.id));
    }

    fn wrote(
        &self,
        diary: &mut Diary,
        began: Duration,
        written: perihelion::Result<perihelion::ItemResponse<()>>,
        what: &str,
    ) {
        let took = self.start.elapsed() - began;
        let sample = Sample::new(Class::Write, began, took, failure(&written));
        match written {
            Ok(response) => self.note(diary, sample.with(Some(response.diagnostics())), || {
                format!("{what}: {}", response.diagnostics().summary())
            }),
            Err(error) => self.note_failure(diary, sample, &error, what),
        }
    }

    fn note_failure(&self, diary: &mut Diary, sample: Sample, error: &Error, what: &str) {
        self.note(diary, sample.with(error.diagnostics()), || format!("{what}: {error}"));
    }

    /// Writes an operation down; `told` describes it where it breaks a promise.
    fn note(&self, diary: &mut Diary, sample: Sample, told: impl Fn() -> String) {
        let Schedule { load, faults, .. } = &self.schedule;
        self.counters.done.fetch_add(1, Ordering::Relaxed);
        let at = Duration::from_millis(u64::try_from(sample.began.as_millis()).unwrap_or(u64::MAX));
        if sample.took > load.deadline + load.tolerance {
            diary.breaches.push(Breach::new(Promise::NothingIsLate, format!("at {at:?}: {}", told())));
        }
        if sample.failure.is_some() {
            self.counters.failed.fetch_add(1, Ordering::Relaxed);
            if let Some(promise) = crate::report::forbids_failure(faults, &sample) {
                diary.breaches.push(Breach::new(promise, format!("at {at:?}: {}", told())));
            }
        }
        diary.samples.push(sample);
    }

    /// Holds what was found against what was promised when the reader began.
    fn judge(&self, diary: &mut Diary, owner: usize, item: usize, floor: u64, found: u64) {
        let (finding, acknowledged) = {
            let history = self.ledger.history(owner, item);
            (history.judge(floor, found), history.acknowledged())
        };
        let id = owned_id(owner, item);
        let promise = match finding {
            Finding::Fine => return,
            Finding::Resurfaced => return diary.resurfaced += 1,
            Finding::Lost => Promise::ReadsSeeWrites,
            Finding::Refused => Promise::RefusedMeansUnchanged,
            Finding::Impossible => Promise::NothingIsLost,
        };
        let at = self.start.elapsed();
        let example = format!(
            "{id} at {at:?}: found version {found}, {floor} was acknowledged before the read began, {acknowledged} is now"
        );
        diary.breaches.push(Breach::new(promise, example));
    }
}

fn failure<T>(result: &Result<T, Error>) -> Option<&'static str> {
    result.as_ref().err().map(|error| error.kind().name())
}
