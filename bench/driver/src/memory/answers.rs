//! What a server of one region, one container and one partition answers.

use std::collections::HashMap;
use std::sync::LazyLock;

use azure_core::http::headers::{HeaderName, HeaderValue, Headers};

/// Where the account is.
pub(super) const ENDPOINT: &str = "https://memory.documents.azure.com/";
/// A key of the right length.
pub(super) const KEY: &str =
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==";
/// The container.
pub(super) const CONTAINER: &str = "reads";

/// The header of a request that asks for news only.
pub(super) const IF_NONE_MATCH: HeaderName = HeaderName::from_static("if-none-match");

/// One answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Headers,
    pub(super) body: &'static [u8],
}

/// The answer to a request for a path, which asks for news only if `conditional`.
pub(super) fn answer(path: &str, conditional: bool) -> Answer {
    if path.contains("/docs/") {
        return Answer { status: 200, headers: ITEM_HEADERS.clone(), body: ITEM };
    }
    let headers = METADATA_HEADERS.clone();
    let body = match path.trim_end_matches('/').rsplit('/').next().unwrap_or_default() {
        "pkranges" if conditional => return Answer { status: 304, headers, body: b"" },
        "pkranges" => RANGES,
        CONTAINER => CONTAINER_PROPERTIES,
        _ => ACCOUNT,
    };
    Answer { status: 200, headers, body }
}

static METADATA_HEADERS: LazyLock<Headers> = LazyLock::new(|| {
    headers(&[
        ("x-ms-activity-id", "eafe296e-c26d-4fc6-9f5c-855d91a28af5"),
        ("x-ms-request-charge", "1"),
        ("x-ms-gatewayversion", "version=2.14.0"),
        ("x-ms-serviceversion", "version=2.14.0.0"),
        ("content-type", "application/json"),
        ("etag", "\"4\""),
    ])
});

static ITEM_HEADERS: LazyLock<Headers> = LazyLock::new(|| {
    headers(&[
        ("x-ms-activity-id", "b1ed609e-abbd-47f0-9f5c-855d91a28af5"),
        ("x-ms-request-charge", "1"),
        ("x-ms-request-duration-ms", "0.027"),
        ("x-ms-last-state-change-utc", "Mon, 16 Nov 2026 07:20:31 GMT"),
        ("cache-control", "no-store, no-cache"),
        ("x-ms-gatewayversion", "version=2.14.0"),
        ("x-ms-serviceversion", "version=2.14.0.0"),
        ("x-ms-schemaversion", "1.16"),
        ("x-ms-session-token", "0:-1#2"),
        ("x-ms-documentdb-partitionkeyrangeid", "0"),
        ("x-ms-cosmos-internal-partition-id", "0"),
        ("x-ms-cosmos-llsn", "2"),
        ("x-ms-global-committed-lsn", "2"),
        ("x-ms-quorum-acked-lsn", "2"),
        ("lsn", "2"),
        ("x-ms-number-of-read-regions", "0"),
        ("x-ms-content-path", "1hjHEoAAAAE="),
        ("x-ms-alt-content-path", "dbs/bench/colls/reads"),
        ("content-type", "application/json"),
        ("etag", "\"00000002-0000-0001-0000-6afaaebf0000\""),
        ("x-ms-item-lsn", "2"),
        ("date", "Mon, 16 Nov 2026 07:20:31 GMT"),
    ])
});

fn headers(pairs: &'static [(&'static str, &'static str)]) -> Headers {
    let pairs =
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    pairs.collect::<HashMap<_, _>>().into()
}

/// A small item.
pub(super) const ITEM: &[u8] = br#"{"id":"item-1","pk":"k","_rid":"1hjHEoAAAAEBAAAAAAAAAA==","_self":"dbs/1hjHEg==/colls/1hjHEoAAAAE=/docs/1hjHEoAAAAEBAAAAAAAAAA==/","_etag":"\"00000002-0000-0001-0000-6afaaebf0000\"","_attachments":"attachments/","_ts":1794813631}"#;

const ACCOUNT: &[u8] = br#"{"_self":"","id":"memory","_rid":"memory.documents.azure.com","media":"//media/","addresses":"//addresses/","_dbs":"//dbs/","writableLocations":[{"name":"West US","databaseAccountEndpoint":"https://memory-westus.documents.azure.com/"}],"readableLocations":[{"name":"West US","databaseAccountEndpoint":"https://memory-westus.documents.azure.com/"}],"enableMultipleWriteLocations":false,"continuousBackupEnabled":false,"enableNRegionSynchronousCommit":false,"enablePerPartitionFailoverBehavior":false,"userReplicationPolicy":{"minReplicaSetSize":3,"maxReplicasetSize":4,"asyncReplication":false},"userConsistencyPolicy":{"defaultConsistencyLevel":"Session"},"systemReplicationPolicy":{"minReplicaSetSize":3,"maxReplicasetSize":4,"asyncReplication":false},"readPolicy":{"primaryReadCoefficient":1,"secondaryReadCoefficient":1},"queryEngineConfiguration":"{\"maxSqlQueryInputLength\":262144}"}"#;

const CONTAINER_PROPERTIES: &[u8] = br#"{"id":"reads","indexingPolicy":{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]},"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"uniqueKeyPolicy":{"uniqueKeys":[]},"conflictResolutionPolicy":{"mode":"LastWriterWins","conflictResolutionPath":"/_ts","conflictResolutionProcedure":""},"geospatialConfig":{"type":"Geography"},"_rid":"1hjHEoAAAAE=","_self":"dbs/1hjHEg==/colls/1hjHEoAAAAE=/","_etag":"\"00000002-0000-0100-0000-6afaaebf0000\"","_ts":1794813631,"_docs":"docs/","_sprocs":"sprocs/","_triggers":"triggers/","_udfs":"udfs/","_conflicts":"conflicts/"}"#;

const RANGES: &[u8] = br#"{"_rid":"1hjHEoAAAAE=","PartitionKeyRanges":[{"id":"0","minInclusive":"","maxExclusive":"FF","ridPrefix":0,"throughputFraction":1,"status":"online","parents":[],"_lsn":1,"_rid":"1hjHEoAAAAECAAAAAAAAUA==","_self":"dbs/1hjHEg==/colls/1hjHEoAAAAE=/pkranges/1hjHEoAAAAECAAAAAAAAUA==/","_etag":"\"00000002-0000-0100-0000-6afaaebf0000\"","_ts":1794813631}],"_count":1}"#;
