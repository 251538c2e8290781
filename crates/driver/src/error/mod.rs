//! Why an operation failed: a kind for the program, a story for the person.
//!
//! The kind says what the caller can do next; [`ErrorKind::advice`] says it in words. The story says
//! what was tried, where, and what was answered, and keeps the cause as `source()`.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use protocol::container::BadPath;
use protocol::status::{Status, SubStatus};
use serde::Deserialize;

use crate::diagnostics::Diagnostics;
use crate::options::{BadVariable, InvalidOption};

/// What the driver's functions return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

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
    /// The request, or its answer, is larger than the service takes.
    TooLarge,
    /// The budget of request units is spent; slow down, then try again.
    Throttled,
    /// No region has yet seen what the session token asks for; try again, or read with a weaker
    /// consistency.
    SessionUnavailable,
    /// No region could serve it and nothing was changed; try again later.
    Unavailable,
    /// No answer came, and a write may or may not have happened; read before trying again.
    Undecided,
    /// The deadline passed and nothing was changed; allow more time or try again.
    DeadlineExceeded,
    /// The service answered what the driver cannot make sense of.
    BadResponse,
    /// What was read is not what the program reads it as; change the type, or what is stored.
    Mismatch,
    /// An option or a connection string cannot be obeyed; change it.
    Configuration,
    /// The driver was stopped.
    Stopped,
}

impl ErrorKind {
    /// The kind of an answer of the service. `sub_status` is 0 where the answer has none.
    ///
    /// An answer says that the request was decided: what is unknown after a lost answer is
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

/// Why an operation failed. One pointer, so that results stay small; cloned when several operations waited
/// for the same thing and it failed.
#[derive(Clone)]
pub struct Error(Box<Story>);

#[derive(Clone)]
struct Story {
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
        Error(Box::new(Story {
            kind,
            message: cut(message.into()),
            about: None,
            status: None,
            activity_id: None,
            retry_after: None,
            diagnostics: None,
            source: None,
        }))
    }

    /// The error of an answer of the service, with the message of its body.
    pub fn of_answer(status: Status, sub_status: SubStatus, body: &[u8]) -> Error {
        let message = service_message(body).unwrap_or_else(|| format!("the service answered {status}"));
        Error::new(ErrorKind::of_status(status, sub_status), message).with_status(status, sub_status)
    }

    /// The same, of another kind.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Error {
        self.0.kind = kind;
        self
    }

    /// The same, in other words.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Error {
        self.0.message = cut(message.into());
        self
    }

    /// The same, about this resource, unless it is known to be about another.
    #[must_use]
    pub fn about(mut self, link: &str) -> Error {
        if !link.is_empty() {
            self.0.about.get_or_insert_with(|| link.to_owned());
        }
        self
    }

    /// The same, with the status of the last answer.
    #[must_use]
    pub fn with_status(mut self, status: Status, sub_status: SubStatus) -> Error {
        self.0.status = Some((status, sub_status));
        self
    }

    /// The same, with the id of the last request.
    #[must_use]
    pub fn with_activity_id(mut self, id: impl Into<String>) -> Error {
        self.0.activity_id = Some(id.into());
        self
    }

    /// The same, with the time the service asks to wait.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Error {
        self.0.retry_after = Some(wait);
        self
    }

    /// The same, with what was tried.
    #[must_use]
    pub fn with_diagnostics(mut self, diagnostics: Diagnostics) -> Error {
        self.0.diagnostics = Some(diagnostics);
        self
    }

    /// The same, with its cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        self.0.source = Some(Arc::from(source.into()));
        self
    }

    /// What the caller can do next.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What is wrong: the service's words where there are any.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The resource it is about, `dbs/shop/colls/orders/docs/o-1`; its feed's parent for what has no id yet.
    pub fn resource(&self) -> Option<&str> {
        self.0.about.as_deref()
    }

    /// The status of the last answer; none when there was none.
    pub fn status(&self) -> Option<Status> {
        self.0.status.map(|(status, _)| status)
    }

    /// The sub-status of the last answer, 0 for none.
    pub fn sub_status(&self) -> SubStatus {
        self.0.status.map_or(SubStatus::NONE, |(_, sub_status)| sub_status)
    }

    /// The id of the last request, for whoever reads the service's logs.
    pub fn activity_id(&self) -> Option<&str> {
        self.0.activity_id.as_deref()
    }

    /// How long the service asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// What was tried.
    pub fn diagnostics(&self) -> Option<&Diagnostics> {
        self.0.diagnostics.as_ref()
    }

    /// Whether the last answer has this status and sub-status.
    pub fn is_status(&self, status: Status, sub_status: SubStatus) -> bool {
        self.0.status == Some((status, sub_status))
    }
}

/// What is kept of a message.
fn cut(mut message: String) -> String {
    if message.len() > MESSAGE_BYTES_MAX {
        let end = (0..=MESSAGE_BYTES_MAX).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
        message.truncate(end);
        message.push('…');
    }
    message
}

/// The words in an error body: `{"code": …, "message": …}`.
fn service_message(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(default)]
        message: Option<String>,
        #[serde(default)]
        code: Option<serde_json::Value>,
    }
    let body: Body = serde_json::from_slice(body).ok()?;
    let text = body.message.or_else(|| body.code.map(|code| code.to_string()))?;
    let words = service_words(&text);
    (!words.is_empty()).then_some(words)
}

/// What is wrong, out of a message whose rest is for support, in one line.
pub(crate) fn service_words(message: &str) -> String {
    let first = message.split("\r\nActivityId:").next().unwrap_or(message).trim();
    let words = listed_errors(first).unwrap_or_else(|| first.to_owned());
    words.replace("\r\n", " ").replace('\n', "\\n")
}

/// The words of `Message: {"Errors": ["…"]}`, and of `{"errors": [{"code": …, "message": …, "location": …}]}`,
/// which is how queries are told what is wrong with them.
fn listed_errors(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Listed {
        #[serde(alias = "Errors")]
        errors: Vec<Entry>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Entry {
        Text(String),
        Placed { code: String, message: String, location: Option<Place> },
        Plain { message: String },
    }
    #[derive(Deserialize)]
    struct Place {
        start: u64,
        end: u64,
    }
    let json = text.strip_prefix("Message:").unwrap_or(text).trim();
    let Listed { errors } = serde_json::from_str(json).ok()?;
    if errors.is_empty() {
        return None;
    }
    let words = errors.into_iter().map(|entry| match entry {
        Entry::Text(message) | Entry::Plain { message } => message,
        Entry::Placed { code, message, location: None } => format!("{message} ({code})"),
        Entry::Placed { code, message, location: Some(Place { start, end }) } => {
            format!("{message} ({code}, characters {start} to {end})")
        }
    });
    Some(words.collect::<Vec<_>>().join("; "))
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Story { kind, message, about, status, activity_id, diagnostics, .. } = &*self.0;
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

/// The story in one line, since this is what a program that ends with an error shows; `{:#?}` for everything.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return fmt::Display::fmt(self, f);
        }
        let Story { kind, message, about, status, activity_id, retry_after, diagnostics, source } = &*self.0;
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

impl From<BadPath> for Error {
    fn from(bad: BadPath) -> Error {
        Error::new(ErrorKind::BadRequest, bad.to_string()).with_source(bad)
    }
}

impl From<BadVariable> for Error {
    fn from(bad: BadVariable) -> Error {
        Error::new(ErrorKind::Configuration, bad.to_string()).with_source(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_says_what_to_do_next() {
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

    #[test]
    fn the_words_of_the_service_are_kept_and_its_noise_is_not() {
        let body = br#"{"code":"NotFound","message":"Message: {\"Errors\":[\"gone\"]}\r\nActivityId: 1, Request URI: x"}"#;
        let error = Error::of_answer(Status::NOT_FOUND, SubStatus::NONE, body).with_activity_id("7");
        assert_eq!(error.message(), "gone");
        for message in ["Message: {}", "Message: none", r#"Message: {"Errors":[]}"#] {
            assert_eq!(service_words(message), message, "what is not understood is kept");
        }
        let shown = error.about("dbs/d").about("dbs").to_string();
        assert_eq!(
            shown,
            "not_found: dbs/d: gone (404/0); activity 7; check the names and the partition key"
        );
        for body in [&b""[..], b"<html>", b"[]", br#"{"message":""}"#] {
            let error = Error::of_answer(Status::SERVICE_UNAVAILABLE, SubStatus::NONE, body);
            assert_eq!(error.message(), "the service answered 503 ServiceUnavailable");
        }
    }

    #[test]
    fn errors_in_a_list_are_told_one_after_the_other_and_in_one_line() {
        for (message, words) in [
            (r#"Message: {"Errors":["one","two"]}"#, "one; two"),
            (
                r#"{"errors":[{"severity":"Error","location":{"start":9,"end":13},"code":"SC1001","message":"near 'x'"}]}"#,
                "near 'x' (SC1001, characters 9 to 13)",
            ),
            (r#"{"errors":[{"code":"SC2","message":"no"},{"message":"bare"}]}"#, "no (SC2); bare"),
            (r#"Message: {"Errors":[7]}"#, r#"Message: {"Errors":[7]}"#),
            ("signed 'get\n\n'", "signed 'get\\n\\n'"),
        ] {
            let body = serde_json::json!({"code": "BadRequest", "message": message}).to_string();
            let error = Error::of_answer(Status::BAD_REQUEST, SubStatus::NONE, body.as_bytes());
            assert_eq!(error.message(), words);
        }
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
