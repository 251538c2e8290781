//! Processes one owned lease: reads changes of its range, calls the handler with them, writes checkpoints.
//!
//! A worker ends when the instance stops, the lease is lost or requested by another instance, or its range was split.
//! It calls the handler only while the lease is unexpired, so that no other instance handles the same changes then.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use driver::change_feed::{ChangeRequest, ChangeSource, Changes};
use driver::query::PageError;
use driver::{Error, ErrorKind};

use super::change_metadata::change_lsn;
use super::delivery::{Delivery, Step, with_jitter};
use super::handler::{BatchContext, DeadLetter, LeaseCheck};
use super::lease::{Lease, LeasePosition, LeaseReport, RangePosition};
use super::owned_lease::{LeaseWriteOutcome, OwnedLease};
use super::store::{Versioned, WriteOutcome};
use super::worker_context::WorkerContext;

/// Why a worker stops processing its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopReason {
    /// The instance stops or another one requested the lease: the worker has to release it.
    Release,
    /// Another instance owns the lease, or it was deleted.
    Lost,
}

/// A value, or the reason why the worker stops.
type WorkerResult<T = ()> = std::result::Result<T, StopReason>;

/// The worker of one owned lease.
pub(super) struct Worker {
    context: Arc<WorkerContext>,
    lease: Arc<OwnedLease>,
    /// The generation that is being read; it changes with a rewind.
    generation: u64,
    position: LeasePosition,
    consecutive_failures: u32,
}

impl Worker {
    pub(super) fn new(context: Arc<WorkerContext>, lease: Arc<OwnedLease>) -> Worker {
        let Lease { generation, position, .. } = lease.lease();
        Worker { context, lease, generation, position, consecutive_failures: 0 }
    }

    /// Processes the lease until there is a reason to stop.
    pub(super) async fn run(mut self) {
        let reason = loop {
            if let Err(reason) = self.poll_feed().await {
                break reason;
            }
        };
        if reason == StopReason::Release {
            // If the release fails, the lease expires instead.
            let _expires_otherwise = self.lease.release().await;
        }
    }

    /// Reads one page of the feed and processes it.
    async fn poll_feed(&mut self) -> WorkerResult {
        self.check_lease().await?;
        let lease = self.lease.lease();
        if lease.is_splitting() {
            return self.finish_split(&lease).await;
        }
        if lease.generation != self.generation {
            (self.generation, self.position) = (lease.generation, lease.position.clone());
        }
        let request = ChangeRequest {
            range: lease.range(),
            mode: self.context.settings.mode,
            since: self.position.since(),
            items_max: Some(self.context.settings.page_items),
        };
        let reading = Box::pin(self.context.source.changes(request));
        let Some(page) = self.unless_interrupted(reading).await? else { return Ok(()) };
        match page {
            Ok(changes) => match changes.items() {
                Ok(items) => {
                    self.consecutive_failures = 0;
                    self.process_page(&lease, changes, items).await
                }
                Err(error) => self.back_off(&error).await,
            },
            Err(PageError::Gone) => self.split(&lease).await,
            Err(PageError::Failed(error)) => self.back_off(&error).await,
        }
    }

    /// Stops if there is a reason to; otherwise makes sure that the lease is unexpired.
    async fn check_lease(&mut self) -> WorkerResult {
        if self.lease.is_lost() {
            return Err(StopReason::Lost);
        }
        if self.context.is_stopping() || self.lease.is_requested() {
            return Err(StopReason::Release);
        }
        // Ends with a renewal that succeeds, the loss of the lease, or a reason to stop during the wait.
        while !self.lease.is_unexpired() {
            match self.lease.renew().await {
                Ok(LeaseWriteOutcome::Written) => {}
                Ok(LeaseWriteOutcome::Rewound) => continue,
                Ok(LeaseWriteOutcome::Lost) => return Err(StopReason::Lost),
                Err(error) => self.back_off(&error).await?,
            }
        }
        Ok(())
    }

    /// Delivers the changes of a page, if there are any, and writes a checkpoint after it.
    async fn process_page(&mut self, lease: &Lease, changes: Changes, items: Vec<Bytes>) -> WorkerResult {
        let next_position = LeasePosition::Etag(changes.etag.clone());
        if items.is_empty() {
            self.lease.update_report(|report| *report = LeaseReport { lag: Some(0), ..Default::default() });
            self.lease.defer_checkpoint(self.generation, next_position.clone());
            self.position = next_position;
            return self.pause(self.context.settings.poll_interval).await;
        }
        let last = items.last().and_then(|item| change_lsn(item));
        let lag = changes.lsn.zip(last).map(|(newest, last)| newest.saturating_sub(last));
        let batch = self.batch_context(lease, &next_position, lag);
        if !self.deliver(&items, batch).await? {
            return Ok(());
        }
        self.lease.update_report(|report| *report = LeaseReport { lag, ..Default::default() });
        match self.lease.checkpoint(self.generation, next_position.clone()).await {
            Ok(LeaseWriteOutcome::Written) => {
                self.context.count_handled(items.len());
                self.position = next_position;
            }
            // A rewind happened while the handler ran, so its batch does not count.
            Ok(LeaseWriteOutcome::Rewound) => {}
            Ok(LeaseWriteOutcome::Lost) => return Err(StopReason::Lost),
            Err(error) => {
                // The changes were handled; the next write that succeeds stores the position. If another instance
                // acquires the lease before that, it handles some changes again and skips none.
                self.lease.defer_checkpoint(self.generation, next_position.clone());
                self.context.count_handled(items.len());
                self.position = next_position;
                return self.back_off(&error).await;
            }
        }
        Ok(())
    }

    fn batch_context(&self, lease: &Lease, next_position: &LeasePosition, lag: Option<u64>) -> BatchContext {
        let owned = Arc::clone(&self.lease);
        BatchContext {
            range: lease.range(),
            lease: lease.id.clone(),
            instance: self.context.instance.clone(),
            continuation: next_position.display_text(),
            lag,
            attempts: 0,
            lease_check: LeaseCheck(Arc::new(move || owned.is_unexpired())),
        }
    }

    /// Gives every change to the handler or to the dead-letter hook. Returns `false` if a rewind made the batch
    /// obsolete before that.
    async fn deliver(&mut self, items: &[Bytes], batch: BatchContext) -> WorkerResult<bool> {
        let context = Arc::clone(&self.context);
        let mut delivery = Delivery::new(items.len(), context.settings.failures);
        let mut last_error = String::new();
        loop {
            if delivery.step() == Step::Done {
                return Ok(true);
            }
            let Some(_permit) = self.unless_interrupted(context.handler_permit()).await? else {
                return Ok(false);
            };
            // Waiting for the permit may have taken longer than the lease lasts.
            self.check_lease().await?;
            if self.lease.generation() != self.generation {
                return Ok(false);
            }
            let batch = BatchContext { attempts: delivery.attempts(), ..batch.clone() };
            let outcome = match delivery.step() {
                Step::Done => return Ok(true),
                Step::Deliver(range) => {
                    context.handle(&items[range], batch).await.inspect_err(|(_, error)| {
                        last_error.clone_from(error);
                    })
                }
                Step::DeadLetter { change, attempts } => {
                    let (change, error) = (items[change].clone(), last_error.clone());
                    context.send_dead_letter(DeadLetter { change, error, attempts, context: batch }).await
                }
            };
            match outcome {
                Ok(()) => delivery.succeeded(),
                Err((failure, error)) => {
                    self.report_failure(&error);
                    self.pause(delivery.failed(failure, context.jitter())).await?;
                }
            }
        }
    }

    fn report_failure(&self, error: &str) {
        self.context.count_failure();
        self.lease.update_report(|report| {
            report.failures += 1;
            report.last_error = Some(truncated(error));
        });
    }

    /// Reports a failed request and waits before the next attempt.
    async fn back_off(&mut self, error: &Error) -> WorkerResult {
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        self.report_failure(&error.to_string());
        let settings = &self.context.settings;
        let wait = backoff(error.retry_after(), settings.poll_interval, self.consecutive_failures);
        let wait = self.context.clock.sleep(with_jitter(wait, self.context.jitter()));
        // A rewind does not end this wait: the service would fail the next request as well.
        tokio::select! {
            reason = self.wait_for_stop_reason(|| false) => reason.map_or(Ok(()), Err),
            () = wait => Ok(()),
        }
    }

    /// Waits for `wait`, or until there is a reason to stop or a rewind.
    async fn pause(&self, wait: Duration) -> WorkerResult {
        self.unless_interrupted(self.context.clock.sleep(wait)).await.map(|_| ())
    }

    /// The output of `work`; `None` if a rewind comes first, an error if there is a reason to stop first. In both cases
    /// the work is cancelled.
    async fn unless_interrupted<F: Future>(&self, work: F) -> WorkerResult<Option<F::Output>> {
        let is_rewound = || self.lease.generation() != self.generation;
        tokio::select! {
            biased;
            reason = self.wait_for_stop_reason(is_rewound) => reason.map_or(Ok(None), Err),
            output = work => Ok(Some(output)),
        }
    }

    /// Waits for a reason to stop, or until `is_enough` (then `None`).
    async fn wait_for_stop_reason(&self, is_enough: impl Fn() -> bool) -> Option<StopReason> {
        let (mut stopping, mut changes) = (self.context.stopping(), self.lease.subscribe());
        loop {
            if self.lease.is_lost() {
                return Some(StopReason::Lost);
            }
            if self.context.is_stopping() || self.lease.is_requested() {
                return Some(StopReason::Release);
            }
            if is_enough() {
                return None;
            }
            // Neither receiver fails: this worker owns both senders through its context and its lease.
            tokio::select! {
                _ = stopping.changed() => {}
                _ = changes.changed() => {}
            }
        }
    }

    /// Stores the parts of a lease whose range now belongs to several physical partitions.
    async fn split(&mut self, lease: &Lease) -> WorkerResult {
        let range = lease.range();
        let parts = match self.context.source.divide(range.clone(), true).await {
            Ok(parts) => parts,
            Err(error) => return self.back_off(&error).await,
        };
        if parts == [range] {
            let message = "a partition is gone and no other partition has its range yet";
            return self.back_off(&Error::new(ErrorKind::Unavailable, message)).await;
        }
        let parts: Vec<RangePosition> =
            parts.into_iter().map(|part| RangePosition::new(part, self.position.clone())).collect();
        match self.lease.split(self.generation, &parts).await {
            Ok(LeaseWriteOutcome::Written | LeaseWriteOutcome::Rewound) => Ok(()),
            Ok(LeaseWriteOutcome::Lost) => Err(StopReason::Lost),
            Err(error) => self.back_off(&error).await,
        }
    }

    /// Creates a lease for each part, then deletes the whole one. After a crash the next owner finds the same parts and
    /// creates those that are missing; no part is processed before the whole lease is deleted.
    async fn finish_split(&mut self, lease: &Lease) -> WorkerResult {
        let mut acquired = Vec::new();
        for part in &lease.parts {
            let mut part = Lease::new(&lease.processor, part, lease.generation);
            if self.context.has_room_for(acquired.len()) {
                part.owner = Some(self.context.instance.clone());
                part.term = 1;
            }
            let began = self.context.clock.now();
            match self.context.store.create_lease(&part).await {
                Ok(WriteOutcome::Stored(etag)) if part.owner.is_some() => {
                    acquired.push((Versioned { value: part, etag }, began));
                }
                Ok(WriteOutcome::Stored(_) | WriteOutcome::Conflict | WriteOutcome::Missing) => {}
                Err(error) => return self.back_off(&error).await,
            }
        }
        match self.lease.delete().await {
            Ok(LeaseWriteOutcome::Written | LeaseWriteOutcome::Rewound) => {
                for (stored, began) in acquired {
                    self.context.clone().start_worker(stored, began);
                }
                Err(StopReason::Lost)
            }
            Ok(LeaseWriteOutcome::Lost) => Err(StopReason::Lost),
            Err(error) => self.back_off(&error).await,
        }
    }
}

/// The longest wait after a request that failed.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// The longest wait that a response can ask for. A longer hint is a mistake, and the range would stand still for it.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// How long to wait after so many failures in a row, the last of which asked for a wait of `retry_after`. Pure.
fn backoff(retry_after: Option<Duration>, poll_interval: Duration, failures: u32) -> Duration {
    match retry_after {
        Some(retry_after) => retry_after.min(RETRY_AFTER_MAX),
        None => poll_interval.saturating_mul(1 << failures.min(6)).min(BACKOFF_MAX),
    }
}

/// How many bytes of an error message are stored in a lease.
const ERROR_BYTES_MAX: usize = 512;

fn truncated(text: &str) -> String {
    let end = (0..=ERROR_BYTES_MAX.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text[..end.unwrap_or(0)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_after_failures_double_and_stay_bounded_whatever_the_service_asks_for() {
        let second = Duration::from_secs(1);
        for (retry_after, poll_interval, failures, expected) in [
            (None, second, 1, 2 * second),
            (None, second, 3, 8 * second),
            (None, second, u32::MAX, BACKOFF_MAX),
            (None, Duration::MAX, 1, BACKOFF_MAX),
            (Some(5 * second), second, 9, 5 * second),
            (Some(Duration::ZERO), second, 1, Duration::ZERO),
            (Some(86_400 * second), second, 1, RETRY_AFTER_MAX),
            (Some(Duration::MAX), second, 1, RETRY_AFTER_MAX),
        ] {
            let wait = backoff(retry_after, poll_interval, failures);
            assert_eq!(wait, expected, "{retry_after:?} {poll_interval:?} {failures}");
        }
    }
}
