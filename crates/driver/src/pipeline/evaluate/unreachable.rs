//! No answer: was the request sent?
//!
//! Two failures are not about the region: a credential without a token, and an answer that cannot be read.
//! What was not sent may be sent anywhere, whatever it is. What may have been received is sent again only if
//! doing it twice is the same as doing it once; for any other write the caller is told that nobody knows.

use azure_core::error::ErrorKind;
use perihelion_http::exchange::Sent;

use super::super::attempts::Attempts;
use super::super::step::{Effect, Verdict, Why};
use super::Situation;
use crate::routing::Unavailable;

pub(super) fn evaluate(error: &azure_core::Error, sent: Sent, situation: &Situation<'_>) -> Verdict {
    match (error.kind(), sent) {
        // Neither of the two is about the region.
        (ErrorKind::Credential, _) => Verdict::give_up(Why::Credential, "the credential gave no token"),
        (ErrorKind::DataConversion, _) if situation.operation.is_read_only() => {
            Verdict::give_up(Why::Nonsense, "the answer cannot be read")
        }
        (_, Sent::NotSent) => not_sent(situation),
        (_, Sent::MaybeSent | Sent::Sent) => maybe_sent(situation),
    }
}

fn not_sent(situation: &Situation<'_>) -> Verdict {
    let reason = "the region cannot be reached";
    let attempts = situation.attempts;
    let verdict = if attempts.connections >= situation.policy.connection_retries_max {
        let undecided = attempts.maybe_applied && !situation.operation.is_read_only();
        Verdict::give_up(if undecided { Why::Undecided } else { Why::Unreachable }, reason)
    } else {
        situation.elsewhere(Attempts { connections: attempts.connections + 1, ..attempts.clone() }, reason)
    };
    verdict
        .with(Effect::MarkUnavailable(situation.region.clone(), Unavailable::All))
        .with_some(situation.refresh_if_stuck())
}

fn maybe_sent(situation: &Situation<'_>) -> Verdict {
    let reason = "no answer came";
    let (operation, attempts) = (situation.operation, situation.attempts);
    let verdict = if !operation.is_idempotent() {
        Verdict::give_up(Why::Undecided, reason)
    } else if attempts.failovers >= situation.policy.failover_retries_max {
        Verdict::give_up(if operation.is_read_only() { Why::Unreachable } else { Why::Undecided }, reason)
    } else {
        let maybe_applied = attempts.maybe_applied || !operation.is_read_only();
        let next = Attempts { failovers: attempts.failovers + 1, maybe_applied, ..attempts.clone() };
        situation.elsewhere(next, reason)
    };
    verdict.with_some(situation.partition_failed().or_else(|| region_failed(situation)))
}

/// A read that is about no partition (a container, its ranges) and gets no answer speaks against the region: the
/// next question would wait there just as long, and nothing races it.
fn region_failed(situation: &Situation<'_>) -> Option<Effect> {
    let is_it = situation.partition.is_none() && situation.operation.is_read_only();
    is_it.then(|| Effect::MarkUnavailable(situation.region.clone(), Unavailable::All))
}
