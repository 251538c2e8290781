//! Responses of the control port: JSON, or an error with its code and message.

use std::fmt;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;

/// The outcome of a route.
pub(super) type ControlResult = Result<Response<Bytes>, ControlError>;

/// 200 with `body` as JSON.
#[expect(clippy::unnecessary_wraps, reason = "routes end with it")]
pub(super) fn json(body: &impl Serialize) -> ControlResult {
    Ok(response(StatusCode::OK, body))
}

/// The given status with `body` as JSON.
#[expect(clippy::unnecessary_wraps, reason = "routes end with it")]
pub(super) fn json_with(status: StatusCode, body: &impl Serialize) -> ControlResult {
    Ok(response(status, body))
}

/// An error of the control port: `{"code","message"}`.
#[derive(Clone, Debug)]
pub(super) struct ControlError {
    status: StatusCode,
    code: &'static str,
    message: String,
    /// The allowed methods, for 405.
    allow: Option<HeaderValue>,
}

impl ControlError {
    /// An error; the message says what to do next.
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> ControlError {
        ControlError { status, code, message: message.into(), allow: None }
    }

    /// 400: the request is invalid.
    pub(super) fn bad_request(message: impl Into<String>) -> ControlError {
        ControlError::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// 404: the resource of the request does not exist.
    pub(super) fn not_found(message: impl Into<String>) -> ControlError {
        ControlError::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    /// 409: the state of the resource does not allow the request.
    pub(super) fn conflict(message: impl Into<String>) -> ControlError {
        ControlError::new(StatusCode::CONFLICT, "Conflict", message)
    }

    /// 503: the request cannot be carried out now.
    pub(super) fn unavailable(message: impl Into<String>) -> ControlError {
        ControlError::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }

    /// 405 with the allowed methods.
    pub(super) fn method_not_allowed(allowed: &str) -> ControlError {
        let message = format!("this route answers {allowed}");
        let mut error = ControlError::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message);
        error.allow = HeaderValue::from_str(allowed).ok();
        error
    }

    /// The HTTP response of this error.
    pub(super) fn into_response(self) -> Response<Bytes> {
        let mut response =
            response(self.status, &serde_json::json!({ "code": self.code, "message": self.message }));
        if let Some(allow) = self.allow {
            response.headers_mut().insert(ALLOW, allow);
        }
        response
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
    let body =
        serde_json::to_vec(body).expect("responses are structs with text keys, which always serialise");
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
