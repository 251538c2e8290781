//! Why an operation failed: a kind for the program, a message and context for the person.
//!
//! The kind says what the caller can do next; [`ErrorKind::advice`] says it in a sentence. The context says
//! what was tried, where, and the responses, and keeps the cause as `source()`. What the service said is read in
//! `words`.

mod kind;
mod service_message_text;

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use protocol::container::PartitionKeyPathError;
use protocol::status::{Status, SubStatus};

pub use self::kind::ErrorKind;

use self::service_message_text::{service_message, service_text};
use crate::diagnostics::Diagnostics;
use crate::options::{InvalidOption, InvalidVariable};

/// What the driver's functions return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation failed. One pointer, so that results stay small; cloned when several operations waited
/// for the same thing and it failed.
#[derive(Clone)]
pub struct Error(Box<ErrorContext>);

#[derive(Clone)]
struct ErrorContext {
    kind: ErrorKind,
    message: String,
    /// The resource it is about.
    about: Option<String>,
    status: Option<(Status, SubStatus)>,
    activity_id: Option<String>,
    retry_after: Option<Duration>,
    diagnostics: Option<Diagnostics>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

/// The most that is kept of a message; the rest of a chatty server's is not worth its memory.
const MESSAGE_BYTES_MAX: usize = 2048;

impl Error {
    /// An error with a message: lower case, no full stop, what is wrong rather than what failed.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(ErrorContext {
            kind,
            message: truncated(message.into()),
            about: None,
            status: None,
            activity_id: None,
            retry_after: None,
            diagnostics: None,
            source: None,
        }))
    }

    /// The error of a response of the service, with the message of its body.
    pub fn of_response(status: Status, sub_status: SubStatus, body: &[u8]) -> Error {
        let message = service_message(body).unwrap_or_else(|| format!("the service responded with {status}"));
        Error::new(ErrorKind::of_status(status, sub_status), message).with_status(status, sub_status)
    }

    /// The error of one result within a response, such as that of one operation of a batch, with the message of the
    /// result.
    pub fn of_result(status: Status, sub_status: SubStatus, message: Option<&str>) -> Error {
        let message = message.map(service_text).filter(|text| !text.is_empty());
        let message = message.unwrap_or_else(|| format!("the service responded with {status}"));
        Error::new(ErrorKind::of_status(status, sub_status), message).with_status(status, sub_status)
    }

    /// Sets the kind of the error.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Error {
        self.0.kind = kind;
        self
    }

    /// Sets the message of the error.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Error {
        self.0.message = truncated(message.into());
        self
    }

    /// Sets the resource the error is about, unless one is set.
    #[must_use]
    pub fn about(mut self, link: &str) -> Error {
        if !link.is_empty() {
            self.0.about.get_or_insert_with(|| link.to_owned());
        }
        self
    }

    /// Sets the status of the last response.
    #[must_use]
    pub fn with_status(mut self, status: Status, sub_status: SubStatus) -> Error {
        self.0.status = Some((status, sub_status));
        self
    }

    /// Sets the activity id of the last request.
    #[must_use]
    pub fn with_activity_id(mut self, id: impl Into<String>) -> Error {
        self.0.activity_id = Some(id.into());
        self
    }

    /// Sets how long the service asks to wait.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Error {
        self.0.retry_after = Some(wait);
        self
    }

    /// Sets the diagnostics of the operation.
    #[must_use]
    pub fn with_diagnostics(mut self, diagnostics: Diagnostics) -> Error {
        self.0.diagnostics = Some(diagnostics);
        self
    }

    /// Sets the cause of the error.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        self.0.source = Some(Arc::from(source.into()));
        self
    }

    /// What the caller can do next.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What is wrong: the service's message where there is one.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The resource it is about, `dbs/shop/colls/orders/docs/o-1`; its feed's parent for what has no id yet.
    pub fn resource(&self) -> Option<&str> {
        self.0.about.as_deref()
    }

    /// The status of the last response; none when there was none.
    pub fn status(&self) -> Option<Status> {
        self.0.status.map(|(status, _)| status)
    }

    /// The sub-status of the last response, 0 for none.
    pub fn sub_status(&self) -> SubStatus {
        self.0.status.map_or(SubStatus::NONE, |(_, sub_status)| sub_status)
    }

    /// The id of the last request, to find it in the service's logs.
    pub fn activity_id(&self) -> Option<&str> {
        self.0.activity_id.as_deref()
    }

    /// How long the service asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// The diagnostics of the operation, if it was attempted.
    pub fn diagnostics(&self) -> Option<&Diagnostics> {
        self.0.diagnostics.as_ref()
    }

    /// Whether the last response has this status and sub-status.
    pub fn is_status(&self, status: Status, sub_status: SubStatus) -> bool {
        self.0.status == Some((status, sub_status))
    }
}

/// What is kept of a message.
fn truncated(mut message: String) -> String {
    if message.len() > MESSAGE_BYTES_MAX {
        let end = (0..=MESSAGE_BYTES_MAX).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
        message.truncate(end);
        message.push('…');
    }
    message
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ErrorContext { kind, message, about, status, activity_id, diagnostics, .. } = &*self.0;
        write!(f, "{kind}: ")?;
        if let Some(about) = about {
            write!(f, "{about}: ")?;
        }
        write!(f, "{message}")?;
        if let Some((status, sub_status)) = status {
            write!(f, " ({}/{sub_status})", status.0)?;
        }
        if let Some(diagnostics) = diagnostics {
            write!(f, "; {}", diagnostics.summary())?;
        }
        if let Some(id) = activity_id {
            write!(f, "; activity {id}")?;
        }
        write!(f, "; {}", kind.advice())
    }
}

/// Shows the error in one line, since this is what a program that ends with an error prints; `{:#?}` shows all fields.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return fmt::Display::fmt(self, f);
        }
        let ErrorContext { kind, message, about, status, activity_id, retry_after, diagnostics, source } =
            &*self.0;
        f.debug_struct("Error")
            .field("kind", kind)
            .field("message", message)
            .field("about", about)
            .field("status", status)
            .field("activity_id", activity_id)
            .field("retry_after", retry_after)
            .field("diagnostics", &diagnostics.as_ref().map(|diagnostics| diagnostics.summary().to_string()))
            .field("source", source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let source: &(dyn StdError + 'static) = &**self.0.source.as_ref()?;
        Some(source)
    }
}

impl From<InvalidOption> for Error {
    fn from(invalid: InvalidOption) -> Error {
        Error::new(ErrorKind::Configuration, invalid.to_string()).with_source(invalid)
    }
}

impl From<PartitionKeyPathError> for Error {
    fn from(bad: PartitionKeyPathError) -> Error {
        Error::new(ErrorKind::BadRequest, bad.to_string()).with_source(bad)
    }
}

impl From<InvalidVariable> for Error {
    fn from(bad: InvalidVariable) -> Error {
        Error::new(ErrorKind::Configuration, bad.to_string()).with_source(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_an_error_names_problem_resource_and_advice() {
        let body = br#"{"code":"NotFound","message":"Message: {\"Errors\":[\"gone\"]}\r\nActivityId: 1, Request URI: x"}"#;
        let error = Error::of_response(Status::NOT_FOUND, SubStatus::NONE, body).with_activity_id("7");
        assert_eq!(error.message(), "gone");
        assert_eq!(
            error.about("dbs/d").about("dbs").to_string(),
            "not_found: dbs/d: gone (404/0); activity 7; check the names and the partition key"
        );
        let wordless = Error::of_response(Status::SERVICE_UNAVAILABLE, SubStatus::NONE, b"<html>");
        assert_eq!(wordless.message(), "the service responded with 503 ServiceUnavailable");
    }

    #[test]
    fn a_long_message_is_cut_between_letters() {
        let error = Error::new(ErrorKind::BadRequest, "é".repeat(5000));
        assert!(error.message().len() <= MESSAGE_BYTES_MAX + "…".len());
        assert!(error.message().ends_with('…'));
    }

    #[test]
    fn results_stay_small_and_causes_are_kept() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        let error = Error::from(InvalidOption::new("timeouts.attempt", "is zero"));
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(StdError::source(&error).is_some_and(|source| source.is::<InvalidOption>()));
    }
}
