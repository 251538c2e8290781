//! The table in `docs/retries.md`, row by row: what it says is what the functions do.

use crate::operation::ResponseHeaders;
use bytes::Bytes;
use protocol::partition::PartitionKey;
use protocol::partition_range::RangeId;

use super::super::decision::Step;
use super::*;
use crate::clock::Clock;
use crate::operation::{Access, ContainerName, OperationKind, Precondition, Scope, Target};
use crate::routing::Unavailable;

const DOCUMENT: &str = include_str!("../../../../../docs/retries.md");
const HEADING: &str =
    "| response | operation | first | no other region | changes | gives up after | the caller gets |";

fn response(status: u16, sub_status: u32) -> GatewayOutcome {
    GatewayOutcome::ServiceError(TransportResponse {
        status: Status(status),
        sub_status: SubStatus(sub_status),
        headers: ResponseHeaders::default(),
        body: Bytes::new(),
    })
}

fn no_response(sent: Sent) -> GatewayOutcome {
    let error = azure_core::Error::with_message(azure_core::error::ErrorKind::Io, "reset");
    GatewayOutcome::NoResponse { error, sent }
}

fn no_token() -> GatewayOutcome {
    let error = azure_core::Error::with_message(azure_core::error::ErrorKind::Credential, "none");
    GatewayOutcome::NoResponse { error, sent: Sent::NotSent }
}

fn invalid_request() -> GatewayOutcome {
    let trace = perihelion_http::trace::RequestTrace::started();
    let error = perihelion_http::Error::new(perihelion_http::ErrorKind::Invalid, "http://a.example", trace);
    GatewayOutcome::NoResponse { error: error.into(), sent: Sent::NotSent }
}

fn unreadable() -> GatewayOutcome {
    let error = azure_core::Error::with_message(azure_core::error::ErrorKind::DataConversion, "endless");
    GatewayOutcome::NoResponse { error, sent: Sent::Sent }
}

fn container() -> ContainerName {
    ContainerName::new("d", "c")
}

fn key() -> PartitionKey {
    PartitionKey::single("k")
}

fn read() -> Operation {
    Operation::read_item(&container(), key(), "i")
}

fn create() -> Operation {
    Operation::create_item(&container(), key(), "{}")
}

fn by_number() -> Operation {
    Operation::new(OperationKind::Query, Target::items(&container())).with_scope(Scope::Partition(RangeId(0)))
}

/// What the rows vary; the rest of a situation is the same for all.
#[derive(Clone, Copy, Default)]
struct Circumstances {
    other_regions: usize,
    hub_has_more: bool,
    partition_failover: bool,
    /// Whether the operation is about the account's own records, and so about no partition.
    metadata: bool,
}

fn decide(
    outcome: &GatewayOutcome,
    operation: &Operation,
    state: &RetryState,
    given: Circumstances,
) -> Decision {
    decide_with(1.0, outcome, operation, state, given)
}

/// Decides with this random value.
fn decide_with(
    random: f64,
    outcome: &GatewayOutcome,
    operation: &Operation,
    state: &RetryState,
    given: Circumstances,
) -> Decision {
    let partition = crate::routing::test_partitions::partition(0);
    evaluate(
        outcome,
        &Situation {
            operation,
            region: &Region::new("West"),
            hub_has_more: given.hub_has_more,
            partition: (!given.metadata).then_some(&partition),
            other_regions: given.other_regions,
            partition_failover: given.partition_failover,
            state,
            no_response: Some(NoResponse { started: Clock::machine().now(), last_response: None }),
            policy: &RetryPolicy::default(),
            random,
        },
    )
}

/// A step in names.
fn step_text(decision: &Decision) -> String {
    let Step::Retry { delay, state } = &decision.step else { return "gives up".to_owned() };
    let place = if state.prefer_hub {
        "the hub region"
    } else if !state.regions_tried.is_empty() {
        "another region"
    } else {
        "here"
    };
    if delay.is_zero() { format!("{place}, at once") } else { format!("{place}, after up to {delay:?}") }
}

fn effects_text(effects: &[Effect]) -> String {
    let names = effects.iter().map(|effect| match effect {
        Effect::MarkUnavailable(_, Unavailable::All) => "region down",
        Effect::MarkUnavailable(_, Unavailable::Writes) => "region down for writes",
        Effect::RefreshAccount => "refreshes the account",
        Effect::PartitionFailed(key, failure) => match (key.access, failure) {
            (Access::Read, PartitionFailure::Definite) => "counts a failed read",
            (Access::Read, PartitionFailure::Silent { .. }) => "counts a silent read",
            (Access::Write, PartitionFailure::Definite) => "counts a failed write",
            (Access::Write, PartitionFailure::Silent { .. }) => "counts a silent write",
        },
        Effect::RegionSilent(..) => "counts a silent region",
        Effect::PartitionTripped(_) => "opens the breaker",
        Effect::RefreshPartitions(_) => "refreshes partition ranges",
        Effect::ForgetContainer(_) => "forgets the container",
    });
    let names: Vec<_> = names.collect();
    if names.is_empty() { "–".to_owned() } else { names.join(", ") }
}

/// Repeats an outcome until nothing more is tried: how often, how long the waits are at most, and what is error.
fn retries_until_error(
    outcome: &GatewayOutcome,
    operation: &Operation,
    given: Circumstances,
) -> (String, &'static str) {
    let (least, waited, error) = repeated(1.0, outcome, operation, given);
    let (most, _, _) = repeated(0.0, outcome, operation, given);
    let end = match (least, most) {
        (0, 0) => "–".to_owned(),
        (1, 1) => "1 retry".to_owned(),
        (least, most) if least == most => format!("{least} retries, {waited:?} of waiting"),
        (least, most) => format!("{least} to {most} retries, {waited:?} of waiting"),
    };
    (end, error)
}

fn repeated(
    random: f64,
    outcome: &GatewayOutcome,
    operation: &Operation,
    given: Circumstances,
) -> (u32, Duration, &'static str) {
    let (mut state, mut retries, mut waited) = (RetryState::default(), 0, Duration::ZERO);
    loop {
        let other_regions = given.other_regions.saturating_sub(state.regions_tried.len());
        match decide_with(random, outcome, operation, &state, Circumstances { other_regions, ..given }).step {
            Step::Retry { delay, state: next } => {
                retries += 1;
                waited += delay;
                state = next;
                assert!(retries < 100, "the operation must give up");
            }
            Step::Finish => unreachable!("no row is a success"),
            Step::GiveUp(reason) => {
                let error = match reason {
                    GiveUpReason::ServiceError => "the service's error",
                    GiveUpReason::Unreachable => "`Unavailable`",
                    GiveUpReason::Undecided => "`Undecided`",
                    GiveUpReason::Deadline => "`DeadlineExceeded`",
                    GiveUpReason::Credential => "`Unauthenticated`",
                    GiveUpReason::InvalidResponse => "`BadResponse`",
                    GiveUpReason::InvalidRequest => "`BadRequest`",
                };
                return (retries, waited, error);
            }
        }
    }
}

fn row(
    name: &str,
    who: &str,
    outcome: &GatewayOutcome,
    operation: &Operation,
    given: Circumstances,
) -> String {
    let fresh = RetryState::default();
    let first = decide(outcome, operation, &fresh, Circumstances { other_regions: 2, ..given });
    let alone = decide(outcome, operation, &fresh, Circumstances { other_regions: 0, ..given });
    let (end, error) = retries_until_error(outcome, operation, Circumstances { other_regions: 0, ..given });
    format!(
        "| {name} | {who} | {} | {} | {} | {end} | {error} |",
        step_text(&first),
        step_text(&alone),
        effects_text(&alone.effects),
    )
}

#[test]
fn the_table_in_the_documentation_is_what_the_driver_does() {
    let (read, create, by_number) = (read(), create(), by_number());
    let repeatable = create.clone().repeatable();
    let plain = Circumstances::default();
    let hub = Circumstances { hub_has_more: true, ..plain };
    let failover = Circumstances { partition_failover: true, ..plain };
    let rows = [
        row("403/3", "any", &response(403, 3), &create, plain),
        row("403/3, partitions fail over", "writes", &response(403, 3), &create, failover),
        row("403/1008", "any", &response(403, 1008), &read, plain),
        row("404/1002, one write region", "any", &response(404, 1002), &read, hub),
        row("404/1002, several", "any", &response(404, 1002), &read, plain),
        row("410/1002, 410/1007, 410/1008", "any", &response(410, 1002), &read, plain),
        row("410/1002, 410/1007, 410/1008", "by range id", &response(410, 1002), &by_number, plain),
        row("410/1000", "any", &response(410, 1000), &read, plain),
        row("410, other", "reads", &response(410, 0), &read, plain),
        row("410, other", "writes", &response(410, 0), &create, plain),
        row("503", "reads", &response(503, 0), &read, plain),
        row("503", "writes", &response(503, 0), &create, plain),
        row("429/3092", "reads", &response(429, 3092), &read, plain),
        row("429/3092", "writes", &response(429, 3092), &create, plain),
        row("429, other", "any", &response(429, 3200), &read, plain),
        row("500, 408", "reads", &response(500, 0), &read, plain),
        row("500, 408", "writes", &response(500, 0), &create, plain),
        row("500, 408", "repeatable writes", &response(408, 0), &repeatable, plain),
        row("449", "any", &response(449, 0), &create, plain),
        row("400/1024", "any", &response(400, 1024), &read, plain),
        row("404/1003", "any", &response(404, 1003), &read, plain),
        row("404/1013", "any", &response(404, 1013), &read, plain),
        row("other responses", "any", &response(404, 0), &read, plain),
        row("no response, not sent", "reads", &no_response(Sent::NotSent), &read, plain),
        row("no response, not sent", "writes", &no_response(Sent::NotSent), &create, plain),
        row("no response, maybe sent", "reads", &no_response(Sent::MaybeSent), &read, plain),
        row("no response, maybe sent", "writes", &no_response(Sent::MaybeSent), &create, plain),
        row("no response, maybe sent", "repeatable writes", &no_response(Sent::Sent), &repeatable, plain),
        row("no token from the credential", "any", &no_token(), &create, plain),
        row("a request that cannot be sent", "any", &invalid_request(), &create, plain),
        row("an unreadable response", "reads", &unreadable(), &read, plain),
        row("an unreadable response", "writes", &unreadable(), &create, plain),
        row(
            "deadline, not sent",
            "any",
            &GatewayOutcome::DeadlineExceeded { sent: Sent::NotSent },
            &create,
            plain,
        ),
        row(
            "deadline, maybe sent",
            "reads",
            &GatewayOutcome::DeadlineExceeded { sent: Sent::Sent },
            &read,
            plain,
        ),
        row(
            "deadline, maybe sent",
            "writes",
            &GatewayOutcome::DeadlineExceeded { sent: Sent::MaybeSent },
            &create,
            plain,
        ),
    ];
    let documented: Vec<&str> = DOCUMENT
        .lines()
        .skip_while(|line| *line != HEADING)
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    let table = rows.join("\n");
    assert!(!documented.is_empty(), "docs/retries.md lost its table; it should be\n{HEADING}\n{table}");
    for (documented, row) in documented.iter().zip(&rows) {
        assert_eq!(documented, row, "docs/retries.md differs; the table should be\n{table}");
    }
    assert_eq!(documented.len(), rows.len(), "the table should be\n{table}");
}

#[test]
fn sub_statuses_that_share_a_row_share_a_decision() {
    for group in [
        &[(410, 1002), (410, 1007), (410, 1008)][..],
        &[(503, 0), (503, 9002), (429, 3092), (410, 0), (410, 21)],
        &[(500, 0), (408, 0), (408, 1900)],
        &[(449, 0), (449, 5350)],
        &[(429, 0), (429, 3200), (404, 0), (409, 0), (412, 0), (401, 0), (403, 5300), (400, 0), (413, 0)],
    ] {
        for operation in [read(), create()] {
            let decisions = group.iter().map(|(status, sub_status)| {
                decide(
                    &response(*status, *sub_status),
                    &operation,
                    &RetryState::default(),
                    Circumstances::default(),
                )
            });
            let decisions: Vec<_> = decisions.collect();
            assert!(decisions.windows(2).all(|pair| pair[0] == pair[1]), "{group:?}: {decisions:#?}");
        }
    }
}

#[test]
fn both_forbidden_responses_share_one_limit() {
    let operation = create();
    let (mut state, mut waited) = (RetryState::default(), Duration::ZERO);
    for turn in 0.. {
        let outcome = if turn % 2 == 0 { response(403, 3) } else { response(403, 1008) };
        match decide(&outcome, &operation, &state, Circumstances::default()).step {
            Step::Retry { delay, state: next } => {
                assert_eq!(delay.is_zero(), turn == 0, "only the first retry is at once");
                waited += delay;
                state = next;
            }
            Step::Finish | Step::GiveUp(_) => break,
        }
    }
    assert!(waited <= Duration::from_secs(5) && waited > Duration::from_secs(4), "{waited:?}");
}

#[test]
fn a_region_behind_the_session_is_not_retried_before_all_others() {
    let operation = read();
    let first = decide(
        &response(404, 1002),
        &operation,
        &RetryState::default(),
        Circumstances { other_regions: 2, ..Circumstances::default() },
    );
    let Step::Retry { state, .. } = first.step else { panic!("another region is asked") };
    assert_eq!(state.regions_tried, [Region::new("West")]);
}

#[test]
fn half_of_every_wait_is_random_and_the_limit_holds() {
    let operation = read();
    for status in [(503, 0), (449, 0), (404, 1002)] {
        let outcome = response(status.0, status.1);
        let state = RetryState::default().counted(RetryCause::SessionNotAvailable);
        let delay = |random: f64| {
            let decision = evaluate(
                &outcome,
                &Situation {
                    operation: &operation,
                    region: &Region::new("West"),
                    hub_has_more: false,
                    partition: None,
                    other_regions: 0,
                    partition_failover: false,
                    state: &state,
                    no_response: None,
                    policy: &RetryPolicy::default(),
                    random,
                },
            );
            let Step::Retry { delay, .. } = decision.step else { panic!("tried again") };
            delay
        };
        assert_eq!(delay(0.0) * 2, delay(1.0));
    }
}

#[test]
fn after_a_maybe_applied_attempt_its_effect_is_not_reported_as_a_conflict() {
    let name = container();
    let conditional = || Precondition::IfMatch("\"e\"".into());
    let replace = Operation::replace_item(&name, key(), "i", "{}");
    let delete = Operation::delete_item(&name, key(), "i");
    for (operation, status, own) in [
        (create(), 409, true),
        (create(), 400, false),
        (create(), 413, false),
        (replace.clone(), 412, false),
        (replace.clone().with_precondition(conditional()), 412, true),
        (replace, 404, false),
        (delete.clone(), 404, true),
        (delete.with_precondition(conditional()), 412, true),
        (Operation::new(OperationKind::Patch, Target::item(&name, "i")), 412, true),
        (read(), 404, false),
    ] {
        let state = RetryState::default().maybe_applied_if(true);
        let decision = decide(&response(status, 0), &operation, &state, Circumstances::default());
        let expected = if own { GiveUpReason::Undecided } else { GiveUpReason::ServiceError };
        assert_eq!(decision.step, Step::GiveUp(expected), "{:?} {status}", operation.kind());
        let fresh =
            decide(&response(status, 0), &operation, &RetryState::default(), Circumstances::default());
        assert_eq!(fresh.step, Step::GiveUp(GiveUpReason::ServiceError), "{:?} {status}", operation.kind());
    }
}

#[test]
fn a_write_that_may_have_been_received_is_never_sent_again() {
    for kind in OperationKind::ALL.into_iter().filter(|kind| !kind.is_read_only()) {
        let operation = Operation::new(kind, Target::items(&container()));
        for outcome in
            [response(500, 0), response(408, 0), no_response(Sent::MaybeSent), no_response(Sent::Sent)]
        {
            let decision = decide(
                &outcome,
                &operation,
                &RetryState::default(),
                Circumstances { other_regions: 2, ..Circumstances::default() },
            );
            assert_eq!(decision.step, Step::GiveUp(GiveUpReason::Undecided), "{kind:?} {outcome:?}");
        }
    }
}

#[test]
fn a_metadata_read_without_a_response_marks_the_region_unavailable() {
    let lists = Operation::new(OperationKind::ReadFeed, Target::partition_key_ranges(&container()));
    let makes = Operation::new(OperationKind::Create, Target::containers("d"));
    for (operation, sent, changes) in [
        (&lists, Sent::NotSent, "region down"),
        (&lists, Sent::Sent, "region down"),
        (&makes, Sent::Sent, "counts a silent region"),
    ] {
        let given = Circumstances { other_regions: 2, metadata: true, ..Circumstances::default() };
        let decision = decide(&no_response(sent), operation, &RetryState::default(), given);
        assert_eq!(effects_text(&decision.effects), changes, "{:?} {sent:?}", operation.kind());
    }
}

#[test]
fn a_success_is_the_end() {
    let success =
        GatewayOutcome::Success(TransportResponse::new(Status::OK, ResponseHeaders::default(), Bytes::new()));
    let decision = decide(&success, &read(), &RetryState::default(), Circumstances::default());
    assert_eq!((decision.step, decision.effects), (Step::Finish, Vec::new()));
}
