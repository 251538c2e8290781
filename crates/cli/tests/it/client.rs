//! A client on one connection: signs requests, reads responses, and reports when the server was killed.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use emulator::WELL_KNOWN_KEY;
use emulator::clock::Clock;
use protocol::authorization::{AccountKey, sign, signed_targets};
use protocol::resource_path::ResourcePath;
use serde_json::Value;

use crate::binary::connect;

/// One connection to an account.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    key: AccountKey,
}

/// A response with its headers and body.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    pub(crate) fn new(endpoint: &Value) -> Client {
        let stream = connect(endpoint);
        stream.set_nodelay(true).expect("a socket option");
        Client {
            stream: BufReader::new(stream),
            key: AccountKey::from_base64(WELL_KNOWN_KEY).expect("the well-known key"),
        }
    }

    /// Sends a request and waits for the response; an error when the server is killed meanwhile.
    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<Response> {
        let date = httpdate::fmt_http_date(Clock::system().now().to_system_time());
        let parsed = ResourcePath::parse(path).expect("tests ask for paths that exist");
        let target = signed_targets(&parsed).next().expect("a resource to sign");
        let authorization = sign(&self.key, method, target.resource_type, &target.link, &date);
        let mut text = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: {authorization}\r\nx-ms-date: {date}\r\n\
             x-ms-version: 2020-07-15\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text.push_str(body);
        self.stream.get_mut().write_all(text.as_bytes())?;
        self.read()
    }

    /// Sends a request to a server that must respond.
    #[track_caller]
    pub(crate) fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response {
        self.send(method, path, headers, body).expect("the server responds")
    }

    /// Creates a database `d` with a container `c`, whose partition key is `/pk`.
    #[track_caller]
    pub(crate) fn create_container(&mut self) {
        assert_eq!(self.request("POST", "/dbs", &[], r#"{"id":"d"}"#).status, 201);
        let body = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
        assert_eq!(self.request("POST", "/dbs/d/colls", &[], body).status, 201);
    }

    fn read(&mut self) -> io::Result<Response> {
        let gone = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(gone());
        }
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(gone)?;
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(gone());
            }
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.and_then(|(_, length)| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(Response { status, headers, body })
    }
}
