//! Talks to the control port of a running `peri up`.
//!
//! In: a method, a path and perhaps a body. Out: the JSON it answers, or a [`Failure`] that says
//! whether nothing is there or it said no. One request per connection, each with a deadline.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::Value;

use crate::arguments::Control;
use crate::exit::Failure;
use crate::output;

/// A process that listens takes a connection at once.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// No route takes longer, unless the machine is very busy.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// No answer is longer.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Tells an account from a control port.
const ONLY_ACCOUNTS_SEND: &str = "x-ms-activity-id";

/// A running `peri up`, seen from its control port.
#[derive(Debug)]
pub(crate) struct ControlPort {
    runtime: tokio::runtime::Runtime,
    authority: String,
    json: bool,
}

impl ControlPort {
    /// Nothing is sent yet.
    pub(crate) fn of(options: &Control) -> Result<ControlPort, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::other(format!("cannot wait for sockets: {error}")))?;
        Ok(ControlPort { runtime, authority: authority_of(&options.url)?, json: options.json })
    }

    /// What `GET path` answers.
    pub(crate) fn get(&self, path: &str) -> Result<Value, Failure> {
        self.send(Method::GET, path, Bytes::new())
    }

    /// What `POST path` answers to `body`.
    pub(crate) fn post(&self, path: &str, body: &impl Serialize) -> Result<Value, Failure> {
        let body = serde_json::to_vec(body)
            .map_err(|error| Failure::other(format!("the request cannot be written as JSON: {error}")))?;
        self.send(Method::POST, path, body.into())
    }

    /// What `DELETE path` answers.
    pub(crate) fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.send(Method::DELETE, path, Bytes::new())
    }

    /// Shows an answer: as it is with `--json`, otherwise as `text` puts it for a person.
    pub(crate) fn show(&self, answer: &Value, text: impl FnOnce(&Value) -> String) {
        if self.json {
            output::data(&answer.to_string());
        } else {
            output::data(&text(answer));
        }
    }

    fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Value, Failure> {
        let (head, body) = self.runtime.block_on(self.exchange(method, path, body))?.into_parts();
        let status = head.status;
        if head.headers.contains_key(ONLY_ACCOUNTS_SEND) {
            return Err(self.is_something_else(status));
        }
        let answer: Value = serde_json::from_slice(&body).map_err(|_| self.is_something_else(status))?;
        if status.is_success() {
            return Ok(answer);
        }
        match answer["message"].as_str() {
            Some(message) => Err(Failure::refused(message)),
            None => Err(self.is_something_else(status)),
        }
    }

    async fn exchange(&self, method: Method, path: &str, body: Bytes) -> Result<Response<Bytes>, Failure> {
        let connecting = tokio::net::TcpStream::connect(&self.authority);
        let stream = match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(Failure::not_running(&self.authority, &error.to_string())),
            Err(_) => return Err(Failure::not_running(&self.authority, "no answer")),
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.authority)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| Failure::other(format!("'{path}' cannot be asked for: {error}")))?;
        match tokio::time::timeout(ANSWER_TIMEOUT, round_trip(stream, request)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                Err(Failure::other(format!("http://{} broke the connection off: {error}", self.authority)))
            }
            Err(_) => {
                let waited = ANSWER_TIMEOUT.as_secs();
                Err(Failure::other(format!("http://{} did not answer within {waited} s", self.authority)))
            }
        }
    }

    fn is_something_else(&self, status: StatusCode) -> Failure {
        let message = format!("http://{} answered {status}, and not as a control port does", self.authority);
        Failure::other(message).hint("--control takes the control port, by default 1234, not the account's")
    }
}

type RoundTripError = Box<dyn std::error::Error + Send + Sync>;

async fn round_trip(
    stream: tokio::net::TcpStream,
    request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>, RoundTripError> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let exchange = async {
        let (head, body) = sender.send_request(request).await?.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await?.to_bytes();
        Ok(Response::from_parts(head, body))
    };
    tokio::pin!(connection, exchange);
    tokio::select! {
        answer = &mut exchange => answer,
        // It may end the moment the answer is complete.
        ended = &mut connection => match ended {
            Ok(()) => exchange.await,
            Err(error) => Err(error.into()),
        },
    }
}

/// The host and port of a control URL.
fn authority_of(url: &str) -> Result<String, Failure> {
    let wrong = |reason: &str| {
        Failure::usage(format!("--control '{url}' {reason}"))
            .hint("it is the control endpoint that `peri up` prints, for example http://localhost:1234")
    };
    let full = if url.contains("://") { url.trim().to_owned() } else { format!("http://{}", url.trim()) };
    let parsed: Uri = full.parse().map_err(|_| wrong("is no URL"))?;
    if parsed.scheme_str() != Some("http") {
        return Err(wrong("must begin with http://"));
    }
    if !matches!(parsed.path(), "" | "/") || parsed.query().is_some() {
        return Err(wrong("must end after the port"));
    }
    let host = parsed.host().filter(|host| !host.is_empty()).ok_or_else(|| wrong("names no host"))?;
    let port = parsed.port_u16().ok_or_else(|| wrong("names no port"))?;
    Ok(format!("{host}:{port}"))
}

/// One segment of a path, or one value of a parameter: `West US` becomes `West%20US`.
pub(crate) fn escaped(text: &str) -> String {
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(text, KEPT).to_string()
}

/// A member of an answer as a person reads it; nothing for what is absent.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The entries of a list; none for what is no list.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_url_names_a_host_and_a_port() {
        let good = [
            ("http://localhost:1234", "localhost:1234"),
            ("http://localhost:1234/", "localhost:1234"),
            ("localhost:9", "localhost:9"),
            (" 127.0.0.1:80 ", "127.0.0.1:80"),
            ("http://[::1]:5", "[::1]:5"),
        ];
        for (url, authority) in good {
            assert_eq!(authority_of(url).unwrap(), authority, "{url}");
        }
        for url in [
            "",
            "https://localhost:1234",
            "http://localhost",
            "http://localhost:1234/clock",
            "http://:1",
            "a b",
        ] {
            assert!(authority_of(url).is_err(), "{url}");
        }
    }

    #[test]
    fn names_are_escaped_where_a_path_would_read_them_otherwise() {
        assert_eq!(escaped("West US/é?"), "West%20US%2F%C3%A9%3F");
        assert_eq!(escaped("a-b_c.d~1"), "a-b_c.d~1");
    }
}
