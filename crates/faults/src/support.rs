//! What each applier of rules can do.
//!
//! The local account sees a request when it arrives, the driver before it is sent. What one of them cannot
//! do is an error when the rule is added, with a message that names what to use instead. Pure.
#![warn(clippy::wildcard_enum_match_arm, reason = "a new case must be decided on")]

use std::fmt;

use crate::effect::ConnectionEffect;
use crate::filter::OperationKind;
use crate::invalid::InvalidRule;
use crate::rule::FaultRule;

/// The part of the product that applies rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Applier {
    /// The local account, at its edge: it sees a request after the client sent it. `peri chaos` hands its rules to it.
    Account,
    /// The driver, below its connection shards: it sees a request before it is sent.
    Driver,
}

impl fmt::Display for Applier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Applier::Account => "the account",
            Applier::Driver => "the driver",
        })
    }
}

impl FaultRule {
    /// Checks that an applier can do what the rule asks for.
    pub fn supported_by(&self, applier: Applier) -> Result<(), InvalidRule> {
        let problem = match applier {
            Applier::Account => self.problem_for_account(),
            Applier::Driver => self.problem_for_driver(),
        };
        problem.map_or(Ok(()), |problem| Err(InvalidRule::new(problem)))
    }

    fn problem_for_account(&self) -> Option<&'static str> {
        if !self.filter.endpoints.is_empty() {
            return Some(
                "the account does not know the endpoints of the driver; use 'regions' instead of 'endpoints'",
            );
        }
        if !self.filter.shards.is_empty() {
            return Some(
                "the account does not know the connection shards of the driver; leave 'shards' out, or add the \
                 rule to the driver",
            );
        }
        if self.filter.operations.contains(&OperationKind::Execute) {
            return Some(
                "the account runs no stored procedures; leave 'execute' out, or add the rule to the driver",
            );
        }
        match self.effect.connection? {
            ConnectionEffect::FailBeforeSending => Some(
                "the account sees a request only after it was sent and cannot fail it before; use 'closeBefore' \
                 for single requests, or 'refuse' for a region's port",
            ),
            ConnectionEffect::Timeout => Some(
                "the account does not know the deadline of a request; use 'stall' or a delay for single requests, \
                 or 'blackHole' for a region's port",
            ),
            ConnectionEffect::CloseBefore
            | ConnectionEffect::CloseAfter
            | ConnectionEffect::Stall
            | ConnectionEffect::GoAway
            | ConnectionEffect::Refuse
            | ConnectionEffect::BlackHole => None,
        }
    }

    fn problem_for_driver(&self) -> Option<&'static str> {
        if self.filter.partition_key_range.is_some() {
            return Some(
                "below its shards the driver does not know the physical partition of a request; use \
                 'partitionKey', or add the rule to the account",
            );
        }
        match self.effect.connection? {
            ConnectionEffect::Refuse => Some(
                "the driver listens on no port that could refuse connections; use 'failBeforeSending', or add \
                 the rule to the account",
            ),
            ConnectionEffect::BlackHole => Some(
                "the driver listens on no port that could fall silent; use 'timeout', or add the rule to the \
                 account",
            ),
            ConnectionEffect::GoAway => Some(
                "the driver does not speak HTTP/2 frames itself; use 'closeAfter', or add the rule to the account",
            ),
            ConnectionEffect::CloseBefore
            | ConnectionEffect::CloseAfter
            | ConnectionEffect::Stall
            | ConnectionEffect::FailBeforeSending
            | ConnectionEffect::Timeout => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_applier_cannot_do_is_an_error_that_names_the_alternative() {
        use Applier::{Account, Driver};
        let cases = [
            (r#"{"effect":{"connection":"failBeforeSending"}}"#, Account, Some("'closeBefore'")),
            (r#"{"effect":{"connection":"failBeforeSending"}}"#, Driver, None),
            (r#"{"effect":{"connection":"timeout"}}"#, Account, Some("'blackHole'")),
            (r#"{"effect":{"connection":"timeout"}}"#, Driver, None),
            (r#"{"effect":{"connection":"refuse"}}"#, Account, None),
            (r#"{"effect":{"connection":"refuse"}}"#, Driver, Some("'failBeforeSending'")),
            (r#"{"effect":{"connection":"blackHole"}}"#, Account, None),
            (r#"{"effect":{"connection":"blackHole"}}"#, Driver, Some("'timeout'")),
            (r#"{"effect":{"connection":"goAway"}}"#, Account, None),
            (r#"{"effect":{"connection":"goAway"}}"#, Driver, Some("'closeAfter'")),
            (r#"{"effect":{"connection":"stall"}}"#, Account, None),
            (r#"{"effect":{"connection":"stall"}}"#, Driver, None),
            (r#"{"effect":{"delay":"1s"},"match":{"endpoints":["a:1"]}}"#, Account, Some("'regions'")),
            (r#"{"effect":{"delay":"1s"},"match":{"endpoints":["a:1"]}}"#, Driver, None),
            (r#"{"effect":{"delay":"1s"},"match":{"shards":[0]}}"#, Account, Some("'shards'")),
            (r#"{"effect":{"delay":"1s"},"match":{"operations":["execute"]}}"#, Account, Some("'execute'")),
            (r#"{"effect":{"delay":"1s"},"match":{"partitionKeyRange":0}}"#, Account, None),
            (r#"{"effect":{"delay":"1s"},"match":{"partitionKeyRange":0}}"#, Driver, Some("'partitionKey'")),
        ];
        for (json, applier, alternative) in cases {
            let rule = FaultRule::from_json(json.as_bytes()).expect("a rule");
            rule.validate().expect("no contradiction");
            match (rule.supported_by(applier), alternative) {
                (Ok(()), None) => {}
                (Err(error), Some(alternative)) => {
                    let message = error.to_string();
                    assert!(
                        message.starts_with(&applier.to_string()) || message.contains("the driver"),
                        "{message}"
                    );
                    assert!(message.contains(alternative), "{json}: {message}");
                }
                (result, _) => panic!("{json} for {applier}: {result:?}"),
            }
        }
    }
}
