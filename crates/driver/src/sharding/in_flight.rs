//! A shard: one transport used for one endpoint, its counters, and the guard that counts a request in flight.

use crate::transport::Transport;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::clients::SharedClient;
use super::health::Observation;
use super::select::Candidate;

/// A client and what was seen of its connection to one endpoint.
///
/// Every request writes here, so each shard has cache lines of its own. The counters are read one by one: a
/// decision may mix two moments a few nanoseconds apart, and none depends on their agreeing.
#[derive(Debug)]
#[repr(align(128))]
pub struct Shard {
    in_flight: AtomicU32,
    consecutive_failures: AtomicU32,
    abandoned: AtomicU32,
    /// Times in nanoseconds since the transport began; [`NEVER`] for none.
    last_success: AtomicU64,
    last_request: AtomicU64,
    busy_since: AtomicU64,
    abandoned_since: AtomicU64,
    requests: AtomicU64,
    failures: AtomicU64,
    id: u64,
    created_at: Duration,
    client: Arc<SharedClient>,
}

const NEVER: u64 = u64::MAX;

impl Shard {
    /// A shard that has sent nothing yet.
    pub fn new(id: u64, client: Arc<SharedClient>, now: Duration) -> Arc<Shard> {
        Arc::new(Shard {
            in_flight: AtomicU32::new(0),
            consecutive_failures: AtomicU32::new(0),
            abandoned: AtomicU32::new(0),
            last_success: AtomicU64::new(NEVER),
            last_request: AtomicU64::new(nanos(now)),
            busy_since: AtomicU64::new(nanos(now)),
            abandoned_since: AtomicU64::new(nanos(now)),
            requests: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            id,
            created_at: now,
            client,
        })
    }

    /// The id of the shard, unique within the process's transport.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The client it uses.
    pub fn client(&self) -> &Arc<SharedClient> {
        &self.client
    }

    /// Requests begun so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Requests that got no response so far.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Requests in flight on the shard.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// What selection looks at.
    pub fn candidate(&self) -> Candidate {
        Candidate {
            in_flight: self.in_flight(),
            consecutive_failures: self.consecutive_failures.load(Ordering::Relaxed),
        }
    }

    /// What the health check looks at.
    pub fn observation(&self) -> Observation {
        let time = |nanos: &AtomicU64| Duration::from_nanos(nanos.load(Ordering::Relaxed));
        let last_success = self.last_success.load(Ordering::Relaxed);
        Observation {
            shard: self.id,
            in_flight: self.in_flight(),
            created_at: self.created_at,
            last_success: (last_success != NEVER).then(|| Duration::from_nanos(last_success)),
            last_request: time(&self.last_request),
            busy_since: time(&self.busy_since),
            abandoned_since: time(&self.abandoned_since),
            consecutive_failures: self.consecutive_failures.load(Ordering::Relaxed),
            abandoned: self.abandoned.load(Ordering::Relaxed),
        }
    }
}

/// One request on a shard. Dropping it, for any reason, ends the count: a call that was cancelled leaves
/// nothing behind.
#[derive(Debug)]
#[must_use = "the request is counted only as long as this lives"]
pub struct InFlight {
    shard: Arc<Shard>,
    ended: RequestEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestEnd {
    /// The call was dropped before its end.
    Abandoned,
    Reported,
}

impl InFlight {
    /// Counts a request, however many there are.
    pub fn begin(shard: &Arc<Shard>, now: Duration) -> InFlight {
        let before = shard.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight::begun(shard, before, now)
    }

    /// Counts a request if there are fewer than `streams_max`. Two that saw the same last place do not both
    /// get it.
    pub fn try_begin(shard: &Arc<Shard>, streams_max: u32, now: Duration) -> Option<InFlight> {
        let one_more = |count: u32| (count < streams_max).then_some(count + 1);
        let before = shard.in_flight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(InFlight::begun(shard, before, now))
    }

    fn begun(shard: &Arc<Shard>, before: u32, now: Duration) -> InFlight {
        if before == 0 {
            shard.busy_since.store(nanos(now), Ordering::Relaxed);
        }
        if shard.abandoned.load(Ordering::Relaxed) == 0 {
            shard.abandoned_since.store(nanos(now), Ordering::Relaxed);
        }
        shard.last_request.store(nanos(now), Ordering::Relaxed);
        shard.requests.fetch_add(1, Ordering::Relaxed);
        InFlight { shard: Arc::clone(shard), ended: RequestEnd::Abandoned }
    }

    /// The shard the request is on.
    pub fn shard(&self) -> &Arc<Shard> {
        &self.shard
    }

    /// The client to send it with.
    pub fn transport(&self) -> &dyn Transport {
        self.shard.client.transport()
    }

    /// Ends the request with a response of any status: the connection works.
    pub fn succeeded(mut self, now: Duration) {
        self.ended = RequestEnd::Reported;
        let shard = &*self.shard;
        shard.last_success.store(nanos(now), Ordering::Relaxed);
        shard.last_request.store(nanos(now), Ordering::Relaxed);
        // Relaxed, like all counters here: none of them guards other memory. They are mostly zero, and are
        // stored only if not, so that the cache line stays shared.
        for counter in [&shard.consecutive_failures, &shard.abandoned] {
            if counter.load(Ordering::Relaxed) != 0 {
                counter.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Ends the request as failed.
    pub fn failed(mut self, now: Duration) {
        self.ended = RequestEnd::Reported;
        self.shard.last_request.store(nanos(now), Ordering::Relaxed);
        self.shard.consecutive_failures.fetch_add(1, Ordering::Relaxed);
        self.shard.failures.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.ended == RequestEnd::Abandoned {
            self.shard.abandoned.fetch_add(1, Ordering::Relaxed);
        }
        let before = self.shard.in_flight.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "a request ended that had not begun");
    }
}

/// Whole nanoseconds: five centuries of them fit, and [`NEVER`] is beyond.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NEVER - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sharding::testing;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn however_a_request_ends_it_is_no_longer_in_flight() {
        let shard = testing::shard(7, at(1));
        for end in [
            |request: InFlight| request.succeeded(at(2)),
            |request: InFlight| request.failed(at(2)),
            |request: InFlight| drop(request),
        ] {
            let (one, other) = (InFlight::begin(&shard, at(1)), InFlight::begin(&shard, at(1)));
            assert_eq!(shard.in_flight(), 2);
            end(one);
            assert_eq!(shard.in_flight(), 1);
            other.succeeded(at(3));
            assert_eq!(shard.in_flight(), 0);
        }
        assert_eq!((shard.requests(), shard.failures()), (6, 1));
    }

    #[test]
    fn a_response_clears_failures_and_a_dropped_call_is_neither_success_nor_failure() {
        let shard = testing::shard(7, at(1));
        for _ in 0..3 {
            InFlight::begin(&shard, at(2)).failed(at(3));
            drop(InFlight::begin(&shard, at(3)));
        }
        let seen = shard.observation();
        assert_eq!((seen.consecutive_failures, seen.abandoned, seen.last_success), (3, 3, None));
        assert_eq!(seen.abandoned_since, at(3));
        InFlight::begin(&shard, at(4)).succeeded(at(5));
        let seen = shard.observation();
        assert_eq!((seen.consecutive_failures, seen.abandoned, seen.last_success), (0, 0, Some(at(5))));
    }

    #[test]
    fn a_shard_is_busy_since_it_last_had_nothing_to_do() {
        let shard = testing::shard(7, at(1));
        let first = InFlight::begin(&shard, at(10));
        let second = InFlight::begin(&shard, at(20));
        assert_eq!(shard.observation().busy_since, at(10));
        first.succeeded(at(30));
        assert_eq!(shard.observation().busy_since, at(10));
        second.succeeded(at(40));
        let _third = InFlight::begin(&shard, at(50));
        assert_eq!(shard.observation().busy_since, at(50));
    }

    #[test]
    fn the_last_place_is_given_once() {
        let shard = testing::shard(7, at(1));
        let taken: Vec<_> = std::thread::scope(|threads| {
            let tries: Vec<_> = (0..8)
                .map(|_| {
                    threads.spawn(|| {
                        (0..4).filter_map(|_| InFlight::try_begin(&shard, 16, at(1))).collect::<Vec<_>>()
                    })
                })
                .collect();
            tries.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
        });
        assert_eq!((taken.len(), shard.in_flight()), (16, 16));
        drop(taken);
        assert_eq!(shard.in_flight(), 0);
    }
}
