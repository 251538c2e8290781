//! The names of spans, events, attributes and metrics.
//!
//! Names are those of OpenTelemetry's semantic conventions for database clients and for Cosmos DB. Names of our own
//! begin with `perihelion`.

/// The target of the spans of operations, and of the events that tell how an operation went.
pub const OPERATION_TARGET: &str = "perihelion::operation";
/// The target of the spans of attempts, and of the events that tell how an attempt went.
pub const ATTEMPT_TARGET: &str = "perihelion::attempt";
/// The target of events about regions and circuit breakers.
pub const ROUTING_TARGET: &str = "perihelion::routing";

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
/// The number of items of a page of a query or feed.
pub const DB_RESPONSE_RETURNED_ROWS: &str = "db.response.returned_rows";
/// The sub-status of the last response.
pub const SUB_STATUS_CODE: &str = "azure.cosmosdb.response.sub_status_code";
/// Request units of the operation.
pub const REQUEST_CHARGE: &str = "azure.cosmosdb.operation.request_charge";
/// The regions contacted, in order.
pub const CONTACTED_REGIONS: &str = "azure.cosmosdb.operation.contacted_regions";
/// The consistency of the account, or of the read.
pub const CONSISTENCY_LEVEL: &str = "azure.cosmosdb.consistency.level";
/// How the service is reached, always [`GATEWAY`].
pub const CONNECTION_MODE: &str = "azure.cosmosdb.connection.mode";
/// The value of [`CONNECTION_MODE`].
pub const GATEWAY: &str = "gateway";
/// The bytes of the request's body.
pub const REQUEST_BODY_SIZE: &str = "azure.cosmosdb.request.body.size";
/// The resource provider of the service, always [`RESOURCE_PROVIDER`].
pub const RESOURCE_PROVIDER_NAMESPACE: &str = "azure.resource_provider.namespace";
/// The value of [`RESOURCE_PROVIDER_NAMESPACE`].
pub const RESOURCE_PROVIDER: &str = "Microsoft.DocumentDB";
/// The id that a driver sends with all of its requests.
pub const CLIENT_ID: &str = "azure.client.id";
/// The activity id of a request, by which the service's logs know it.
pub const SERVICE_REQUEST_ID: &str = "azure.service.request.id";
/// The user agent that a driver sends with all of its requests.
pub const USER_AGENT: &str = "user_agent.original";
/// The host of the account, or of the region that an attempt is sent to.
pub const SERVER_ADDRESS: &str = "server.address";
/// The port of [`SERVER_ADDRESS`].
pub const SERVER_PORT: &str = "server.port";
/// The kind of the error: the status, or the name of an [`ErrorKind`](crate::ErrorKind).
pub const ERROR_TYPE: &str = "error.type";
/// The value of [`ERROR_TYPE`] of an operation that its caller dropped.
pub const CANCELLED: &str = "cancelled";
/// How many requests an operation sent; a name of our own.
pub const ATTEMPTS: &str = "perihelion.attempts";
/// How many attempts came after the first, hedged ones not counted; a name of our own.
pub const RETRIES: &str = "perihelion.retries";
/// How many second attempts ran beside a slow one; a name of our own.
pub const HEDGES: &str = "perihelion.hedges";
/// How many attempts were made in another region than the one before; a name of our own.
pub const FAILOVERS: &str = "perihelion.failovers";
/// How many responses had status 429; a name of our own.
pub const THROTTLED: &str = "perihelion.throttled";
/// The region of an attempt, or of an event; a name of our own.
pub const REGION: &str = "perihelion.region";
/// A physical partition; a name of our own.
pub const PARTITION_RANGE: &str = "perihelion.partition_range";

/// Histogram: seconds per operation.
pub const METRIC_OPERATION_DURATION: &str = "db.client.operation.duration";
/// Histogram: request units per operation.
pub const METRIC_REQUEST_CHARGE: &str = "azure.cosmosdb.client.operation.request_charge";
/// Histogram: items per page of a query or feed.
pub const METRIC_RETURNED_ROWS: &str = "db.client.response.returned_rows";
/// Up-down counter: clients that exist.
pub const METRIC_ACTIVE_INSTANCES: &str = "azure.cosmosdb.client.active_instance.count";
/// Counter: operations that ended; a name of our own.
pub const METRIC_OPERATIONS: &str = "perihelion.client.operations";
/// Counter: operations that failed; a name of our own.
pub const METRIC_FAILURES: &str = "perihelion.client.failures";
/// Counter: attempts after the first, hedged ones not counted; a name of our own.
pub const METRIC_RETRIES: &str = "perihelion.client.retries";
/// Counter: responses with status 429; a name of our own.
pub const METRIC_THROTTLED: &str = "perihelion.client.throttled";
/// Counter: second attempts beside a slow one; a name of our own.
pub const METRIC_HEDGES: &str = "perihelion.client.hedges";
/// Counter: attempts in another region; a name of our own.
pub const METRIC_FAILOVERS: &str = "perihelion.client.failovers";
/// Gauge: circuit breakers that are open in a region; a name of our own.
pub const METRIC_BREAKER_OPEN: &str = "perihelion.client.circuit_breaker.open";
/// Gauge: 1 while a region gets no requests, or no writes; a name of our own.
pub const METRIC_REGION_UNAVAILABLE: &str = "perihelion.client.region.unavailable";
