//! The headers every request carries.
//!
//! In: the headers of an operation. Out: the same, with what the service wants to know of any client. Names
//! and most values are static; a request costs one string, its id.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use protocol::headers as names;

use super::header_list::HeaderList;

/// The version of the REST API that is spoken.
const VERSION: &str = "2020-07-15";

/// What this client can do, as a set of bits: ranges that were merged.
const CAPABILITIES: &str = "1";

/// Adds what every request carries.
#[derive(Debug)]
pub struct CommonHeaders {
    user_agent: String,
    client_id: String,
    /// Different in every client object, so that ids of two programs do not meet.
    seed: u64,
    requests: AtomicU64,
}

impl CommonHeaders {
    /// The headers of one client object, which introduces itself as `application` if it has a name.
    pub fn new(application: Option<&str>) -> CommonHeaders {
        let agent = concat!("perihelion/", env!("CARGO_PKG_VERSION"));
        let user_agent = match application {
            Some(application) => format!("{agent} {}", printable(application)),
            None => agent.to_owned(),
        };
        let seed = random();
        let client_id = text(&identifier(seed, random())).to_owned();
        CommonHeaders { user_agent, client_id, seed, requests: AtomicU64::new(0) }
    }

    /// Adds the headers that are the same however often the request is sent. What is there already stays.
    pub fn add(&self, headers: &mut HeaderList, has_body: bool) {
        headers.set_fixed(names::ACCEPT, names::CONTENT_TYPE_JSON);
        headers.set_fixed(names::CACHE_CONTROL, "no-cache");
        headers.set_fixed(names::VERSION, VERSION);
        headers.set_fixed(names::SDK_SUPPORTED_CAPABILITIES, CAPABILITIES);
        // The pipeline retries these itself, where it can be seen and has an end.
        headers.set_fixed(names::NO_RETRY_449, "true");
        headers.set(names::USER_AGENT, &self.user_agent);
        headers.set(names::CLIENT_ID, &self.client_id);
        if has_body && headers.get(names::CONTENT_TYPE).is_none() {
            headers.set_fixed(names::CONTENT_TYPE, names::CONTENT_TYPE_JSON);
        }
    }

    /// Gives the request an id of its own: another one each time it is sent.
    pub fn identify(&self, headers: &mut HeaderList) {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        headers.set(names::ACTIVITY_ID, text(&identifier(self.seed, number)));
    }
}

/// A UUID of a seed and a number: two numbers never give the same one, and neighbours look unrelated.
fn identifier(seed: u64, number: u64) -> [u8; 36] {
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
    text
}

fn text(identifier: &[u8; 36]) -> &str {
    std::str::from_utf8(identifier).expect("digits and dashes are text")
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

    fn sent(has_body: bool, own: &[(&'static str, &'static str)]) -> HeaderList {
        let mut headers = HeaderList::new();
        own.iter().for_each(|(name, value)| headers.set(name, value));
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
            assert_eq!(headers.get(name), Some(value), "{name}");
        }
        let agent = headers.get("user-agent").expect("an agent");
        assert!(agent.starts_with("perihelion/") && agent.ends_with(" shop_1"), "{agent}");
        assert!(headers.get("x-ms-client-id").is_some());
        assert_eq!(headers.get("content-type"), None, "nothing to describe");
    }

    #[test]
    fn a_body_is_json_unless_the_operation_says_otherwise() {
        assert_eq!(sent(true, &[]).get("content-type"), Some("application/json"));
        let query = sent(true, &[("content-type", "application/query+json")]);
        assert_eq!(query.get("content-type"), Some("application/query+json"));
    }

    #[test]
    fn ids_are_uuids_and_no_two_are_alike() {
        let seed = random();
        let ids: HashSet<_> = (0..10_000).map(|number| identifier(seed, number)).collect();
        assert_eq!(ids.len(), 10_000);
        for id in ids {
            let id = text(&id);
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
