//! The headers every request carries.
//!
//! In: the headers of an operation. Out: the same, with what the service wants to know of any client. Names
//! and most values are static; a request costs one string, its id.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use azure_core::http::headers::{HeaderName, HeaderValue, Headers};
use protocol::headers as names;

use crate::operation::header;

/// The version of the REST API that is spoken.
const VERSION: &str = "2020-07-15";

/// What this client can do, as a set of bits: ranges that were merged.
const CAPABILITIES: &str = "1";

/// Room for the headers of nearly every request, so that the map is made once.
const HEADERS_USUAL: usize = 24;

/// An empty set of headers with room for what an operation and the transport add.
pub fn with_room() -> Headers {
    HashMap::with_capacity(HEADERS_USUAL).into()
}

/// Adds what every request carries.
#[derive(Debug)]
pub struct CommonHeaders {
    user_agent: HeaderValue,
    client_id: HeaderValue,
    /// Different in every client object, so that ids of two programs do not meet.
    seed: u64,
    requests: AtomicU64,
}

impl CommonHeaders {
    /// The headers of one client object, which introduces itself as `application` if it has a name.
    pub fn new(application: Option<&str>) -> CommonHeaders {
        let agent = concat!("perihelion/", env!("CARGO_PKG_VERSION"));
        let user_agent = match application {
            Some(application) => HeaderValue::from(format!("{agent} {}", printable(application))),
            None => HeaderValue::from_static(agent),
        };
        let seed = random();
        let client_id = HeaderValue::from(identifier(seed, random()));
        CommonHeaders { user_agent, client_id, seed, requests: AtomicU64::new(0) }
    }

    /// Adds the headers that are the same however often the request is sent. What is there already stays.
    pub fn add(&self, headers: &mut Headers, has_body: bool) {
        const ACCEPT: HeaderName = HeaderName::from_static(names::ACCEPT);
        const CACHE_CONTROL: HeaderName = HeaderName::from_static(names::CACHE_CONTROL);
        const VERSION_NAME: HeaderName = HeaderName::from_static(names::VERSION);
        const CAPABILITIES_NAME: HeaderName = HeaderName::from_static(names::SDK_SUPPORTED_CAPABILITIES);
        const NO_RETRY_449: HeaderName = HeaderName::from_static(names::NO_RETRY_449);
        const USER_AGENT: HeaderName = HeaderName::from_static(names::USER_AGENT);
        const CLIENT_ID: HeaderName = HeaderName::from_static(names::CLIENT_ID);
        const CONTENT_TYPE: HeaderName = HeaderName::from_static(names::CONTENT_TYPE);

        headers.insert(ACCEPT, HeaderValue::from_static(names::CONTENT_TYPE_JSON));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(VERSION_NAME, HeaderValue::from_static(VERSION));
        headers.insert(CAPABILITIES_NAME, HeaderValue::from_static(CAPABILITIES));
        // The pipeline retries these itself, where it can be seen and has an end.
        headers.insert(NO_RETRY_449, HeaderValue::from_static("true"));
        headers.insert(USER_AGENT, self.user_agent.clone());
        headers.insert(CLIENT_ID, self.client_id.clone());
        if has_body && header(headers, names::CONTENT_TYPE).is_none() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(names::CONTENT_TYPE_JSON));
        }
    }

    /// Gives the request an id of its own: another one each time it is sent.
    pub fn identify(&self, headers: &mut Headers) {
        const ACTIVITY_ID: HeaderName = HeaderName::from_static(names::ACTIVITY_ID);
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        headers.insert(ACTIVITY_ID, HeaderValue::from(identifier(self.seed, number)));
    }
}

/// A UUID of a seed and a number: two numbers never give the same one, and neighbours look unrelated.
fn identifier(seed: u64, number: u64) -> String {
    // Version 4 and variant 1 take six of the bits; the number keeps all of its own in the second half and
    // the middle.
    let low = mix(number.wrapping_add(seed));
    let high = mix(seed ^ low);
    let id = (u128::from(high) << 64) | u128::from(low);
    let id = (id & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [b'-'; 36];
    let mut place = 0;
    for (number, byte) in id.to_be_bytes().into_iter().enumerate() {
        place += usize::from(matches!(number, 4 | 6 | 8 | 10));
        text[place] = DIGITS[usize::from(byte >> 4)];
        text[place + 1] = DIGITS[usize::from(byte & 0xf)];
        place += 2;
    }
    std::str::from_utf8(&text).expect("digits and dashes are text").to_owned()
}

/// Turns each number into another one, far away: the finisher of splitmix64, which is a permutation.
fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A number nobody can guess; the standard library has no other source of chance.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// What may stand in a header; the rest becomes `_`.
fn printable(text: &str) -> String {
    text.chars().take(64).map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn sent(has_body: bool, own: &[(&'static str, &'static str)]) -> Headers {
        let mut headers = Headers::new();
        own.iter().for_each(|(name, value)| headers.insert(*name, *value));
        let common = CommonHeaders::new(Some("shop\n1"));
        common.add(&mut headers, has_body);
        common.identify(&mut headers);
        headers
    }

    #[test]
    fn every_request_says_who_asks_in_which_version_and_under_which_id() {
        let headers = sent(false, &[]);
        for (name, value) in [
            ("accept", "application/json"),
            ("cache-control", "no-cache"),
            ("x-ms-version", "2020-07-15"),
            ("x-ms-cosmos-sdk-supportedcapabilities", "1"),
            ("x-ms-noretry-449", "true"),
        ] {
            assert_eq!(header(&headers, name), Some(value), "{name}");
        }
        let agent = header(&headers, "user-agent").expect("an agent");
        assert!(agent.starts_with("perihelion/") && agent.ends_with(" shop_1"), "{agent}");
        assert!(header(&headers, "x-ms-client-id").is_some());
        assert_eq!(header(&headers, "content-type"), None, "nothing to describe");
    }

    #[test]
    fn a_body_is_json_unless_the_operation_says_otherwise() {
        assert_eq!(header(&sent(true, &[]), "content-type"), Some("application/json"));
        let query = sent(true, &[("content-type", "application/query+json")]);
        assert_eq!(header(&query, "content-type"), Some("application/query+json"));
    }

    #[test]
    fn ids_are_uuids_and_no_two_are_alike() {
        let seed = random();
        let ids: HashSet<_> = (0..10_000).map(|number| identifier(seed, number)).collect();
        assert_eq!(ids.len(), 10_000);
        for id in ids {
            assert_eq!(id.len(), 36);
            assert!(
                id.char_indices().all(|(place, c)| match place {
                    8 | 13 | 18 | 23 => c == '-',
                    14 => c == '4',
                    19 => matches!(c, '8' | '9' | 'a' | 'b'),
                    _ => matches!(c, '0'..='9' | 'a'..='f'),
                }),
                "{id}"
            );
        }
    }
}
