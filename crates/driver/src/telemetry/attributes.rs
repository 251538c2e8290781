//! The attributes of an operation as pairs, for metrics and for exporters of programs.

use protocol::status::{Status, SubStatus};

use super::names;
use crate::diagnostics::Diagnostics;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AttributeValue {
    /// A constant of this crate.
    Word(&'static str),
    /// A text of this operation.
    Text(String),
    /// A list of several texts.
    List(Vec<String>),
    /// A whole number of 64 bits.
    Integer(i64),
    /// A floating-point number of 64 bits.
    Number(f64),
}

impl Diagnostics {
    /// The attributes of the operation, under OpenTelemetry's names.
    pub fn attributes(&self) -> Vec<(&'static str, AttributeValue)> {
        let mut attributes = vec![
            (names::DB_SYSTEM_NAME, AttributeValue::Word(names::SYSTEM)),
            (names::CONNECTION_MODE, AttributeValue::Word(names::GATEWAY)),
            (names::DB_OPERATION_NAME, AttributeValue::Word(self.operation())),
            (names::REQUEST_CHARGE, AttributeValue::Number(self.totals().charge)),
        ];
        let regions = contacted_regions(self).into_iter().map(str::to_owned).collect();
        attributes.push((names::CONTACTED_REGIONS, AttributeValue::List(regions)));
        if let Some((Status(status), SubStatus(sub_status))) = last_status(self) {
            attributes.push((names::DB_RESPONSE_STATUS_CODE, AttributeValue::Text(status.to_string())));
            attributes.push((names::SUB_STATUS_CODE, AttributeValue::Integer(sub_status.into())));
        }
        if let Some(host) = self.attempts().last().and_then(|attempt| attempt.endpoint.url().host_str()) {
            attributes.push((names::SERVER_ADDRESS, AttributeValue::Text(host.to_owned())));
        }
        attributes
    }
}

/// The regions that an operation contacted, each once, in order.
pub(super) fn contacted_regions(diagnostics: &Diagnostics) -> Vec<&str> {
    let mut regions: Vec<&str> = Vec::new();
    for attempt in diagnostics.attempts() {
        let region = attempt.endpoint.region().as_str();
        if !regions.contains(&region) {
            regions.push(region);
        }
    }
    regions
}

/// The status and sub-status of the last response that was received.
pub(super) fn last_status(diagnostics: &Diagnostics) -> Option<(Status, SubStatus)> {
    diagnostics.attempts().iter().rev().find_map(|attempt| attempt.outcome.sent()?.status)
}
