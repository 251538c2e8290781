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

/// The deadline of a call that takes several requests. All of them end at it.
#[derive(Clone, Debug)]
pub struct CallDeadline {
    driver: CosmosDriver,
    options: OperationOptions,
    at: Instant,
}

impl CosmosDriver {
    /// The deadline of a call with these options that starts now.
    pub fn call_deadline(&self, options: &OperationOptions) -> Result<CallDeadline> {
        let settings = self.0.settings.for_operation(Some(options))?;
        let at = settings.timeouts.deadline_from(self.0.clock.now());
        Ok(CallDeadline { driver: self.clone(), options: options.clone(), at })
    }

    /// Ends after this time, by the clock of the driver.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        self.0.clock.sleep(duration)
    }
}

impl CallDeadline {
    /// The options of the requests: those of the call, with its deadline. An error if that has passed.
    pub fn options(&self) -> Result<OperationOptions> {
        if self.driver.0.clock.now() >= self.at {
            return Err(deadline_passed());
        }
        let timeouts = self.options.timeouts.clone().with_deadline(self.at);
        Ok(self.options.clone().with_timeouts(timeouts))
    }

    /// When the call must be over.
    pub fn at(&self) -> Instant {
        self.at
    }

    /// The result of `work`, or an error once the deadline has passed; the work is then dropped.
    pub async fn within<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let end = after(self.at, REPORT_TIME);
        match self.driver.0.clock.within(Some(end), work).await {
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
