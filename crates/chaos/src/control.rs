//! Asking the control port of an account.

use std::time::Duration;

use http::{Method, Request};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// No answer takes longer: a split of what a run writes takes milliseconds.
const ANSWER_MAX: Duration = Duration::from_secs(30);
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Why the control port did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the control port did not do '{asked}': {reason}")]
pub struct ControlError {
    authority: String,
    asked: String,
    reason: String,
    was_answered: bool,
}

impl ControlError {
    /// Host and port of the control port.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// What it said, or why it said nothing.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Whether it said anything.
    pub fn was_answered(&self) -> bool {
        self.was_answered
    }
}

/// The control port of an account.
#[derive(Clone, Debug)]
pub(crate) struct ControlPort {
    client: perihelion_http::Client,
    url: String,
}

impl ControlPort {
    pub(crate) fn new(url: &str) -> Result<ControlPort, ControlError> {
        let client = perihelion_http::Client::builder().no_proxy().call_timeout(Some(ANSWER_MAX)).build();
        let url = url.trim_end_matches('/').to_owned();
        let client = client.map_err(|error| failed(&url, "connect", error.to_string()))?;
        Ok(ControlPort { client, url })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, ControlError> {
        self.ask(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, ControlError> {
        self.ask(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Value, ControlError> {
        self.ask(Method::DELETE, path, None).await
    }

    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, ControlError> {
        let asked = format!("{method} {path}");
        let failed = |reason: String| failed(&self.url, &asked, reason);
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header("content-type", "application/json")
            .body(bytes::Bytes::from(body))
            .map_err(|error| failed(error.to_string()))?;
        let response = self.client.send(request).await.map_err(|error| failed(error.to_string()))?;
        let status = response.status();
        let bytes = response.into_body().bytes(ANSWER_BYTES_MAX).await;
        let bytes = bytes.map_err(|error| failed(error.to_string()))?;
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if status.is_success() {
            Ok(answer)
        } else {
            let message = answer["message"].as_str().map_or_else(|| answer.to_string(), str::to_owned);
            Err(ControlError { was_answered: true, ..failed(format!("{status}: {message}")) })
        }
    }
}

fn failed(url: &str, asked: &str, reason: String) -> ControlError {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest).to_owned();
    ControlError { authority, asked: asked.to_owned(), reason, was_answered: false }
}

/// A name as a segment of a path.
pub(crate) fn escaped(name: &str) -> String {
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()
}
