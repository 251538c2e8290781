//! Names of request and response headers, in lower case, grouped by purpose, and parsing of boolean values.
//!
//! Which header applies to which request is decided where the request is handled.

// ── Every request ──

/// The media types that the client accepts.
pub const ACCEPT: &str = "accept";
/// The compressions that the client accepts.
pub const ACCEPT_ENCODING: &str = "accept-encoding";
/// The authorization token, see [`crate::authorization`].
pub const AUTHORIZATION: &str = "authorization";
/// The media type of the body.
pub const CONTENT_TYPE: &str = "content-type";
/// The value of [`CONTENT_TYPE`] of JSON bodies; item bodies in binary JSON carry it too.
pub const CONTENT_TYPE_JSON: &str = "application/json";
/// How the value of [`CONTENT_TYPE`] starts for queries.
pub const CONTENT_TYPE_QUERY: &str = "application/query+json";
/// The compression of the body.
pub const CONTENT_ENCODING: &str = "content-encoding";
/// The length of the body in bytes.
pub const CONTENT_LENGTH: &str = "content-length";
/// Usually `no-cache` from clients and `no-store, no-cache` from the service.
pub const CACHE_CONTROL: &str = "cache-control";
/// The plain HTTP date; signed only when [`X_DATE`] is absent.
pub const DATE: &str = "date";
/// The host the request was sent to.
pub const HOST: &str = "host";
/// The client's name and version.
pub const USER_AGENT: &str = "user-agent";
/// The client's name and version, from the JavaScript client in a browser.
pub const X_USER_AGENT: &str = "x-ms-useragent";
/// The date that is part of the signature, in RFC 1123 form.
pub const X_DATE: &str = "x-ms-date";
/// The API version; all known clients send `2020-07-15`.
pub const VERSION: &str = "x-ms-version";
/// A unique id of the request, chosen by the client or the server.
pub const ACTIVITY_ID: &str = "x-ms-activity-id";
/// A unique id of an operation that takes several requests.
pub const CORRELATED_ACTIVITY_ID: &str = "x-ms-cosmos-correlated-activityid";
/// A unique id of the client instance.
pub const CLIENT_ID: &str = "x-ms-client-id";
/// A bit set of the client's capabilities.
pub const SDK_SUPPORTED_CAPABILITIES: &str = "x-ms-cosmos-sdk-supportedcapabilities";
/// The body encodings that the client accepts: `JsonText`, `CosmosBinary`.
pub const SUPPORTED_SERIALIZATION_FORMATS: &str = "x-ms-cosmos-supported-serialization-formats";
/// The gateway must return a 449 instead of retrying.
pub const NO_RETRY_449: &str = "x-ms-noretry-449";
/// The client prefers a Gateway 2.0 endpoint.
pub const USE_THIN_CLIENT: &str = "x-ms-cosmos-use-thinclient";
/// The resource type, from the Python client to Gateway 2.0.
pub const THIN_CLIENT_PROXY_RESOURCE_TYPE: &str = "x-ms-thinclient-proxy-resource-type";
/// The operation type, from the Python client to Gateway 2.0.
pub const THIN_CLIENT_PROXY_OPERATION_TYPE: &str = "x-ms-thinclient-proxy-operation-type";
/// The lower bound of the EPK range that the Rust client resolved.
pub const THIN_CLIENT_RANGE_MIN: &str = "x-ms-thinclient-pkrange-min";
/// The upper bound of the EPK range that the Rust client resolved.
pub const THIN_CLIENT_RANGE_MAX: &str = "x-ms-thinclient-pkrange-max";
/// The priority of the request: `High` or `Low`.
pub const PRIORITY_LEVEL: &str = "x-ms-cosmos-priority-level";
/// The throughput bucket that the request is charged to.
pub const THROUGHPUT_BUCKET: &str = "x-ms-cosmos-throughput-bucket";
/// The largest staleness of a response from the cache of a dedicated gateway.
pub const DEDICATED_GATEWAY_MAX_AGE: &str = "x-ms-dedicatedgateway-max-age";
/// Bypasses the cache of a dedicated gateway.
pub const DEDICATED_GATEWAY_BYPASS_CACHE: &str = "x-ms-dedicatedgateway-bypass-cache";

// ── Conditions and preferences ──

/// Executes the request only if the resource still has this ETag.
pub const IF_MATCH: &str = "if-match";
/// Executes the request only if the resource no longer has this ETag; on feeds, where to continue.
pub const IF_NONE_MATCH: &str = "if-none-match";
/// The time at which a change feed starts.
pub const IF_MODIFIED_SINCE: &str = "if-modified-since";
/// Preferences; `return=minimal` asks for a response without a body.
pub const PREFER: &str = "prefer";
/// The value of [`PREFER`] that asks for a response without a body.
pub const PREFER_MINIMAL: &str = "return=minimal";
/// An older header with the inverse meaning of [`PREFER_MINIMAL`].
pub const POPULATE_CONTENT_RESPONSE_ON_WRITE: &str = "x-ms-cosmos-populate-content-response-on-write";

// ── Partitioning ──

/// The partition key, as a JSON array; see [`crate::partition::PartitionKey`].
pub const PARTITION_KEY: &str = "x-ms-documentdb-partitionkey";
/// The partition key range that is requested, or that responded.
pub const PARTITION_KEY_RANGE_ID: &str = "x-ms-documentdb-partitionkeyrangeid";
/// The lower bound of an EPK range.
pub const START_EPK: &str = "x-ms-start-epk";
/// The upper bound of an EPK range.
pub const END_EPK: &str = "x-ms-end-epk";
/// The type of the two bounds: `EffectivePartitionKeyRange` or `EffectivePartitionKey`.
pub const READ_KEY_TYPE: &str = "x-ms-read-key-type";
/// The value of [`READ_KEY_TYPE`] for an EPK range.
pub const READ_KEY_TYPE_RANGE: &str = "EffectivePartitionKeyRange";
/// The value of [`READ_KEY_TYPE`] for a single EPK; an error for feeds.
pub const READ_KEY_TYPE_POINT: &str = "EffectivePartitionKey";
/// The `_rid` of the container that the client intends to address.
pub const INTENDED_COLLECTION_RID: &str = "x-ms-cosmos-intended-collection-rid";
/// Whether the client has encrypted what it sends, as the container's encryption policy says.
pub const IS_CLIENT_ENCRYPTED: &str = "x-ms-cosmos-is-client-encrypted";

// ── Consistency and regions ──

/// The consistency level of this request, which may only weaken the account's.
pub const CONSISTENCY_LEVEL: &str = "x-ms-consistency-level";
/// The newer form of the consistency level: `Eventual`, `Session`, `LatestCommitted`, `GlobalStrong`.
pub const READ_CONSISTENCY_STRATEGY: &str = "x-ms-cosmos-read-consistency-strategy";
/// The session token, see [`crate::session_token`].
pub const SESSION_TOKEN: &str = "x-ms-session-token";
/// A write may be accepted in any region of a multi-write account.
pub const ALLOW_TENTATIVE_WRITES: &str = "x-ms-cosmos-allow-tentative-writes";
/// Only the hub region may serve the request.
pub const HUB_REGION_PROCESSING_ONLY: &str = "x-ms-cosmos-hub-region-processing-only";

// ── Items ──

/// A create request is an upsert.
pub const IS_UPSERT: &str = "x-ms-documentdb-is-upsert";
/// The triggers to run before the operation.
pub const PRE_TRIGGER_INCLUDE: &str = "x-ms-documentdb-pre-trigger-include";
/// The triggers to run after the operation.
pub const POST_TRIGGER_INCLUDE: &str = "x-ms-documentdb-post-trigger-include";
/// Indexing of this item: `Include`, `Exclude` or `Default`.
pub const INDEXING_DIRECTIVE: &str = "x-ms-indexing-directive";
/// Enables logging in a stored procedure.
pub const SCRIPT_ENABLE_LOGGING: &str = "x-ms-documentdb-script-enable-logging";
/// The log of a stored procedure, URL-encoded.
pub const SCRIPT_LOG_RESULTS: &str = "x-ms-documentdb-script-log-results";
/// The body is a list of batch operations.
pub const IS_BATCH_REQUEST: &str = "x-ms-cosmos-is-batch-request";
/// The batch is atomic: all operations succeed or none.
pub const BATCH_ATOMIC: &str = "x-ms-cosmos-batch-atomic";
/// The batch continues after a failed operation.
pub const BATCH_CONTINUE_ON_ERROR: &str = "x-ms-cosmos-batch-continue-on-error";
/// The batch is executed in order.
pub const BATCH_ORDERED: &str = "x-ms-cosmos-batch-ordered";

// ── Feeds and queries ──

/// The page size; `-1` leaves it to the server.
pub const MAX_ITEM_COUNT: &str = "x-ms-max-item-count";
/// The continuation token, from which the next page starts.
pub const CONTINUATION: &str = "x-ms-continuation";
/// The number of entries of the page.
pub const ITEM_COUNT: &str = "x-ms-item-count";
/// The change feed mode: `Incremental Feed` or `Full-Fidelity Feed`.
pub const A_IM: &str = "a-im";
/// The value of [`A_IM`] for the latest version of each item.
pub const A_IM_INCREMENTAL: &str = "Incremental Feed";
/// The value of [`A_IM`] for all versions and deletes.
pub const A_IM_FULL_FIDELITY: &str = "Full-Fidelity Feed";
/// The format of change feed entries; `2021-09-15` is the one in use.
pub const CHANGE_FEED_WIRE_FORMAT_VERSION: &str = "x-ms-cosmos-changefeed-wire-format-version";
/// The body is a query.
pub const IS_QUERY: &str = "x-ms-documentdb-isquery";
/// The body is a query, and the response is its query plan.
pub const IS_QUERY_PLAN_REQUEST: &str = "x-ms-cosmos-is-query-plan-request";
/// The query features that the client can merge.
pub const SUPPORTED_QUERY_FEATURES: &str = "x-ms-cosmos-supported-query-features";
/// The version of the query plan protocol.
pub const QUERY_VERSION: &str = "x-ms-cosmos-query-version";
/// The query may read several partitions.
pub const ENABLE_CROSS_PARTITION: &str = "x-ms-documentdb-query-enablecrosspartition";
/// The client sends the query to the partitions itself.
pub const PARALLELIZE_CROSS_PARTITION: &str = "x-ms-documentdb-query-parallelizecrosspartitionquery";
/// The query may scan without an index.
pub const ENABLE_SCAN: &str = "x-ms-documentdb-query-enable-scan";
/// Whether the client will request another page.
pub const IS_CONTINUATION_EXPECTED: &str = "x-ms-documentdb-query-iscontinuationexpected";
/// The largest continuation token, in KB.
pub const CONTINUATION_LIMIT_KB: &str = "x-ms-documentdb-responsecontinuationtokenlimitinkb";
/// A single-partition query may be executed without a plan.
pub const OPTIMISTIC_DIRECT_EXECUTE: &str = "x-ms-cosmos-query-optimisticdirectexecute";
/// Requests [`QUERY_METRICS`] in the response.
pub const POPULATE_QUERY_METRICS: &str = "x-ms-documentdb-populatequerymetrics";
/// Metrics of the query execution, `key=value` joined by `;`.
pub const QUERY_METRICS: &str = "x-ms-documentdb-query-metrics";
/// Requests [`INDEX_UTILIZATION`] in base64.
pub const POPULATE_INDEX_METRICS: &str = "x-ms-cosmos-populateindexmetrics";
/// Requests [`INDEX_UTILIZATION`] in URL-encoded JSON.
pub const POPULATE_INDEX_METRICS_V2: &str = "x-ms-cosmos-populateindexmetrics-v2";
/// The indexes that the query used, and those that would help.
pub const INDEX_UTILIZATION: &str = "x-ms-cosmos-index-utilization";
/// Requests [`QUERY_ADVICE`] in the response.
pub const POPULATE_QUERY_ADVICE: &str = "x-ms-cosmos-populatequeryadvice";
/// Advice on the query text.
pub const QUERY_ADVICE: &str = "x-ms-cosmos-query-advice";
/// How the query was executed.
pub const QUERY_EXECUTION_INFO: &str = "x-ms-cosmos-query-execution-info";
/// Whether a query has to be run over several partitions after all, in the response to an optimistic one.
pub const REQUIRES_DISTRIBUTION: &str = "x-ms-cosmos-query-requiresdistribution";
/// The order in which a feed is read: `Forward` or `Reverse`.
pub const ENUMERATION_DIRECTION: &str = "x-ms-enumeration-direction";
/// Requests items without their system properties.
pub const EXCLUDE_SYSTEM_PROPERTIES: &str = "x-ms-exclude-system-properties";
/// Whether a container shares the throughput of its database.
pub const SHARE_THROUGHPUT: &str = "x-ms-share-throughput";

// ── Containers, throughput, permissions ──

/// The manual throughput of a new resource.
pub const OFFER_THROUGHPUT: &str = "x-ms-offer-throughput";
/// The autoscale throughput of a new resource, as JSON.
pub const OFFER_AUTOPILOT_SETTINGS: &str = "x-ms-cosmos-offer-autopilot-settings";
/// Migrates an offer from manual to autoscale throughput.
pub const MIGRATE_OFFER_TO_AUTOPILOT: &str = "x-ms-cosmos-migrate-offer-to-autopilot";
/// Migrates an offer from autoscale to manual throughput.
pub const MIGRATE_OFFER_TO_MANUAL: &str = "x-ms-cosmos-migrate-offer-to-manual-throughput";
/// A change of throughput is in progress.
pub const OFFER_REPLACE_PENDING: &str = "x-ms-offer-replace-pending";
/// The least throughput that this resource may have.
pub const MIN_THROUGHPUT: &str = "x-ms-cosmos-min-throughput";
/// Requests quota, usage and indexing progress.
pub const POPULATE_QUOTA_INFO: &str = "x-ms-documentdb-populatequotainfo";
/// Requests statistics per partition.
pub const POPULATE_PARTITION_STATISTICS: &str = "x-ms-documentdb-populatepartitionstatistics";
/// The quotas of the container.
pub const RESOURCE_QUOTA: &str = "x-ms-resource-quota";
/// The usage of the container.
pub const RESOURCE_USAGE: &str = "x-ms-resource-usage";
/// The progress of an indexing policy change, in percent.
pub const INDEX_TRANSFORMATION_PROGRESS: &str = "x-ms-documentdb-collection-index-transformation-progress";
/// The progress of lazy indexing; never sent for consistent indexing.
pub const LAZY_INDEXING_PROGRESS: &str = "x-ms-documentdb-collection-lazy-indexing-progress";
/// A delete by partition key is in progress.
pub const IS_PARTITION_KEY_DELETE_PENDING: &str = "x-ms-cosmos-is-partition-key-delete-pending";
/// The lifetime of a resource token, in seconds.
pub const EXPIRY_SECONDS: &str = "x-ms-documentdb-expiry-seconds";

// ── Responses ──

/// The ETag of the resource, in quotes.
pub const ETAG: &str = "etag";
/// The sub-status code, see [`crate::status::SubStatus`].
pub const SUB_STATUS: &str = "x-ms-substatus";
/// How long to wait after a 429, in milliseconds.
pub const RETRY_AFTER_MS: &str = "x-ms-retry-after-ms";
/// The request units that the request consumed.
pub const REQUEST_CHARGE: &str = "x-ms-request-charge";
/// The time that the server spent, in milliseconds.
pub const REQUEST_DURATION_MS: &str = "x-ms-request-duration-ms";
/// The LSN of the partition after the operation.
pub const LSN: &str = "lsn";
/// The LSN of the item's last write.
pub const ITEM_LSN: &str = "x-ms-item-lsn";
/// The LSN of the partition in this region.
pub const LOCAL_LSN: &str = "x-ms-cosmos-llsn";
/// The LSN of the item in this region.
pub const ITEM_LOCAL_LSN: &str = "x-ms-cosmos-item-llsn";
/// The LSN that every region has committed.
pub const GLOBAL_COMMITTED_LSN: &str = "x-ms-global-committed-lsn";
/// The LSN that a quorum has acknowledged.
pub const QUORUM_ACKED_LSN: &str = "x-ms-quorum-acked-lsn";
/// The LSN that a quorum has acknowledged in this region.
pub const QUORUM_ACKED_LOCAL_LSN: &str = "x-ms-cosmos-quorum-acked-llsn";
/// The number of readable regions minus one.
pub const NUMBER_OF_READ_REGIONS: &str = "x-ms-number-of-read-regions";
/// The `_rid` of the container.
pub const CONTENT_PATH: &str = "x-ms-content-path";
/// The path of the container by names.
pub const ALT_CONTENT_PATH: &str = "x-ms-alt-content-path";
/// The partition that served the request, for diagnostics.
pub const INTERNAL_PARTITION_ID: &str = "x-ms-cosmos-internal-partition-id";
/// The physical partition that served the request, for diagnostics.
pub const PHYSICAL_PARTITION_ID: &str = "x-ms-cosmos-physical-partition-id";
/// The version of the schema.
pub const SCHEMA_VERSION: &str = "x-ms-schemaversion";
/// The version of the service.
pub const SERVICE_VERSION: &str = "x-ms-serviceversion";
/// The version of the gateway.
pub const GATEWAY_VERSION: &str = "x-ms-gatewayversion";
/// When the replica last changed its role.
pub const LAST_STATE_CHANGE_UTC: &str = "x-ms-last-state-change-utc";
/// A number of the request between gateway and replica.
pub const TRANSPORT_REQUEST_ID: &str = "x-ms-transport-request-id";
/// The role of the replica: 1 or 2.
pub const XP_ROLE: &str = "x-ms-xp-role";
/// How many replicas must acknowledge a write.
pub const CURRENT_WRITE_QUORUM: &str = "x-ms-current-write-quorum";
/// The number of replicas in the replica set.
pub const CURRENT_REPLICA_SET_SIZE: &str = "x-ms-current-replica-set-size";
/// The media storage quota, which clients read from the account resource.
pub const MAX_MEDIA_STORAGE_USAGE_MB: &str = "x-ms-max-media-storage-usage-mb";
/// The media storage usage, which clients read from the account resource.
pub const MEDIA_STORAGE_USAGE_MB: &str = "x-ms-media-storage-usage-mb";
/// Requires HTTPS for further requests (HSTS).
pub const STRICT_TRANSPORT_SECURITY: &str = "strict-transport-security";
/// The name of the server software.
pub const SERVER: &str = "server";

/// Parses a boolean header: clients write `true`, `True`, `1` and their opposites. `None` for anything
/// else.
pub fn parse_bool(value: &str) -> Option<bool> {
    let value = value.trim();
    if value.eq_ignore_ascii_case("true") || value == "1" {
        Some(true)
    } else if value.eq_ignore_ascii_case("false") || value == "0" {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_read_in_every_spelling_clients_use() {
        for (value, expected) in [
            ("true", Some(true)),
            ("True", Some(true)),
            ("TRUE", Some(true)),
            ("1", Some(true)),
            (" true ", Some(true)),
            ("false", Some(false)),
            ("False", Some(false)),
            ("0", Some(false)),
            ("", None),
            ("yes", None),
        ] {
            assert_eq!(parse_bool(value), expected, "value: {value:?}");
        }
    }
}
