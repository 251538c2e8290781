//! Calls without a limit in time: every timeout and wait of their options is as long as a duration can be.

use std::time::Duration;

use perihelion::{Error, OperationOptions, RetryOptions, TimeoutOptions};
use tokio::time::timeout;

use super::{TestItem, WorkerContext, WorkerRecord, failure, owned_id};
use crate::sample::{OperationClass, OperationSample};
use crate::workload::Workload;
use crate::write_history::WriteOutcome;

/// The failure of a call that has no deadline and did not end in the time that it should take.
const NOT_DONE: &str = "not_done_in_time";
/// How often a throttled call is repeated: the default, because only waits are without a limit.
const THROTTLE_RETRIES: u32 = 9;

/// Options in which every time is as long as a duration can be.
fn unlimited() -> OperationOptions {
    let timeouts = TimeoutOptions::new()
        .with_end_to_end(Duration::MAX)
        .with_attempt(Duration::MAX)
        .with_metadata_attempt(Duration::MAX);
    let retry = RetryOptions::new()
        .with_forbidden_wait_max(Duration::MAX)
        .with_throttling(THROTTLE_RETRIES, Duration::MAX);
    OperationOptions::new().with_timeouts(timeouts).with_retry(retry)
}

impl WorkerContext {
    /// Reads an item without a deadline.
    pub(super) async fn read_unlimited(&self, record: &mut WorkerRecord, owner: usize, item: usize) {
        let floor = self.history.item(owner, item).acknowledged();
        let id = owned_id(owner, item);
        let what = format!("read {id} without a deadline");
        let began = self.start.elapsed();
        let read = self.container.read_item::<TestItem>(id.as_str(), &id).options(unlimited());
        let read = timeout(self.time_limit(), read.into_future()).await;
        let took = self.start.elapsed() - began;
        match read {
            Err(_) => {
                let sample = OperationSample::new(OperationClass::Read, began, took, Some(NOT_DONE));
                self.record_outcome(record, sample, || what.clone());
            }
            Ok(Err(error)) => {
                let sample =
                    OperationSample::new(OperationClass::Read, began, took, Some(error.kind().name()))
                        .with_diagnostics(error.diagnostics(), &self.regions);
                self.record_outcome(record, sample, || format!("{what}: {error}"));
            }
            Ok(Ok(response)) => {
                let sample = OperationSample::new(OperationClass::Read, began, took, None)
                    .with_diagnostics([response.diagnostics()], &self.regions);
                self.record_outcome(record, sample, || what.clone());
                self.check_read(record, owner, item, floor, response.value().version);
            }
        }
    }

    /// Upserts an item of the worker without a deadline.
    pub(super) async fn upsert_unlimited(&self, record: &mut WorkerRecord, worker: usize, item: usize) {
        let version = self.history.item(worker, item).begin_write();
        let stored = TestItem::owned(worker, item, version, self.schedule.workload.padding);
        let what = format!("upsert {} version {version} without a deadline", stored.id);
        let began = self.start.elapsed();
        let write = self.container.upsert_item(stored.pk.as_str(), &stored).options(unlimited());
        let written = timeout(self.time_limit(), write.into_future()).await;
        let took = self.start.elapsed() - began;
        let outcome = match &written {
            // Whether the account has carried it out is unknown.
            Err(_) => WriteOutcome::Undecided,
            Ok(written) => WriteOutcome::of(written.as_ref().err().map(Error::kind)),
        };
        self.history.item(worker, item).end_write(version, outcome);
        let failed = written.as_ref().map_or(Some(NOT_DONE), failure);
        let diagnostics = match &written {
            Err(_) => None,
            Ok(Ok(response)) => Some(response.diagnostics()),
            Ok(Err(error)) => error.diagnostics(),
        };
        let sample = OperationSample::new(OperationClass::Write, began, took, failed)
            .with_diagnostics(diagnostics, &self.regions);
        self.record_outcome(record, sample, || match &written {
            Ok(Err(error)) => format!("{what}: {error}"),
            _ => what.clone(),
        });
    }

    /// How long the workload waits for a call without a deadline. The account comes back, so it ends in that time.
    fn time_limit(&self) -> Duration {
        let Workload { deadline, tolerance, .. } = self.schedule.workload;
        deadline * 2 + tolerance * 2
    }
}
