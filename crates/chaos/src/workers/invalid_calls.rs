//! Calls with a session token or an ETag that no header may hold: each must fail at once as the error of its caller,
//! without a request and without a mark on any region.

use std::sync::atomic::Ordering;
use std::time::Duration;

use perihelion::driver::Region;
use perihelion::{Error, ErrorKind, Result};

use super::{TestItem, WorkerContext, WorkerRecord, owned_id};
use crate::guarantee::{AFTERMATH, Guarantee, Violation};
use crate::workload::InvalidArgument;
use crate::write_history::WriteOutcome;

impl WorkerContext {
    /// Sends a call with this argument. It belongs to no class of operations: it is neither a read nor a write that
    /// anyone should wait for.
    pub(super) async fn call_invalid(
        &self,
        record: &mut WorkerRecord,
        (worker, owner, item): (usize, usize, usize),
        argument: InvalidArgument,
    ) {
        let marked_before = self.marked_regions();
        let began = self.start.elapsed();
        let result = match argument {
            InvalidArgument::SessionToken => {
                let id = owned_id(owner, item);
                let read = self.container.read_item::<TestItem>(id.as_str(), &id);
                read.session_token("0:-1#7\r\n").await.map(drop)
            }
            InvalidArgument::IfNoneMatch => {
                let id = owned_id(owner, item);
                let read = self.container.read_item::<TestItem>(id.as_str(), &id);
                read.if_none_match("\"\u{fc}\n\"").await.map(drop)
            }
            InvalidArgument::IfMatch => {
                // A version of its own: nobody may ever read it.
                let version = self.history.item(worker, item).begin_write();
                let stored = TestItem::owned(worker, item, version, self.schedule.workload.padding);
                let write = self.container.upsert_item(stored.pk.as_str(), &stored);
                let written = write.if_match("\"\0\"").await.map(drop);
                let outcome = WriteOutcome::of(written.as_ref().err().map(Error::kind));
                self.history.item(worker, item).end_write(version, outcome);
                written
            }
        };
        let took = self.start.elapsed() - began;
        self.counters.done.fetch_add(1, Ordering::Relaxed);
        record.invalid_calls += 1;
        let mut problems: Vec<String> =
            wrong_outcome(&result, took, self.schedule.workload.tolerance).into_iter().collect();
        // Others work meanwhile, and may mark a region that fails: only one without a fault counts.
        let is_news = |region: &Region| {
            !marked_before.contains(region) && !self.is_faulty(region, began, self.start.elapsed())
        };
        problems.extend(
            self.marked_regions()
                .into_iter()
                .filter(is_news)
                .map(|region| format!("{region} was marked unavailable meanwhile")),
        );
        for problem in problems {
            let at = Duration::from_millis(u64::try_from(began.as_millis()).unwrap_or(u64::MAX));
            let example = format!("at {at:?}, {argument:?}: {problem}");
            record.violations.push(Violation::new(Guarantee::InvalidCallsFailAlone, example));
        }
    }

    /// The regions that the client of the workload avoids, for reads or for writes.
    fn marked_regions(&self) -> Vec<Region> {
        let account = self.client.driver().account();
        let is_marked =
            |region: &&Region| account.is_unavailable(region, true) || account.is_unavailable(region, false);
        self.regions.iter().filter(is_marked).cloned().collect()
    }

    /// Whether a fault of this region, or its aftermath, overlaps a time.
    fn is_faulty(&self, region: &Region, began: Duration, ended: Duration) -> bool {
        self.schedule.faults.iter().any(|fault| {
            ended > fault.begins
                && began < fault.ends + AFTERMATH
                && fault.regions.iter().any(|name| Region::new(name) == *region)
        })
    }
}

/// What is wrong with the result of an invalid call, if anything.
fn wrong_outcome(result: &Result<()>, took: Duration, tolerance: Duration) -> Option<String> {
    let Err(error) = result else { return Some("it succeeded".to_owned()) };
    let attempts = error.diagnostics().map_or(0, |diagnostics| diagnostics.attempts().len());
    if error.kind() != ErrorKind::BadRequest {
        Some(format!(
            "it failed as {}, expected {}: {error}",
            error.kind().name(),
            ErrorKind::BadRequest.name()
        ))
    } else if attempts > 0 {
        Some(format!("{attempts} attempts were made before it failed: {error}"))
    } else if took > tolerance {
        Some(format!("it failed after {took:?}, expected at once"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn only_the_callers_error_at_once_is_right() {
        let failed = |kind| Err(Error::new(kind, "a header"));
        for (result, took, expected) in [
            (failed(ErrorKind::BadRequest), MS, None),
            (failed(ErrorKind::BadRequest), MS * 600, Some("expected at once")),
            (failed(ErrorKind::Unavailable), MS, Some("expected bad_request")),
            (Ok(()), MS, Some("it succeeded")),
        ] {
            let found = wrong_outcome(&result, took, MS * 500);
            match expected {
                None => assert_eq!(found, None),
                Some(part) => assert!(found.as_ref().is_some_and(|found| found.contains(part)), "{found:?}"),
            }
        }
    }
}
