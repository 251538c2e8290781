//! Dates as ISO 8601 text.

use smol_str::SmolStr;

use super::calendar::{DateTime, DateTimeFields, TICKS_PER_SECOND};

/// The largest number of fraction digits; the last one is a tick.
const FRACTION_DIGITS_MAX: usize = 7;

/// Whether `text` is a date that the functions accept.
pub(in super::super) fn is_date_time(text: &str) -> bool {
    parse(text).is_some()
}

/// Parses `YYYY-MM-DD`, then optionally a space or `T` and `hh:mm:ss` with a fraction of one to seven
/// digits, then optionally `Z`.
pub(super) fn parse(text: &str) -> Option<DateTime> {
    let mut rest = Digits(text.as_bytes());
    let year = rest.number(4)?;
    rest.skip(b'-')?;
    let month = rest.number(2)?;
    rest.skip(b'-')?;
    let day = rest.number(2)?;
    let (mut hour, mut minute, mut second, mut fraction) = (0, 0, 0, 0);
    if rest.skip(b'T').or_else(|| rest.skip(b' ')).is_some() {
        hour = rest.number(2)?;
        rest.skip(b':')?;
        minute = rest.number(2)?;
        rest.skip(b':')?;
        second = rest.number(2)?;
        if rest.skip(b'.').is_some() {
            fraction = rest.fraction()?;
        }
    }
    let _ = rest.skip(b'Z');
    if !rest.0.is_empty() {
        return None;
    }
    DateTime::from_fields(DateTimeFields { year, month, day, hour, minute, second, fraction })
}

/// The rest of a date being parsed.
struct Digits<'t>(&'t [u8]);

impl Digits<'_> {
    /// A number of exactly `count` digits.
    fn number(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        let number = digits.iter().try_fold(0, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
        })?;
        self.0 = rest;
        Some(number)
    }

    fn skip(&mut self, wanted: u8) -> Option<()> {
        let (first, rest) = self.0.split_first()?;
        (*first == wanted).then(|| self.0 = rest)
    }

    /// One to seven digits, in ticks.
    fn fraction(&mut self) -> Option<i64> {
        let count = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 || count > FRACTION_DIGITS_MAX {
            return None;
        }
        let missing = u32::try_from(FRACTION_DIGITS_MAX - count).ok()?;
        Some(self.number(count)? * 10_i64.pow(missing))
    }
}

/// Writes `YYYY-MM-DDThh:mm:ss.fffffffZ`. By hand because every number has a fixed width with leading
/// zeros, which `itoa` does not write.
pub(super) fn format(date_time: DateTime) -> SmolStr {
    let fields = date_time.fields();
    let mut text = *b"0000-00-00T00:00:00.0000000Z";
    let mut put = |at: std::ops::Range<usize>, mut number: i64| {
        for digit in text[at].iter_mut().rev() {
            *digit = b'0' + u8::try_from(number % 10).expect("a digit of a number that is not negative");
            number /= 10;
        }
    };
    put(0..4, fields.year);
    put(5..7, fields.month);
    put(8..10, fields.day);
    put(11..13, fields.hour);
    put(14..16, fields.minute);
    put(17..19, fields.second);
    debug_assert!(fields.fraction < TICKS_PER_SECOND);
    put(20..27, fields.fraction);
    SmolStr::new(std::str::from_utf8(&text).expect("digits and separators are ASCII"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_with_and_without_time_fraction_and_zone() {
        for (text, expected) in [
            ("2024-12-12", Some("2024-12-12T00:00:00.0000000Z")),
            ("2024-12-12Z", Some("2024-12-12T00:00:00.0000000Z")),
            ("2024-12-12 20:21:25", Some("2024-12-12T20:21:25.0000000Z")),
            ("2024-12-12T20:21:25Z", Some("2024-12-12T20:21:25.0000000Z")),
            ("2024-12-12T20:21:25.1", Some("2024-12-12T20:21:25.1000000Z")),
            ("2024-12-12 20:21:25.1234567Z", Some("2024-12-12T20:21:25.1234567Z")),
            ("0001-01-01", Some("0001-01-01T00:00:00.0000000Z")),
            ("2024-12-12T20Z", None),
            ("2024-12-12T20:21Z", None),
            ("2024-12-12 20:21:25.", None),
            ("2024-12-12 20:21:25.12345678", None),
            ("2024-12-12T24:00:00Z", None),
            ("2024-12-12T20:60:00Z", None),
            ("2024-12-12T20:21:25+01:00", None),
            ("2024-12-12T", None),
            ("2024-12-12ZZ", None),
            ("2023-02-29", None),
            ("0000-01-01", None),
            ("24-12-12", None),
            ("2024-1-12", None),
            ("+024-12-12", None),
            ("2024-12-1é", None),
            ("", None),
        ] {
            assert_eq!(parse(text).map(format).as_deref(), expected, "{text}");
        }
    }
}
