//! Reads the LSN and the time of a change out of its JSON, in either mode of the change feed. Pure.

use serde::Deserialize;

/// The LSN of a change.
pub(super) fn change_lsn(change: &[u8]) -> Option<u64> {
    lsn_and_time(change).0
}

/// The LSN of a change, and when it was made in seconds since 1970.
pub(super) fn lsn_and_time(change: &[u8]) -> (Option<u64>, Option<u64>) {
    /// In the latest version mode a change is the item itself; in the all versions and deletes mode it is an envelope
    /// with a `metadata` object.
    #[derive(Deserialize)]
    struct ChangeMetadata {
        #[serde(rename = "_lsn")]
        lsn: Option<u64>,
        #[serde(rename = "_ts")]
        time: Option<u64>,
        // An item may have a property of this name with any value.
        metadata: Option<serde_json::Value>,
    }
    let Ok(change) = serde_json::from_slice::<ChangeMetadata>(change) else { return (None, None) };
    let from_envelope = |name: &str| change.metadata.as_ref()?.get(name)?.as_u64();
    (change.lsn.or_else(|| from_envelope("lsn")), change.time.or_else(|| from_envelope("crts")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_an_lsn_and_a_time_in_both_modes() {
        for (change, expected) in [
            (r#"{"id":"1","_lsn":7,"_ts":3}"#, (Some(7), Some(3))),
            (r#"{"current":{},"metadata":{"lsn":8,"crts":4}}"#, (Some(8), Some(4))),
            (r#"{"id":"1","metadata":"of its own"}"#, (None, None)),
            ("[]", (None, None)),
        ] {
            assert_eq!(lsn_and_time(change.as_bytes()), expected, "{change}");
        }
    }
}
