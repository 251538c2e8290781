//! The headers of a request, parsed once.
//!
//! Input: the header map of one request. Output: [`RequestHeaders`], with one field per header that a handler
//! may need, filled in a single pass (a point read has some twenty headers; looking each one up by name would
//! hash every name). Typed readings of a value are here too, with the service's error for invalid ones. What
//! the headers mean for an operation is decided by the router and the handlers.

use http::{HeaderMap, HeaderValue};
use protocol::headers as name;

use crate::response::ServiceError;

/// Header that requests items as of a snapshot or an LSN: an extension of the emulator.
pub(crate) const AS_OF: &str = "x-perihelion-as-of";

macro_rules! request_headers {
    ($($(#[$doc:meta])* $field:ident = $name:path;)*) => {
        /// The headers of one request, one field each.
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct RequestHeaders<'a> {
            $($(#[$doc])* pub $field: Option<&'a HeaderValue>,)*
        }

        impl<'a> RequestHeaders<'a> {
            /// Reads `map` once. Grows with the number of headers sent; the first of a repeated
            /// header counts.
            pub(crate) fn scan(map: &'a HeaderMap) -> RequestHeaders<'a> {
                let mut headers = RequestHeaders::default();
                for (header, value) in map {
                    match header.as_str() {
                        $($name => { headers.$field.get_or_insert(value); })*
                        _ => {}
                    }
                }
                headers
            }
        }
    };
}

request_headers! {
    /// `authorization`: the signature or token.
    authorization = name::AUTHORIZATION;
    /// `x-ms-date`: when the request was signed.
    ms_date = name::X_DATE;
    /// `date`: when the request was signed, for clients that cannot set `x-ms-date`.
    http_date = name::DATE;
    /// `x-ms-version`: the version of the protocol.
    version = name::VERSION;
    /// `x-ms-cosmos-supported-serialization-formats`: the encodings of JSON that the client reads.
    supported_serialization_formats = name::SUPPORTED_SERIALIZATION_FORMATS;
    /// `x-ms-exclude-system-properties`: requests items without system properties.
    exclude_system_properties = name::EXCLUDE_SYSTEM_PROPERTIES;
    /// `x-ms-enumeration-direction`: reads a feed from its end.
    enumeration_direction = name::ENUMERATION_DIRECTION;
    /// `x-ms-cosmos-query-optimisticdirectexecute`: runs a query in the one partition it concerns.
    optimistic_direct_execute = name::OPTIMISTIC_DIRECT_EXECUTE;
    /// `host`: how the client reached the account.
    host = name::HOST;
    /// `content-type`: the media type of the body.
    content_type = name::CONTENT_TYPE;
    /// `user-agent`: what the client calls itself.
    user_agent = name::USER_AGENT;
    /// `x-ms-activity-id`: the client's name for this request.
    activity_id = name::ACTIVITY_ID;
    /// `x-ms-consistency-level`: a weaker level than the account's.
    consistency_level = name::CONSISTENCY_LEVEL;
    /// `x-ms-cosmos-read-consistency-strategy`: the read strategy, instead of a level.
    read_consistency_strategy = name::READ_CONSISTENCY_STRATEGY;
    /// `x-ms-cosmos-priority-level`: `High` or `Low`, for throttling.
    priority_level = name::PRIORITY_LEVEL;
    /// `x-ms-cosmos-hub-region-processing-only`: only the hub region may serve it.
    hub_region_processing_only = name::HUB_REGION_PROCESSING_ONLY;
    /// `x-perihelion-as-of`: a snapshot or an LSN to read at.
    as_of = AS_OF;
    /// `x-ms-session-token`: what the client has already seen.
    session_token = name::SESSION_TOKEN;
    /// `x-ms-documentdb-partitionkey`: the partition key as a JSON array.
    partition_key = name::PARTITION_KEY;
    /// `x-ms-documentdb-partitionkeyrangeid`: one physical partition.
    partition_key_range_id = name::PARTITION_KEY_RANGE_ID;
    /// `x-ms-start-epk`: the inclusive start of an EPK range.
    start_epk = name::START_EPK;
    /// `x-ms-end-epk`: the exclusive end of an EPK range.
    end_epk = name::END_EPK;
    /// `x-ms-read-key-type`: what the two above hold.
    read_key_type = name::READ_KEY_TYPE;
    /// `x-ms-cosmos-intended-collection-rid`: which incarnation of a container the client means.
    intended_collection_rid = name::INTENDED_COLLECTION_RID;
    /// `x-ms-cosmos-is-client-encrypted`: whether the client has encrypted the items that it sends.
    is_client_encrypted = name::IS_CLIENT_ENCRYPTED;
    /// `if-match`: the etag that a write requires.
    if_match = name::IF_MATCH;
    /// `if-none-match`: the etag that the client has.
    if_none_match = name::IF_NONE_MATCH;
    /// `if-modified-since`: start time of a change feed.
    if_modified_since = name::IF_MODIFIED_SINCE;
    /// `a-im`: requests the change feed.
    a_im = name::A_IM;
    /// `x-ms-cosmos-changefeed-wire-format-version`: the format of change feed items.
    change_feed_wire_format_version = name::CHANGE_FEED_WIRE_FORMAT_VERSION;
    /// `prefer`: `return=minimal` omits the body of a write's response.
    prefer = name::PREFER;
    /// `x-ms-cosmos-populate-content-response-on-write`: the older form of the above, inverted.
    populate_content_response_on_write = name::POPULATE_CONTENT_RESPONSE_ON_WRITE;
    /// `x-ms-indexing-directive`: whether the properties of the item are indexed.
    indexing_directive = name::INDEXING_DIRECTIVE;
    /// `x-ms-documentdb-is-upsert`: whether a POST is an upsert.
    is_upsert = name::IS_UPSERT;
    /// `x-ms-documentdb-isquery`: whether a POST is a query.
    is_query = name::IS_QUERY;
    /// `x-ms-cosmos-is-query-plan-request`: whether a POST requests a query plan.
    is_query_plan_request = name::IS_QUERY_PLAN_REQUEST;
    /// `x-ms-cosmos-query-version`: the version of the query language.
    query_version = name::QUERY_VERSION;
    /// `x-ms-cosmos-supported-query-features`: the features that a client can merge.
    supported_query_features = name::SUPPORTED_QUERY_FEATURES;
    /// `x-ms-documentdb-query-enablecrosspartition`: whether a query may read all partitions.
    enable_cross_partition_query = name::ENABLE_CROSS_PARTITION;
    /// `x-ms-documentdb-populatequerymetrics`: requests query metrics.
    populate_query_metrics = name::POPULATE_QUERY_METRICS;
    /// `x-ms-cosmos-populateindexmetrics`: requests index metrics.
    populate_index_metrics = name::POPULATE_INDEX_METRICS;
    /// `x-ms-cosmos-populateindexmetrics-v2`: requests index metrics as JSON.
    populate_index_metrics_v2 = name::POPULATE_INDEX_METRICS_V2;
    /// `x-ms-cosmos-populatequeryadvice`: requests advice on the query text.
    populate_query_advice = name::POPULATE_QUERY_ADVICE;
    /// `x-ms-documentdb-responsecontinuationtokenlimitinkb`: the longest continuation token.
    continuation_token_limit_kb = name::CONTINUATION_LIMIT_KB;
    /// `x-ms-max-item-count`: the page size of a feed or query.
    max_item_count = name::MAX_ITEM_COUNT;
    /// `x-ms-continuation`: where the previous page ended.
    continuation = name::CONTINUATION;
    /// `x-ms-cosmos-is-batch-request`: whether a POST is a batch.
    is_batch_request = name::IS_BATCH_REQUEST;
    /// `x-ms-cosmos-batch-atomic`: whether a batch is a transaction.
    batch_atomic = name::BATCH_ATOMIC;
    /// `x-ms-cosmos-batch-continue-on-error`: whether a bulk request continues after an error.
    batch_continue_on_error = name::BATCH_CONTINUE_ON_ERROR;
    /// `x-ms-documentdb-pre-trigger-include`: triggers that run before the operation.
    pre_trigger_include = name::PRE_TRIGGER_INCLUDE;
    /// `x-ms-documentdb-post-trigger-include`: triggers that run after the operation.
    post_trigger_include = name::POST_TRIGGER_INCLUDE;
    /// `x-ms-documentdb-populatequotainfo`: requests the progress of an index transformation.
    populate_quota_info = name::POPULATE_QUOTA_INFO;
    /// `x-ms-documentdb-populatepartitionstatistics`: requests the sizes of the partitions.
    populate_partition_statistics = name::POPULATE_PARTITION_STATISTICS;
    /// `x-ms-offer-throughput`: manual throughput of a new resource.
    offer_throughput = name::OFFER_THROUGHPUT;
    /// `x-ms-cosmos-offer-autopilot-settings`: autoscale throughput of a new resource.
    offer_autopilot_settings = name::OFFER_AUTOPILOT_SETTINGS;
    /// `x-ms-cosmos-migrate-offer-to-autopilot`: changes an offer to autoscale throughput.
    migrate_offer_to_autopilot = name::MIGRATE_OFFER_TO_AUTOPILOT;
    /// `x-ms-cosmos-migrate-offer-to-manual-throughput`: changes an offer to manual throughput.
    migrate_offer_to_manual = name::MIGRATE_OFFER_TO_MANUAL;
    /// `x-ms-documentdb-expiry-seconds`: lifetime of a resource token.
    expiry_seconds = name::EXPIRY_SECONDS;
}

/// The versions of the protocol that clients may name. The account speaks one, that of current clients.
const VERSIONS: [&str; 19] = [
    "2014-08-21",
    "2015-04-08",
    "2015-06-03",
    "2015-08-06",
    "2015-12-16",
    "2016-05-30",
    "2016-07-11",
    "2016-11-14",
    "2017-01-19",
    "2017-02-22",
    "2017-05-03",
    "2017-11-15",
    "2018-06-18",
    "2018-08-31",
    "2018-09-17",
    "2018-12-31",
    "2019-10-14",
    "2020-07-15",
    "2020-11-05",
];

/// How many entries a page may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageSize {
    /// Absent or `-1`: the server decides.
    Any,
    /// At most this many.
    AtMost(std::num::NonZeroU32),
}

impl PageSize {
    /// The limit to obey, where the server would choose `default`.
    pub(crate) fn limit(self, default: usize) -> usize {
        match self {
            PageSize::Any => default,
            PageSize::AtMost(count) => usize::try_from(count.get()).unwrap_or(usize::MAX),
        }
    }
}

impl<'a> RequestHeaders<'a> {
    /// Parses the page size in `x-ms-max-item-count`.
    pub(crate) fn page_size(&self) -> Result<PageSize, ServiceError> {
        let Some(value) = self.max_item_count else { return Ok(PageSize::Any) };
        let count = text(value).and_then(|text| text.trim().parse::<i64>().ok());
        match count {
            Some(-1) => Ok(PageSize::Any),
            Some(count) if count > 0 => {
                let capped = u32::try_from(count).unwrap_or(u32::MAX);
                Ok(std::num::NonZeroU32::new(capped).map_or(PageSize::Any, PageSize::AtMost))
            }
            _ => Err(invalid_value(name::MAX_ITEM_COUNT, value)),
        }
    }

    /// Checks the limit of continuation tokens, in kilobytes. No token here is longer than the least of them.
    pub(crate) fn check_continuation_limit(&self) -> Result<(), ServiceError> {
        let Some(value) = self.continuation_token_limit_kb else { return Ok(()) };
        match text(value).and_then(|text| text.trim().parse::<i64>().ok()) {
            Some(limit) if limit > 0 => Ok(()),
            _ => Err(invalid_value(name::CONTINUATION_LIMIT_KB, value)),
        }
    }

    /// Rejects a version of the protocol that the service does not know.
    pub(crate) fn check_version(&self) -> Result<(), ServiceError> {
        match self.version {
            Some(version) if !version.is_empty() && !VERSIONS.iter().any(|known| version == known) => {
                Err(invalid_value(name::VERSION, version))
            }
            _ => Ok(()),
        }
    }

    /// Whether the client reads no other encoding of JSON than the binary one.
    pub(crate) fn wants_binary_json(&self) -> bool {
        self.supported_serialization_formats
            .is_some_and(|formats| formats.as_bytes().trim_ascii().eq_ignore_ascii_case(b"CosmosBinary"))
    }

    /// Whether a feed is read from its end.
    pub(crate) fn is_reversed(&self) -> Result<bool, ServiceError> {
        match RequestHeaders::text(self.enumeration_direction, name::ENUMERATION_DIRECTION)? {
            None => Ok(false),
            Some(word) if word.eq_ignore_ascii_case("Forward") => Ok(false),
            Some(word) if word.eq_ignore_ascii_case("Reverse") => Ok(true),
            Some(word) => Err(ServiceError::bad_request(format!(
                "The value '{word}' specified for the header '{}' is invalid.",
                name::ENUMERATION_DIRECTION
            ))),
        }
    }

    /// Reads a header whose value is a boolean; absent and empty are `false`.
    ///
    /// `header` is only used in the error message.
    pub(crate) fn flag(value: Option<&HeaderValue>, header: &str) -> Result<bool, ServiceError> {
        let Some(value) = value else { return Ok(false) };
        match value.as_bytes() {
            b"" | b"0" => Ok(false),
            b"1" => Ok(true),
            word if word.eq_ignore_ascii_case(b"true") => Ok(true),
            word if word.eq_ignore_ascii_case(b"false") => Ok(false),
            _ => Err(invalid_value(header, value)),
        }
    }

    /// The text of a header: `None` when it is missing or empty, an error when it is not UTF-8.
    pub(crate) fn text(
        value: Option<&'a HeaderValue>,
        header: &str,
    ) -> Result<Option<&'a str>, ServiceError> {
        match value {
            None => Ok(None),
            Some(value) if value.is_empty() => Ok(None),
            Some(value) => text(value).map(Some).ok_or_else(|| invalid_value(header, value)),
        }
    }
}

/// The bytes of a value as UTF-8: partition keys may arrive unescaped.
fn text(value: &HeaderValue) -> Option<&str> {
    std::str::from_utf8(value.as_bytes()).ok()
}

/// 400: the header has an invalid value.
pub(crate) fn invalid_value(header: &str, value: &HeaderValue) -> ServiceError {
    let text = String::from_utf8_lossy(value.as_bytes());
    ServiceError::bad_request(format!("The value '{text}' specified for the header '{header}' is invalid."))
}
