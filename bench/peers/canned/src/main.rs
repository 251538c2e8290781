//! One canned answer to every request: the upper bound of any server built on hyper.
//!
//! In: `--port N` (0 means any) and `--answer FILE`, a recorded HTTP/1.1 response, head and body; without
//! a file, a built-in one of about the same size. Out: one line on stdout once it listens. The comparison
//! records a point read from Perihelion and hands it over, so that both send the same headers and body.

use std::convert::Infallible;
use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body_util::Full;
use hyper::Response;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

type AnyError = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let options = Options::parse(std::env::args().skip(1))?;
    let canned = Arc::new(match &options.answer {
        Some(path) => Canned::parse(&std::fs::read(path)?)?,
        None => Canned::built_in(),
    });
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
    println!("listening on http://127.0.0.1:{}", listener.local_addr()?.port());

    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let canned = Arc::clone(&canned);
        tokio::spawn(async move {
            let service = service_fn(|_| std::future::ready(Ok::<_, Infallible>(canned.response())));
            // A client that goes away ends its own connection and nothing else.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

#[derive(Default)]
struct Options {
    port: u16,
    answer: Option<String>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, AnyError> {
        let mut options = Options::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--port" => options.port = arguments.next().ok_or("--port needs a number")?.parse()?,
                "--answer" => options.answer = Some(arguments.next().ok_or("--answer needs a file")?),
                other => return Err(format!("unknown option {other}; known are --port and --answer").into()),
            }
        }
        Ok(options)
    }
}

/// The parts of the one answer; a copy of them is the whole work per request.
struct Canned {
    headers: HeaderMap,
    body: Bytes,
}

impl Canned {
    fn response(&self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(self.body.clone()));
        *response.status_mut() = StatusCode::OK;
        *response.headers_mut() = self.headers.clone();
        response
    }

    /// Splits a recorded response. `date`, `content-length` and `connection` are left to hyper, which
    /// writes them for every server built on it.
    fn parse(recorded: &[u8]) -> Result<Canned, AnyError> {
        let end = recorded
            .windows(4)
            .position(|window| window == b"\r\n\r\n")
            .ok_or("the recorded answer has no end of its head")?;
        let head = std::str::from_utf8(&recorded[..end])?;
        let mut headers = HeaderMap::new();
        for line in head.split("\r\n").skip(1) {
            let (name, value) = line.split_once(':').ok_or("a header line without a colon")?;
            let name = name.trim().to_ascii_lowercase();
            if !["date", "content-length", "connection"].contains(&name.as_str()) {
                headers.insert(name.parse::<HeaderName>()?, HeaderValue::from_str(value.trim())?);
            }
        }
        Ok(Canned { headers, body: Bytes::copy_from_slice(&recorded[end + 4..]) })
    }

    /// A stand-in for when there is nothing recorded.
    fn built_in() -> Canned {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("content-type", "application/json"),
            ("etag", "\"00000000-0000-0000-0000-000000000000\""),
            ("lsn", "1000"),
            ("x-ms-activity-id", "00000000-0000-0000-0000-000000000000"),
            ("x-ms-alt-content-path", "dbs/bench/colls/items"),
            ("x-ms-content-path", "AAAAAIAAAAA="),
            ("x-ms-documentdb-partitionkeyrangeid", "0"),
            ("x-ms-gatewayversion", "version=2.14.0"),
            ("x-ms-item-lsn", "1000"),
            ("x-ms-request-charge", "1"),
            ("x-ms-request-duration-ms", "0.050"),
            ("x-ms-schemaversion", "1.16"),
            ("x-ms-serviceversion", "version=2.14.0.0"),
            ("x-ms-session-token", "0:-1#1000"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        Canned { headers, body: Bytes::from(format!("{{\"id\":\"{}\"}}", "0".repeat(1190))) }
    }
}

#[cfg(test)]
mod tests {
    use super::Canned;

    #[test]
    fn a_recorded_answer_keeps_its_headers_and_body_and_leaves_framing_to_hyper() {
        let recorded = b"HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 2\r\nDate: now\r\n\r\n{}";
        let canned = Canned::parse(recorded).expect("a whole response");
        assert_eq!(canned.headers.len(), 1);
        assert_eq!(canned.headers["etag"], "\"a\"");
        assert_eq!(&canned.body[..], b"{}");
    }

    #[test]
    fn a_response_cut_in_its_head_is_refused() {
        assert!(Canned::parse(b"HTTP/1.1 200 OK\r\nETag: x\r\n").is_err());
    }
}
