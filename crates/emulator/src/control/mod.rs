//! The control port: is it alive, is it ready.
//!
//! A handler of its own on a port of its own, so that neither account traffic nor its signatures get
//! in the way. One file per group of routes.

mod health;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};

use crate::server::Handler;

/// Answers on the control port.
#[derive(Debug, Default)]
pub(crate) struct Control;

impl Handler for Control {
    async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        route(request.method(), request.uri().path())
    }
}

/// Decides by method and path alone.
fn route(method: &Method, path: &str) -> Response<Bytes> {
    let read = method == Method::GET || method == Method::HEAD;
    match path.strip_suffix('/').unwrap_or(path) {
        "/health/live" if read => health::live(),
        "/health/ready" if read => health::ready(),
        "/health/live" | "/health/ready" => only_reading(),
        _ => problem(
            StatusCode::NOT_FOUND,
            "NotFound",
            "no such route on the control port; try /health/ready or /health/live",
        ),
    }
}

fn only_reading() -> Response<Bytes> {
    let mut response =
        problem(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", "this route answers GET and HEAD");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}

fn problem(status: StatusCode, code: &str, message: &str) -> Response<Bytes> {
    json(status, &serde_json::json!({ "code": code, "message": message }))
}

fn json(status: StatusCode, body: &serde_json::Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_answer_by_method_and_path() {
        let cases = [
            (Method::GET, "/health/ready", 200),
            (Method::HEAD, "/health/ready", 200),
            (Method::GET, "/health/live", 200),
            (Method::GET, "/health/live/", 200),
            (Method::POST, "/health/live", 405),
            (Method::GET, "/health", 404),
            (Method::GET, "/", 404),
        ];
        for (method, path, status) in cases {
            assert_eq!(route(&method, path).status().as_u16(), status, "{method} {path}");
        }
    }
}
