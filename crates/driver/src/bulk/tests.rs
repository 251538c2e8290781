//! Bulks against a simulated container: partitions that split, throttle, lose responses and reject, in any order. The
//! seed decides everything.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use proptest::prelude::*;
use protocol::batch::{BatchOperationType, BatchResult, parse_operations, write_results};
use protocol::container::PartitionKeyDefinition;
use protocol::partition::{EpkRange, PartitionKey, effective_key, even_split};
use protocol::partition_range::{PartitionKeyRange, RangeId};
use protocol::resource_id::{ContainerRid, DatabaseRid};
use protocol::status::{Status, SubStatus};

use super::dispatch::{Dispatch, PartitionLayout, Request};
use super::operation::write_batch;
use super::{BulkOperation, BulkOptions, BulkResult};
use crate::cache::{Container, ContainerDefinition, RangeFeed, RangePage, read_ranges};
use crate::clock::ManualTime;
use crate::error::{Error, ErrorKind, Result};
use crate::operation::ContainerName;

/// What may go wrong, each in so many of a hundred requests or operations.
#[derive(Clone, Copy, Debug)]
struct FaultRates {
    split: u64,
    rejected: u64,
    lost_before: u64,
    lost_after: u64,
    throttled: u64,
    busy: u64,
}

const NO_FAULTS: FaultRates =
    FaultRates { split: 0, rejected: 0, lost_before: 0, lost_after: 0, throttled: 0, busy: 0 };

struct Simulation {
    rng: fastrand::Rng,
    faults: FaultRates,
    time: ManualTime,
    container: Arc<Container>,
    /// Every range that there ever was, and those that are there.
    listed: Vec<PartitionKeyRange>,
    /// How often each item was written.
    stored: BTreeMap<String, u32>,
    /// Responses in flight, in no order.
    in_progress: Vec<(Request, Result<Bytes>)>,
    layouts: usize,
    requests: usize,
}

struct Listed(Vec<PartitionKeyRange>);

impl RangeFeed for Listed {
    async fn page(&self, _: Option<&str>, _: Option<&str>) -> Result<RangePage> {
        Ok(RangePage::Ranges { ranges: self.0.clone(), etag: None, continuation: None })
    }
}

fn definition() -> PartitionKeyDefinition {
    PartitionKeyDefinition::hash("/pk").expect("a path")
}

fn rid() -> ContainerRid {
    ContainerRid { database: DatabaseRid(1), container: 1 }
}

impl Simulation {
    fn new(seed: u64, faults: FaultRates, partitions: usize) -> Simulation {
        let ranges = even_split(&definition(), partitions).into_iter().zip(0..);
        let definition = ContainerDefinition { rid: "rid".to_owned(), partition_key: definition() };
        Simulation {
            rng: fastrand::Rng::with_seed(seed),
            faults,
            time: ManualTime::new(),
            container: Arc::new(Container::new(ContainerName::new("d", "c"), definition)),
            listed: ranges.map(|(range, id)| PartitionKeyRange::new(rid(), RangeId(id), range)).collect(),
            stored: BTreeMap::new(),
            in_progress: Vec::new(),
            layouts: 0,
            requests: 0,
        }
    }

    /// A number below `below`.
    fn random(&mut self, below: u64) -> u64 {
        self.rng.u64(..below)
    }

    fn happens(&mut self, percent: u64) -> bool {
        self.random(100) < percent
    }

    fn live(&self) -> Vec<&PartitionKeyRange> {
        let gone: BTreeSet<RangeId> = self.listed.iter().flat_map(|range| range.parents.clone()).collect();
        self.listed.iter().filter(|range| !gone.contains(&range.id)).collect()
    }

    fn layout(&mut self) -> PartitionLayout {
        self.layouts += 1;
        let ranges = read_ranges(None, &Listed(self.listed.clone())).now_or_never().expect("no wait");
        PartitionLayout {
            container: Arc::clone(&self.container),
            ranges: Arc::new(ranges.expect("a layout")),
        }
    }

    /// Divides a partition at the key of some item.
    fn split(&mut self) {
        let at =
            effective_key(&definition(), &PartitionKey::single(format!("k{}", self.random(1000)).as_str()));
        let Some(parent) = self.live().into_iter().find(|live| live.range().contains(&at)).cloned() else {
            return;
        };
        if parent.range().min == at {
            return;
        }
        let first = self.listed.len() as u32;
        let bounds = [(parent.range().min, at.clone()), (at, parent.range().max)];
        for (id, (min, max)) in (first..).zip(bounds) {
            let mut child = PartitionKeyRange::new(rid(), RangeId(id), EpkRange::new(min, max));
            child.parents = parent.parents.iter().copied().chain([parent.id]).collect();
            self.listed.push(child);
        }
    }

    /// What the service does with a request.
    fn serve(&mut self, range: RangeId, body: &Bytes) -> Result<Bytes> {
        self.requests += 1;
        if self.happens(self.faults.split) {
            self.split();
        }
        if self.happens(self.faults.rejected) {
            return Err(Error::of_response(Status(429), SubStatus(3200), b"")
                .with_retry_after(Duration::from_millis(30)));
        }
        if self.happens(self.faults.lost_before) {
            return Err(Error::new(ErrorKind::Unavailable, "not sent"));
        }
        let Some(owner) = self.live().into_iter().find(|live| live.id == range).cloned() else {
            return Err(Error::of_response(Status(410), SubStatus::PARTITION_KEY_RANGE_GONE, b""));
        };
        let operations = match parse_operations(body) {
            Ok(operations) => operations,
            Err(bad) => {
                return Err(Error::of_response(bad.status(), SubStatus::NONE, bad.to_string().as_bytes()));
            }
        };
        let mut results = Vec::new();
        for operation in &operations {
            let key = operation.partition_key_text().expect("a key");
            let id = key.trim_matches(|c: char| "[]\"".contains(c)).to_owned();
            assert!(
                owner.range().contains(&effective_key(&definition(), &PartitionKey::single(id.as_str())))
            );
            let result = |status| BatchResult::<&[u8]>::new(Status(status), 5.0);
            results.push(if self.happens(self.faults.throttled) {
                BatchResult { retry_after_ms: Some(10), sub_status: SubStatus(3200), ..result(429) }
            } else if self.happens(self.faults.busy) {
                result(449)
            } else if operation.operation_type == BatchOperationType::Create && self.stored.contains_key(&id)
            {
                result(409)
            } else {
                *self.stored.entry(id).or_default() += 1;
                result(201)
            });
        }
        if self.happens(self.faults.lost_after) {
            return Err(Error::new(ErrorKind::Undecided, "no response came"));
        }
        Ok(write_results(&results).into())
    }

    /// Runs a bulk to its end and gives its results.
    fn run(&mut self, dispatch: &mut Dispatch, operations: Vec<BulkOperation>) -> Vec<BulkResult> {
        let clock = self.time.clock();
        let mut input = operations.into_iter();
        let (mut results, mut idle) = (Vec::new(), 0);
        while !dispatch.is_done() {
            let now = clock.now();
            while dispatch.has_room() {
                match input.next() {
                    Some(operation) => dispatch.accept(Ok(operation), now),
                    None => {
                        dispatch.end_input();
                        break;
                    }
                }
            }
            if dispatch.needs_layout(now).is_some() {
                let layout = self.layout();
                dispatch.update_layout(Ok(layout), now, 0.5);
            }
            while let Some(request) = dispatch.next_request(now) {
                let body = write_batch(request.operations.iter().map(|pending| &pending.operation));
                let response = self.serve(request.range, &body);
                self.in_progress.push((request, response));
            }
            if self.in_progress.is_empty() {
                idle += 1;
                assert!(idle < 100_000, "nothing happens: {dispatch:?}");
                if let Some(at) = dispatch.wake_at() {
                    self.time.advance(at.saturating_duration_since(now));
                }
            } else {
                let length = self.in_progress.len() as u64;
                let (request, response) = self.in_progress.swap_remove(self.rng.usize(..length as usize));
                let took = 1 + self.random(20);
                self.time.advance(Duration::from_millis(took));
                dispatch.complete(request, response, clock.now(), 0.5);
            }
            while let Some(result) = dispatch.next_result() {
                results.push(result);
            }
        }
        results
    }
}

fn item(number: usize) -> (PartitionKey, String) {
    let id = format!("k{number}");
    (PartitionKey::single(id.as_str()), format!("{{\"id\":\"{id}\"}}"))
}

fn upserts(count: usize) -> Vec<BulkOperation> {
    (0..count).map(item).map(|(key, body)| BulkOperation::upsert(key, body).repeatable()).collect()
}

fn creates(count: usize) -> Vec<BulkOperation> {
    (0..count).map(item).map(|(key, body)| BulkOperation::create(key, body)).collect()
}

fn small(options: BulkOptions) -> BulkOptions {
    options.with_waiting_max(NonZeroUsize::new(250).expect("not zero"))
}

#[track_caller]
fn assert_each_once(results: &[BulkResult], count: usize) {
    let indices: BTreeSet<u64> = results.iter().map(|result| result.index).collect();
    assert_eq!((results.len(), indices.len()), (count, count), "each has one result");
    assert!(indices.into_iter().eq(0..count as u64));
}

#[test]
fn without_faults_requests_are_full_and_nothing_is_sent_twice() {
    let mut simulation = Simulation::new(1, NO_FAULTS, 4);
    let mut dispatch = Dispatch::new(BulkOptions::new());
    let results = simulation.run(&mut dispatch, upserts(5000));
    assert_each_once(&results, 5000);
    assert!(results.iter().all(|result| result.outcome.is_ok() && result.attempts == 1));
    let summary = dispatch.summary(simulation.time.clock().now());
    assert_eq!((summary.succeeded, summary.sent, summary.throttled), (5000, 5000, 0));
    assert!(simulation.requests <= 58, "{} requests", simulation.requests);
    assert_eq!((simulation.layouts, summary.windows.len()), (1, 4));
    assert!((summary.charge - 25_000.0).abs() < 1e-6);
}

#[test]
fn one_bad_operation_fails_alone() {
    let mut simulation = Simulation::new(1, NO_FAULTS, 1);
    let mut operations = upserts(250);
    let (key, _) = item(77);
    operations[77] = BulkOperation::upsert(key, "{oops");
    let results = simulation.run(&mut Dispatch::new(BulkOptions::new()), operations);
    assert_each_once(&results, 250);
    let failed: Vec<u64> =
        results.iter().filter(|result| result.outcome.is_err()).map(|result| result.index).collect();
    assert_eq!(failed, [77]);
    assert_eq!(simulation.stored.len(), 249);
}

#[test]
fn a_conflict_an_earlier_attempt_may_have_caused_is_undecided() {
    let faults = FaultRates { lost_after: 30, ..NO_FAULTS };
    let mut simulation = Simulation::new(5, faults, 3);
    simulation.stored.insert("k3".to_owned(), 1);
    let mut dispatch = Dispatch::new(BulkOptions::new());
    let operations = creates(2000).into_iter().map(BulkOperation::repeatable).collect();
    let results = simulation.run(&mut dispatch, operations);
    assert_each_once(&results, 2000);
    let kind = |result: &BulkResult| result.outcome.as_ref().err().map(Error::kind);
    let undecided = results.iter().filter(|result| kind(result) == Some(ErrorKind::Undecided)).count();
    assert!(undecided > 0);
    assert!(simulation.stored.values().all(|times| *times == 1), "a create happens once");
    for result in &results {
        match kind(result) {
            None | Some(ErrorKind::Undecided) => {}
            Some(kind) => assert_eq!((kind, result.index), (ErrorKind::Conflict, 3)),
        }
    }
}

#[test]
fn what_may_not_be_repeated_is_sent_once() {
    let faults = FaultRates { lost_after: 30, ..NO_FAULTS };
    let mut simulation = Simulation::new(9, faults, 2);
    let results = simulation.run(&mut Dispatch::new(BulkOptions::new()), creates(3000));
    assert_each_once(&results, 3000);
    for result in results {
        assert_eq!(result.attempts, 1);
        if let Err(error) = result.outcome {
            assert_eq!(error.kind(), ErrorKind::Undecided);
        }
    }
    assert_eq!(simulation.stored.len(), 3000);
}

#[test]
fn a_partition_that_never_takes_anything_is_given_up_in_time() {
    for (faults, kind) in [
        (FaultRates { rejected: 100, ..NO_FAULTS }, ErrorKind::Throttled),
        (FaultRates { lost_before: 100, ..NO_FAULTS }, ErrorKind::Unavailable),
        (FaultRates { lost_after: 100, ..NO_FAULTS }, ErrorKind::Undecided),
    ] {
        let mut simulation = Simulation::new(2, faults, 2);
        let results = simulation.run(&mut Dispatch::new(BulkOptions::new()), upserts(150));
        assert_each_once(&results, 150);
        for result in results {
            assert_eq!(result.outcome.expect_err("never").kind(), kind);
        }
        let elapsed = simulation.time.elapsed();
        assert!(
            elapsed >= Duration::from_secs(60) && elapsed < Duration::from_secs(240),
            "{kind}: {elapsed:?}"
        );
    }
}

#[test]
fn a_container_that_is_not_there_fails_every_operation_with_that() {
    let simulation = Simulation::new(1, NO_FAULTS, 1);
    let now = simulation.time.clock().now();
    let mut dispatch = Dispatch::new(BulkOptions::new());
    upserts(3).into_iter().for_each(|operation| dispatch.accept(Ok(operation), now));
    dispatch.accept(Err(Error::new(ErrorKind::BadRequest, "not JSON")), now);
    dispatch.end_input();
    assert!(dispatch.needs_layout(now).is_some() && dispatch.needs_layout(now).is_none(), "asked for once");
    dispatch.update_layout(Err(Error::new(ErrorKind::Unavailable, "later")), now, 0.5);
    assert!(dispatch.needs_layout(now).is_none());
    let later = dispatch.wake_at().expect("it is asked again");
    assert!(dispatch.needs_layout(later).is_some());
    dispatch.update_layout(Err(Error::new(ErrorKind::NotFound, "no such container")), later, 0.5);
    let results: Vec<_> = std::iter::from_fn(|| dispatch.next_result()).collect();
    assert_each_once(&results, 4);
    assert!(dispatch.is_done());
    let kinds: Vec<_> =
        results.iter().map(|result| result.outcome.as_ref().expect_err("none").kind()).collect();
    assert_eq!(kinds[1..], [ErrorKind::NotFound; 3]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn no_operation_is_lost_or_completed_twice_under_any_faults(
        seed in any::<u64>(),
        partitions in 1_usize..5,
        (split, rejected, lost_before, lost_after) in (0_u64..15, 0_u64..30, 0_u64..20, 0_u64..20),
        (throttled, busy) in (0_u64..60, 0_u64..10),
    ) {
        let faults = FaultRates { split, rejected, lost_before, lost_after, throttled, busy };
        let mut simulation = Simulation::new(seed, faults, partitions);
        let mut dispatch = Dispatch::new(small(BulkOptions::new()));
        let results = simulation.run(&mut dispatch, upserts(600));
        assert_each_once(&results, 600);
        let summary = dispatch.summary(simulation.time.clock().now());
        prop_assert_eq!(summary.succeeded + summary.failed, 600);
        for result in &results {
            prop_assert!(result.outcome.is_ok(), "{:?}", result);
        }
        prop_assert_eq!(simulation.stored.len(), 600, "what is reported done was done");
    }
}
