//! Hedging: a second attempt in another region when the first is slow.
//!
//! [`is_eligible`] says whether an operation may be hedged, [`threshold`] when the second attempt starts, and
//! [`HedgingBudget`] how many such attempts run at once. [`race`] runs the two, and [`winner`] decides which one
//! counts. The other attempt is cancelled by being dropped.

pub(crate) mod winner;

#[cfg(test)]
mod tests;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::future::{Either, select};

use self::winner::RaceAttempt;
use crate::clock::Clock;
use crate::gateway::{GatewayOutcome, GatewayResult};
use crate::operation::{Operation, OperationKind, Plane, Precondition};
use crate::options::{HedgingSettings, HedgingThreshold};
use crate::routing::AccountState;

/// The threshold while too few latencies of the region are known.
pub(crate) const THRESHOLD_UNKNOWN: Duration = Duration::from_millis(500);

/// Whether a second attempt may run beside the first: for reads of data, and on multi-write accounts for writes
/// that do no harm when they arrive late. Patches, batches and stored procedures are never hedged: carried out
/// twice they may do anything.
pub(crate) fn is_eligible(operation: &Operation, settings: &HedgingSettings, account: &AccountState) -> bool {
    if !settings.enabled || account.forbids_hedging() || operation.plane() != Plane::Data {
        return false;
    }
    match operation.kind() {
        OperationKind::Read | OperationKind::ReadFeed | OperationKind::Query => true,
        OperationKind::Create | OperationKind::Replace | OperationKind::Upsert | OperationKind::Delete => {
            account.is_multi_write() && may_arrive_late(operation)
        }
        OperationKind::QueryPlan | OperationKind::Patch | OperationKind::Batch | OperationKind::Execute => {
            false
        }
    }
}

/// Whether a write that is carried out late overwrites nothing newer. The slow region may carry the first attempt
/// out long after the second was acknowledged: dropping a request does not take it back from the network. A
/// create then finds its item, and a precondition that was true once is false; any other write would overwrite
/// later ones, unless the caller knows that there are none.
fn may_arrive_late(operation: &Operation) -> bool {
    operation.kind() == OperationKind::Create
        || matches!(operation.precondition(), Precondition::IfMatch(_))
        || operation.is_idempotent()
}

/// When the second attempt starts. `p99` is the first region's recent 99th percentile, if it is known. A dynamic
/// threshold leaves the second attempt two thirds of the operation's `time_left`.
pub(crate) fn threshold(setting: HedgingThreshold, p99: Option<Duration>, time_left: Duration) -> Duration {
    match setting {
        HedgingThreshold::Static(after) => after,
        HedgingThreshold::Dynamic { min, max } => {
            p99.unwrap_or(THRESHOLD_UNKNOWN).clamp(min, max).min(time_left / 3)
        }
    }
}

/// The limit on concurrent second attempts: hedging helps the few operations that are slow, and must not double
/// the load of a region that is slow for all. Cheap to clone; clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct HedgingBudget(Arc<AtomicU32>);

/// The permit of one second attempt; dropping it releases its place in the budget.
#[derive(Debug)]
pub(crate) struct Permit(Arc<AtomicU32>);

impl HedgingBudget {
    /// Takes a permit, unless `max` are taken.
    pub(crate) fn take(&self, max: u32) -> Option<Permit> {
        // Relaxed: the count protects no other memory.
        let one_more = |open: u32| (open < max).then_some(open + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Permit(Arc::clone(&self.0)))
    }

    /// How many permits are taken.
    pub(crate) fn open(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What became of both attempts of a race.
#[derive(Debug)]
pub(crate) struct RaceResult {
    /// The attempt that was sent first.
    pub(crate) first: RaceAttempt,
    /// The second attempt; not started when the first was fast enough.
    pub(crate) second: RaceAttempt,
    /// When the second attempt started.
    pub(crate) second_started: Option<Instant>,
    /// Whether the first attempt was slow and the budget had no permit for a second.
    pub(crate) was_denied: bool,
}

impl RaceResult {
    fn first_only(result: GatewayResult) -> RaceResult {
        RaceResult {
            first: RaceAttempt::Finished(result),
            second: RaceAttempt::NotStarted,
            second_started: None,
            was_denied: false,
        }
    }
}

/// Runs `first`; if it has not ended after `threshold`, runs the attempt that `second` makes beside it, if it
/// makes one. Ends with the first result that `is_final`, or with both.
pub(crate) async fn race<F, S>(
    clock: &Clock,
    threshold: Duration,
    first: impl Future<Output = GatewayResult>,
    second: F,
    is_final: impl Fn(&GatewayOutcome) -> bool,
) -> RaceResult
where
    F: FnOnce() -> Option<(Permit, S)>,
    S: Future<Output = GatewayResult>,
{
    let mut first = pin!(first);
    // A response that is there at once needs no timer.
    if let Poll::Ready(result) = poll_fn(|context| Poll::Ready(first.as_mut().poll(context))).await {
        return RaceResult::first_only(result);
    }
    let first = match select(first, clock.sleep(threshold)).await {
        Either::Left((result, _timer)) => return RaceResult::first_only(result),
        Either::Right(((), first)) => first,
    };
    let Some((_permit, second)) = second() else {
        return RaceResult { was_denied: true, ..RaceResult::first_only(first.await) };
    };
    let second_started = Some(clock.now());
    // On the heap, because it is rare and as large as the first.
    let second = Box::pin(second);
    let (first, second) = match select(first, second).await {
        Either::Left((result, second)) => {
            let second = if is_final(&result.outcome) {
                RaceAttempt::Abandoned
            } else {
                RaceAttempt::Finished(second.await)
            };
            (RaceAttempt::Finished(result), second)
        }
        Either::Right((result, first)) => {
            let first = if is_final(&result.outcome) {
                RaceAttempt::Abandoned
            } else {
                RaceAttempt::Finished(first.await)
            };
            (first, RaceAttempt::Finished(result))
        }
    };
    RaceResult { first, second, second_started, was_denied: false }
}
