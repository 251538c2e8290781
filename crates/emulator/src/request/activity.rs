//! Activity ids: the client's own, or a random one.
//!
//! Several clients send none, so making one must not cost a system call: `fastrand` seeds each thread once.

use http::HeaderValue;
use uuid::Uuid;

/// The client's own activity id, or a new one.
pub(crate) fn activity_id(sent: Option<&HeaderValue>) -> HeaderValue {
    match sent {
        // A copy: the value itself shares the read buffer, which the next request reuses.
        Some(value) if !value.is_empty() => {
            HeaderValue::from_bytes(value.as_bytes()).expect("the bytes of a header are valid in a header")
        }
        _ => {
            let mut text = Uuid::encode_buffer();
            let text = random_id().hyphenated().encode_lower(&mut text);
            HeaderValue::from_str(text).expect("a GUID is plain ASCII")
        }
    }
}

/// A random GUID of version 4. It identifies a request and guards nothing, so it need not be unpredictable.
fn random_id() -> Uuid {
    uuid::Builder::from_random_bytes(fastrand::u128(..).to_ne_bytes()).into_uuid()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_client_s_own_id_is_used() {
        let sent = HeaderValue::from_static("mine");
        assert_eq!(activity_id(Some(&sent)), "mine");
        for absent in [None, Some(&HeaderValue::from_static(""))] {
            let made = activity_id(absent);
            assert!(Uuid::try_parse_ascii(made.as_bytes()).is_ok(), "{made:?}");
        }
    }

    #[test]
    fn generated_ids_are_different_guids_on_every_thread() {
        let draw = || (0..10_000).map(|_| random_id()).collect::<Vec<_>>();
        let other = std::thread::spawn(draw);
        let ids: Vec<_> = draw().into_iter().chain(other.join().expect("a thread")).collect();
        assert!(ids.iter().all(|id| id.get_version_num() == 4 && id.get_variant() == uuid::Variant::RFC4122));
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    }
}
