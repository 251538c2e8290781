//! Percent-encoding of names in paths and query parameters.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters that RFC 3986 calls unreserved stay; all others are encoded.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Encodes one segment of a path, or one value of a query parameter: `West US` becomes `West%20US`.
pub fn escape(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unreserved_characters_stay() {
        assert_eq!(escape("West US/é?"), "West%20US%2F%C3%A9%3F");
        assert_eq!(escape("a-b_c.d~1"), "a-b_c.d~1");
    }
}
