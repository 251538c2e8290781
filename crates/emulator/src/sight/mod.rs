//! What the account did: the last requests, and counts of all of them.
//!
//! In: each request as it arrived and its answer as it leaves. Out: the last N requests, counters and
//! latencies by operation and by partition. Writing one down costs a fraction of a microsecond and
//! waits for nobody: threads have shards of their own, nothing is formatted until somebody asks, and
//! what is kept is bounded. How it is shown is the control port's affair.

mod histogram;
mod request;
mod shard;
mod text;

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) use histogram::Histogram;
pub(crate) use request::{ActivityText, Answerer, Arrival, Seen, Sighting, UNANSWERED};
#[cfg(test)]
pub(crate) use shard::OperationKey;
pub(crate) use shard::{Counts, OTHER, OTHER_STATUS, PartitionCounts, PartitionKey};

use engine::regions::RegionId;
use shard::Shard;

/// Requests kept unless somebody asks for more or fewer.
pub const REQUESTS_KEPT_DEFAULT: usize = 1_000;
/// Requests that can be kept at the most: some fifty megabytes for each busy thread.
pub const REQUESTS_KEPT_MAX: usize = 100_000;

/// Threads beyond these share.
const SHARDS: usize = 16;

/// What the account did.
#[derive(Debug)]
pub(crate) struct Sight {
    kept: AtomicUsize,
    /// Numbers of requests; taken within a shard's lock.
    next: AtomicU64,
    shards: [Padded; SHARDS],
}

/// On a cache line of its own: neighbours are other threads'.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded(Mutex<Shard>);

impl Default for Sight {
    fn default() -> Sight {
        Sight {
            kept: AtomicUsize::new(REQUESTS_KEPT_DEFAULT),
            next: AtomicU64::new(1),
            shards: Default::default(),
        }
    }
}

impl Sight {
    /// Keeps so many of the last requests, or as many as can be kept.
    pub(crate) fn keep(&self, requests: usize) {
        self.kept.store(requests.min(REQUESTS_KEPT_MAX), Ordering::Relaxed);
    }

    /// Writes down a request and its answer. `uptime` is now.
    pub(crate) fn answered(&self, region: RegionId, arrival: Arrival, seen: Seen, uptime: Duration) {
        let sighting = Sighting::new(region, arrival, seen, uptime);
        let kept = self.kept.load(Ordering::Relaxed);
        let mut shard = lock(&self.shards[own_shard()]);
        shard.write_down(sighting, &self.next, kept);
    }

    /// The last requests that `wanted` accepts, newest first, `limit` at the most, and the number of
    /// the newest request there is, wanted or not. Grows with the number that is kept.
    pub(crate) fn last(&self, limit: usize, wanted: impl Fn(&Sighting) -> bool) -> (u64, Vec<Sighting>) {
        let kept = self.kept.load(Ordering::Relaxed);
        // With all shards in hand nobody is between taking a number and writing it down, so a reader
        // that goes on from `newest` misses nothing.
        let all: Vec<MutexGuard<'_, Shard>> = self.shards.iter().map(lock).collect();
        let newest = self.next.load(Ordering::Relaxed).saturating_sub(1);
        let mut found: Vec<Sighting> = all.iter().flat_map(|shard| shard.requests()).cloned().collect();
        drop(all);
        found.sort_unstable_by_key(|sighting| std::cmp::Reverse(sighting.number));
        found.truncate(kept);
        found.retain(wanted);
        found.truncate(limit);
        (newest, found)
    }

    /// Everything that was counted. Grows with the number of operations and partitions seen.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for shard in &self.shards {
            lock(shard).add_to(&mut counts);
        }
        counts
    }

    /// Forgets the counts of containers that `exists` denies.
    pub(crate) fn forget_containers(&self, exists: impl Fn(&str) -> bool) {
        for shard in &self.shards {
            lock(shard).forget_containers(&exists);
        }
    }
}

/// A shard is valid after each of its steps.
fn lock(shard: &Padded) -> MutexGuard<'_, Shard> {
    shard.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which shard this thread writes to.
fn own_shard() -> usize {
    static THREADS: AtomicU32 = AtomicU32::new(0);
    thread_local! {
        static OWN: Cell<usize> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed) as usize % SHARDS);
    }
    OWN.get()
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, Request};

    use super::*;

    fn see(sight: &Sight, path: &str, status: u16, milliseconds: u64) {
        let (request, ()) = Request::builder().uri(path).body(()).unwrap().into_parts();
        let arrival = Arrival::of(&request, None, Duration::from_secs(1));
        let container = HeaderValue::from_static("dbs/d/colls/c");
        let seen = Seen {
            operation: "read_item",
            status,
            sub_status: 0,
            charge: 1.5,
            activity: ActivityText::new("an-id"),
            answerer: Some(Answerer { container, range: 3 }),
            rules: Vec::new(),
        };
        let uptime = Duration::from_secs(1) + Duration::from_millis(milliseconds);
        sight.answered(RegionId(0), arrival, seen, uptime);
    }

    #[test]
    fn the_last_requests_are_kept_and_the_older_ones_forgotten() {
        let sight = Sight::default();
        sight.keep(3);
        for number in 0..10 {
            see(&sight, &format!("/dbs/d/colls/c/docs/{number}"), 200, 1);
        }
        let (newest, last) = sight.last(10, |_| true);
        let paths: Vec<&str> = last.iter().map(|sighting| sighting.path()).collect();
        assert_eq!(paths, ["/dbs/d/colls/c/docs/9", "/dbs/d/colls/c/docs/8", "/dbs/d/colls/c/docs/7"]);
        assert_eq!((newest, last[0].number), (10, 10));
        assert_eq!(sight.last(1, |sighting| sighting.number < 10).1[0].number, 9);
        sight.keep(0);
        see(&sight, "/", 200, 1);
        assert!(sight.last(10, |_| true).1.is_empty());
    }

    #[test]
    fn threads_write_side_by_side_and_nothing_is_lost() {
        let sight = Sight::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..500).for_each(|_| see(&sight, "/dbs", 200, 1)));
            }
        });
        let (newest, last) = sight.last(5_000, |_| true);
        assert_eq!((newest, last.len()), (2_000, REQUESTS_KEPT_DEFAULT));
        assert!(last.windows(2).all(|pair| pair[0].number == pair[1].number + 1), "the very last, in order");
        let counts = sight.counts();
        let operation = &counts.operations[&OperationKey { region: RegionId(0), operation: "read_item" }];
        assert_eq!((operation.latency.count(), operation.charge), (2_000, 3_000.0));
        assert_eq!(operation.statuses, [((200, 0), 2_000)]);
    }

    #[test]
    fn partitions_are_counted_until_their_container_is_gone() {
        let sight = Sight::default();
        see(&sight, "/dbs/d/colls/c/docs/1", 200, 2);
        see(&sight, "/dbs/d/colls/c/docs/1", 429, 2);
        let key = PartitionKey { container: "dbs/d/colls/c".into(), region: RegionId(0), range: 3 };
        let counts = sight.counts();
        assert_eq!((counts.partitions[&key].latency.count(), counts.partitions[&key].throttled), (2, 1));
        sight.forget_containers(|container| container != "dbs/d/colls/c");
        assert!(sight.counts().partitions.is_empty());
    }
}
