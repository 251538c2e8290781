//! The workers that execute the workload: each runs one operation at a time and records its result.
//!
//! The load is steady: an operation that is scheduled while its worker is still busy is skipped and counted, so that a
//! fault is not followed by a burst of delayed operations.

mod invalid_calls;
mod unlimited_calls;

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use perihelion::driver::Region;
use perihelion::{ContainerClient, CosmosClient, Diagnostics, Error, Query};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep_until, timeout};

use crate::guarantee::{Guarantee, Violation, violated_by_failure};
use crate::sample::{OperationClass, OperationSample};
use crate::schedule::{Schedule, ScheduledFault};
use crate::target_account::ClientFactory;
use crate::workload::{Workload, WorkloadOperation};
use crate::write_history::{ReadCheck, WriteHistory, WriteOutcome};

/// An item of the workload.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TestItem {
    pub(crate) id: String,
    pub(crate) pk: String,
    /// The worker that writes it; none for items that are created and never written again.
    pub(crate) owner: Option<usize>,
    pub(crate) version: u64,
    /// Makes the item larger, if the workload says so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    padding: String,
}

impl TestItem {
    /// A version of an item that a worker owns.
    pub(crate) fn owned(worker: usize, item: usize, version: u64, padding: usize) -> TestItem {
        let id = owned_id(worker, item);
        TestItem { pk: id.clone(), id, owner: Some(worker), version, padding: "x".repeat(padding) }
    }

    /// An item that a worker creates once.
    pub(crate) fn created(worker: usize, sequence: u64, padding: usize) -> TestItem {
        let id = created_id(worker, sequence);
        TestItem { pk: id.clone(), id, owner: None, version: 1, padding: "x".repeat(padding) }
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
    /// The client of the workload.
    client: CosmosClient,
    container: ContainerClient,
    clients: ClientFactory,
    pub(crate) history: Arc<WriteHistory>,
    pub(crate) start: Instant,
    pub(crate) counters: Counters,
    /// The regions of the account.
    regions: Vec<Region>,
    /// Whether the region of each fault has served a read since the fault ended.
    found: Vec<AtomicBool>,
}

impl WorkerContext {
    pub(crate) fn new(
        schedule: Schedule,
        client: CosmosClient,
        clients: ClientFactory,
        history: Arc<WriteHistory>,
        start: Instant,
    ) -> WorkerContext {
        let regions = schedule.regions.iter().map(Region::new).collect();
        let found = schedule.faults.iter().map(|_| AtomicBool::new(false)).collect();
        let counters = Counters::default();
        let container = clients.container_of(&client);
        WorkerContext { schedule, client, container, clients, history, start, counters, regions, found }
    }

    /// Whether a region that should be found again has not been found, and there is time left.
    fn awaits_region(&self) -> bool {
        let elapsed = self.start.elapsed();
        // A fault ends a little later than it is scheduled to, and must be observed for the whole time.
        let ends = |fault: &ScheduledFault| Some(fault.ends + fault.expect.found_within?.0 + FOUND_MARGIN);
        let mut faults = self.schedule.faults.iter().zip(&self.found);
        // Relaxed: a worker that sees the old value runs one more operation.
        faults.any(|(fault, found)| ends(fault) > Some(elapsed) && !found.load(Ordering::Relaxed))
    }
}

/// How much longer than expected a run waits for a region to be found.
const FOUND_MARGIN: Duration = Duration::from_secs(1);

/// What one worker recorded.
#[derive(Debug, Default)]
pub(crate) struct WorkerRecord {
    pub(crate) samples: Vec<OperationSample>,
    pub(crate) violations: Vec<Violation>,
    /// The number of operations that were skipped.
    pub(crate) skipped: u64,
    /// The number of reads that found an undecided write after a later one.
    pub(crate) late_writes: u64,
    /// The number of calls with an invalid argument.
    pub(crate) invalid_calls: u64,
}

/// Runs all operations of one worker.
pub(crate) async fn work(context: Arc<WorkerContext>, worker: usize) -> WorkerRecord {
    let mut record = WorkerRecord::default();
    let Schedule { workload, seed, end, .. } = &context.schedule;
    for sequence in 0.. {
        if workload.scheduled_at(worker, sequence) >= *end && !context.awaits_region() {
            break;
        }
        if context.start.elapsed() >= workload.scheduled_at(worker, sequence + 1) {
            record.skipped += 1;
            continue;
        }
        sleep_until(context.start + workload.scheduled_at(worker, sequence)).await;
        let operation = workload.operation(*seed, worker, sequence);
        let began = context.start.elapsed();
        let done = context.execute(&mut record, worker, sequence, operation);
        // A panic of a call is a violation like any other. What the panic may leave half done is the worker's own record.
        if let Err(panic) = AssertUnwindSafe(done).catch_unwind().await {
            let example = format!("at {began:?}, {operation:?}: {}", panic_message(&*panic));
            record.violations.push(Violation::new(Guarantee::NothingPanics, example));
        }
    }
    record
}

/// The message of a panic, if it has one.
fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a message")
}

impl WorkerContext {
    /// Executes one operation of a worker and records its result.
    async fn execute(
        &self,
        record: &mut WorkerRecord,
        worker: usize,
        sequence: u64,
        operation: WorkloadOperation,
    ) {
        match operation {
            WorkloadOperation::Read { owner, item } => self.read(record, owner, item).await,
            WorkloadOperation::Query { owner } => self.query(record, owner).await,
            WorkloadOperation::Upsert { item } => self.upsert(record, worker, item).await,
            WorkloadOperation::Create => self.create(record, worker, sequence).await,
            WorkloadOperation::Cold { owner, item } => self.cold(record, owner, item).await,
            WorkloadOperation::Invalid { owner, item, argument } => {
                self.call_invalid(record, (worker, owner, item), argument).await;
            }
            WorkloadOperation::ReadUnlimited { owner, item } => {
                self.read_unlimited(record, owner, item).await;
            }
            WorkloadOperation::UpsertUnlimited { item } => self.upsert_unlimited(record, worker, item).await,
        }
    }

    async fn read(&self, record: &mut WorkerRecord, owner: usize, item: usize) {
        let floor = self.history.item(owner, item).acknowledged();
        let id = owned_id(owner, item);
        let began = self.start.elapsed();
        let read = self.container.read_item::<TestItem>(id.as_str(), &id).await;
        let took = self.start.elapsed() - began;
        let sample = OperationSample::new(OperationClass::Read, began, took, failure(&read));
        match read {
            Ok(response) => {
                self.record(record, sample.with_diagnostics([response.diagnostics()], &self.regions), || {
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
        let began = self.start.elapsed();
        // The deadline of the client applies to each request; the workload applies it to the whole query.
        let found = timeout(workload.deadline, rows_of(&self.container, owner, workload.deadline)).await;
        let took = self.start.elapsed() - began;
        let found = match found {
            Err(_) => {
                let sample =
                    OperationSample::new(OperationClass::Read, began, took, Some("query_not_done_in_time"));
                return self.record(record, sample, || format!("query of w{owner} after {took:?}"));
            }
            Ok(found) => found,
        };
        let sample = OperationSample::new(OperationClass::Read, began, took, failure(&found));
        let found = match found {
            Err(error) => {
                return self.record_failure(record, sample, &error, &format!("query of w{owner}"));
            }
            Ok(found) => found,
        };
        self.record(record, sample.with_diagnostics(&found.requests, &self.regions), || {
            format!("query of w{owner}")
        });
        let found = found.rows;
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

    /// Reads with a new client, whose own deadline is longer than that of the call. Its session has seen nothing, so only
    /// success and time are checked.
    async fn cold(&self, record: &mut WorkerRecord, owner: usize, item: Option<usize>) {
        let what = format!("{} of w{owner} by a new client", if item.is_some() { "read" } else { "query" });
        let began = self.start.elapsed();
        let Workload { deadline, tolerance, .. } = self.schedule.workload;
        let done = async {
            let container = self.clients.container_of(&self.clients.client_with_default_deadline()?);
            match item {
                Some(item) => {
                    let id = owned_id(owner, item);
                    container.read_item::<TestItem>(id.as_str(), &id).timeout(deadline).await.map(drop)
                }
                None => rows_of(&container, owner, deadline).await.map(drop),
            }
        };
        // Longer than the deadline, which the client must keep by itself; not without a bound.
        let done = timeout(deadline * 2 + tolerance * 2, done).await;
        let took = self.start.elapsed() - began;
        match done {
            Ok(Ok(())) => {
                let sample = OperationSample::new(OperationClass::Read, began, took, None);
                self.record(record, sample, || what.clone());
            }
            Ok(Err(error)) => {
                let sample =
                    OperationSample::new(OperationClass::Read, began, took, Some(error.kind().name()));
                self.record_failure(record, sample, &error, &what);
            }
            Err(_) => {
                let sample =
                    OperationSample::new(OperationClass::Read, began, took, Some("not_done_in_time"));
                self.record(record, sample, || what.clone());
            }
        }
    }

    async fn upsert(&self, record: &mut WorkerRecord, worker: usize, item: usize) {
        let version = self.history.item(worker, item).begin_write();
        let stored = TestItem::owned(worker, item, version, self.schedule.workload.padding);
        let began = self.start.elapsed();
        let written = self.container.upsert_item(stored.pk.as_str(), &stored).await;
        let outcome = WriteOutcome::of(written.as_ref().err().map(Error::kind));
        self.history.item(worker, item).end_write(version, outcome);
        self.record_write(record, began, written, &format!("upsert {} version {version}", stored.id));
    }

    async fn create(&self, record: &mut WorkerRecord, worker: usize, sequence: u64) {
        let stored = TestItem::created(worker, sequence, self.schedule.workload.padding);
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
                self.record(record, sample.with_diagnostics([response.diagnostics()], &self.regions), || {
                    format!("{what}: {}", response.diagnostics().summary())
                })
            }
            Err(error) => self.record_failure(record, sample, &error, what),
        }
    }

    fn record_failure(&self, record: &mut WorkerRecord, sample: OperationSample, error: &Error, what: &str) {
        let sample = sample.with_diagnostics(error.diagnostics(), &self.regions);
        self.record(record, sample, || format!("{what}: {error}"));
    }

    /// Records an operation with the deadline of the workload; `describe` describes it if it violates a guarantee.
    fn record(&self, record: &mut WorkerRecord, sample: OperationSample, describe: impl Fn() -> String) {
        let workload = &self.schedule.workload;
        if sample.took > workload.deadline + workload.tolerance {
            let example = format!("at {:?}: {}", beginning(&sample), describe());
            record.violations.push(Violation::new(Guarantee::NothingIsLate, example));
        }
        self.record_outcome(record, sample, describe);
    }

    /// Records an operation without regard to a deadline; `describe` describes it if it violates a guarantee.
    fn record_outcome(
        &self,
        record: &mut WorkerRecord,
        sample: OperationSample,
        describe: impl Fn() -> String,
    ) {
        let faults = &self.schedule.faults;
        self.counters.done.fetch_add(1, Ordering::Relaxed);
        if sample.failure.is_some() {
            self.counters.failed.fetch_add(1, Ordering::Relaxed);
            if let Some(guarantee) = violated_by_failure(faults, &sample) {
                let example = format!("at {:?}: {}", beginning(&sample), describe());
                record.violations.push(Violation::new(guarantee, example));
            }
        }
        if sample.class == OperationClass::Read {
            for (fault, found) in faults.iter().zip(&self.found) {
                if fault.expect.found_within.is_some()
                    && sample.is_served_first_in(self.schedule.regions_of(fault), fault.ends)
                {
                    found.store(true, Ordering::Relaxed);
                }
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

/// When an operation began, in whole milliseconds.
fn beginning(sample: &OperationSample) -> Duration {
    Duration::from_millis(u64::try_from(sample.began.as_millis()).unwrap_or(u64::MAX))
}

fn failure<T>(result: &Result<T, Error>) -> Option<&'static str> {
    result.as_ref().err().map(|error| error.kind().name())
}

/// The rows of a query, and the diagnostics of its requests, oldest first.
struct QueryRows {
    rows: Vec<TestItem>,
    requests: Vec<Diagnostics>,
}

/// Queries all items of a worker, in order, from all partitions.
async fn rows_of(
    container: &ContainerClient,
    owner: usize,
    deadline: Duration,
) -> perihelion::Result<QueryRows> {
    let query = Query::new("SELECT * FROM c WHERE c.owner = @owner ORDER BY c.id");
    let query = container.query_items::<TestItem>(query.with_parameter("@owner", owner));
    let mut pages = query.timeout(deadline).pages().await?;
    let mut found = QueryRows { rows: Vec::new(), requests: Vec::new() };
    while let Some(page) = pages.next_page().await? {
        found.rows.extend(page.items);
        // A page has its newest request first.
        found.requests.extend(page.diagnostics.into_iter().rev());
    }
    Ok(found)
}
