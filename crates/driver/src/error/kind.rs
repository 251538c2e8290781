//! What the caller can do next: the kinds of errors, and which one a response is. Pure.

use std::fmt;

use protocol::status::{Status, SubStatus};

/// Why an operation failed, in terms of what the caller can do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request makes no sense to the service or to the driver; change it.
    BadRequest,
    /// The key, the token or the clock is wrong; correct it.
    Unauthenticated,
    /// The credential is good and may not do this.
    Forbidden,
    /// There is no such item, container or database.
    NotFound,
    /// There is such an item already, or another rule of the container stands against it.
    Conflict,
    /// The item is no longer what the condition says; read it again and reapply the change.
    PreconditionFailed,
    /// The request, or its response, is larger than the service takes.
    TooLarge,
    /// The budget of request units is spent; slow down, then try again.
    Throttled,
    /// No region has yet seen what the session token asks for; try again, or read with a weaker
    /// consistency.
    SessionUnavailable,
    /// No region could serve it and nothing was changed; try again later.
    Unavailable,
    /// No response came, and a write may or may not have happened; read before trying again.
    Undecided,
    /// The deadline passed and nothing was changed; allow more time or try again.
    DeadlineExceeded,
    /// The response of the service cannot be understood.
    BadResponse,
    /// What was read is not what the program reads it as; change the type, or what is stored.
    Mismatch,
    /// An option or a connection string cannot be obeyed; change it.
    Configuration,
    /// The driver was stopped.
    Stopped,
}

impl ErrorKind {
    /// The kind of a response of the service. `sub_status` is 0 where the response has none.
    ///
    /// A response says that the request was decided: what is unknown after a lost response is
    /// [`ErrorKind::Undecided`], which no status stands for.
    pub fn of_status(status: Status, sub_status: SubStatus) -> ErrorKind {
        match (status.0, sub_status) {
            (401, _) => ErrorKind::Unauthenticated,
            // Regions that do not take it: all of them were asked by the time anyone sees this.
            (403, SubStatus::WRITE_FORBIDDEN | SubStatus::DATABASE_ACCOUNT_NOT_FOUND) => {
                ErrorKind::Unavailable
            }
            (403, SubStatus::PARTITION_KEY_QUOTA_EXCEEDED) => ErrorKind::TooLarge,
            (403, _) => ErrorKind::Forbidden,
            (404, SubStatus::READ_SESSION_NOT_AVAILABLE) => ErrorKind::SessionUnavailable,
            (404, _) => ErrorKind::NotFound,
            (408 | 410 | 449, _) => ErrorKind::Unavailable,
            (409, _) => ErrorKind::Conflict,
            (412, _) => ErrorKind::PreconditionFailed,
            (413, _) => ErrorKind::TooLarge,
            (429, SubStatus::SYSTEM_RESOURCE_UNAVAILABLE) => ErrorKind::Unavailable,
            (429, _) => ErrorKind::Throttled,
            (400..=499, _) => ErrorKind::BadRequest,
            (500..=599, _) => ErrorKind::Unavailable,
            _ => ErrorKind::BadResponse,
        }
    }

    /// Whether the same operation may succeed later, unchanged.
    pub fn is_transient(self) -> bool {
        match self {
            ErrorKind::Throttled
            | ErrorKind::SessionUnavailable
            | ErrorKind::Unavailable
            | ErrorKind::Undecided
            | ErrorKind::DeadlineExceeded => true,
            ErrorKind::BadRequest
            | ErrorKind::Unauthenticated
            | ErrorKind::Forbidden
            | ErrorKind::NotFound
            | ErrorKind::Conflict
            | ErrorKind::PreconditionFailed
            | ErrorKind::TooLarge
            | ErrorKind::BadResponse
            | ErrorKind::Mismatch
            | ErrorKind::Configuration
            | ErrorKind::Stopped => false,
        }
    }

    /// What the caller can do next.
    pub fn advice(self) -> &'static str {
        match self {
            ErrorKind::BadRequest => "change the request",
            ErrorKind::Unauthenticated => "check the key or token, and the clock of this machine",
            ErrorKind::Forbidden => "give the credential the permission it lacks",
            ErrorKind::NotFound => "check the names and the partition key",
            ErrorKind::Conflict => "read what is there, or choose another id",
            ErrorKind::PreconditionFailed => "read it again and reapply the change",
            ErrorKind::TooLarge => "make it smaller",
            ErrorKind::Throttled => "slow down, or give the container more throughput",
            ErrorKind::SessionUnavailable => "try again, or read with a weaker consistency",
            ErrorKind::Unavailable => "try again later; nothing was changed",
            ErrorKind::Undecided => "read before trying again: the write may have happened",
            ErrorKind::DeadlineExceeded => "allow more time or try again; nothing was changed",
            ErrorKind::BadResponse => "check that the endpoint is an account of Cosmos DB",
            ErrorKind::Mismatch => "change the type it is read as, or what is stored",
            ErrorKind::Configuration => "correct the option",
            ErrorKind::Stopped => "make a new driver",
        }
    }

    /// Its name, as logs and metrics carry it.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::BadRequest => "bad_request",
            ErrorKind::Unauthenticated => "unauthenticated",
            ErrorKind::Forbidden => "forbidden",
            ErrorKind::NotFound => "not_found",
            ErrorKind::Conflict => "conflict",
            ErrorKind::PreconditionFailed => "precondition_failed",
            ErrorKind::TooLarge => "too_large",
            ErrorKind::Throttled => "throttled",
            ErrorKind::SessionUnavailable => "session_unavailable",
            ErrorKind::Unavailable => "unavailable",
            ErrorKind::Undecided => "undecided",
            ErrorKind::DeadlineExceeded => "deadline_exceeded",
            ErrorKind::BadResponse => "bad_response",
            ErrorKind::Mismatch => "mismatch",
            ErrorKind::Configuration => "configuration",
            ErrorKind::Stopped => "stopped",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_maps_to_an_error_kind() {
        for (status, sub_status, kind) in [
            (400, 0, ErrorKind::BadRequest),
            (400, 1001, ErrorKind::BadRequest),
            (401, 5000, ErrorKind::Unauthenticated),
            (403, 0, ErrorKind::Forbidden),
            (403, 5300, ErrorKind::Forbidden),
            (403, 3, ErrorKind::Unavailable),
            (403, 1008, ErrorKind::Unavailable),
            (403, 1014, ErrorKind::TooLarge),
            (404, 0, ErrorKind::NotFound),
            (404, 1003, ErrorKind::NotFound),
            (404, 1002, ErrorKind::SessionUnavailable),
            (405, 0, ErrorKind::BadRequest),
            (408, 0, ErrorKind::Unavailable),
            (409, 3301, ErrorKind::Conflict),
            (410, 1002, ErrorKind::Unavailable),
            (412, 1110, ErrorKind::PreconditionFailed),
            (413, 0, ErrorKind::TooLarge),
            (429, 3200, ErrorKind::Throttled),
            (429, 3092, ErrorKind::Unavailable),
            (449, 5350, ErrorKind::Unavailable),
            (500, 0, ErrorKind::Unavailable),
            (503, 9002, ErrorKind::Unavailable),
            (302, 0, ErrorKind::BadResponse),
            (999, 7, ErrorKind::BadResponse),
        ] {
            assert_eq!(
                ErrorKind::of_status(Status(status), SubStatus(sub_status)),
                kind,
                "{status}/{sub_status}"
            );
        }
    }
}
