//! Waits between tries of what must not be given up while a lock lasts.
//!
//! The runtime takes an error of a commit for the end of the orchestration, and one of a renewal for the end of the
//! activity. So errors that may pass are not reported before the lock is lost.

use std::time::Duration;

use crate::clock::{self, Millis};
use crate::error::Failure;

/// The first wait; each further one is twice as long.
const FIRST: Duration = Duration::from_millis(10);
/// The longest wait, unless the service asks for a longer one.
const LONGEST: Duration = Duration::from_millis(500);

/// Whether the same request may succeed later although nobody does anything about it. A lost race is none of these: the
/// document has to be read again.
pub(crate) fn is_transient(error: &Failure) -> bool {
    error.is_retryable() && !error.is_lost_race()
}

/// Waits after the n-th try, at most until the lock ends.
pub(crate) async fn wait(error: &Failure, tries: usize, lock_end: Millis) {
    tracing::debug!(%error, tries, "a request is repeated while its lock lasts");
    let doubled = FIRST * (1 << tries.min(8)) / 2;
    let delay = error.retry_after().unwrap_or(doubled.min(LONGEST));
    tokio::time::sleep(delay.min(clock::until(lock_end, clock::now()))).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use perihelion::{Error, ErrorKind};

    #[test]
    fn transient_errors_are_neither_lost_races_nor_permanent() {
        let passes = |kind| is_transient(&Failure::from(Error::new(kind, "for the test")));
        for kind in
            [ErrorKind::Throttled, ErrorKind::Unavailable, ErrorKind::Undecided, ErrorKind::DeadlineExceeded]
        {
            assert!(passes(kind), "{kind:?}");
        }
        for kind in
            [ErrorKind::PreconditionFailed, ErrorKind::Conflict, ErrorKind::NotFound, ErrorKind::TooLarge]
        {
            assert!(!passes(kind), "{kind:?}");
        }
    }

    #[tokio::test]
    async fn no_wait_is_longer_than_the_lock() {
        let error = Failure::from(Error::new(ErrorKind::Unavailable, "for the test"));
        let started = clock::now();
        wait(&error, 50, started + 20.0).await;
        assert!(clock::now() - started < 400.0);
    }
}
