//! What a route answers: JSON, or a problem with its code and what to do about it.

use std::fmt;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;

/// What a route makes of a request.
pub(super) type ControlResult = Result<Response<Bytes>, ControlError>;

/// 200 with `body`.
#[expect(clippy::unnecessary_wraps, reason = "routes end with it")]
pub(super) fn json(body: &impl Serialize) -> ControlResult {
    Ok(response(StatusCode::OK, body))
}

/// Another status with `body`.
#[expect(clippy::unnecessary_wraps, reason = "routes end with it")]
pub(super) fn json_with(status: StatusCode, body: &impl Serialize) -> ControlResult {
    Ok(response(status, body))
}

/// A refusal: `{"code","message"}`.
#[derive(Clone, Debug)]
pub(super) struct ControlError {
    status: StatusCode,
    code: &'static str,
    message: String,
    /// The methods there are, when this one is not.
    allow: Option<HeaderValue>,
}

impl ControlError {
    /// A refusal; the message says what to do next.
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> ControlError {
        ControlError { status, code, message: message.into(), allow: None }
    }

    /// 400: the request makes no sense.
    pub(super) fn bad_request(message: impl Into<String>) -> ControlError {
        ControlError::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// 404: what the request is about does not exist.
    pub(super) fn not_found(message: impl Into<String>) -> ControlError {
        ControlError::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    /// 409: it exists, and it is not in a state for this.
    pub(super) fn conflict(message: impl Into<String>) -> ControlError {
        ControlError::new(StatusCode::CONFLICT, "Conflict", message)
    }

    /// 503: it could not be done now.
    pub(super) fn unavailable(message: impl Into<String>) -> ControlError {
        ControlError::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }

    /// 405 with the methods there are.
    pub(super) fn method_not_allowed(allowed: &str) -> ControlError {
        let message = format!("this route answers {allowed}");
        let mut problem = ControlError::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message);
        problem.allow = HeaderValue::from_str(allowed).ok();
        problem
    }

    /// What it sends.
    pub(super) fn into_response(self) -> Response<Bytes> {
        let mut answer =
            response(self.status, &serde_json::json!({ "code": self.code, "message": self.message }));
        if let Some(allow) = self.allow {
            answer.headers_mut().insert(ALLOW, allow);
        }
        answer
    }

    #[cfg(test)]
    pub(super) fn status(&self) -> u16 {
        self.status.as_u16()
    }
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

fn response(status: StatusCode, body: &impl Serialize) -> Response<Bytes> {
    let body = serde_json::to_vec(body).expect("answers are structs with text keys, which always serialise");
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
