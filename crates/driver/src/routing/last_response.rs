//! When an endpoint last responded to anything.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time of the newest response, to a microsecond. Recording is one store without a lock.
#[derive(Debug, Default)]
pub(crate) struct LastResponse {
    start: OnceLock<Instant>,
    /// Microseconds since the start, and one; 0 before the first response.
    micros: AtomicU64,
}

impl LastResponse {
    /// Records a response. Of two at the same time either may count: they are microseconds apart.
    pub(crate) fn record(&self, now: Instant) {
        let start = *self.start.get_or_init(|| now);
        let micros = now.saturating_duration_since(start).as_micros();
        // Relaxed: nothing else is published by it.
        self.micros.store(u64::try_from(micros).unwrap_or(u64::MAX - 1) + 1, Ordering::Relaxed);
    }

    /// When the endpoint last responded; none before it has.
    pub(crate) fn get(&self) -> Option<Instant> {
        let micros = self.micros.load(Ordering::Relaxed).checked_sub(1)?;
        self.start.get().map(|start| *start + Duration::from_micros(micros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn the_newest_response_counts() {
        let (last, now) = (LastResponse::default(), Clock::machine().now());
        assert_eq!(last.get(), None);
        for millisecond in [0, 5, 90_000] {
            let at = now + Duration::from_millis(millisecond);
            last.record(at);
            assert_eq!(last.get(), Some(at));
        }
    }
}
