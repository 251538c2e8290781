//! What a request is called: the client's own activity id, or one made here.
//!
//! In: what the client sent. Out: `x-ms-activity-id`. Several clients send none, so making one must
//! not cost a system call: each thread draws once from the system and counts from there.

use std::cell::Cell;

use http::HeaderValue;
use uuid::Uuid;

/// Spreads consecutive counts over all their bits. Odd, so that no two counts meet.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Version 4, where a GUID says its version.
const VERSION: u64 = 0x4000;

/// The client's own name for the request, or a new one.
pub(crate) fn activity_id(sent: Option<&HeaderValue>) -> HeaderValue {
    match sent {
        // A copy: the value itself holds the buffer its request was read into, and the next request wants it.
        Some(value) if !value.is_empty() => {
            HeaderValue::from_bytes(value.as_bytes()).expect("the bytes of a header are valid in a header")
        }
        _ => {
            let mut text = Uuid::encode_buffer();
            let text = next().hyphenated().encode_lower(&mut text);
            HeaderValue::from_str(text).expect("a GUID is plain ASCII")
        }
    }
}

/// A GUID of version 4 that no other request has: one half is the thread's own draw, the other
/// counts. It names a request and guards nothing, so that a reader of many could guess the next does
/// no harm.
fn next() -> Uuid {
    thread_local! {
        static DRAW: (u64, Cell<u64>) = {
            let (count, thread) = Uuid::new_v4().as_u64_pair();
            (thread, Cell::new(count))
        };
    }
    DRAW.with(|(thread, count)| {
        count.set(count.get().wrapping_add(1));
        let spread = count.get().wrapping_mul(SPREAD);
        // The four bits above the lowest twelve say the version, so the count goes around them.
        Uuid::from_u64_pair(((spread << 4) & !0xffff) | VERSION | (spread & 0xfff), *thread)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_client_s_own_name_is_kept() {
        let sent = HeaderValue::from_static("mine");
        assert_eq!(activity_id(Some(&sent)), "mine");
        for absent in [None, Some(&HeaderValue::from_static(""))] {
            let made = activity_id(absent);
            assert!(Uuid::try_parse_ascii(made.as_bytes()).is_ok(), "{made:?}");
        }
    }

    #[test]
    fn names_made_here_are_different_guids_on_every_thread() {
        let draw = || (0..10_000).map(|_| next()).collect::<Vec<_>>();
        let other = std::thread::spawn(draw);
        let ids: Vec<_> = draw().into_iter().chain(other.join().expect("a thread")).collect();
        assert!(ids.iter().all(|id| id.get_version_num() == 4 && id.get_variant() == uuid::Variant::RFC4122));
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    }
}
