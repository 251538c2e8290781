//! The observer of operations: how metrics leave the driver.

use std::fmt;
use std::time::Duration;

use protocol::status::{Status, SubStatus};

use super::attributes::{AttributeValue, contacted_regions};
use super::names;
use super::operation_span::{ClientIdentity, error_status, error_type, retries, returned_rows};
use crate::diagnostics::{Diagnostics, Totals};
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::response::Response;

/// Is told of every operation of a driver that has ended, on the thread that ends it: record it and return.
///
/// Set it with [`CosmosDriver::set_observer`](crate::CosmosDriver::set_observer). Metadata that the driver looks up for
/// itself, and operations that the caller drops, are not told.
pub trait OperationObserver: fmt::Debug + Send + Sync {
    /// Records one operation that has ended.
    fn operation_ended(&self, ended: &OperationEnded<'_>);
}

/// An operation that has ended, and how.
#[derive(Clone, Copy, Debug)]
pub struct OperationEnded<'a> {
    pub(crate) operation: &'a Operation,
    pub(crate) result: &'a Result<Response>,
    pub(crate) elapsed: Duration,
    pub(crate) client: &'a ClientIdentity,
    pub(crate) consistency: &'static str,
}

impl OperationEnded<'_> {
    /// The operation that has ended.
    pub fn operation(&self) -> &Operation {
        self.operation
    }

    /// The error that the operation ended with, if it failed.
    pub fn error(&self) -> Option<&Error> {
        self.result.as_ref().err()
    }

    /// The diagnostics of the operation; none if it failed before the first attempt.
    pub fn diagnostics(&self) -> Option<&Diagnostics> {
        match self.result {
            Ok(response) => Some(response.diagnostics()),
            Err(error) => error.diagnostics(),
        }
    }

    /// From the call to its result.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Request units of all attempts; none if no response was received.
    pub fn request_charge(&self) -> Option<f64> {
        let diagnostics = self.diagnostics()?;
        let received = diagnostics
            .attempts()
            .iter()
            .any(|attempt| attempt.outcome.sent().is_some_and(|record| record.status.is_some()));
        received.then(|| diagnostics.totals().charge)
    }

    /// The number of items of a page of a query or feed; none for other operations.
    pub fn returned_rows(&self) -> Option<u64> {
        self.result.as_ref().ok().and_then(|response| returned_rows(self.operation, response))
    }

    /// How many attempts came after the first, hedged ones not counted.
    pub fn retries(&self) -> u32 {
        retries(&self.totals())
    }

    /// The totals over all attempts.
    pub fn totals(&self) -> Totals {
        self.diagnostics().map(Diagnostics::totals).unwrap_or_default()
    }

    /// The attributes of the operation in metrics, under the names of OpenTelemetry's conventions for Cosmos DB.
    pub fn attributes(&self) -> Vec<(&'static str, AttributeValue)> {
        let mut attributes = Vec::with_capacity(12);
        attributes.push((names::DB_SYSTEM_NAME, AttributeValue::Word(names::SYSTEM)));
        attributes.push((names::DB_OPERATION_NAME, AttributeValue::Word(self.operation.name())));
        attributes.extend(self.client.attributes());
        attributes.push((names::CONSISTENCY_LEVEL, AttributeValue::Word(self.consistency)));
        let target = self.operation.target();
        if let Some(database) = target.database_name() {
            attributes.push((names::DB_NAMESPACE, AttributeValue::Text(database.to_owned())));
        }
        if let Some(container) = target.container_name() {
            attributes
                .push((names::DB_COLLECTION_NAME, AttributeValue::Text(container.container().to_owned())));
        }
        let status = match self.result {
            Ok(response) => Some((response.status(), response.headers().sub_status())),
            Err(error) => error_status(error),
        };
        if let Some((Status(status), SubStatus(sub_status))) = status {
            attributes.push((names::DB_RESPONSE_STATUS_CODE, AttributeValue::Text(status.to_string())));
            attributes.push((names::SUB_STATUS_CODE, AttributeValue::Integer(sub_status.into())));
        }
        if let Err(error) = self.result {
            attributes.push((names::ERROR_TYPE, AttributeValue::Text(error_type(error).into_owned())));
        }
        if let Some(diagnostics) = self.diagnostics() {
            let regions = contacted_regions(diagnostics).into_iter().map(str::to_owned).collect();
            attributes.push((names::CONTACTED_REGIONS, AttributeValue::List(regions)));
        }
        attributes
    }
}

impl ClientIdentity {
    /// Where the account is, in attributes.
    pub(crate) fn attributes(&self) -> [(&'static str, AttributeValue); 2] {
        [
            (names::SERVER_ADDRESS, AttributeValue::Text(self.host().to_owned())),
            (names::SERVER_PORT, AttributeValue::Integer(self.port().into())),
        ]
    }
}
