//! HTTP dates of foreign origin: read in any case, written without a panic whatever their value.

use std::cell::Cell;
use std::time::{Duration, SystemTime};

/// The last second that an HTTP date can name: the end of the year 9999.
const LAST: Duration = Duration::from_secs(253_402_300_799);

/// Parses an HTTP date, in upper or lower case: signatures cover it in lower case, and some clients send it
/// that way. Clients send the same text in all requests of a second, so each thread caches the last one.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    /// The only form that clients send: `Sun, 15 Nov 2026 19:23:36 GMT`.
    const LENGTH: usize = 29;
    thread_local! {
        static NEWEST: Cell<([u8; LENGTH], SystemTime)> =
            const { Cell::new(([0; LENGTH], SystemTime::UNIX_EPOCH)) };
    }
    let usual = <[u8; LENGTH]>::try_from(text.as_bytes()).ok();
    let (newest, moment) = NEWEST.get();
    if usual == Some(newest) {
        return Some(moment);
    }
    let parsed = httpdate::parse_http_date(text).or_else(|_| httpdate::parse_http_date(&usual_case(text)));
    let moment = parsed.ok()?;
    if let Some(usual) = usual {
        NEWEST.set((usual, moment));
    }
    Some(moment)
}

/// The date as text. Moments that the form cannot express become the nearest ones that it can.
pub(crate) fn format(moment: SystemTime) -> String {
    let since = moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + since.min(LAST))
}

/// `seconds` since the epoch as a moment, or the nearest one that an HTTP date can name.
pub(crate) fn from_seconds(seconds: i64) -> SystemTime {
    let since = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    SystemTime::UNIX_EPOCH + since.min(LAST)
}

/// `text` with the case that HTTP dates have: names begin with a capital, and the zone is in capitals.
fn usual_case(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for word in text.split_inclusive(' ') {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        written.extend(first);
        match word.eq_ignore_ascii_case("gmt") {
            true => written.push_str(&letters.as_str().to_ascii_uppercase()),
            false => written.push_str(&letters.as_str().to_ascii_lowercase()),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_read_in_any_case() {
        let expected = httpdate::parse_http_date("Sun, 15 Nov 2026 19:23:36 GMT").ok();
        assert!(expected.is_some());
        for text in [
            "Sun, 15 Nov 2026 19:23:36 GMT",
            "sun, 15 nov 2026 19:23:36 gmt",
            "SUN, 15 NOV 2026 19:23:36 GMT",
            "sun, 15 nov 2026 19:23:36 gmt",
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
        for text in ["", "yesterday", "Sun, 15 Nov 2026", "ſun, 15 nov 2026 19:23:36 gmt"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn moments_that_no_date_can_name_become_the_nearest_ones() {
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(900);
        assert_eq!(format(before), "Thu, 01 Jan 1970 00:00:00 GMT");
        let after = SystemTime::UNIX_EPOCH + LAST + Duration::from_secs(900);
        assert_eq!(format(after), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(format(from_seconds(i64::MAX)), format(after));
        assert_eq!(format(from_seconds(i64::MIN)), format(before));
    }
}
