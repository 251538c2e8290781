//! What a rule does to a request: a delay, a response in the service's place, a broken connection.

use std::collections::BTreeMap;
use std::time::Duration;

use clock::HumanDuration;
use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::delay::Delay;

/// How many headers one rule may add to its response.
const HEADERS_MAX: usize = 16;
/// The time after which throttled clients retry, unless the rule says otherwise.
const RETRY_AFTER_DEFAULT: Duration = Duration::from_millis(100);
/// How many characters a rule's own message may have.
const MESSAGE_LENGTH_MAX: usize = 1_024;

/// A delay, and then a response of the rule's own, a connection failure, or both where that makes sense.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct FaultEffect {
    /// How long the request, or its response, waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// What the delay holds up: the request or its response.
    #[serde(skip_serializing_if = "is_default")]
    pub delayed: Delayed,
    /// The status of the response, 400 to 599; the operation is not carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The header `x-ms-substatus` of that response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_status: Option<u32>,
    /// The header `x-ms-retry-after-ms` of that response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<HumanDuration>,
    /// The message in the body of that response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// More headers of that response.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// What happens to the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<ConnectionEffect>,
}

/// What a delay holds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Delayed {
    /// The request is held up: if the client gives up meanwhile, the operation is not carried out.
    #[default]
    Request,
    /// The response is held up: the operation has been carried out, whether or not the client still waits.
    #[serde(rename = "answer")]
    Response,
}

/// What can happen to a connection. Which [`Applier`](crate::Applier) can do it is checked when the rule is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ConnectionEffect {
    /// The connection closes after the request was sent; the operation is not carried out.
    CloseBefore,
    /// The connection closes after the operation was carried out; the response is never sent.
    CloseAfter,
    /// The head and half of the body are sent, and then nothing.
    Stall,
    /// HTTP/2: GOAWAY, then what is in flight finishes. HTTP/1.1: `connection: close`. Account only.
    GoAway,
    /// The region's port is closed, its open connections are reset. Account only.
    Refuse,
    /// The region's port accepts connections and never responds; open ones fall silent. Account only.
    BlackHole,
    /// No connection can be opened, so nothing of the request is sent. Driver only.
    FailBeforeSending,
    /// The request is sent and nothing comes back until the deadline. Driver only.
    Timeout,
}

impl ConnectionEffect {
    /// Whether the effect concerns a region's port rather than single requests.
    pub fn is_on_port(self) -> bool {
        matches!(self, ConnectionEffect::Refuse | ConnectionEffect::BlackHole)
    }

    /// Whether a response with a status can come over the connection.
    fn allows_status(self) -> bool {
        match self {
            ConnectionEffect::Stall | ConnectionEffect::GoAway => true,
            ConnectionEffect::CloseBefore
            | ConnectionEffect::CloseAfter
            | ConnectionEffect::Refuse
            | ConnectionEffect::BlackHole
            | ConnectionEffect::FailBeforeSending
            | ConnectionEffect::Timeout => false,
        }
    }
}

impl FaultEffect {
    /// A response with this status.
    pub(crate) fn of_status(status: u16, sub_status: Option<u32>) -> FaultEffect {
        FaultEffect { status: Some(status), sub_status, ..FaultEffect::default() }
    }

    /// A connection failure of this kind.
    pub(crate) fn of_connection(connection: ConnectionEffect) -> FaultEffect {
        FaultEffect { connection: Some(connection), ..FaultEffect::default() }
    }

    /// The time after which clients retry (`x-ms-retry-after-ms`). A 429 without one gets 100 ms: clients would
    /// retry at once.
    pub fn response_retry_after(&self) -> Option<Duration> {
        let throttles = self.status == Some(429);
        self.retry_after.map(|duration| duration.0).or(throttles.then_some(RETRY_AFTER_DEFAULT))
    }

    /// Whether rules after this one are not evaluated for a request.
    pub(crate) fn ends_evaluation(&self) -> bool {
        self.status.is_some() || self.connection.is_some()
    }

    /// What is wrong with the effect, if anything.
    pub(crate) fn problem(&self) -> Option<String> {
        if self.delay.is_none() && self.delayed != Delayed::Request {
            return Some("'delayed' says what a delay holds up, and there is no delay".to_owned());
        }
        let delay_problem = self.delay.as_ref().and_then(Delay::problem);
        let problem = delay_problem.or_else(|| self.response_problem()).or_else(|| self.connection_problem());
        let is_nothing = self.delay.is_none() && self.status.is_none() && self.connection.is_none();
        let nothing = "the effect is missing; give at least one of delay, status and connection";
        problem.or_else(|| is_nothing.then(|| nothing.to_owned()))
    }

    fn response_problem(&self) -> Option<String> {
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
                return Some(format!("'{}' belongs to a response; add a status", orphan.0));
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
        if connection.is_on_port() && self.delay.is_some() {
            return Some("a region that does not respond cannot be late; leave the delay out".to_owned());
        }
        (self.status.is_some() && !connection.allows_status()).then(|| {
            "a connection that is closed, refused or silent carries no status; leave one of them out"
                .to_owned()
        })
    }
}

/// What is wrong with a header that a rule adds, if anything.
fn header_problem(name: &str, value: &str) -> Option<String> {
    /// These headers frame the response; a wrong one would break the connection for other requests.
    const FRAMING: [&str; 6] =
        ["connection", "content-length", "transfer-encoding", "content-encoding", "trailer", "upgrade"];
    let Ok(parsed) = HeaderName::try_from(name) else {
        return Some(format!("'{name}' is no name for a header"));
    };
    if FRAMING.contains(&parsed.as_str()) {
        return Some(format!("the header {parsed} frames the response and cannot be set"));
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

    fn read(json: Value) -> FaultEffect {
        serde_json::from_value(json.clone()).unwrap_or_else(|error| panic!("{json}: {error}"))
    }

    #[test]
    fn a_delay_a_response_and_a_connection_failure_combine_where_that_makes_sense() {
        for json in [
            json!({"delay": "10ms"}),
            json!({"delay": "10ms", "delayed": "answer"}),
            json!({"status": 429, "subStatus": 3200, "retryAfter": "50ms", "headers": {"x-a": "b"}}),
            json!({"delay": "10ms", "status": 503, "message": "overloaded"}),
            json!({"delay": "10ms", "connection": "closeBefore"}),
            json!({"delay": "10ms", "connection": "closeAfter"}),
            json!({"status": 503, "connection": "goAway"}),
            json!({"status": 503, "connection": "stall"}),
            json!({"connection": "refuse"}),
            json!({"connection": "blackHole"}),
            json!({"delay": "10ms", "connection": "failBeforeSending"}),
            json!({"delay": "10ms", "connection": "timeout"}),
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
            (json!({"status": 503, "connection": "failBeforeSending"}), "leave one"),
            (json!({"status": 503, "connection": "timeout"}), "leave one"),
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
