//! The request log: the last requests of an account, and counts of all of them.
//!
//! Input: each request as it arrived and its response as it is sent. Output: the last N requests, and
//! counters and latencies by operation and by partition. Recording one costs a fraction of a microsecond and
//! does not block: each thread has a shard of its own, nothing is formatted until it is read, and the memory
//! is bounded. The control port presents it.

mod forms;
mod histogram;
mod inline_text;
mod record;
mod shard;

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

pub(crate) use forms::RequestForm;
pub(crate) use histogram::LatencyHistogram;
pub(crate) use record::{
    ActivityText, CutConnection, RequestArrival, RequestRecord, ResponseSummary, STATUS_UNANSWERED,
    ServingPartition,
};
#[cfg(test)]
pub(crate) use shard::OperationKey;
pub(crate) use shard::{OTHER, OTHER_STATUS, PartitionCounts, PartitionKey, RequestCounts};

use engine::regions::RegionId;
use forms::RequestForms;
use parking_lot::{Mutex, MutexGuard};
use record::CONNECTION_OPERATION;
use shard::Shard;
use smol_str::SmolStr;

/// How many requests the log holds by default.
pub const REQUEST_LOG_CAPACITY_DEFAULT: usize = 1_000;
/// How many requests the log can hold at most: some fifty megabytes for each busy thread.
pub const REQUEST_LOG_CAPACITY_MAX: usize = 100_000;

/// Number of shards; further threads share them.
const SHARDS: usize = 16;

/// The last requests of an account, and counts of all of them.
#[derive(Debug)]
pub(crate) struct RequestLog {
    capacity: AtomicUsize,
    /// The number of the next request; only changed under a shard's lock.
    next_number: AtomicU64,
    shards: [PaddedShard; SHARDS],
    /// Counts of requests by encoding and consistency level.
    pub(crate) forms: RequestForms,
}

/// A shard on a cache line of its own, so that threads do not share lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct PaddedShard(Mutex<Shard>);

impl Default for RequestLog {
    fn default() -> RequestLog {
        RequestLog {
            capacity: AtomicUsize::new(REQUEST_LOG_CAPACITY_DEFAULT),
            next_number: AtomicU64::new(1),
            shards: Default::default(),
            forms: RequestForms::default(),
        }
    }
}

impl RequestLog {
    /// Sets how many requests the log holds, up to [`REQUEST_LOG_CAPACITY_MAX`].
    pub(crate) fn set_capacity(&self, requests: usize) {
        // Relaxed: threads may see the new capacity a few requests late.
        self.capacity.store(requests.min(REQUEST_LOG_CAPACITY_MAX), Ordering::Relaxed);
    }

    /// Records a request and its response. `uptime` is now.
    pub(crate) fn record(
        &self,
        region: RegionId,
        arrival: RequestArrival,
        summary: ResponseSummary,
        uptime: Duration,
    ) {
        let record = RequestRecord::new(region, arrival, summary, uptime);
        // Relaxed, as in `set_capacity`.
        let capacity = self.capacity.load(Ordering::Relaxed);
        let mut shard = lock(&self.shards[thread_shard()]);
        shard.record(record, &self.next_number, capacity);
    }

    /// Records a connection that a fault rule cut off before there was a request.
    pub(crate) fn record_connection(
        &self,
        region: RegionId,
        how: CutConnection,
        rule: SmolStr,
        uptime: Duration,
    ) {
        let summary = ResponseSummary {
            operation: CONNECTION_OPERATION,
            status: how.status(),
            sub_status: 0,
            charge: 0.0,
            activity: ActivityText::new(""),
            partition: None,
            rules: vec![rule],
        };
        self.record(region, RequestArrival::connection(uptime), summary, uptime);
    }

    /// The last requests that `wanted` accepts, newest first, at most `limit`, and the number of the newest
    /// request, wanted or not. Cost grows with the capacity.
    pub(crate) fn latest(
        &self,
        limit: usize,
        wanted: impl Fn(&RequestRecord) -> bool,
    ) -> (u64, Vec<RequestRecord>) {
        let capacity = self.capacity.load(Ordering::Relaxed);
        // With all shards locked, no thread is between taking a number and recording it, so a reader that
        // continues after `newest` misses nothing. The locks also order the relaxed load.
        let all: Vec<MutexGuard<'_, Shard>> = self.shards.iter().map(lock).collect();
        let newest = self.next_number.load(Ordering::Relaxed).saturating_sub(1);
        let mut found: Vec<RequestRecord> = all.iter().flat_map(|shard| shard.requests()).cloned().collect();
        drop(all);
        found.sort_unstable_by_key(|record| std::cmp::Reverse(record.number));
        found.truncate(capacity);
        found.retain(wanted);
        found.truncate(limit);
        (newest, found)
    }

    /// The sum of all counts. Cost grows with the number of operations and partitions.
    pub(crate) fn counts(&self) -> RequestCounts {
        let mut counts = RequestCounts::default();
        for shard in &self.shards {
            lock(shard).add_to(&mut counts);
        }
        counts
    }

    /// Drops the counts of containers for which `exists` is false.
    pub(crate) fn retain_containers(&self, exists: impl Fn(&str) -> bool) {
        for shard in &self.shards {
            lock(shard).retain_containers(&exists);
        }
    }
}

/// Locks a shard, which is valid even if a thread panicked while it held the lock.
fn lock(shard: &PaddedShard) -> MutexGuard<'_, Shard> {
    shard.0.lock()
}

/// The index of the shard that this thread records in.
fn thread_shard() -> usize {
    // Relaxed: the counter only has to differ between threads.
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

    fn record_request(log: &RequestLog, path: &str, status: u16, milliseconds: u64) {
        let (request, ()) = Request::builder().uri(path).body(()).unwrap().into_parts();
        let arrival = RequestArrival::from_parts(&request, None, Duration::from_secs(1));
        let container = HeaderValue::from_static("dbs/d/colls/c");
        let summary = ResponseSummary {
            operation: "read_item",
            status,
            sub_status: 0,
            charge: 1.5,
            activity: ActivityText::new("an-id"),
            partition: Some(ServingPartition { container, range: 3 }),
            rules: Vec::new(),
        };
        let uptime = Duration::from_secs(1) + Duration::from_millis(milliseconds);
        log.record(RegionId(0), arrival, summary, uptime);
    }

    #[test]
    fn the_log_holds_the_last_requests_and_drops_older_ones() {
        let log = RequestLog::default();
        log.set_capacity(3);
        for number in 0..10 {
            record_request(&log, &format!("/dbs/d/colls/c/docs/{number}"), 200, 1);
        }
        let (newest, last) = log.latest(10, |_| true);
        let paths: Vec<&str> = last.iter().map(|record| record.path()).collect();
        assert_eq!(paths, ["/dbs/d/colls/c/docs/9", "/dbs/d/colls/c/docs/8", "/dbs/d/colls/c/docs/7"]);
        assert_eq!((newest, last[0].number), (10, 10));
        assert_eq!(log.latest(1, |record| record.number < 10).1[0].number, 9);
        log.set_capacity(0);
        record_request(&log, "/", 200, 1);
        assert!(log.latest(10, |_| true).1.is_empty());
    }

    #[test]
    fn concurrent_threads_record_every_request() {
        let log = RequestLog::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..500).for_each(|_| record_request(&log, "/dbs", 200, 1)));
            }
        });
        let (newest, last) = log.latest(5_000, |_| true);
        assert_eq!((newest, last.len()), (2_000, REQUEST_LOG_CAPACITY_DEFAULT));
        assert!(last.windows(2).all(|pair| pair[0].number == pair[1].number + 1), "the very last, in order");
        let counts = log.counts();
        let operation = &counts.operations[&OperationKey { region: RegionId(0), operation: "read_item" }];
        assert_eq!((operation.latency.count(), operation.charge), (2_000, 3_000.0));
        assert_eq!(operation.statuses, [((200, 0), 2_000)]);
    }

    #[test]
    fn partition_counts_are_dropped_with_their_container() {
        let log = RequestLog::default();
        record_request(&log, "/dbs/d/colls/c/docs/1", 200, 2);
        record_request(&log, "/dbs/d/colls/c/docs/1", 429, 2);
        let key = PartitionKey { container: "dbs/d/colls/c".into(), region: RegionId(0), range: 3 };
        let counts = log.counts();
        assert_eq!((counts.partitions[&key].latency.count(), counts.partitions[&key].throttled), (2, 1));
        log.retain_containers(|container| container != "dbs/d/colls/c");
        assert!(log.counts().partitions.is_empty());
    }
}
