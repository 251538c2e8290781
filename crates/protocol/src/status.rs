//! Status and sub-status codes of responses, by name.
//!
//! Input and output: the HTTP status, the value of the `x-ms-substatus` header, and the name that an error
//! body has in `code`. Codes without a name here are passed through.

use std::fmt;

/// The HTTP status of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(pub u16);

impl Status {
    /// 200: the request succeeded.
    pub const OK: Status = Status(200);
    /// 201: the resource was created.
    pub const CREATED: Status = Status(201);
    /// 202: the request was accepted and continues in the background.
    pub const ACCEPTED: Status = Status(202);
    /// 204: the request succeeded, and the response has no body.
    pub const NO_CONTENT: Status = Status(204);
    /// 207: some operations of a batch failed.
    pub const MULTI_STATUS: Status = Status(207);
    /// 304: the resource or feed has not changed.
    pub const NOT_MODIFIED: Status = Status(304);
    /// 400: the request is invalid.
    pub const BAD_REQUEST: Status = Status(400);
    /// 401: the request is not authenticated.
    pub const UNAUTHORIZED: Status = Status(401);
    /// 403: the request is not allowed.
    pub const FORBIDDEN: Status = Status(403);
    /// 404: the resource does not exist.
    pub const NOT_FOUND: Status = Status(404);
    /// 405: the method is not allowed for the resource.
    pub const METHOD_NOT_ALLOWED: Status = Status(405);
    /// 408: the request timed out on the server.
    pub const REQUEST_TIMEOUT: Status = Status(408);
    /// 409: the id or a unique key is already in use.
    pub const CONFLICT: Status = Status(409);
    /// 410: the partition is no longer served here.
    pub const GONE: Status = Status(410);
    /// 412: the ETag condition is not satisfied.
    pub const PRECONDITION_FAILED: Status = Status(412);
    /// 413: the request body is too large.
    pub const REQUEST_ENTITY_TOO_LARGE: Status = Status(413);
    /// 423: the resource is locked by another operation.
    pub const LOCKED: Status = Status(423);
    /// 424: another operation of the batch failed.
    pub const FAILED_DEPENDENCY: Status = Status(424);
    /// 429: the request exceeds the provisioned throughput.
    pub const TOO_MANY_REQUESTS: Status = Status(429);
    /// 449: concurrent writes conflicted; the request can be retried.
    pub const RETRY_WITH: Status = Status(449);
    /// 500: the server failed unexpectedly.
    pub const INTERNAL_SERVER_ERROR: Status = Status(500);
    /// 501: the server does not implement the request.
    pub const NOT_IMPLEMENTED: Status = Status(501);
    /// 503: the service is temporarily unavailable.
    pub const SERVICE_UNAVAILABLE: Status = Status(503);

    /// Whether the request succeeded: 2xx.
    pub fn is_success(self) -> bool {
        (200..300).contains(&self.0)
    }

    /// Whether the response is an error with an error body.
    pub fn is_error(self) -> bool {
        self.0 >= 400
    }

    /// The name that an error body has in `code`.
    pub fn code_name(self) -> &'static str {
        match self {
            Status::OK => "Ok",
            Status::CREATED => "Created",
            Status::ACCEPTED => "Accepted",
            Status::NO_CONTENT => "NoContent",
            Status::MULTI_STATUS => "MultiStatus",
            Status::NOT_MODIFIED => "NotModified",
            Status::BAD_REQUEST => "BadRequest",
            Status::UNAUTHORIZED => "Unauthorized",
            Status::FORBIDDEN => "Forbidden",
            Status::NOT_FOUND => "NotFound",
            Status::METHOD_NOT_ALLOWED => "MethodNotAllowed",
            Status::REQUEST_TIMEOUT => "RequestTimeout",
            Status::CONFLICT => "Conflict",
            Status::GONE => "Gone",
            Status::PRECONDITION_FAILED => "PreconditionFailed",
            Status::REQUEST_ENTITY_TOO_LARGE => "RequestEntityTooLarge",
            Status::LOCKED => "Locked",
            Status::FAILED_DEPENDENCY => "FailedDependency",
            Status::TOO_MANY_REQUESTS => "TooManyRequests",
            Status::RETRY_WITH => "RetryWith",
            Status::INTERNAL_SERVER_ERROR => "InternalServerError",
            Status::NOT_IMPLEMENTED => "NotImplemented",
            Status::SERVICE_UNAVAILABLE => "ServiceUnavailable",
            _ => "Unknown",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, self.code_name())
    }
}

/// The value of the `x-ms-substatus` header, which refines the status. A code can mean different things
/// under different statuses, so some names share one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubStatus(pub u32);

impl SubStatus {
    /// No sub-status, in which case the header is absent.
    pub const NONE: SubStatus = SubStatus(0);

    // 400
    /// 400/1001: the partition keys of the header, the body and the container do not match.
    pub const PARTITION_KEY_MISMATCH: SubStatus = SubStatus(1001);
    /// 400/1004: the client must plan this query and merge its results.
    pub const CROSS_PARTITION_QUERY_NOT_SERVABLE: SubStatus = SubStatus(1004);
    /// 400/1024: the container was recreated under the same name.
    pub const COLLECTION_RID_MISMATCH: SubStatus = SubStatus(1024);

    // 401
    /// 401/5000: there is no `authorization` header.
    pub const AUTHORIZATION_HEADER_MISSING: SubStatus = SubStatus(5000);
    /// 401/5001: the token is malformed.
    pub const AUTHORIZATION_TOKEN_MALFORMED: SubStatus = SubStatus(5001);
    /// 401/5002: the account accepts no Entra ID tokens.
    pub const AAD_AUTH_DISABLED: SubStatus = SubStatus(5002);
    /// 401/5003, the first of the codes for invalid Entra ID tokens: the text is not a token.
    pub const AAD_TOKEN_FIRST: SubStatus = SubStatus(5003);
    /// 401/5004: the signature of the Entra ID token is invalid.
    pub const AAD_TOKEN_INVALID_SIGNATURE: SubStatus = SubStatus(5004);
    /// 401/5005: the Entra ID token is not valid yet.
    pub const AAD_TOKEN_NOT_YET_VALID: SubStatus = SubStatus(5005);
    /// 401/5006: the Entra ID token has expired.
    pub const AAD_TOKEN_EXPIRED: SubStatus = SubStatus(5006);
    /// 401/5011, the last of the codes for invalid Entra ID tokens.
    pub const AAD_TOKEN_LAST: SubStatus = SubStatus(5011);

    // 403
    /// 403/3: this region does not accept writes.
    pub const WRITE_FORBIDDEN: SubStatus = SubStatus(3);
    /// 403/1008: the account is not, or no longer, in this region.
    pub const DATABASE_ACCOUNT_NOT_FOUND: SubStatus = SubStatus(1008);
    /// 403/1014: the logical partition is full.
    pub const PARTITION_KEY_QUOTA_EXCEEDED: SubStatus = SubStatus(1014);
    /// 403/5300: no role of the principal allows the request.
    pub const RBAC_REQUEST_FORBIDDEN: SubStatus = SubStatus(5300);
    /// 403/5301, a sibling of [`SubStatus::RBAC_REQUEST_FORBIDDEN`].
    pub const RBAC_FORBIDDEN_5301: SubStatus = SubStatus(5301);
    /// 403/5302, a sibling of [`SubStatus::RBAC_REQUEST_FORBIDDEN`].
    pub const RBAC_FORBIDDEN_5302: SubStatus = SubStatus(5302);
    /// 403/5303, a sibling of [`SubStatus::RBAC_REQUEST_FORBIDDEN`].
    pub const RBAC_FORBIDDEN_5303: SubStatus = SubStatus(5303);

    // 404
    /// 404/1002: this region has not yet applied the writes that the session token requires.
    pub const READ_SESSION_NOT_AVAILABLE: SubStatus = SubStatus(1002);
    /// 404/1003: the parent resource does not exist.
    pub const OWNER_RESOURCE_NOT_FOUND: SubStatus = SubStatus(1003);
    /// 404/1013: the container is still being created.
    pub const COLLECTION_CREATE_IN_PROGRESS: SubStatus = SubStatus(1013);

    // 408
    /// 408/1900: the request timed out on the server.
    pub const SERVER_TIMEOUT: SubStatus = SubStatus(1900);

    // 409
    /// 409/3301: another item has the same unique key.
    pub const UNIQUE_INDEX_VIOLATION: SubStatus = SubStatus(3301);
    /// 409/3206: the operation conflicts with another one in progress.
    pub const CONFLICT_WITH_CONTROL_PLANE: SubStatus = SubStatus(3206);
    /// 409/1006: the name is already in use.
    pub const NAME_CONFLICT: SubStatus = SubStatus(1006);

    // 410
    /// 410/1000: the name now belongs to another container.
    pub const NAME_CACHE_STALE: SubStatus = SubStatus(1000);
    /// 410/1002: the partition key range no longer exists after a split or merge.
    pub const PARTITION_KEY_RANGE_GONE: SubStatus = SubStatus(1002);
    /// 410/1007: a split is about to complete.
    pub const COMPLETING_SPLIT: SubStatus = SubStatus(1007);
    /// 410/1008: a partition is about to move.
    pub const COMPLETING_PARTITION_MIGRATION: SubStatus = SubStatus(1008);
    /// 410/1022: the lease was lost.
    pub const LEASE_NOT_FOUND: SubStatus = SubStatus(1022);

    // 412
    /// 412/1110: the condition of a patch is not satisfied.
    pub const PATCH_CONDITION_FALSE: SubStatus = SubStatus(1110);

    // 413
    /// 413/3401: the request is too large.
    pub const REQUEST_TOO_LARGE: SubStatus = SubStatus(3401);
    /// 413/3402: the response would be too large.
    pub const RESPONSE_TOO_LARGE: SubStatus = SubStatus(3402);

    // 429
    /// 429/3200: the provisioned throughput of this second is used up.
    pub const REQUEST_RATE_TOO_LARGE: SubStatus = SubStatus(3200);
    /// 429/3075: throttled for another reason than request units.
    pub const THROTTLED_3075: SubStatus = SubStatus(3075);
    /// 429/3084: throttled for another reason than request units.
    pub const THROTTLED_3084: SubStatus = SubStatus(3084);
    /// 429/3088: throttled for another reason than request units.
    pub const THROTTLED_3088: SubStatus = SubStatus(3088);
    /// 429/3092: the region lacks system resources; another region may have them.
    pub const SYSTEM_RESOURCE_UNAVAILABLE: SubStatus = SubStatus(3092);
    /// 429/3201: throttled for another reason than request units.
    pub const THROTTLED_3201: SubStatus = SubStatus(3201);
    /// 429/3212: throttled for another reason than request units.
    pub const THROTTLED_3212: SubStatus = SubStatus(3212);

    // 449
    /// 449/5350, a code of the service without a documented name.
    pub const RETRY_WITH_5350: SubStatus = SubStatus(5350);
    /// 449/5351, a code of the service without a documented name.
    pub const RETRY_WITH_5351: SubStatus = SubStatus(5351);
    /// 449/5352, a code of the service without a documented name.
    pub const RETRY_WITH_5352: SubStatus = SubStatus(5352);

    // 503
    /// 503/1007: there are not enough partitions to bind.
    pub const INSUFFICIENT_BINDABLE_PARTITIONS: SubStatus = SubStatus(1007);
    /// 503/1337, a code of the service without a documented name.
    pub const SERVICE_UNAVAILABLE_1337: SubStatus = SubStatus(1337);
    /// 503/1338, a code of the service without a documented name.
    pub const SERVICE_UNAVAILABLE_1338: SubStatus = SubStatus(1338);
    /// 503/9001, a code of the service without a documented name.
    pub const SERVICE_UNAVAILABLE_9001: SubStatus = SubStatus(9001);
    /// 503/9002, a code of the service without a documented name.
    pub const SERVICE_UNAVAILABLE_9002: SubStatus = SubStatus(9002);
    /// 503/9003, a code of the service without a documented name.
    pub const SERVICE_UNAVAILABLE_9003: SubStatus = SubStatus(9003);

    // Codes that clients make themselves and the service never sends.
    /// Python's own 404 when a container has no offer.
    pub const CLIENT_THROUGHPUT_OFFER_NOT_FOUND: SubStatus = SubStatus(10004);
    /// Python's own 503 when ranges leave gaps or overlap.
    pub const CLIENT_RANGES_INCONSISTENT: SubStatus = SubStatus(21015);
    /// Rust's own 400 for a query feature that it does not support.
    pub const CLIENT_QUERY_FEATURE_REFUSED: SubStatus = SubStatus(20113);
    /// Rust's own 400 for a merge whose memory has no bound.
    pub const CLIENT_QUERY_NEEDS_LIMIT: SubStatus = SubStatus(20125);
    /// Rust's own 503 once 404/1002 was retried everywhere.
    pub const CLIENT_SESSION_RETRIES_EXHAUSTED: SubStatus = SubStatus(20310);
    /// Rust's own 503 once 403/3 was retried everywhere.
    pub const CLIENT_WRITE_FORBIDDEN_EXHAUSTED: SubStatus = SubStatus(20311);
    /// Rust's own 503 once 403/1008 was retried everywhere.
    pub const CLIENT_ACCOUNT_NOT_FOUND_EXHAUSTED: SubStatus = SubStatus(20312);

    /// Whether there is no sub-status, so that the header is absent.
    pub fn is_none(self) -> bool {
        self == SubStatus::NONE
    }
}

impl fmt::Display for SubStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_bodies_carry_the_words_of_the_service() {
        for (status, word) in [
            (400, "BadRequest"),
            (401, "Unauthorized"),
            (403, "Forbidden"),
            (404, "NotFound"),
            (405, "MethodNotAllowed"),
            (408, "RequestTimeout"),
            (409, "Conflict"),
            (410, "Gone"),
            (412, "PreconditionFailed"),
            (413, "RequestEntityTooLarge"),
            (429, "TooManyRequests"),
            (449, "RetryWith"),
            (500, "InternalServerError"),
            (503, "ServiceUnavailable"),
        ] {
            assert_eq!(Status(status).code_name(), word);
            assert!(Status(status).is_error() && !Status(status).is_success());
        }
        assert_eq!(Status(299).code_name(), "Unknown");
    }

    #[test]
    fn one_number_may_carry_two_names() {
        assert_eq!(SubStatus::READ_SESSION_NOT_AVAILABLE, SubStatus::PARTITION_KEY_RANGE_GONE);
        assert_eq!(SubStatus::DATABASE_ACCOUNT_NOT_FOUND, SubStatus::COMPLETING_PARTITION_MIGRATION);
        assert_eq!(SubStatus::COMPLETING_SPLIT, SubStatus::INSUFFICIENT_BINDABLE_PARTITIONS);
    }
}
