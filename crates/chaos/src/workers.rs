//! The workers that execute the workload: each runs one operation at a time and records its result.
//!
//! The load is steady: an operation that is scheduled while its worker is still busy is skipped and counted, so that a
//! fault is not followed by a burst of delayed operations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::TryStreamExt as _;
use perihelion::{ContainerClient, Error, Query};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep_until, timeout};

use crate::guarantee::{Guarantee, Violation, violated_by_failure};
use crate::sample::{OperationClass, OperationSample};
use crate::schedule::Schedule;
use crate::workload::WorkloadOperation;
use crate::write_history::{ReadCheck, WriteHistory, WriteOutcome};

/// An item of the workload.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TestItem {
    pub(crate) id: String,
    pub(crate) pk: String,
    /// The worker that writes it; none for items that are created and never written again.
    pub(crate) owner: Option<usize>,
    pub(crate) version: u64,
}

impl TestItem {
    /// A version of an item that a worker owns.
    pub(crate) fn owned(worker: usize, item: usize, version: u64) -> TestItem {
        let id = owned_id(worker, item);
        TestItem { pk: id.clone(), id, owner: Some(worker), version }
    }

    /// An item that a worker creates once.
    pub(crate) fn created(worker: usize, sequence: u64) -> TestItem {
        let id = created_id(worker, sequence);
        TestItem { pk: id.clone(), id, owner: None, version: 1 }
    }
}

pub(crate) fn owned_id(worker: usize, item: usize) -> String {
    format!("w{worker}-i{item}")
}

pub(crate) fn created_id(worker: usize, sequence: u64) -> String {
    format!("w{worker}-t{sequence}")
}

/// The operations of all workers so far, for the progress display.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) done: AtomicU64,
    pub(crate) failed: AtomicU64,
}

/// The state that all workers share.
#[derive(Debug)]
pub(crate) struct WorkerContext {
    pub(crate) schedule: Schedule,
    pub(crate) container: ContainerClient,
    pub(crate) history: WriteHistory,
    pub(crate) start: Instant,
    pub(crate) counters: Counters,
}

/// What one worker recorded.
#[derive(Debug, Default)]
pub(crate) struct WorkerRecord {
    pub(crate) samples: Vec<OperationSample>,
    pub(crate) violations: Vec<Violation>,
    /// The number of operations that were skipped.
    pub(crate) skipped: u64,
    /// The number of reads that found an undecided write after a later one.
    pub(crate) late_writes: u64,
}

/// Runs all operations of one worker.
pub(crate) async fn work(context: Arc<WorkerContext>, worker: usize) -> WorkerRecord {
    let mut record = WorkerRecord::default();
    let Schedule { workload, seed, end, .. } = &context.schedule;
    for sequence in 0..workload.operation_count(worker, *end) {
        if context.start.elapsed() >= workload.scheduled_at(worker, sequence + 1) {
            record.skipped += 1;
            continue;
        }
        sleep_until(context.start + workload.scheduled_at(worker, sequence)).await;
        match workload.operation(*seed, worker, sequence) {
            WorkloadOperation::Read { owner, item } => context.read(&mut record, owner, item).await,
            WorkloadOperation::Query { owner } => context.query(&mut record, owner).await,
            WorkloadOperation::Upsert { item } => context.upsert(&mut record, worker, item).await,
            WorkloadOperation::Create => context.create(&mut record, worker, sequence).await,
        }
    }
    record
}

impl WorkerContext {
    async fn read(&self, record: &mut WorkerRecord, owner: usize, item: usize) {
        let floor = self.history.item(owner, item).acknowledged();
        let id = owned_id(owner, item);
        let began = self.start.elapsed();
        let read = self.container.read_item::<TestItem>(id.as_str(), &id).await;
        let took = self.start.elapsed() - began;
        let sample = OperationSample::new(OperationClass::Read, began, took, failure(&read));
        match read {
            Ok(response) => {
                self.record(record, sample.with_diagnostics(Some(response.diagnostics())), || {
                    format!("read {id}: {}", response.diagnostics().summary())
                });
                self.check_read(record, owner, item, floor, response.value().version);
            }
            Err(error) => self.record_failure(record, sample, &error, &format!("read {id}")),
        }
    }

    /// Queries all items of a worker, in order, from all partitions.
    async fn query(&self, record: &mut WorkerRecord, owner: usize) {
        let workload = &self.schedule.workload;
        let floors: Vec<u64> =
            (0..workload.items).map(|item| self.history.item(owner, item).acknowledged()).collect();
        let query = Query::new("SELECT * FROM c WHERE c.owner = @owner ORDER BY c.id");
        let rows = self.container.query_items::<TestItem>(query.with_parameter("@owner", owner)).stream();
        let began = self.start.elapsed();
        // The deadline of the client applies to each request; the workload applies it to the whole query.
        let found = timeout(workload.deadline, rows.try_collect::<Vec<TestItem>>()).await;
        let took = self.start.elapsed() - began;
        let found = match found {
            Err(_) => {
                let sample =
                    OperationSample::new(OperationClass::Read, began, took, Some("query_not_done_in_time"));
                return self.record(record, sample, || format!("query of w{owner} after {took:?}"));
            }
            Ok(Err(error)) => {
                let sample = OperationSample::new(
                    OperationClass::Read,
                    began,
                    took,
                    failure(&Err::<(), _>(error.clone())),
                );
                return self.record_failure(record, sample, &error, &format!("query of w{owner}"));
            }
            Ok(Ok(found)) => found,
        };
        self.record(record, OperationSample::new(OperationClass::Read, began, took, None), || {
            format!("query of w{owner}")
        });
        let mut expected: Vec<(String, usize)> =
            (0..workload.items).map(|item| (owned_id(owner, item), item)).collect();
        expected.sort();
        if !found.iter().map(|row| &row.id).eq(expected.iter().map(|(id, _)| id)) {
            let ids: Vec<&str> = found.iter().map(|row| row.id.as_str()).collect();
            let example = format!("query of w{owner} at {began:?} found {ids:?}");
            return record.violations.push(Violation::new(Guarantee::QueriesAreExact, example));
        }
        for (row, (_, item)) in found.iter().zip(&expected) {
            self.check_read(record, owner, *item, floors[*item], row.version);
        }
    }

    async fn upsert(&self, record: &mut WorkerRecord, worker: usize, item: usize) {
        let version = self.history.item(worker, item).begin_write();
        let stored = TestItem::owned(worker, item, version);
        let began = self.start.elapsed();
        let written = self.container.upsert_item(stored.pk.as_str(), &stored).await;
        let outcome = WriteOutcome::of(written.as_ref().err().map(Error::kind));
        self.history.item(worker, item).end_write(version, outcome);
        self.record_write(record, began, written, &format!("upsert {} version {version}", stored.id));
    }

    async fn create(&self, record: &mut WorkerRecord, worker: usize, sequence: u64) {
        let stored = TestItem::created(worker, sequence);
        let began = self.start.elapsed();
        let created = self.container.create_item(stored.pk.as_str(), &stored).await;
        self.history.record_create(
            worker,
            sequence,
            WriteOutcome::of(created.as_ref().err().map(Error::kind)),
        );
        self.record_write(record, began, created, &format!("create {}", stored.id));
    }

    fn record_write(
        &self,
        record: &mut WorkerRecord,
        began: Duration,
        written: perihelion::Result<perihelion::ItemResponse<()>>,
        what: &str,
    ) {
        let took = self.start.elapsed() - began;
        let sample = OperationSample::new(OperationClass::Write, began, took, failure(&written));
        match written {
            Ok(response) => {
                self.record(record, sample.with_diagnostics(Some(response.diagnostics())), || {
                    format!("{what}: {}", response.diagnostics().summary())
                })
            }
            Err(error) => self.record_failure(record, sample, &error, what),
        }
    }

    fn record_failure(&self, record: &mut WorkerRecord, sample: OperationSample, error: &Error, what: &str) {
        self.record(record, sample.with_diagnostics(error.diagnostics()), || format!("{what}: {error}"));
    }

    /// Records an operation; `describe` describes it if it violates a guarantee.
    fn record(&self, record: &mut WorkerRecord, sample: OperationSample, describe: impl Fn() -> String) {
        let Schedule { workload, faults, .. } = &self.schedule;
        self.counters.done.fetch_add(1, Ordering::Relaxed);
        let at = Duration::from_millis(u64::try_from(sample.began.as_millis()).unwrap_or(u64::MAX));
        if sample.took > workload.deadline + workload.tolerance {
            record
                .violations
                .push(Violation::new(Guarantee::NothingIsLate, format!("at {at:?}: {}", describe())));
        }
        if sample.failure.is_some() {
            self.counters.failed.fetch_add(1, Ordering::Relaxed);
            if let Some(guarantee) = violated_by_failure(faults, &sample) {
                record.violations.push(Violation::new(guarantee, format!("at {at:?}: {}", describe())));
            }
        }
        record.samples.push(sample);
    }

    /// Checks a version that was read against the writes that were acknowledged when the read began.
    fn check_read(&self, record: &mut WorkerRecord, owner: usize, item: usize, floor: u64, found: u64) {
        let (check, acknowledged) = {
            let history = self.history.item(owner, item);
            (history.check_read(floor, found), history.acknowledged())
        };
        let id = owned_id(owner, item);
        let guarantee = match check {
            ReadCheck::Consistent => return,
            ReadCheck::LateWrite => return record.late_writes += 1,
            ReadCheck::Lost => Guarantee::ReadsSeeWrites,
            ReadCheck::Rejected => Guarantee::RejectedChangesNothing,
            ReadCheck::Impossible => Guarantee::NothingIsLost,
        };
        let at = self.start.elapsed();
        let example = format!(
            "{id} at {at:?}: found version {found}, {floor} was acknowledged before the read began, {acknowledged} is now"
        );
        record.violations.push(Violation::new(guarantee, example));
    }
}

fn failure<T>(result: &Result<T, Error>) -> Option<&'static str> {
    result.as_ref().err().map(|error| error.kind().name())
}
