//! The loop, over scripted regions: each responds as the test says, after as long as it says, in time that moves
//! only when everything waits.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use azure_core::http::headers::Headers;
use bytes::Bytes;
use futures::FutureExt;
use perihelion_http::trace::{RequestTrace, Sent};
use protocol::container::PartitionKeyDefinition;
use protocol::headers as names;
use protocol::partition::PartitionKey;
use protocol::status::Status;

mod silent_regions;

use super::*;
use crate::cache::{Container, ContainerDefinition};
use crate::clock::{Clock, ManualTime};
use crate::diagnostics::{ExecutionContext, SendRecord};
use crate::error::ErrorKind;
use crate::gateway::{GatewayOutcome, GatewayRequest, GatewayResult};
use crate::hedging::HedgingBudget;
use crate::operation::{ContainerName, OperationKind, Precondition, Target};
use crate::options::{CircuitBreakerConfig, DriverSettings, OperationOptions, TimeoutOptions};
use crate::routing::test_accounts::{account, properties};
use crate::routing::{Endpoint, StateCell};
use crate::transport::TransportResponse;

const MS: Duration = Duration::from_millis(1);

/// What a region does with one request.
#[derive(Clone, Copy, Debug)]
enum Reply {
    /// Responds with this status and sub-status.
    Response(u16, u32),
    /// Fails because the connection is lost.
    Lost(Sent),
    /// Is never metadata_calls, because the credential gives no token.
    NoToken,
    /// Takes the request and never responds.
    Silent,
    /// Responds with 429 at once, and the attempt waits as it is told.
    Throttled,
}

/// A region's behaviour: replies one after another, the last one for ever, each after a while.
#[derive(Clone, Debug)]
struct Script {
    after: Duration,
    replies: VecDeque<Reply>,
}

struct Fixture {
    time: ManualTime,
    clock: Clock,
    account: StateCell<AccountState>,
    partitions: StateCell<PartitionState>,
    budget: HedgingBudget,
    scripts: Mutex<HashMap<String, Script>>,
    /// Where requests went, and why.
    sent: Mutex<Vec<(String, ExecutionContext)>>,
    /// What was metadata_calls for besides.
    metadata_calls: Mutex<Vec<&'static str>>,
    /// The write region an account that is metadata_calls again names.
    new_hub: Option<&'static str>,
    /// How long it takes to read the account again.
    refresh_takes: Duration,
    container: Arc<Container>,
}

impl Fixture {
    fn new(writes: &[&str], scripts: &[(&str, Duration, &[Reply])]) -> Fixture {
        let time = ManualTime::new();
        let partition_key = PartitionKeyDefinition::hash("/pk").expect("a path");
        let definition = ContainerDefinition { rid: "rid".into(), partition_key };
        let script = |(region, after, replies): &(&str, Duration, &[Reply])| {
            ((*region).to_owned(), Script { after: *after, replies: replies.iter().copied().collect() })
        };
        Fixture {
            clock: time.clock(),
            time,
            account: StateCell::new(account(writes, &["A", "B", "C"])),
            partitions: StateCell::new(PartitionState::new(CircuitBreakerConfig::default())),
            budget: HedgingBudget::default(),
            scripts: Mutex::new(scripts.iter().map(script).collect()),
            sent: Mutex::default(),
            metadata_calls: Mutex::default(),
            new_hub: None,
            refresh_takes: Duration::ZERO,
            container: Arc::new(Container::new(ContainerName::new("d", "c"), definition)),
        }
    }

    /// Carries out an operation, moving time to the next wait whenever nothing else can happen.
    fn run(&self, operation: &Operation, options: OperationOptions) -> (Result<Response>, Duration) {
        let driver = DriverSettings::default();
        let settings = driver.for_operation(Some(&options)).expect("valid");
        let before = self.time.elapsed();
        let mut execution = Box::pin(execute(self, operation, &settings, self.clock.now()));
        loop {
            match (&mut execution).now_or_never() {
                Some(result) => return (result, self.time.elapsed() - before),
                None => assert!(self.time.advance_to_next().is_some(), "the operation waits for nothing"),
            }
        }
    }

    fn regions(&self) -> Vec<String> {
        self.sent.lock().expect("unpoisoned").iter().map(|(region, _)| region.clone()).collect()
    }

    fn contexts(&self) -> Vec<ExecutionContext> {
        self.sent.lock().expect("unpoisoned").iter().map(|(_, context)| *context).collect()
    }

    fn metadata_calls(&self) -> Vec<&'static str> {
        self.metadata_calls.lock().expect("unpoisoned").clone()
    }

    fn reply(&self, region: &str) -> (Duration, Reply) {
        let mut scripts = self.scripts.lock().expect("unpoisoned");
        let script = scripts
            .get_mut(region)
            .unwrap_or_else(|| panic!("{region} was not expected to be metadata_calls"));
        let reply = if script.replies.len() > 1 {
            script.replies.pop_front()
        } else {
            script.replies.front().copied()
        };
        (script.after, reply.expect("a script has a reply"))
    }
}

impl PipelineContext for Fixture {
    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn random(&self) -> f64 {
        1.0
    }

    fn account(&self) -> &StateCell<AccountState> {
        &self.account
    }

    fn partitions(&self) -> &StateCell<PartitionState> {
        &self.partitions
    }

    fn hedging_budget(&self) -> &HedgingBudget {
        &self.budget
    }

    async fn send(&self, request: GatewayRequest<'_>, settings: &OperationSettings) -> GatewayResult {
        let region = request.endpoint.region().as_str().to_owned();
        self.sent.lock().expect("unpoisoned").push((region.clone(), request.context));
        let (after, reply) = self.reply(&region);
        let started = self.clock.now();
        request.progress.expect("the pipeline asks").requested();
        let timeout = settings.timeouts.attempt;
        let after = if let Reply::Silent | Reply::Throttled = reply { timeout } else { after };
        if let Reply::Throttled = reply {
            request.progress.expect("the pipeline asks").responded();
        }
        let until = (started + after).min(request.deadline);
        self.clock.sleep_until(until).await;
        if let (Reply::Response(..), true) = (reply, started + after <= request.deadline) {
            request.endpoint.last_response().record(self.clock.now());
            request.progress.expect("the pipeline asks").responded();
        }
        let outcome = match reply {
            _ if started + after > request.deadline => GatewayOutcome::DeadlineExceeded { sent: Sent::Sent },
            Reply::Response(status, sub_status) => {
                let mut headers = Headers::new();
                headers.insert(names::SUB_STATUS, sub_status.to_string());
                headers.insert(names::SESSION_TOKEN, "0:-1#5");
                let response = TransportResponse::new(Status(status), headers.into(), Bytes::new());
                if response.status.is_success() {
                    GatewayOutcome::Success(response)
                } else {
                    GatewayOutcome::ServiceError(response)
                }
            }
            Reply::Lost(sent) => {
                let error =
                    azure_core::Error::with_message(azure_core::error::ErrorKind::Io, "connection reset");
                GatewayOutcome::NoResponse { error, sent }
            }
            Reply::Silent | Reply::Throttled => {
                let error = azure_core::Error::with_message(azure_core::error::ErrorKind::Io, "no response");
                GatewayOutcome::NoResponse { error, sent: Sent::Sent }
            }
            Reply::NoToken => {
                let error =
                    azure_core::Error::with_message(azure_core::error::ErrorKind::Credential, "no token");
                GatewayOutcome::NoResponse { error, sent: Sent::NotSent }
            }
        };
        let record = SendRecord {
            started,
            took: after,
            status: match outcome {
                GatewayOutcome::Success(ref response) | GatewayOutcome::ServiceError(ref response) => {
                    Some((response.status, response.sub_status))
                }
                GatewayOutcome::NoResponse { .. } | GatewayOutcome::DeadlineExceeded { .. } => None,
            },
            charge: 1.0,
            sent: Sent::Sent,
            shard: None,
            waited: Duration::ZERO,
            exchange: RequestTrace::started(),
        };
        GatewayResult { outcome, last: Some(record), earlier: Vec::new() }
    }

    async fn probe(&self, endpoint: &Endpoint, until: Instant) -> bool {
        self.metadata_calls.lock().expect("unpoisoned").push("probe");
        let is_silent = self
            .scripts
            .lock()
            .expect("unpoisoned")
            .get(endpoint.region().as_str())
            .is_none_or(|script| matches!(script.replies.front(), Some(Reply::Silent)));
        if is_silent {
            self.clock.sleep_until(until).await;
        }
        !is_silent
    }

    async fn locate(&self, operation: &Operation, _: Instant) -> Result<Option<Location>> {
        let partition = crate::routing::test_partitions::partition(0);
        let location = Location {
            container: Arc::clone(&self.container),
            ranges: None,
            partition: Some(partition),
            bounds: None,
        };
        Ok(operation.target().container_name().map(|_| location))
    }

    async fn refresh_account(&self, deadline: Instant) {
        self.clock.sleep_until(deadline.min(self.clock.after(self.refresh_takes))).await;
        self.metadata_calls.lock().expect("unpoisoned").push("account");
        if let Some(hub) = self.new_hub {
            self.account
                .update(|account| account.with_properties(&properties(&[hub], &["A", "B", "C"]), &[]));
        }
    }

    async fn refresh_partitions(&self, _: &Location, _: Instant) {
        self.metadata_calls.lock().expect("unpoisoned").push("partitions");
    }

    fn forget_container(&self, _: &Arc<Container>) {
        self.metadata_calls.lock().expect("unpoisoned").push("forget");
    }
}

fn key() -> PartitionKey {
    PartitionKey::single("k")
}

fn read() -> Operation {
    Operation::read_item(&ContainerName::new("d", "c"), key(), "i")
}

fn create() -> Operation {
    Operation::create_item(&ContainerName::new("d", "c"), key(), "{}")
}

fn within(timeout: Duration) -> OperationOptions {
    OperationOptions::new().with_timeouts(TimeoutOptions::new().with_end_to_end(timeout))
}

fn usual() -> OperationOptions {
    within(Duration::from_secs(60))
}

#[track_caller]
fn failed(result: Result<Response>) -> ErrorKind {
    result.expect_err("it should have failed").kind()
}

#[test]
fn a_response_ends_the_operation_and_updates_the_session() {
    let fixture = Fixture::new(&["A"], &[("A", 3 * MS, &[Reply::Response(200, 0)])]);
    let (result, took) = fixture.run(&read(), usual());
    let response = result.expect("a response");
    assert_eq!((response.status(), took), (Status::OK, 3 * MS));
    assert_eq!(fixture.contexts(), [ExecutionContext::Initial]);
    assert_eq!(response.diagnostics().totals().attempts, 1);
    assert!(fixture.container.session().token(crate::session::SessionScope::Unknown).is_some());
}

#[test]
fn a_read_goes_on_in_the_next_region_and_the_partition_is_remembered() {
    let fixture =
        Fixture::new(&["A"], &[("A", MS, &[Reply::Response(503, 0)]), ("B", MS, &[Reply::Response(200, 0)])]);
    for _ in 0..2 {
        let (result, took) = fixture.run(&read(), usual());
        assert_eq!((result.expect("a response").status(), took), (Status::OK, 2 * MS));
    }
    assert_eq!(fixture.regions(), ["A", "B", "A", "B"]);
    // Two failed reads opened the breaker.
    let (result, _) = fixture.run(&read(), usual());
    assert!(result.is_ok());
    assert_eq!(fixture.regions()[4..], ["B"]);
    use ExecutionContext::{Failover, Initial};
    assert_eq!(fixture.contexts(), [Initial, Failover, Initial, Failover, Initial]);
}

#[test]
fn a_region_that_cannot_be_reached_is_avoided_by_all_operations() {
    let fixture = Fixture::new(
        &["A"],
        &[("A", MS, &[Reply::Lost(Sent::NotSent)]), ("B", MS, &[Reply::Response(200, 0)])],
    );
    assert!(fixture.run(&read(), usual()).0.is_ok());
    assert!(fixture.run(&read(), usual()).0.is_ok());
    assert_eq!(fixture.regions(), ["A", "B", "B"]);
}

#[test]
fn a_write_follows_the_account_to_its_new_region() {
    let mut fixture =
        Fixture::new(&["A"], &[("A", MS, &[Reply::Response(403, 3)]), ("B", MS, &[Reply::Response(201, 0)])]);
    fixture.new_hub = Some("B");
    let (result, took) = fixture.run(&create(), usual());
    assert!(result.is_ok());
    assert_eq!(took, 2 * MS, "the first retry is at once");
    assert_eq!(
        (fixture.regions(), fixture.metadata_calls()),
        (vec!["A".to_owned(), "B".to_owned()], vec!["account"])
    );
}

#[test]
fn where_partitions_fail_over_a_write_follows_its_partition_alone() {
    let fixture =
        Fixture::new(&["A"], &[("A", MS, &[Reply::Response(403, 3)]), ("B", MS, &[Reply::Response(201, 0)])]);
    let mut announced = properties(&["A"], &["A", "B", "C"]);
    announced.enable_per_partition_failover_behavior = true;
    fixture.account.update(|account| account.with_properties(&announced, &[]));
    assert!(fixture.run(&create(), usual()).0.is_ok());
    assert!(fixture.run(&create(), usual()).0.is_ok());
    assert_eq!(fixture.regions(), ["A", "B", "B"], "the second write knows where its partition is");
    assert!(!fixture.account.snapshot().is_unavailable(&Region::new("A"), false), "other partitions stay");
}

#[test]
fn a_credential_that_gives_no_token_says_nothing_about_the_region() {
    let fixture = Fixture::new(&["A"], &[("A", MS, &[Reply::NoToken])]);
    let (result, _) = fixture.run(&create(), usual());
    assert_eq!(failed(result), ErrorKind::Unauthenticated);
    assert_eq!(fixture.regions(), ["A"]);
    assert!(!fixture.account.snapshot().is_unavailable(&Region::new("A"), false));
}

#[test]
fn a_write_that_no_region_takes_waits_five_seconds_in_all() {
    let fixture = Fixture::new(
        &["A"],
        &[("A", Duration::ZERO, &[Reply::Response(403, 3), Reply::Response(403, 1008)])],
    );
    let (result, took) = fixture.run(&create(), usual());
    assert_eq!(failed(result), ErrorKind::Unavailable);
    assert!(took > Duration::from_secs(4) && took <= Duration::from_secs(5), "{took:?}");
}

#[test]
fn a_read_behind_its_session_goes_to_the_region_that_has_every_write() {
    let fixture = Fixture::new(
        &["C"],
        &[("A", MS, &[Reply::Response(404, 1002)]), ("C", MS, &[Reply::Response(200, 0)])],
    );
    assert!(fixture.run(&read(), usual()).0.is_ok());
    assert_eq!(fixture.regions(), ["A", "C"]);
}

#[test]
fn on_multi_write_accounts_each_region_is_tried_once_before_any_twice() {
    let behind = &[Reply::Response(404, 1002)][..];
    let fixture = Fixture::new(&["A", "B", "C"], &[("A", MS, behind), ("B", MS, behind), ("C", MS, behind)]);
    let (result, _) = fixture.run(&read(), usual());
    assert_eq!(failed(result), ErrorKind::SessionUnavailable);
    assert_eq!(fixture.regions(), ["A", "B", "C", "A", "B"]);
}

#[test]
fn a_write_that_may_have_been_received_is_undecided_after_one_attempt() {
    for reply in [
        Reply::Lost(Sent::MaybeSent),
        Reply::Lost(Sent::Sent),
        Reply::Response(500, 0),
        Reply::Response(408, 0),
    ] {
        let fixture = Fixture::new(&["A", "B", "C"], &[("A", MS, &[reply])]);
        let (result, _) = fixture.run(&create(), usual());
        assert_eq!(failed(result), ErrorKind::Undecided, "{reply:?}");
        assert_eq!(fixture.regions(), ["A"]);
    }
}

#[test]
fn what_a_repeated_write_may_have_caused_itself_is_not_called_a_conflict() {
    let fixture = Fixture::new(
        &["A", "B", "C"],
        &[("A", MS, &[Reply::Lost(Sent::Sent)]), ("B", MS, &[Reply::Response(409, 0)])],
    );
    let (result, _) = fixture.run(&create().repeatable(), usual());
    assert_eq!(failed(result), ErrorKind::Undecided);
}

#[test]
fn ranges_are_listed_again_after_a_split_and_containers_forgotten_after_a_recreation() {
    for ((status, sub_status), metadata_calls) in [
        ((410, 1002), "partitions"),
        ((410, 1007), "partitions"),
        ((410, 1000), "forget"),
        ((400, 1024), "forget"),
    ] {
        let replies = &[Reply::Response(status, sub_status), Reply::Response(200, 0)];
        let fixture = Fixture::new(&["A"], &[("A", MS, replies)]);
        let (result, took) = fixture.run(&read(), usual());
        assert!(result.is_ok());
        assert_eq!((fixture.metadata_calls(), took), (vec![metadata_calls], 2 * MS));
    }
}

#[test]
fn no_wait_reaches_beyond_the_deadline() {
    for (reply, operation) in [
        (Reply::Response(449, 0), create()),
        (Reply::Response(503, 0), create()),
        (Reply::Response(403, 3), create()),
        (Reply::Response(404, 1002), read()),
        (Reply::Lost(Sent::NotSent), create()),
    ] {
        for timeout in [20 * MS, 150 * MS, 333 * MS] {
            let replies = &[reply][..];
            let fixture = Fixture::new(&["A"], &[("A", MS, replies), ("B", MS, replies), ("C", MS, replies)]);
            let (result, took) = fixture.run(&operation, within(timeout));
            let kind = failed(result);
            // Some give up before: four tries behind a session, three at a region that cannot be reached.
            let gave_up =
                timeout > 20 * MS && matches!(kind, ErrorKind::SessionUnavailable | ErrorKind::Unavailable);
            assert!(kind == ErrorKind::DeadlineExceeded || gave_up, "{reply:?} {timeout:?}: {kind:?}");
            assert!(took <= timeout, "{reply:?}: {took:?} of {timeout:?}");
        }
    }
}

#[test]
fn a_slow_response_ends_at_the_deadline_with_the_error_of_the_operation() {
    for (operation, kind) in [(read(), ErrorKind::DeadlineExceeded), (create(), ErrorKind::Undecided)] {
        let slow = &[Reply::Response(200, 0)][..];
        let minute = Duration::from_secs(60);
        let fixture = Fixture::new(&["A"], &[("A", minute, slow), ("B", minute, slow)]);
        let (result, took) = fixture.run(&operation, within(Duration::from_secs(1)));
        assert_eq!((failed(result), took), (kind, Duration::from_secs(1)));
    }
}

#[test]
fn a_slow_read_is_raced_and_both_attempts_are_shown() {
    let fixture = Fixture::new(
        &["A"],
        &[
            ("A", Duration::from_secs(30), &[Reply::Response(200, 0)]),
            ("B", 7 * MS, &[Reply::Response(200, 0)]),
        ],
    );
    let (result, took) = fixture.run(&read(), usual());
    let response = result.expect("a response");
    assert_eq!(took, 507 * MS, "nothing is known yet, so the second begins after half a second");
    use ExecutionContext::{Hedging, Initial};
    assert_eq!(fixture.contexts(), [Initial, Hedging]);
    let totals = response.diagnostics().totals();
    assert_eq!((totals.attempts, totals.hedges, totals.abandoned), (2, 1, 1));
    assert_eq!(fixture.budget.open(), 0);
}

#[test]
fn the_threshold_follows_what_was_measured_and_not_what_was_abandoned() {
    let fixture = Fixture::new(
        &["A"],
        &[("A", 2 * MS, &[Reply::Response(200, 0)]), ("B", MS, &[Reply::Response(200, 0)])],
    );
    for _ in 0..60 {
        assert!(fixture.run(&read(), usual()).0.is_ok());
    }
    fixture.scripts.lock().expect("unpoisoned").get_mut("A").expect("there").after = Duration::from_secs(3);
    for _ in 0..20 {
        assert_eq!(fixture.run(&read(), usual()).1, 51 * MS, "a brown-out does not move the threshold");
    }
}

#[test]
fn a_hedged_write_does_not_report_its_own_duplicate_as_a_conflict() {
    let (fast, slow) = (MS, Duration::from_secs(2));
    let conditional = Operation::replace_item(&ContainerName::new("d", "c"), key(), "i", "{}")
        .with_precondition(Precondition::IfMatch("\"e\"".into()));
    let delete = Operation::delete_item(&ContainerName::new("d", "c"), key(), "i")
        .with_precondition(Precondition::IfMatch("\"e\"".into()));
    for (operation, done, duplicate) in [(create(), 201, 409), (conditional, 200, 412), (delete, 204, 404)] {
        // The first was carried out, is slow to say so, and its write has reached the second region.
        let fixture = Fixture::new(
            &["A", "B", "C"],
            &[("A", slow, &[Reply::Response(done, 0)]), ("B", fast, &[Reply::Response(duplicate, 0)])],
        );
        let (result, took) = fixture.run(&operation, usual());
        assert_eq!((result.expect("its own write").status(), took), (Status(done), slow));
        // The first attempt is carried out and its response is lost.
        for lost in [Reply::Lost(Sent::Sent), Reply::Response(500, 0)] {
            let fixture = Fixture::new(
                &["A", "B", "C"],
                &[("A", slow, &[lost]), ("B", fast, &[Reply::Response(duplicate, 0)])],
            );
            let (result, _) = fixture.run(&operation, usual());
            assert_eq!(failed(result), ErrorKind::Undecided, "{lost:?} {duplicate}");
        }
        // Both were rejected: another client was first.
        let rejected = &[Reply::Response(duplicate, 0)][..];
        let fixture = Fixture::new(&["A", "B", "C"], &[("A", slow, rejected), ("B", fast, rejected)]);
        let error = fixture.run(&operation, usual()).0.expect_err("rejected");
        assert_eq!(error.status(), Some(Status(duplicate)));
        assert_ne!(error.kind(), ErrorKind::Undecided);
    }
}

#[test]
fn patches_batches_writes_of_one_region_and_writes_over_others_are_never_raced() {
    let slow = &[Reply::Response(200, 0)][..];
    let target = Target::item(&ContainerName::new("d", "c"), "i");
    for (writes, kind) in [
        (&["A", "B", "C"][..], OperationKind::Patch),
        (&["A", "B", "C"], OperationKind::Batch),
        (&["A", "B", "C"], OperationKind::Upsert),
        (&["A"], OperationKind::Upsert),
    ] {
        let fixture = Fixture::new(writes, &[("A", Duration::from_secs(9), slow)]);
        assert!(fixture.run(&Operation::new(kind, target.clone()), usual()).0.is_ok());
        assert_eq!(fixture.regions(), ["A"]);
    }
}

#[test]
fn an_operation_dropped_at_any_time_leaves_nothing_behind() {
    let scripts: &[(&str, Duration, &[Reply])] = &[
        ("A", Duration::from_secs(1), &[Reply::Response(503, 0)]),
        ("B", Duration::from_secs(1), &[Reply::Response(503, 0)]),
        ("C", MS, &[Reply::Response(503, 0)]),
    ];
    let driver = DriverSettings::default();
    let settings = driver.for_operation(None).expect("valid");
    let mut most = 0;
    for steps in 0..40 {
        let fixture = Fixture::new(&["A"], scripts);
        let operation = read();
        let mut execution = Box::pin(execute(&fixture, &operation, &settings, fixture.clock.now()));
        for step in 0..steps {
            if (&mut execution).now_or_never().is_some() {
                break;
            }
            most = most.max(step);
            fixture.time.advance_to_next();
        }
        drop(execution);
        assert_eq!((fixture.time.sleepers(), fixture.budget.open()), (0, 0), "after {steps} steps");
    }
    assert!(most >= 8, "the operation was dropped in many places: {most}");
}
