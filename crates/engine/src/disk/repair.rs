//! Repairs the text of items that is not JSON.
//!
//! Versions of this program up to format 2 stored a property without a value (`"n":,`) when a patch increased
//! a number beyond the largest double, and nested an item deeper than it can be parsed when a patch added to
//! it. Hashes do not notice that: it is what was written. Pure: text in, text out.

use sql::value::{is_json, write_json_string};

/// The text to use instead of `body`, the text of the item `id`; none if `body` is JSON.
pub(super) fn repaired_body(id: &str, body: &[u8]) -> Option<Vec<u8>> {
    if is_json(body) {
        return None;
    }
    let filled = with_null_for_missing_values(body);
    Some(if is_json(&filled) { filled } else { system_properties_only(id, body) })
}

/// `body` with `null` where a property has no value.
fn with_null_for_missing_values(body: &[u8]) -> Vec<u8> {
    let mut filled = Vec::with_capacity(body.len() + 16);
    let (mut in_string, mut escaped) = (false, false);
    for (at, byte) in body.iter().enumerate() {
        filled.push(*byte);
        if in_string {
            in_string = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
        } else if *byte == b'"' {
            in_string = true;
        } else if *byte == b':' && matches!(body.get(at + 1), Some(b',' | b'}')) {
            filled.extend_from_slice(b"null");
        }
    }
    filled
}

/// What can be said about an item whose properties cannot be read: its id, and its system properties if they
/// can be found.
fn system_properties_only(id: &str, body: &[u8]) -> Vec<u8> {
    const RID: &[u8] = b"\"_rid\":";
    let mut text = b"{\"id\":".to_vec();
    write_json_string(id, &mut text);
    let properties_at = text.len();
    // They are written last, so the last `_rid` is theirs.
    if let Some(at) = body.windows(RID.len()).rposition(|window| window == RID) {
        text.push(b',');
        text.extend_from_slice(&body[at..]);
    }
    if !is_json(&text) {
        text.truncate(properties_at);
        text.push(b'}');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, expected: Option<&str>) {
        let repaired = repaired_body("i\"d", body.as_bytes());
        assert_eq!(repaired.map(|text| String::from_utf8(text).unwrap()).as_deref(), expected);
    }

    #[test]
    fn json_stays_as_it_is() {
        check(r#"{"id":"i","a":":,","_rid":"r"}"#, None);
    }

    #[test]
    fn a_missing_value_becomes_null() {
        check(
            r#"{"id":"i\":,","n":,"o":{"m":},"_rid":"r","_ts":1}"#,
            Some(r#"{"id":"i\":,","n":null,"o":{"m":null},"_rid":"r","_ts":1}"#),
        );
    }

    #[test]
    fn text_that_cannot_be_repaired_keeps_its_id_and_system_properties() {
        let deep = "[".repeat(400) + &"]".repeat(400);
        check(
            &format!(r#"{{"id":"x","a":{deep},"_rid":"r","_ts":1}}"#),
            Some(r#"{"id":"i\"d","_rid":"r","_ts":1}"#),
        );
        check("nothing like JSON", Some(r#"{"id":"i\"d"}"#));
    }
}
