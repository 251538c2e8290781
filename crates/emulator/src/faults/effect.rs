//! What a rule does to the requests it strikes. Pure data.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use super::delay::Delay;
use clock::HumanDuration;

/// Headers one rule may add to its answer.
const HEADERS_MAX: usize = 16;
/// Characters of a rule's own message.
const MESSAGE_LENGTH_MAX: usize = 1_024;

/// A wait, and then an answer of its own, a treatment of the connection, or both where that makes sense.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Effect {
    /// How long the request waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// What waits: the request, or the answer to it.
    #[serde(skip_serializing_if = "is_default")]
    pub delayed: Delayed,
    /// The status to answer with, 400 to 599; the operation is not carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// `x-ms-substatus` of that answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_status: Option<u32>,
    /// `x-ms-retry-after-ms` of that answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<HumanDuration>,
    /// What the error says, for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// More headers of that answer.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// What becomes of the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<ConnectionEffect>,
}

/// What a delay holds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Delayed {
    /// The request: a client that leaves while it waits leaves nothing behind.
    #[default]
    Request,
    /// The answer: the operation has been carried out, whether or not the client still waits.
    Answer,
}

/// What can become of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ConnectionEffect {
    /// Closed; the operation is not carried out.
    CloseBefore,
    /// Closed; the operation has been carried out, and the answer is never sent.
    CloseAfter,
    /// The head and half of the body are sent, and then nothing.
    Stall,
    /// HTTP/2: GOAWAY, then what is in flight finishes. HTTP/1.1: `connection: close`.
    GoAway,
    /// The region's port is closed, its open connections are reset.
    Refuse,
    /// The region's port accepts and never answers; open connections fall silent.
    BlackHole,
}

impl ConnectionEffect {
    /// Whether it concerns a region's port rather than single requests.
    pub(crate) fn is_the_doors(self) -> bool {
        matches!(self, ConnectionEffect::Refuse | ConnectionEffect::BlackHole)
    }
}

impl Effect {
    /// Answers with a status.
    pub(super) fn of_status(status: u16, sub_status: Option<u32>) -> Effect {
        Effect { status: Some(status), sub_status, ..Effect::default() }
    }

    /// Does something to the connection.
    pub(super) fn of_connection(connection: ConnectionEffect) -> Effect {
        Effect { connection: Some(connection), ..Effect::default() }
    }

    /// Whether it has the last word: rules after it are not asked.
    pub(super) fn decides(&self) -> bool {
        self.status.is_some() || self.connection.is_some()
    }

    /// What makes this impossible, if anything.
    pub(crate) fn problem(&self) -> Option<String> {
        if self.delay.is_none() && self.delayed != Delayed::Request {
            return Some("'delayed' says what a delay holds up, and there is no delay".to_owned());
        }
        let delay_problem = self.delay.as_ref().and_then(Delay::problem);
        let problem = delay_problem.or_else(|| self.answer_problem()).or_else(|| self.connection_problem());
        let is_nothing = self.delay.is_none() && self.status.is_none() && self.connection.is_none();
        let nothing = "the effect is missing; give at least one of delay, status and connection";
        problem.or_else(|| is_nothing.then(|| nothing.to_owned()))
    }

    fn answer_problem(&self) -> Option<String> {
        match self.status {
            Some(status) if !(400..=599).contains(&status) => {
                return Some(format!("{status} is no status of a failure; expected 400 to 599"));
            }
            Some(_) => {}
            None => {
                let orphans = [
                    ("subStatus", self.sub_status.is_some()),
                    ("retryAfter", self.retry_after.is_some()),
                    ("message", self.message.is_some()),
                    ("headers", !self.headers.is_empty()),
                ];
                let orphan = orphans.iter().find(|(_, is_there)| *is_there)?;
                return Some(format!("'{}' belongs to an answer; add a status", orphan.0));
            }
        }
        if self.message.as_ref().is_some_and(|message| message.chars().count() > MESSAGE_LENGTH_MAX) {
            return Some(format!("the message is too long; {MESSAGE_LENGTH_MAX} characters are the most"));
        }
        if self.headers.len() > HEADERS_MAX {
            return Some(format!("too many headers; {HEADERS_MAX} are the most"));
        }
        self.headers.iter().find_map(|(name, value)| header_problem(name, value))
    }

    fn connection_problem(&self) -> Option<String> {
        let connection = self.connection?;
        if connection.is_the_doors() && self.delay.is_some() {
            return Some("a region that does not answer cannot do so late; leave the delay out".to_owned());
        }
        let answers = match connection {
            ConnectionEffect::Stall | ConnectionEffect::GoAway => true,
            ConnectionEffect::CloseBefore
            | ConnectionEffect::CloseAfter
            | ConnectionEffect::Refuse
            | ConnectionEffect::BlackHole => false,
        };
        (self.status.is_some() && !answers).then(|| {
            "a connection that is closed, refused or silent carries no status; leave one of them out"
                .to_owned()
        })
    }
}

/// What is wrong with a header a rule wants to add.
fn header_problem(name: &str, value: &str) -> Option<String> {
    /// These say how the answer is framed; a wrong one would break more than it shows.
    const FRAMING: [&str; 6] =
        ["connection", "content-length", "transfer-encoding", "content-encoding", "trailer", "upgrade"];
    let Ok(parsed) = HeaderName::try_from(name) else {
        return Some(format!("'{name}' is no name for a header"));
    };
    if FRAMING.contains(&parsed.as_str()) {
        return Some(format!("the header {parsed} frames the answer and cannot be set"));
    }
    HeaderValue::try_from(value).is_err().then(|| format!("the header {parsed} cannot have that value"))
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(json: Value) -> Effect {
        serde_json::from_value(json.clone()).unwrap_or_else(|error| panic!("{json}: {error}"))
    }

    #[test]
    fn a_delay_an_answer_and_a_treatment_combine_where_that_makes_sense() {
        for json in [
            json!({"delay": "10ms"}),
            json!({"delay": "10ms", "delayed": "answer"}),
            json!({"status": 429, "subStatus": 3200, "retryAfter": "50ms", "headers": {"x-a": "b"}}),
            json!({"delay": "10ms", "status": 503, "message": "gone fishing"}),
            json!({"delay": "10ms", "connection": "closeBefore"}),
            json!({"delay": "10ms", "connection": "closeAfter"}),
            json!({"status": 503, "connection": "goAway"}),
            json!({"status": 503, "connection": "stall"}),
            json!({"connection": "refuse"}),
            json!({"connection": "blackHole"}),
        ] {
            let effect = read(json.clone());
            assert_eq!(effect.problem(), None, "{json}");
            assert_eq!(serde_json::to_value(&effect).unwrap(), json);
        }
    }

    #[test]
    fn impossible_effects_say_why() {
        let cases = [
            (json!({}), "missing"),
            (json!({"delayed": "answer", "status": 500}), "no delay"),
            (json!({"status": 200}), "200"),
            (json!({"status": 600}), "600"),
            (json!({"subStatus": 3200}), "add a status"),
            (json!({"delay": "1s", "retryAfter": "1s"}), "add a status"),
            (json!({"connection": "stall", "message": "x"}), "add a status"),
            (json!({"status": 503, "connection": "closeBefore"}), "leave one"),
            (json!({"status": 503, "connection": "closeAfter"}), "leave one"),
            (json!({"status": 503, "connection": "refuse"}), "leave one"),
            (json!({"delay": "1s", "connection": "blackHole"}), "late"),
            (json!({"delay": "1h"}), "too long"),
            (json!({"status": 500, "headers": {"content-length": "5"}}), "content-length"),
            (json!({"status": 500, "headers": {"a b": "5"}}), "a b"),
            (json!({"status": 500, "headers": {"x-a": "line\nbreak"}}), "x-a"),
            (json!({"status": 500, "message": "x".repeat(1_025)}), "too long"),
        ];
        for (json, part) in cases {
            let problem = read(json.clone()).problem().unwrap_or_else(|| panic!("{json} is possible"));
            assert!(problem.contains(part), "{problem}");
        }
    }
}
