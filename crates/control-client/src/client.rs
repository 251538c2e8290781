//! Sends requests to a control port and reads its JSON responses.

use std::error::Error as _;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use perihelion_http::ErrorKind;
use serde::Serialize;
use serde_json::Value;

use crate::error::{ControlError, ControlErrorKind};
use crate::url;

/// How long connecting may take. A process that listens accepts a connection at once.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a request may take in total. No command of the control port takes longer, unless the machine is very busy.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest response that is read. The request log with all its entries is far shorter.
const RESPONSE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// A header that a control port wants to see in requests that change something. Its value is the token, if there is one.
const CONTROL_HEADER: &str = "x-perihelion-control";
/// The value of the header for a control port without a token.
const NO_TOKEN: HeaderValue = HeaderValue::from_static("1");
/// A header that every response of an account has and no response of a control port.
const ACCOUNT_HEADER: &str = "x-ms-activity-id";

/// A client of one control port. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct ControlClient {
    http: perihelion_http::Client,
    url: String,
    token: HeaderValue,
}

impl ControlClient {
    /// A client of the control port at `url`, for example `http://localhost:1234`. Nothing is sent yet.
    pub fn new(url: &str) -> Result<ControlClient, ControlError> {
        let url = url::normalize(url)?;
        let http = perihelion_http::Client::builder()
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .call_timeout(Some(REQUEST_TIMEOUT))
            .build()
            .map_err(|error| ControlError::invalid_url(&url, &error.to_string()))?;
        Ok(ControlClient { http, url, token: NO_TOKEN })
    }

    /// Sends `token` with every request, for a control port that needs one.
    pub fn with_token(self, token: &str) -> Result<ControlClient, ControlError> {
        let mut token: HeaderValue = token.trim().parse().map_err(|_| {
            let message = "the token of the control port has characters that no header can have";
            self.error(ControlErrorKind::InvalidRequest, message.to_owned())
        })?;
        token.set_sensitive(true);
        Ok(ControlClient { token, ..self })
    }

    /// The URL of the control port, as `http://host:port`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sends `GET path` and returns the JSON of the response.
    pub async fn get(&self, path: &str) -> Result<Value, ControlError> {
        self.send(Method::GET, path, Bytes::new()).await
    }

    /// Sends `POST path` with `body` as JSON and returns the JSON of the response.
    pub async fn post(&self, path: &str, body: &impl Serialize) -> Result<Value, ControlError> {
        let body = serde_json::to_vec(body).map_err(|error| {
            self.error(
                ControlErrorKind::InvalidRequest,
                format!("the body of POST {path} has no JSON form: {error}"),
            )
        })?;
        self.send(Method::POST, path, body.into()).await
    }

    /// Sends `DELETE path` and returns the JSON of the response.
    pub async fn delete(&self, path: &str) -> Result<Value, ControlError> {
        self.send(Method::DELETE, path, Bytes::new()).await
    }

    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Value, ControlError> {
        let request = Request::builder()
            .method(&method)
            .uri(format!("{}{path}", self.url))
            .header(CONTENT_TYPE, "application/json")
            .header(CONTROL_HEADER, &self.token)
            .body(body)
            .map_err(|error| {
                self.error(
                    ControlErrorKind::InvalidRequest,
                    format!("{method} {path} is not a valid request: {error}"),
                )
            })?;
        let response = self.http.send(request).await.map_err(|error| self.http_error(&error))?;
        let (head, body) = response.into_parts();
        let body = body.bytes(RESPONSE_BYTES_MAX).await.map_err(|error| self.http_error(&error))?;
        self.read(head.status, &head.headers, &body)
    }

    /// The JSON of a successful response, or the error that the response stands for.
    fn read(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Result<Value, ControlError> {
        let not_a_control_port = || ControlError::not_a_control_port(&self.url, status);
        if headers.contains_key(ACCOUNT_HEADER) {
            return Err(not_a_control_port());
        }
        let json: Value = serde_json::from_slice(body).map_err(|_| not_a_control_port())?;
        if status.is_success() {
            return Ok(json);
        }
        let message = json["message"].as_str().ok_or_else(not_a_control_port)?;
        Err(self.error(ControlErrorKind::Rejected, message.to_owned()))
    }

    fn http_error(&self, error: &perihelion_http::Error) -> ControlError {
        let url = &self.url;
        match error.kind() {
            ErrorKind::Unreachable => {
                let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                let message = format!("nothing accepts connections at {url}: {reason}");
                self.error(ControlErrorKind::Unreachable, message)
            }
            ErrorKind::Invalid => self
                .error(ControlErrorKind::InvalidRequest, format!("the request to {url} is invalid: {error}")),
            ErrorKind::Malformed => {
                let message = format!("the response of {url} is not that of a control port: {error}");
                self.error(ControlErrorKind::NotAControlPort, message)
            }
            ErrorKind::TimedOut => {
                let seconds = REQUEST_TIMEOUT.as_secs();
                let message = format!("{url} did not respond in time (at most {seconds} s): {error}");
                self.error(ControlErrorKind::NoResponse, message)
            }
            _ => self.error(ControlErrorKind::NoResponse, format!("{url} did not respond: {error}")),
        }
    }

    fn error(&self, kind: ControlErrorKind, message: String) -> ControlError {
        ControlError::new(kind, &self.url, message)
    }
}
