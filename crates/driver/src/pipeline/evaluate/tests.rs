//! The table in `docs/retries.md`, row by row: what it says is what the functions do.

use crate::operation::ResponseHeaders;
use bytes::Bytes;
use protocol::partition::PartitionKey;
use protocol::partition_range::RangeId;

use super::*;
use crate::operation::{ContainerName, OperationKind, Precondition, Scope, Target};
use crate::routing::Unavailable;

const DOCUMENT: &str = include_str!("../../../../../docs/retries.md");
const HEADING: &str =
    "| answer | operation | first | no other region | changes | gives up after | the caller hears |";

fn answer(status: u16, sub_status: u32) -> GatewayOutcome {
    GatewayOutcome::ServiceError(TransportResponse {
        status: Status(status),
        sub_status: SubStatus(sub_status),
        headers: ResponseHeaders::default(),
        body: Bytes::new(),
    })
}

fn no_answer(sent: Sent) -> GatewayOutcome {
    let error = azure_core::Error::with_message(azure_core::error::ErrorKind::Io, "reset");
    GatewayOutcome::NoResponse { error, sent }
}

fn no_token() -> GatewayOutcome {
    let error = azure_core::Error::with_message(azure_core::error::ErrorKind::Credential, "none");
    GatewayOutcome::NoResponse { error, sent: Sent::NotSent }
}

fn nonsense() -> GatewayOutcome {
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
struct World {
    others: usize,
    hub_is_elsewhere: bool,
    partition_failover: bool,
    /// Whether the operation is about the account's own records, and so about no partition.
    metadata: bool,
}

fn judge(outcome: &GatewayOutcome, operation: &Operation, attempts: &Attempts, world: World) -> Verdict {
    judge_by(1.0, outcome, operation, attempts, world)
}

/// The same with this much luck.
fn judge_by(
    draw: f64,
    outcome: &GatewayOutcome,
    operation: &Operation,
    attempts: &Attempts,
    world: World,
) -> Verdict {
    let partition = crate::routing::test_partitions::partition(0);
    evaluate(
        outcome,
        &Situation {
            operation,
            region: &Region::new("West"),
            hub_is_elsewhere: world.hub_is_elsewhere,
            partition: (!world.metadata).then_some(&partition),
            others: world.others,
            partition_failover: world.partition_failover,
            attempts,
            policy: &RetryPolicy::default(),
            draw,
        },
    )
}

/// A step in words.
fn step_in_words(verdict: &Verdict) -> String {
    let Step::Again { delay, attempts } = &verdict.step else { return "gives up".to_owned() };
    let place = if attempts.from_hub {
        "the hub region"
    } else if !attempts.left.is_empty() {
        "another region"
    } else {
        "here"
    };
    if delay.is_zero() { format!("{place}, at once") } else { format!("{place}, after up to {delay:?}") }
}

fn effects_in_words(effects: &[Effect]) -> String {
    let words = effects.iter().map(|effect| match effect {
        Effect::MarkUnavailable(_, Unavailable::All) => "region down",
        Effect::MarkUnavailable(_, Unavailable::Writes) => "region down for writes",
        Effect::RefreshAccount => "asks the account",
        Effect::PartitionFailed(_, Access::Read) => "counts a failed read",
        Effect::PartitionFailed(_, Access::Write) => "counts a failed write",
        Effect::PartitionTripped(_) => "opens the breaker",
        Effect::RefreshPartitions(_) => "lists ranges",
        Effect::ForgetContainer(_) => "forgets the container",
    });
    let words: Vec<_> = words.collect();
    if words.is_empty() { "–".to_owned() } else { words.join(", ") }
}

/// Repeats an outcome until nothing more is tried: how often, how long the waits are at most, and what is heard.
fn endurance(outcome: &GatewayOutcome, operation: &Operation, world: World) -> (String, &'static str) {
    let (least, waited, heard) = repeated(1.0, outcome, operation, world);
    let (most, _, _) = repeated(0.0, outcome, operation, world);
    let end = match (least, most) {
        (0, 0) => "–".to_owned(),
        (1, 1) => "1 retry".to_owned(),
        (least, most) if least == most => format!("{least} retries, {waited:?} of waiting"),
        (least, most) => format!("{least} to {most} retries, {waited:?} of waiting"),
    };
    (end, heard)
}

fn repeated(
    draw: f64,
    outcome: &GatewayOutcome,
    operation: &Operation,
    world: World,
) -> (u32, Duration, &'static str) {
    let (mut attempts, mut retries, mut waited) = (Attempts::default(), 0, Duration::ZERO);
    loop {
        let others = world.others.saturating_sub(attempts.left.len());
        match judge_by(draw, outcome, operation, &attempts, World { others, ..world }).step {
            Step::Again { delay, attempts: next } => {
                retries += 1;
                waited += delay;
                attempts = next;
                assert!(retries < 100, "somebody must give up");
            }
            Step::Finish => unreachable!("no row is a success"),
            Step::GiveUp(why) => {
                let heard = match why {
                    Why::Answer => "the answer",
                    Why::Unreachable => "`Unavailable`",
                    Why::Undecided => "`Undecided`",
                    Why::Deadline => "`DeadlineExceeded`",
                    Why::Credential => "`Unauthenticated`",
                    Why::Nonsense => "`BadResponse`",
                };
                return (retries, waited, heard);
            }
        }
    }
}

fn row(name: &str, who: &str, outcome: &GatewayOutcome, operation: &Operation, world: World) -> String {
    let fresh = Attempts::default();
    let first = judge(outcome, operation, &fresh, World { others: 2, ..world });
    let alone = judge(outcome, operation, &fresh, World { others: 0, ..world });
    let (end, heard) = endurance(outcome, operation, World { others: 0, ..world });
    format!(
        "| {name} | {who} | {} | {} | {} | {end} | {heard} |",
        step_in_words(&first),
        step_in_words(&alone),
        effects_in_words(&alone.effects),
    )
}

#[test]
fn the_table_in_the_documentation_is_what_the_driver_does() {
    let (read, create, by_number) = (read(), create(), by_number());
    let repeatable = create.clone().repeatable();
    let plain = World::default();
    let hub = World { hub_is_elsewhere: true, ..plain };
    let failover = World { partition_failover: true, ..plain };
    let rows = [
        row("403/3", "any", &answer(403, 3), &create, plain),
        row("403/3, partitions fail over", "writes", &answer(403, 3), &create, failover),
        row("403/1008", "any", &answer(403, 1008), &read, plain),
        row("404/1002, one write region", "any", &answer(404, 1002), &read, hub),
        row("404/1002, several", "any", &answer(404, 1002), &read, plain),
        row("410/1002, 410/1007, 410/1008", "any", &answer(410, 1002), &read, plain),
        row("410/1002, 410/1007, 410/1008", "by range id", &answer(410, 1002), &by_number, plain),
        row("410/1000", "any", &answer(410, 1000), &read, plain),
        row("410, other", "reads", &answer(410, 0), &read, plain),
        row("410, other", "writes", &answer(410, 0), &create, plain),
        row("503", "reads", &answer(503, 0), &read, plain),
        row("503", "writes", &answer(503, 0), &create, plain),
        row("429/3092", "reads", &answer(429, 3092), &read, plain),
        row("429/3092", "writes", &answer(429, 3092), &create, plain),
        row("429, other", "any", &answer(429, 3200), &read, plain),
        row("500, 408", "reads", &answer(500, 0), &read, plain),
        row("500, 408", "writes", &answer(500, 0), &create, plain),
        row("500, 408", "repeatable writes", &answer(408, 0), &repeatable, plain),
        row("449", "any", &answer(449, 0), &create, plain),
        row("400/1024", "any", &answer(400, 1024), &read, plain),
        row("404/1003", "any", &answer(404, 1003), &read, plain),
        row("404/1013", "any", &answer(404, 1013), &read, plain),
        row("other answers", "any", &answer(404, 0), &read, plain),
        row("no answer, not sent", "reads", &no_answer(Sent::NotSent), &read, plain),
        row("no answer, not sent", "writes", &no_answer(Sent::NotSent), &create, plain),
        row("no answer, maybe sent", "reads", &no_answer(Sent::MaybeSent), &read, plain),
        row("no answer, maybe sent", "writes", &no_answer(Sent::MaybeSent), &create, plain),
        row("no answer, maybe sent", "repeatable writes", &no_answer(Sent::Sent), &repeatable, plain),
        row("no token from the credential", "any", &no_token(), &create, plain),
        row("an answer that cannot be read", "reads", &nonsense(), &read, plain),
        row("an answer that cannot be read", "writes", &nonsense(), &create, plain),
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
            let verdicts = group.iter().map(|(status, sub_status)| {
                judge(&answer(*status, *sub_status), &operation, &Attempts::default(), World::default())
            });
            let verdicts: Vec<_> = verdicts.collect();
            assert!(verdicts.windows(2).all(|pair| pair[0] == pair[1]), "{group:?}: {verdicts:#?}");
        }
    }
}

#[test]
fn both_forbidden_answers_draw_on_one_budget() {
    let operation = create();
    let (mut attempts, mut waited) = (Attempts::default(), Duration::ZERO);
    for turn in 0.. {
        let outcome = if turn % 2 == 0 { answer(403, 3) } else { answer(403, 1008) };
        match judge(&outcome, &operation, &attempts, World::default()).step {
            Step::Again { delay, attempts: next } => {
                assert_eq!(delay.is_zero(), turn == 0, "only the first retry is at once");
                waited += delay;
                attempts = next;
            }
            _ => break,
        }
    }
    assert!(waited <= Duration::from_secs(5) && waited > Duration::from_secs(4), "{waited:?}");
}

#[test]
fn a_region_that_was_behind_is_not_asked_again_before_all_others() {
    let operation = read();
    let first =
        judge(&answer(404, 1002), &operation, &Attempts::default(), World { others: 2, ..World::default() });
    let Step::Again { attempts, .. } = first.step else { panic!("another region is asked") };
    assert_eq!(attempts.left, [Region::new("West")]);
}

#[test]
fn every_wait_is_half_chance_and_never_longer_than_said() {
    let operation = read();
    for status in [(503, 0), (449, 0), (404, 1002)] {
        let outcome = answer(status.0, status.1);
        let attempts = Attempts { sessions: 1, ..Attempts::default() };
        let delay = |draw: f64| {
            let verdict = evaluate(
                &outcome,
                &Situation {
                    operation: &operation,
                    region: &Region::new("West"),
                    hub_is_elsewhere: false,
                    partition: None,
                    others: 0,
                    partition_failover: false,
                    attempts: &attempts,
                    policy: &RetryPolicy::default(),
                    draw,
                },
            );
            let Step::Again { delay, .. } = verdict.step else { panic!("tried again") };
            delay
        };
        assert_eq!(delay(0.0) * 2, delay(1.0));
    }
}

#[test]
fn after_an_attempt_that_may_have_worked_its_own_doing_is_not_reported_as_somebody_elses() {
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
        let attempts = Attempts { maybe_applied: true, ..Attempts::default() };
        let verdict = judge(&answer(status, 0), &operation, &attempts, World::default());
        let expected = if own { Why::Undecided } else { Why::Answer };
        assert_eq!(verdict.step, Step::GiveUp(expected), "{:?} {status}", operation.kind());
        let fresh = judge(&answer(status, 0), &operation, &Attempts::default(), World::default());
        assert_eq!(fresh.step, Step::GiveUp(Why::Answer), "{:?} {status}", operation.kind());
    }
}

#[test]
fn a_write_that_may_have_been_received_is_never_sent_again() {
    for kind in OperationKind::ALL.into_iter().filter(|kind| !kind.is_read_only()) {
        let operation = Operation::new(kind, Target::items(&container()));
        for outcome in [answer(500, 0), answer(408, 0), no_answer(Sent::MaybeSent), no_answer(Sent::Sent)] {
            let verdict =
                judge(&outcome, &operation, &Attempts::default(), World { others: 2, ..World::default() });
            assert_eq!(verdict.step, Step::GiveUp(Why::Undecided), "{kind:?} {outcome:?}");
        }
    }
}

#[test]
fn a_read_of_metadata_that_gets_no_answer_speaks_against_the_region() {
    let lists = Operation::new(OperationKind::ReadFeed, Target::partition_key_ranges(&container()));
    let makes = Operation::new(OperationKind::Create, Target::containers("d"));
    for (operation, sent, changes) in [
        (&lists, Sent::NotSent, "region down"),
        (&lists, Sent::Sent, "region down"),
        (&makes, Sent::Sent, "–"),
    ] {
        let world = World { others: 2, metadata: true, ..World::default() };
        let verdict = judge(&no_answer(sent), operation, &Attempts::default(), world);
        assert_eq!(effects_in_words(&verdict.effects), changes, "{:?} {sent:?}", operation.kind());
    }
}

#[test]
fn a_success_is_the_end() {
    let success =
        GatewayOutcome::Success(TransportResponse::new(Status::OK, ResponseHeaders::default(), Bytes::new()));
    let verdict = judge(&success, &read(), &Attempts::default(), World::default());
    assert_eq!((verdict.step, verdict.effects), (Step::Finish, Vec::new()));
}
