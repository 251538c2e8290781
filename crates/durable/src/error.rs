//! Errors: what went wrong with a request, and what that means to the runtime.

use std::fmt;
use std::time::Duration;

use duroxide::providers::ProviderError;
use perihelion::ErrorKind;

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// A failed operation of the provider.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A request to the container failed.
    Request(Box<perihelion::Error>),
    /// What was asked for is not possible, now or later; or a lock is lost.
    Invalid(String),
}

impl Failure {
    pub(crate) fn invalid(message: impl Into<String>) -> Failure {
        Failure::Invalid(message.into())
    }

    /// The kind of the failed request, if it was one.
    pub(crate) fn kind(&self) -> Option<ErrorKind> {
        match self {
            Failure::Request(error) => Some(error.kind()),
            Failure::Invalid(_) => None,
        }
    }

    /// Whether a condition of the request did not hold: somebody else has changed, created or deleted the document.
    pub(crate) fn is_lost_race(&self) -> bool {
        matches!(self.kind(), Some(ErrorKind::PreconditionFailed | ErrorKind::Conflict | ErrorKind::NotFound))
    }

    /// Whether the write may have happened.
    pub(crate) fn is_undecided(&self) -> bool {
        self.kind() == Some(ErrorKind::Undecided)
    }

    /// Whether the same operation may succeed later.
    pub(crate) fn is_retryable(&self) -> bool {
        self.kind().is_some_and(is_retryable)
    }

    /// How long the service asks to wait before the next try.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Failure::Request(error) => error.retry_after(),
            Failure::Invalid(_) => None,
        }
    }

    /// The error as the runtime gets it.
    pub(crate) fn into_provider_error(self, operation: &str) -> ProviderError {
        let retryable = self.is_retryable();
        let message = self.to_string();
        if retryable {
            ProviderError::retryable(operation, message)
        } else {
            ProviderError::permanent(operation, message)
        }
    }
}

/// Whether an operation that failed for this reason may succeed later.
fn is_retryable(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::Conflict
        | ErrorKind::PreconditionFailed
        | ErrorKind::Throttled
        | ErrorKind::SessionUnavailable
        | ErrorKind::Unavailable
        | ErrorKind::Undecided
        | ErrorKind::DeadlineExceeded => true,
        // The rest, and what may be added: a document that is missing or refused, a wrong key, a stopped client.
        _ => false,
    }
}

impl From<perihelion::Error> for Failure {
    fn from(error: perihelion::Error) -> Failure {
        Failure::Request(Box::new(error))
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::Invalid(format!("a value has no JSON form: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Request(error) => write!(f, "{error}"),
            Failure::Invalid(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_error_is_retried_or_not_as_the_table_says() {
        use ErrorKind as Kind;
        let table = [
            (Kind::Conflict, true),
            (Kind::PreconditionFailed, true),
            (Kind::Throttled, true),
            (Kind::Unavailable, true),
            (Kind::SessionUnavailable, true),
            (Kind::Undecided, true),
            (Kind::DeadlineExceeded, true),
            (Kind::NotFound, false),
            (Kind::BadRequest, false),
            (Kind::TooLarge, false),
            (Kind::Unauthenticated, false),
            (Kind::Forbidden, false),
            (Kind::Mismatch, false),
            (Kind::Configuration, false),
            (Kind::Stopped, false),
        ];
        for (kind, retryable) in table {
            let failure = Failure::from(perihelion::Error::new(kind, "for the test"));
            assert_eq!(failure.into_provider_error("op").is_retryable(), retryable, "{kind:?}");
        }
        let invalid = Failure::invalid("lock lost").into_provider_error("ack");
        assert!(!invalid.is_retryable());
        assert_eq!(invalid.to_string(), "ack: lock lost");
    }
}
