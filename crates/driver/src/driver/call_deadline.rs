//! One deadline for a call that takes several requests.

use std::future::Future;
use std::time::{Duration, Instant};

use super::CosmosDriver;
use crate::clock::{Sleep, after};
use crate::error::{Error, ErrorKind, Result};
use crate::options::OperationOptions;

/// How long after the deadline a request in progress may still report its own error, which says more: each request
/// ends by itself at the deadline.
const REPORT_TIME: Duration = Duration::from_millis(50);

/// The deadline of a call that takes several requests. Each request gets the time that is left.
#[derive(Clone, Debug)]
pub struct CallDeadline {
    driver: CosmosDriver,
    options: OperationOptions,
    at: Instant,
}

impl CosmosDriver {
    /// The deadline of a call with these options that starts now.
    pub fn call_deadline(&self, options: &OperationOptions) -> Result<CallDeadline> {
        let timeout = self.0.settings.for_operation(Some(options))?.timeouts.end_to_end;
        Ok(CallDeadline { driver: self.clone(), options: options.clone(), at: self.0.clock.after(timeout) })
    }

    /// Ends after this time, by the clock of the driver.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        self.0.clock.sleep(duration)
    }
}

impl CallDeadline {
    /// The options of the next request: those of the call, with the time that is left. An error if none is left.
    pub fn options(&self) -> Result<OperationOptions> {
        let left = self.at.saturating_duration_since(self.driver.0.clock.now());
        if left.is_zero() {
            return Err(deadline_passed());
        }
        let mut options = self.options.clone();
        options.timeouts = options.timeouts.with_end_to_end(left);
        Ok(options)
    }

    /// The result of `work`, or an error once the deadline has passed; the work is then dropped.
    pub async fn within<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        match self.driver.0.clock.within(Some(after(self.at, REPORT_TIME)), work).await {
            Some(result) => result,
            None => Err(deadline_passed()),
        }
    }
}

fn deadline_passed() -> Error {
    Error::new(
        ErrorKind::DeadlineExceeded,
        "the deadline of the call passed before its last request was done",
    )
}
