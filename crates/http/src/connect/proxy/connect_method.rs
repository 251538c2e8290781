//! The CONNECT method of HTTP/1.1, which opens a tunnel (RFC 9110, section 9.3.6).

use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::Credentials;
use crate::call::StepError;
use crate::error::ErrorKind;
use crate::origin::Origin;
use crate::trace::Step;

/// The longest response to CONNECT that is accepted.
const RESPONSE_BYTES_MAX: usize = 8 * 1024;
/// The most headers of a response to CONNECT that are accepted.
const RESPONSE_HEADERS_MAX: usize = 100;

/// Opens a tunnel to `target`.
pub(super) async fn tunnel(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    target: &Origin,
    credentials: Option<&Credentials>,
) -> Result<(), StepError> {
    let request = connect_request(target, credentials);
    let closed = |error: io::Error| StepError::new(ErrorKind::Unreachable, Step::Proxy).with_source(error);
    stream.write_all(request.as_bytes()).await.map_err(closed)?;
    stream.flush().await.map_err(closed)?;
    let mut response = Vec::new();
    // Ends with a complete response, the end of the connection, or the limit of bytes.
    loop {
        match parse_connect_response(&response) {
            ConnectResponse::Incomplete if response.len() >= RESPONSE_BYTES_MAX => {
                return Err(malformed_response());
            }
            ConnectResponse::Incomplete => {}
            ConnectResponse::Accepted => return Ok(()),
            ConnectResponse::Rejected(status) => {
                let message = format!("the proxy responded with {status} to CONNECT for {target}");
                return Err(StepError::new(ErrorKind::Unreachable, Step::Proxy).with_source(message));
            }
            ConnectResponse::Malformed => return Err(malformed_response()),
        }
        if stream.read_buf(&mut response).await.map_err(closed)? == 0 {
            return Err(closed(io::ErrorKind::UnexpectedEof.into()));
        }
    }
}

fn connect_request(target: &Origin, credentials: Option<&Credentials>) -> String {
    let (host, port) = (target.host(), target.port());
    let mut request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n");
    if let Some(Credentials { user, password }) = credentials {
        let pair = [user, b":".as_slice(), password].concat();
        request.push_str("Proxy-Authorization: Basic ");
        request.push_str(&STANDARD.encode(pair));
        request.push_str("\r\n");
    }
    request.push_str("\r\n");
    request
}

fn malformed_response() -> StepError {
    StepError::new(ErrorKind::Malformed, Step::Proxy)
        .with_source("the response of the proxy is not valid HTTP")
}

/// The response of a proxy to CONNECT, as far as it has been received.
#[derive(Debug, PartialEq, Eq)]
enum ConnectResponse {
    Incomplete,
    Accepted,
    Rejected(u16),
    Malformed,
}

fn parse_connect_response(bytes: &[u8]) -> ConnectResponse {
    let mut headers = [httparse::EMPTY_HEADER; RESPONSE_HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    match (response.parse(bytes), response.code) {
        // Neither TLS nor HTTP lets the server send first, so nothing may follow.
        (Ok(httparse::Status::Complete(end)), Some(200..300)) if bytes.len() > end => {
            ConnectResponse::Malformed
        }
        (Ok(httparse::Status::Complete(_)), Some(200..300)) => ConnectResponse::Accepted,
        (Ok(httparse::Status::Complete(_)), Some(status)) => ConnectResponse::Rejected(status),
        (Ok(httparse::Status::Partial), _) => ConnectResponse::Incomplete,
        (Ok(httparse::Status::Complete(_)), None) | (Err(_), _) => ConnectResponse::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::Scheme;

    #[test]
    fn the_connect_request_has_the_credentials() {
        let target = Origin::new(Scheme::Https, "a.example", 443);
        let credentials = Credentials::parse("me:p%40ss").expect("they are valid");
        assert_eq!(
            connect_request(&target, Some(&credentials)),
            "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nProxy-Authorization: Basic bWU6cEBzcw==\r\n\r\n"
        );
    }

    #[test]
    fn connect_responses_are_parsed() {
        for (response, expected) in [
            ("", ConnectResponse::Incomplete),
            ("HTTP/1.1 200 OK\r\n", ConnectResponse::Incomplete),
            ("HTTP/1.1 200 OK\r\n\r\n", ConnectResponse::Accepted),
            ("HTTP/1.0 200 Connection established\r\nVia: p\r\n\r\n", ConnectResponse::Accepted),
            ("HTTP/1.1 407 Authenticate\r\n\r\nsorry", ConnectResponse::Rejected(407)),
            ("HTTP/1.1 200 OK\r\n\r\nhello", ConnectResponse::Malformed),
            ("SSH-2.0\r\n\r\n", ConnectResponse::Malformed),
            ("HTTP/1.1\r\n\r\n", ConnectResponse::Malformed),
        ] {
            assert_eq!(parse_connect_response(response.as_bytes()), expected, "{response:?}");
        }
    }
}
