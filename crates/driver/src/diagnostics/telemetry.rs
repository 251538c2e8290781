//! OpenTelemetry attributes and metric names.
//!
//! The names are those of the semantic conventions for database clients and for Cosmos DB. Exporting
//! is left to the program's exporter: [`Diagnostics::attributes`] gives pairs.

use protocol::status::{Status, SubStatus};

use super::Diagnostics;

/// Attribute `db.system.name`, whose value is always [`SYSTEM`].
pub const DB_SYSTEM_NAME: &str = "db.system.name";
/// The value of [`DB_SYSTEM_NAME`].
pub const SYSTEM: &str = "azure.cosmosdb";
/// Attribute with the name of the operation.
pub const DB_OPERATION_NAME: &str = "db.operation.name";
/// Attribute with the id of the container.
pub const DB_COLLECTION_NAME: &str = "db.collection.name";
/// Attribute with the id of the database.
pub const DB_NAMESPACE: &str = "db.namespace";
/// The status of the last response, as text.
pub const DB_RESPONSE_STATUS_CODE: &str = "db.response.status_code";
/// The sub-status of the last response.
pub const SUB_STATUS_CODE: &str = "azure.cosmosdb.response.sub_status_code";
/// Request units of the operation.
pub const REQUEST_CHARGE: &str = "azure.cosmosdb.operation.request_charge";
/// The regions contacted, in order.
pub const CONTACTED_REGIONS: &str = "azure.cosmosdb.operation.contacted_regions";
/// How the service is reached, always [`GATEWAY`].
pub const CONNECTION_MODE: &str = "azure.cosmosdb.connection.mode";
/// The value of [`CONNECTION_MODE`].
pub const GATEWAY: &str = "gateway";
/// The host of the last attempt.
pub const SERVER_ADDRESS: &str = "server.address";
/// The kind of the error.
pub const ERROR_TYPE: &str = "error.type";
/// A physical partition; a name of our own.
pub const PARTITION_RANGE: &str = "perihelion.partition_range";

/// Histogram: seconds per operation.
pub const METRIC_OPERATION_DURATION: &str = "db.client.operation.duration";
/// Histogram or counter: request units.
pub const METRIC_REQUEST_CHARGE: &str = "azure.cosmosdb.client.operation.request_charge";
/// Counter: operations that ended; a name of our own.
pub const METRIC_OPERATIONS: &str = "perihelion.client.operations";
/// Counter: operations that failed; a name of our own.
pub const METRIC_FAILURES: &str = "perihelion.client.failures";
/// Counter: responses with status 429; a name of our own.
pub const METRIC_THROTTLED: &str = "perihelion.client.throttled";
/// Counter: second attempts beside a slow one; a name of our own.
pub const METRIC_HEDGES: &str = "perihelion.client.hedges";
/// Counter: attempts in another region; a name of our own.
pub const METRIC_FAILOVERS: &str = "perihelion.client.failovers";
/// Gauge: 1 while the breaker of a partition in a region is open; a name of our own.
pub const METRIC_BREAKER_OPEN: &str = "perihelion.client.circuit_breaker.open";

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
            (DB_SYSTEM_NAME, AttributeValue::Word(SYSTEM)),
            (CONNECTION_MODE, AttributeValue::Word(GATEWAY)),
            (DB_OPERATION_NAME, AttributeValue::Word(self.operation)),
            (REQUEST_CHARGE, AttributeValue::Number(self.totals.charge)),
        ];
        let mut regions: Vec<String> = Vec::new();
        for attempt in &self.attempts {
            let region = attempt.endpoint.region().as_str();
            if !regions.iter().any(|known| known == region) {
                regions.push(region.to_owned());
            }
        }
        attributes.push((CONTACTED_REGIONS, AttributeValue::List(regions)));
        if let Some((Status(status), SubStatus(sub_status))) = self.last_status() {
            attributes.push((DB_RESPONSE_STATUS_CODE, AttributeValue::Text(status.to_string())));
            attributes.push((SUB_STATUS_CODE, AttributeValue::Integer(sub_status.into())));
        }
        if let Some(host) = self.attempts.last().and_then(|attempt| attempt.endpoint.url().host_str()) {
            attributes.push((SERVER_ADDRESS, AttributeValue::Text(host.to_owned())));
        }
        attributes
    }

    fn last_status(&self) -> Option<(Status, SubStatus)> {
        self.attempts.iter().rev().find_map(|attempt| attempt.outcome.sent()?.status)
    }
}
