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
