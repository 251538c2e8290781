//! The error of a request to a control port: its kind, a message, and a hint that says what to do next.

use std::fmt;

use http::StatusCode;

/// Why a request to a control port failed, in terms of what the caller can do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControlErrorKind {
    /// The URL is not that of a control port: correct it.
    InvalidUrl,
    /// The request cannot be sent as it is: correct its path or its body.
    InvalidRequest,
    /// Nothing accepts connections at the URL: start the account, or correct the URL.
    Unreachable,
    /// The control port rejected the request: its message says why.
    Rejected,
    /// The response did not arrive, and the request may have been carried out: look at the account before a retry.
    NoResponse,
    /// A server that is not a control port responded: correct the URL.
    NotAControlPort,
}

/// Why a request to a control port failed, and what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlError {
    kind: ControlErrorKind,
    url: String,
    message: String,
}

impl ControlError {
    pub(crate) fn new(kind: ControlErrorKind, url: &str, message: String) -> ControlError {
        ControlError { kind, url: url.to_owned(), message }
    }

    pub(crate) fn invalid_url(url: &str, problem: &str) -> ControlError {
        let message = format!("'{url}' is not the URL of a control port: {problem}");
        ControlError::new(ControlErrorKind::InvalidUrl, url, message)
    }

    pub(crate) fn not_a_control_port(url: &str, status: StatusCode) -> ControlError {
        let message = format!("{url} responded with {status}, but it is not a control port");
        ControlError::new(ControlErrorKind::NotAControlPort, url, message)
    }

    /// The kind of the error.
    pub fn kind(&self) -> ControlErrorKind {
        self.kind
    }

    /// The URL of the control port, as `http://host:port`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What went wrong, without the hint. Of a rejected request it is the message of the control port.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do next; none for a rejected request, whose message says it.
    pub fn hint(&self) -> Option<&'static str> {
        match self.kind {
            ControlErrorKind::InvalidUrl => {
                Some("use the control endpoint that `peri up` prints, for example http://localhost:1234")
            }
            ControlErrorKind::InvalidRequest => Some("correct the path or the body of the request"),
            ControlErrorKind::Unreachable => {
                Some("start the account with `peri up`, or correct the URL of its control port")
            }
            ControlErrorKind::Rejected => None,
            ControlErrorKind::NoResponse => {
                Some("check with `peri status` whether the request was carried out before you repeat it")
            }
            ControlErrorKind::NotAControlPort => {
                Some("use the port of the control endpoint, by default 1234, not that of the account")
            }
        }
    }
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.hint() {
            None => write!(f, "the control port at {} rejected the request: {}", self.url, self.message),
            Some(hint) => write!(f, "{}; {hint}", self.message),
        }
    }
}

impl std::error::Error for ControlError {}
