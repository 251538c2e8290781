//! What follows from what is known about an instance. Pure: the diagnosis has the time.

use std::time::Duration;

use super::{Diagnosis, Finding};
use crate::documents::{DELETING, is_terminal};
use crate::operator::timeline::{TimelineSpan, WaitKind};
use crate::operator::waiting::{WaitingActivity, WaitingMessage};

/// How many things of one kind are named; the rest is counted.
pub(super) const LISTED_MAX: usize = 5;
/// How long a message or an activity usually waits at most while runtimes are there, in milliseconds.
const USUAL_WAIT: u64 = 15_000;
/// How often a message or an activity may be fetched before that is suspicious.
const USUAL_ATTEMPTS: u32 = 3;

/// What is the case with an instance, the most important first. `children` are the sub-orchestrations that it waits for,
/// with their status.
pub(super) fn findings(diagnosis: &Diagnosis, children: &[(String, Option<String>)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    unreadable(diagnosis, &mut findings);
    left_behind(diagnosis, &mut findings);
    let has_ended = is_terminal(&diagnosis.status);
    if has_ended {
        let error = diagnosis.last_error.as_ref().filter(|_| diagnosis.status == "Failed");
        findings.push(match error {
            Some(error) => Finding::normal(format!("It has failed: {}", error.message))
                .advice("`peri durable retry --failed` starts it once more, under a new id"),
            None => Finding::normal(format!("It has ended: {}.", diagnosis.status)),
        });
    } else if diagnosis.status == DELETING {
        findings.push(Finding::normal("It is being deleted.").advice(
            "a deletion that was interrupted is finished by any runtime, or by `peri durable purge`",
        ));
    } else {
        lock(diagnosis, &mut findings);
        messages(diagnosis, &mut findings);
        activities(diagnosis, &mut findings);
        waits(diagnosis, children, &mut findings);
        if findings.is_empty() {
            findings.push(
                Finding::problem(
                    "It runs, but nobody has it and nothing waits for it: nothing will move it.",
                )
                .advice("`peri durable history` shows how far it came; `peri durable cancel` ends it"),
            );
        }
    }
    // The first thing a reader sees is what has to be done.
    findings.sort_by_key(|finding| !finding.is_problem);
    findings
}

impl Finding {
    fn problem(text: impl Into<String>) -> Finding {
        Finding { is_problem: true, text: text.into(), advice: None }
    }

    fn normal(text: impl Into<String>) -> Finding {
        Finding { is_problem: false, text: text.into(), advice: None }
    }

    fn advice(self, advice: impl Into<String>) -> Finding {
        Finding { advice: Some(advice.into()), ..self }
    }
}

fn unreadable(diagnosis: &Diagnosis, findings: &mut Vec<Finding>) {
    if let Some(problem) = &diagnosis.unreadable {
        findings.push(
            Finding::problem(format!("Its history or document cannot be read: {problem}"))
                .advice("a newer release may have written it: run that one, or restore the container"),
        );
    }
    for item in diagnosis.quarantined.iter().take(LISTED_MAX) {
        let kind = if item.is_activity { "An activity" } else { "A message" };
        findings.push(
            Finding::problem(format!(
                "{kind} ({}) cannot be read and was set aside: {}",
                item.kind, item.error
            ))
            .advice("`peri durable retry` brings it back, once a release runs that can read it"),
        );
    }
}

/// What a turn has written and what others do not see yet.
fn left_behind(diagnosis: &Diagnosis, findings: &mut Vec<Finding>) {
    for message in diagnosis.undelivered.iter().take(LISTED_MAX) {
        let age = diagnosis.at.saturating_sub(message.created_at);
        let tried = match message.last_attempt_at {
            Some(at) => {
                format!("{} failed attempts, the last {} ago", message.attempts, since(diagnosis, at))
            }
            None => "no attempt since".to_owned(),
        };
        let text = format!(
            "A message ({}) to instance {:?} was sent {} ago and is not delivered: {tried}.",
            message.kind,
            message.target,
            span(age)
        );
        findings.push(if age > USUAL_WAIT {
            Finding::problem(text)
                .advice("any runtime delivers it within seconds; `peri durable retry` does it now")
        } else {
            Finding::normal(text)
        });
    }
    for turn in diagnosis.unreleased.iter().take(LISTED_MAX) {
        let age = diagnosis.at.saturating_sub(turn.created_at);
        let text = format!(
            "A large turn was committed {} ago, and not all of it is visible ({} documents are not).",
            span(age),
            diagnosis.staged
        );
        findings.push(if age > USUAL_WAIT {
            Finding::problem(text)
                .advice("any runtime finishes it within seconds; `peri durable retry` does it now")
        } else {
            Finding::normal(text)
        });
    }
    if diagnosis.staged > 0 && diagnosis.unreleased.is_empty() {
        let text = format!("{} documents of a large turn are staged and not committed.", diagnosis.staged);
        findings
            .push(Finding::normal(text).advice("the next turn removes them if that turn was interrupted"));
    }
}

fn lock(diagnosis: &Diagnosis, findings: &mut Vec<Finding>) {
    let Some(lock) = &diagnosis.lock else { return };
    let attempt = format!("attempt {}", lock.attempts);
    findings.push(if lock.expired {
        Finding::problem(format!(
            "{} has taken a turn ({attempt}) and has not ended it; its lock expired {} ago.",
            lock.holder,
            since(diagnosis, lock.until)
        ))
        .advice("any runtime takes it over: start one, or look why that process ended")
    } else {
        let text = format!(
            "{} processes a turn of it ({attempt}); its lock ends in {} unless it is renewed.",
            lock.holder,
            until(diagnosis, lock.until)
        );
        if lock.attempts > USUAL_ATTEMPTS {
            Finding::problem(text)
                .advice("turns of it end again and again without a result: look at the log of that process")
        } else {
            Finding::normal(text)
        }
    });
}

fn messages(diagnosis: &Diagnosis, findings: &mut Vec<Finding>) {
    let is_locked = diagnosis.lock.as_ref().is_some_and(|lock| !lock.expired);
    let visible: Vec<&WaitingMessage> = diagnosis
        .messages
        .iter()
        .filter(|message| !message.in_turn && message.visible_at <= diagnosis.at)
        .collect();
    if let Some(oldest) = visible.first() {
        let more = diagnosis.message_count.saturating_sub(1);
        let others = if more > 0 { format!(" (and {more} other messages)") } else { String::new() };
        let waited = diagnosis.at.saturating_sub(oldest.visible_at.max(oldest.enqueued_at));
        let text = format!(
            "A message ({}){others} waits for a turn since {}{}.",
            named(&oldest.kind, &oldest.subject),
            span(waited),
            attempts(oldest.attempts)
        );
        let is_late = waited > USUAL_WAIT && !is_locked;
        findings.push(if is_late || oldest.attempts > USUAL_ATTEMPTS {
            let version = match &diagnosis.duroxide_version {
                Some(version) => format!(", with a duroxide that can replay version {version}"),
                None => String::new(),
            };
            Finding::problem(text).advice(format!(
                "no runtime takes it: is one running on this container{version}? `peri durable retry` resets its attempts"
            ))
        } else {
            Finding::normal(text)
        });
    }
    let hidden = |message: &&WaitingMessage| message.visible_at > diagnosis.at && !message.is_timer();
    if let Some(message) = diagnosis.messages.iter().find(hidden) {
        findings.push(
            Finding::normal(format!(
                "A message ({}) becomes visible in {}{}.",
                named(&message.kind, &message.subject),
                until(diagnosis, message.visible_at),
                attempts(message.attempts)
            ))
            .advice("`peri durable retry` makes a message visible that waits after a failed attempt"),
        );
    }
}

fn activities(diagnosis: &Diagnosis, findings: &mut Vec<Finding>) {
    for activity in diagnosis.activities.iter().take(LISTED_MAX) {
        findings.push(about_activity(diagnosis, activity));
    }
    let more = diagnosis.activity_count.saturating_sub(LISTED_MAX as u64);
    if more > 0 {
        findings.push(Finding::normal(format!("{more} more activities wait or are executed.")));
    }
}

fn about_activity(diagnosis: &Diagnosis, activity: &WaitingActivity) -> Finding {
    let name = format!("Activity {} ({})", activity.activity_id, activity.name);
    let tried = attempts(activity.attempts);
    match (&activity.holder, activity.locked_until) {
        (Some(holder), Some(locked)) if locked > diagnosis.at => {
            return Finding::normal(format!(
                "{name} is executed by {holder}; its lock ends in {} unless it is renewed{tried}.",
                until(diagnosis, locked)
            ));
        }
        (Some(holder), Some(locked)) => {
            return Finding::problem(format!(
                "{name} was executed by {holder}, whose lock expired {} ago{tried}.",
                since(diagnosis, locked)
            ))
            .advice("any worker takes it over: start one, or look why that process ended");
        }
        _ => {}
    }
    if activity.visible_at > diagnosis.at {
        return Finding::normal(format!(
            "{name} is tried again in {}{tried}.",
            until(diagnosis, activity.visible_at)
        ))
        .advice("`peri durable retry` does it now");
    }
    let waited = diagnosis.at.saturating_sub(activity.visible_at.max(activity.enqueued_at));
    let text = format!("{name} waits for a worker since {}{tried}.", span(waited));
    if waited <= USUAL_WAIT && activity.attempts <= USUAL_ATTEMPTS {
        return Finding::normal(text);
    }
    let needed = match (&activity.session_id, &activity.session_owner, &activity.tag) {
        (Some(session), Some(owner), _) => {
            format!("only worker {owner}, which has session {session:?}, may execute it: is it alive?")
        }
        (_, _, Some(tag)) => format!("is a worker running that takes the tag {tag:?}?"),
        _ => "is a worker running on this container?".to_owned(),
    };
    Finding::problem(text).advice(needed)
}

/// What the code of the orchestration waits for, as far as the queues do not say it.
fn waits(diagnosis: &Diagnosis, children: &[(String, Option<String>)], findings: &mut Vec<Finding>) {
    for wait in diagnosis.waits.iter().take(4 * LISTED_MAX) {
        match wait.kind {
            WaitKind::Activity => findings.extend(lost_activity(diagnosis, wait)),
            WaitKind::Timer => findings.push(about_timer(diagnosis, wait)),
            WaitKind::SubOrchestration => {
                let child = wait.instance_id.clone().unwrap_or_default();
                let status =
                    children.iter().find(|(id, _)| *id == child).and_then(|(_, status)| status.clone());
                let status = status.unwrap_or_else(|| "has not begun".to_owned());
                findings.push(
                    Finding::normal(format!(
                        "It waits for its sub-orchestration {} since {}: {child} ({status}).",
                        wait.name,
                        since(diagnosis, wait.started_at)
                    ))
                    .advice(format!("peri durable why {child}")),
                );
            }
            WaitKind::Event | WaitKind::Queue => {
                let option = if wait.kind == WaitKind::Queue { " --queue" } else { "" };
                findings.push(
                    Finding::normal(format!(
                        "It waits for the {} {:?} since {}.",
                        if wait.kind == WaitKind::Queue { "queue message" } else { "event" },
                        wait.name,
                        since(diagnosis, wait.started_at)
                    ))
                    .advice(format!(
                        "peri durable raise {} {} DATA{option}",
                        diagnosis.instance_id, wait.name
                    )),
                );
            }
        }
    }
}

/// An activity that is neither in a queue nor reported as ended.
fn lost_activity(diagnosis: &Diagnosis, wait: &TimelineSpan) -> Option<Finding> {
    let all_known = diagnosis.activity_count as usize == diagnosis.activities.len()
        && diagnosis.message_count as usize == diagnosis.messages.len()
        && diagnosis.staged == 0;
    let is_queued = diagnosis.activities.iter().any(|activity| activity.activity_id == wait.event_id);
    let subject = format!("of event {}", wait.event_id);
    let is_reported = diagnosis
        .messages
        .iter()
        .any(|message| message.kind.starts_with("Activity") && message.subject == subject);
    let is_quarantined = !diagnosis.quarantined.is_empty();
    if !all_known || is_queued || is_reported || is_quarantined {
        return None;
    }
    let text = format!(
        "It waits for activity {} ({}) since {}, which is in no queue and has not reported an end.",
        wait.event_id,
        wait.name,
        since(diagnosis, wait.started_at)
    );
    let finding = Finding::problem(text);
    Some(finding.advice(
        "it may just have ended: ask again; if nothing changes, `peri durable cancel` ends the instance",
    ))
}

fn about_timer(diagnosis: &Diagnosis, wait: &TimelineSpan) -> Finding {
    let fires_at = wait.fires_at.unwrap_or_default();
    if fires_at > diagnosis.at {
        return Finding::normal(format!(
            "It waits for a timer, which fires in {}.",
            until(diagnosis, fires_at)
        ));
    }
    Finding::normal(format!("A timer fired {} ago and is not processed yet.", since(diagnosis, fires_at)))
}

fn named(kind: &str, subject: &str) -> String {
    if subject.is_empty() { kind.to_owned() } else { format!("{kind} {subject}") }
}

fn attempts(attempts: u32) -> String {
    match attempts {
        0 => String::new(),
        1 => ", after one attempt".to_owned(),
        attempts => format!(", after {attempts} attempts"),
    }
}

fn since(diagnosis: &Diagnosis, then: u64) -> String {
    span(diagnosis.at.saturating_sub(then))
}

fn until(diagnosis: &Diagnosis, then: u64) -> String {
    span(then.saturating_sub(diagnosis.at))
}

/// A time span in the two largest units that matter: `1.2 s`, `5 min 3 s`, `2 d 4 h`.
fn span(milliseconds: u64) -> String {
    let time = Duration::from_millis(milliseconds);
    let seconds = time.as_secs();
    let of = |large: u64, one: &str, small: u64, other: &str| match seconds % large / small {
        0 => format!("{} {one}", seconds / large),
        rest => format!("{} {one} {rest} {other}", seconds / large),
    };
    match seconds {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3_600 => of(60, "min", 1, "s"),
        3_600..86_400 => of(3_600, "h", 60, "min"),
        _ => of(86_400, "d", 3_600, "h"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operator::History;
    use crate::operator::partition::PartitionContents;

    fn running(now: u64) -> Diagnosis {
        let mut diagnosis = Diagnosis::new("order-1", PartitionContents::default(), &History::default(), now);
        diagnosis.status = "Running".to_owned();
        diagnosis
    }

    fn texts(diagnosis: &Diagnosis) -> Vec<String> {
        findings(diagnosis, &[]).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn an_instance_that_nothing_moves_is_a_problem() {
        let found = findings(&running(0), &[]);
        assert_eq!(found.len(), 1);
        assert!(found[0].is_problem && found[0].text.contains("nothing will move it"), "{found:?}");
    }

    #[test]
    fn a_message_that_nobody_takes_is_a_problem_once_it_is_late() {
        let document = json!({"id": "m", "visibleAt": 1_000.0, "enqueuedAt": 1_000.0,
            "workItem": {"StartOrchestration": {"orchestration": "Order"}}});
        for (now, is_problem) in [(2_000, false), (60_000, true)] {
            let mut diagnosis = running(now);
            diagnosis.messages.push(WaitingMessage::of(&document, None));
            diagnosis.message_count = 1;
            let found = findings(&diagnosis, &[]);
            assert_eq!(found[0].is_problem, is_problem, "{found:?}");
            assert!(found[0].text.contains("StartOrchestration Order"), "{found:?}");
        }
    }

    #[test]
    fn an_activity_is_executed_left_or_waits() {
        let document = json!({"id": "w", "visibleAt": 30_000.0, "enqueuedAt": 1_000.0, "activityId": 2,
            "lockToken": "t@web-1:7|w|order-1", "lockedUntil": 30_000.0, "attemptCount": 1, "tag": "gpu",
            "workItem": {"ActivityExecute": {"name": "charge"}}});
        let mut diagnosis = running(20_000);
        diagnosis.activities.push(WaitingActivity::of(&document));
        diagnosis.activity_count = 1;
        assert_eq!(
            texts(&diagnosis),
            [
                "Activity 2 (charge) is executed by web-1:7; its lock ends in 10 s unless it is renewed, after one attempt."
            ]
        );
        diagnosis.at = 40_000;
        assert!(texts(&diagnosis)[0].contains("whose lock expired 10 s ago"), "{:?}", texts(&diagnosis));
        diagnosis.activities[0].holder = None;
        diagnosis.activities[0].locked_until = None;
        let late = findings(&Diagnosis { at: 100_000, ..diagnosis }, &[]);
        assert!(late[0].text.contains("waits for a worker since 1 min 10 s"), "{late:?}");
        assert_eq!(late[0].advice.as_deref(), Some("is a worker running that takes the tag \"gpu\"?"));
    }

    #[test]
    fn time_spans_have_two_units() {
        for (milliseconds, text) in [
            (40, "0.0 s"),
            (1_240, "1.2 s"),
            (59_999, "59 s"),
            (60_000, "1 min"),
            (3_723_000, "1 h 2 min"),
            (187_200_000, "2 d 4 h"),
        ] {
            assert_eq!(span(milliseconds), text);
        }
    }
}
