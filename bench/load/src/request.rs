//! Requests as bytes, rendered and signed before the clock runs.

use std::fmt::Write as _;
use std::net::SocketAddr;

use crate::signature::Key;

/// Where a server listens and how to sign for it.
#[derive(Clone)]
pub(crate) struct Account {
    pub(crate) address: SocketAddr,
    pub(crate) key: Key,
}

/// One request, still in parts.
pub(crate) struct Request<'a> {
    pub(crate) verb: &'a str,
    pub(crate) path: String,
    /// The resource type and link that are signed.
    pub(crate) kind: &'a str,
    pub(crate) link: String,
    /// What this operation adds to the headers every request carries.
    pub(crate) headers: Vec<(&'a str, String)>,
    pub(crate) body: String,
}

/// The headers the JavaScript client puts on every request: the official client that speaks HTTP/1.1
/// and works with all servers of the comparison.
const BASE: &[(&str, &str)] = &[
    ("accept", "application/json"),
    ("cache-control", "no-cache"),
    ("user-agent", "azure-cosmos-js/4.10.1 perihelion-bench"),
    ("x-ms-cosmos-allow-tentative-writes", "true"),
    ("x-ms-cosmos-sdk-supportedcapabilities", "1"),
    ("x-ms-documentdb-query-enablecrosspartition", "true"),
    ("x-ms-documentdb-responsecontinuationtokenlimitinkb", "1"),
    ("x-ms-version", "2020-07-15"),
];

impl Account {
    /// The bytes of a request, signed for `date`.
    pub(crate) fn render(&self, request: &Request<'_>, date: &str) -> Vec<u8> {
        let Request { verb, path, kind, link, headers, body } = request;
        let authorization = self.key.authorization(verb, kind, link, date);
        let mut text = format!("{verb} {path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        let write = "writing to a string does not fail";
        write!(text, "authorization: {authorization}\r\nx-ms-date: {date}\r\n").expect(write);
        for (name, value) in BASE {
            write!(text, "{name}: {value}\r\n").expect(write);
        }
        for (name, value) in headers {
            write!(text, "{name}: {value}\r\n").expect(write);
        }
        if *verb != "GET" {
            write!(text, "content-length: {}\r\n", body.len()).expect(write);
        }
        text.push_str("\r\n");
        text.push_str(body);
        text.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::{Account, Request};
    use crate::signature::{Key, WELL_KNOWN_KEY};

    fn account() -> Account {
        let key = Key::parse(WELL_KNOWN_KEY).expect("the well-known key");
        Account { address: "127.0.0.1:8081".parse().expect("an address"), key }
    }

    #[test]
    fn a_request_ends_its_head_once_and_counts_its_body() {
        let request = Request {
            verb: "POST",
            path: "/dbs".to_owned(),
            kind: "dbs",
            link: String::new(),
            headers: vec![("x-extra", "1".to_owned())],
            body: "{\"id\":\"é\"}".to_owned(),
        };
        let text = String::from_utf8(account().render(&request, "today")).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("an end of the head");
        assert!(head.starts_with("POST /dbs HTTP/1.1\r\nhost: 127.0.0.1:8081\r\n"), "{head}");
        assert!(head.ends_with("x-extra: 1\r\ncontent-length: 11"), "{head}");
        assert_eq!(body.len(), 11);
    }
}
