//! `/health/live` and `/health/ready`.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::json;

/// The process answers.
pub(super) fn live() -> Response<Bytes> {
    super::json(StatusCode::OK, &json!({ "status": "live" }))
}

/// The account answers too: the control port opens after it.
pub(super) fn ready() -> Response<Bytes> {
    super::json(StatusCode::OK, &json!({ "status": "ready" }))
}
