//! Header names, lower case, by the job they do, and how their commonest values are read.
//!
//! In and out: plain text. Which header means what for which request is decided by the side that
//! handles the request.

// ── Every request ──

/// What the client takes in an answer.
pub const ACCEPT: &str = "accept";
/// Which compressions the client takes.
pub const ACCEPT_ENCODING: &str = "accept-encoding";
/// The signature, see [`crate::authorization`].
pub const AUTHORIZATION: &str = "authorization";
/// What the body is.
pub const CONTENT_TYPE: &str = "content-type";
/// The value of [`CONTENT_TYPE`] of JSON bodies; item bodies in binary JSON carry it too.
pub const CONTENT_TYPE_JSON: &str = "application/json";
/// How the value of [`CONTENT_TYPE`] starts for queries.
pub const CONTENT_TYPE_QUERY: &str = "application/query+json";
/// How the body is compressed.
pub const CONTENT_ENCODING: &str = "content-encoding";
/// How long the body is.
pub const CONTENT_LENGTH: &str = "content-length";
/// Usually `no-cache` from clients and `no-store, no-cache` from the service.
pub const CACHE_CONTROL: &str = "cache-control";
/// The plain HTTP date; signed only when [`X_DATE`] is absent.
pub const DATE: &str = "date";
/// The host the request was sent to.
pub const HOST: &str = "host";
/// Who is asking.
pub const USER_AGENT: &str = "user-agent";
/// The same, from the JavaScript client.
pub const X_USER_AGENT: &str = "x-ms-useragent";
/// The date that was signed, RFC 1123.
pub const X_DATE: &str = "x-ms-date";
/// API version; all known clients send `2020-07-15`.
pub const VERSION: &str = "x-ms-version";
/// One id per request, echoed or made by the server.
pub const ACTIVITY_ID: &str = "x-ms-activity-id";
/// One id per operation that takes several requests.
pub const CORRELATED_ACTIVITY_ID: &str = "x-ms-cosmos-correlated-activityid";
/// One id per client object.
pub const CLIENT_ID: &str = "x-ms-client-id";
/// A bit set of what the client can do.
pub const SDK_SUPPORTED_CAPABILITIES: &str = "x-ms-cosmos-sdk-supportedcapabilities";
/// Which encodings of a body the client reads: `JsonText`, `CosmosBinary`.
pub const SUPPORTED_SERIALIZATION_FORMATS: &str = "x-ms-cosmos-supported-serialization-formats";
/// The gateway must hand a 449 through instead of retrying.
pub const NO_RETRY_449: &str = "x-ms-noretry-449";
/// The client would rather speak to a Gateway 2.0 endpoint.
pub const USE_THIN_CLIENT: &str = "x-ms-cosmos-use-thinclient";
/// Resource type, as the Python client names it.
pub const THIN_CLIENT_PROXY_RESOURCE_TYPE: &str = "x-ms-thinclient-proxy-resource-type";
/// Operation, as the Python client names it.
pub const THIN_CLIENT_PROXY_OPERATION_TYPE: &str = "x-ms-thinclient-proxy-operation-type";
/// A hint from the Rust client: lower bound of the range it resolved.
pub const THIN_CLIENT_RANGE_MIN: &str = "x-ms-thinclient-pkrange-min";
/// A hint from the Rust client: upper bound of the range it resolved.
pub const THIN_CLIENT_RANGE_MAX: &str = "x-ms-thinclient-pkrange-max";
/// `High` or `Low`.
pub const PRIORITY_LEVEL: &str = "x-ms-cosmos-priority-level";
/// Which throughput bucket pays.
pub const THROUGHPUT_BUCKET: &str = "x-ms-cosmos-throughput-bucket";
/// How stale an answer of a dedicated gateway's cache may be.
pub const DEDICATED_GATEWAY_MAX_AGE: &str = "x-ms-dedicatedgateway-max-age";
/// Go past a dedicated gateway's cache.
pub const DEDICATED_GATEWAY_BYPASS_CACHE: &str = "x-ms-dedicatedgateway-bypass-cache";

// ── Conditions and preferences ──

/// Do it only if the item still has this ETag.
pub const IF_MATCH: &str = "if-match";
/// Do it only if the item no longer has this ETag; on feeds, where to continue.
pub const IF_NONE_MATCH: &str = "if-none-match";
/// A change feed starts after this time.
pub const IF_MODIFIED_SINCE: &str = "if-modified-since";
/// `return=minimal` asks for no body.
pub const PREFER: &str = "prefer";
/// The value of [`PREFER`] that asks for no body.
pub const PREFER_MINIMAL: &str = "return=minimal";
/// The older header with the inverted meaning of [`PREFER_MINIMAL`].
pub const POPULATE_CONTENT_RESPONSE_ON_WRITE: &str = "x-ms-cosmos-populate-content-response-on-write";

// ── Where the data lives ──

/// The logical partition, a JSON array; see [`crate::partition::PartitionKey`].
pub const PARTITION_KEY: &str = "x-ms-documentdb-partitionkey";
/// The physical partition, asked for or having answered.
pub const PARTITION_KEY_RANGE_ID: &str = "x-ms-documentdb-partitionkeyrangeid";
/// Lower bound of a part of the ring.
pub const START_EPK: &str = "x-ms-start-epk";
/// Upper bound of a part of the ring.
pub const END_EPK: &str = "x-ms-end-epk";
/// How the two bounds are meant: `EffectivePartitionKeyRange` or `EffectivePartitionKey`.
pub const READ_KEY_TYPE: &str = "x-ms-read-key-type";
/// The value of [`READ_KEY_TYPE`] for a stretch of the ring.
pub const READ_KEY_TYPE_RANGE: &str = "EffectivePartitionKeyRange";
/// The value of [`READ_KEY_TYPE`] for one position; refused for feeds.
pub const READ_KEY_TYPE_POINT: &str = "EffectivePartitionKey";
/// The container the client believes it talks to.
pub const INTENDED_COLLECTION_RID: &str = "x-ms-cosmos-intended-collection-rid";

// ── Consistency and regions ──

/// The level this request asks for; may only weaken the account's.
pub const CONSISTENCY_LEVEL: &str = "x-ms-consistency-level";
/// The newer way to say it: `Eventual`, `Session`, `LatestCommitted`, `GlobalStrong`.
pub const READ_CONSISTENCY_STRATEGY: &str = "x-ms-cosmos-read-consistency-strategy";
/// What the client has seen, see [`crate::session_token`].
pub const SESSION_TOKEN: &str = "x-ms-session-token";
/// A write may be accepted in any region of a multi-write account.
pub const ALLOW_TENTATIVE_WRITES: &str = "x-ms-cosmos-allow-tentative-writes";
/// Only the hub region may answer.
pub const HUB_REGION_PROCESSING_ONLY: &str = "x-ms-cosmos-hub-region-processing-only";

// ── Items ──

/// A create that replaces what is there.
pub const IS_UPSERT: &str = "x-ms-documentdb-is-upsert";
/// Triggers to run before.
pub const PRE_TRIGGER_INCLUDE: &str = "x-ms-documentdb-pre-trigger-include";
/// Triggers to run after.
pub const POST_TRIGGER_INCLUDE: &str = "x-ms-documentdb-post-trigger-include";
/// Indexing of this item: `Include`, `Exclude` or `Default`.
pub const INDEXING_DIRECTIVE: &str = "x-ms-indexing-directive";
/// A stored procedure may log.
pub const SCRIPT_ENABLE_LOGGING: &str = "x-ms-documentdb-script-enable-logging";
/// What it logged, URL-encoded.
pub const SCRIPT_LOG_RESULTS: &str = "x-ms-documentdb-script-log-results";
/// The body is an array of operations.
pub const IS_BATCH_REQUEST: &str = "x-ms-cosmos-is-batch-request";
/// All of them or none.
pub const BATCH_ATOMIC: &str = "x-ms-cosmos-batch-atomic";
/// Go on after a failed operation.
pub const BATCH_CONTINUE_ON_ERROR: &str = "x-ms-cosmos-batch-continue-on-error";
/// In the order given.
pub const BATCH_ORDERED: &str = "x-ms-cosmos-batch-ordered";

// ── Feeds and queries ──

/// Page size; `-1` leaves it to the server.
pub const MAX_ITEM_COUNT: &str = "x-ms-max-item-count";
/// Where the next page starts.
pub const CONTINUATION: &str = "x-ms-continuation";
/// How many entries the page has.
pub const ITEM_COUNT: &str = "x-ms-item-count";
/// `Incremental Feed` or `Full-Fidelity Feed`.
pub const A_IM: &str = "a-im";
/// The value of [`A_IM`] for the latest version of each item.
pub const A_IM_INCREMENTAL: &str = "Incremental Feed";
/// The value of [`A_IM`] for all versions and deletes.
pub const A_IM_FULL_FIDELITY: &str = "Full-Fidelity Feed";
/// Envelope of change feed entries; `2021-09-15` is the one in use.
pub const CHANGE_FEED_WIRE_FORMAT_VERSION: &str = "x-ms-cosmos-changefeed-wire-format-version";
/// The body is a query.
pub const IS_QUERY: &str = "x-ms-documentdb-isquery";
/// The body is a query whose plan is wanted.
pub const IS_QUERY_PLAN_REQUEST: &str = "x-ms-cosmos-is-query-plan-request";
/// What a plan may ask of the client.
pub const SUPPORTED_QUERY_FEATURES: &str = "x-ms-cosmos-supported-query-features";
/// Version of the plan protocol.
pub const QUERY_VERSION: &str = "x-ms-cosmos-query-version";
/// The query may visit several partitions.
pub const ENABLE_CROSS_PARTITION: &str = "x-ms-documentdb-query-enablecrosspartition";
/// The client will fan out by itself.
pub const PARALLELIZE_CROSS_PARTITION: &str = "x-ms-documentdb-query-parallelizecrosspartitionquery";
/// The query may scan.
pub const ENABLE_SCAN: &str = "x-ms-documentdb-query-enable-scan";
/// Whether the client will want another page.
pub const IS_CONTINUATION_EXPECTED: &str = "x-ms-documentdb-query-iscontinuationexpected";
/// How long a continuation may be, in KB.
pub const CONTINUATION_LIMIT_KB: &str = "x-ms-documentdb-responsecontinuationtokenlimitinkb";
/// A single-partition query may run without a plan.
pub const OPTIMISTIC_DIRECT_EXECUTE: &str = "x-ms-cosmos-query-optimisticdirectexecute";
/// Ask for [`QUERY_METRICS`].
pub const POPULATE_QUERY_METRICS: &str = "x-ms-documentdb-populatequerymetrics";
/// What the query did and how long it took, `key=value` joined by `;`.
pub const QUERY_METRICS: &str = "x-ms-documentdb-query-metrics";
/// Ask for [`INDEX_UTILIZATION`] in base64.
pub const POPULATE_INDEX_METRICS: &str = "x-ms-cosmos-populateindexmetrics";
/// Ask for [`INDEX_UTILIZATION`] in URL-encoded JSON.
pub const POPULATE_INDEX_METRICS_V2: &str = "x-ms-cosmos-populateindexmetrics-v2";
/// Which indexes helped, and which would.
pub const INDEX_UTILIZATION: &str = "x-ms-cosmos-index-utilization";
/// Ask for [`QUERY_ADVICE`].
pub const POPULATE_QUERY_ADVICE: &str = "x-ms-cosmos-populatequeryadvice";
/// Hints on the query text.
pub const QUERY_ADVICE: &str = "x-ms-cosmos-query-advice";
/// How the query was run.
pub const QUERY_EXECUTION_INFO: &str = "x-ms-cosmos-query-execution-info";

// ── Containers, throughput, permissions ──

/// Manual throughput at creation.
pub const OFFER_THROUGHPUT: &str = "x-ms-offer-throughput";
/// Autoscale at creation, as JSON.
pub const OFFER_AUTOPILOT_SETTINGS: &str = "x-ms-cosmos-offer-autopilot-settings";
/// Move an offer from manual to autoscale.
pub const MIGRATE_OFFER_TO_AUTOPILOT: &str = "x-ms-cosmos-migrate-offer-to-autopilot";
/// Move an offer from autoscale to manual.
pub const MIGRATE_OFFER_TO_MANUAL: &str = "x-ms-cosmos-migrate-offer-to-manual-throughput";
/// A change of throughput is under way.
pub const OFFER_REPLACE_PENDING: &str = "x-ms-offer-replace-pending";
/// The least throughput this resource may have.
pub const MIN_THROUGHPUT: &str = "x-ms-cosmos-min-throughput";
/// Ask for quota, usage and indexing progress.
pub const POPULATE_QUOTA_INFO: &str = "x-ms-documentdb-populatequotainfo";
/// Ask for figures per partition.
pub const POPULATE_PARTITION_STATISTICS: &str = "x-ms-documentdb-populatepartitionstatistics";
/// What the container may use.
pub const RESOURCE_QUOTA: &str = "x-ms-resource-quota";
/// What it uses.
pub const RESOURCE_USAGE: &str = "x-ms-resource-usage";
/// How far a change of indexing policy has come, in percent.
pub const INDEX_TRANSFORMATION_PROGRESS: &str = "x-ms-documentdb-collection-index-transformation-progress";
/// How far lazy indexing has come; never sent for consistent indexing.
pub const LAZY_INDEXING_PROGRESS: &str = "x-ms-documentdb-collection-lazy-indexing-progress";
/// A delete by partition key is under way.
pub const IS_PARTITION_KEY_DELETE_PENDING: &str = "x-ms-cosmos-is-partition-key-delete-pending";
/// How long a permission's token lives.
pub const EXPIRY_SECONDS: &str = "x-ms-documentdb-expiry-seconds";

// ── Answers ──

/// Version of the thing answered with; in quotes.
pub const ETAG: &str = "etag";
/// Sub-status, see [`crate::status::SubStatus`].
pub const SUB_STATUS: &str = "x-ms-substatus";
/// How long to wait after a 429.
pub const RETRY_AFTER_MS: &str = "x-ms-retry-after-ms";
/// Request units spent.
pub const REQUEST_CHARGE: &str = "x-ms-request-charge";
/// Time spent, in milliseconds.
pub const REQUEST_DURATION_MS: &str = "x-ms-request-duration-ms";
/// The partition's LSN after the operation.
pub const LSN: &str = "lsn";
/// The LSN of the item's last write.
pub const ITEM_LSN: &str = "x-ms-item-lsn";
/// The partition's LSN in this region.
pub const LOCAL_LSN: &str = "x-ms-cosmos-llsn";
/// The item's LSN in this region.
pub const ITEM_LOCAL_LSN: &str = "x-ms-cosmos-item-llsn";
/// The LSN every region has.
pub const GLOBAL_COMMITTED_LSN: &str = "x-ms-global-committed-lsn";
/// The LSN a quorum has.
pub const QUORUM_ACKED_LSN: &str = "x-ms-quorum-acked-lsn";
/// The LSN a quorum has in this region.
pub const QUORUM_ACKED_LOCAL_LSN: &str = "x-ms-cosmos-quorum-acked-llsn";
/// Readable regions minus one.
pub const NUMBER_OF_READ_REGIONS: &str = "x-ms-number-of-read-regions";
/// The container's `_rid`.
pub const CONTENT_PATH: &str = "x-ms-content-path";
/// The container's path by names.
pub const ALT_CONTENT_PATH: &str = "x-ms-alt-content-path";
/// Which partition served, for diagnostics.
pub const INTERNAL_PARTITION_ID: &str = "x-ms-cosmos-internal-partition-id";
/// Which physical partition served, for diagnostics.
pub const PHYSICAL_PARTITION_ID: &str = "x-ms-cosmos-physical-partition-id";
/// Version of the schema.
pub const SCHEMA_VERSION: &str = "x-ms-schemaversion";
/// Version of the service.
pub const SERVICE_VERSION: &str = "x-ms-serviceversion";
/// Version of the gateway.
pub const GATEWAY_VERSION: &str = "x-ms-gatewayversion";
/// When the replica last changed its role.
pub const LAST_STATE_CHANGE_UTC: &str = "x-ms-last-state-change-utc";
/// One number per request between gateway and replica.
pub const TRANSPORT_REQUEST_ID: &str = "x-ms-transport-request-id";
/// Role of the replica: 1 or 2.
pub const XP_ROLE: &str = "x-ms-xp-role";
/// Replicas that must acknowledge a write.
pub const CURRENT_WRITE_QUORUM: &str = "x-ms-current-write-quorum";
/// Replicas there are.
pub const CURRENT_REPLICA_SET_SIZE: &str = "x-ms-current-replica-set-size";
/// Read by clients of the account resource.
pub const MAX_MEDIA_STORAGE_USAGE_MB: &str = "x-ms-max-media-storage-usage-mb";
/// Read by clients of the account resource.
pub const MEDIA_STORAGE_USAGE_MB: &str = "x-ms-media-storage-usage-mb";
/// HTTPS from now on.
pub const STRICT_TRANSPORT_SECURITY: &str = "strict-transport-security";
/// What answered.
pub const SERVER: &str = "server";

/// Reads a switch: clients write `true`, `True`, `1` and their opposites. `None` for anything else.
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
