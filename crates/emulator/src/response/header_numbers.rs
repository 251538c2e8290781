//! Numbers as header values.
//!
//! Every response has several of them, so their digits are written on the stack: the formatting machinery of
//! the standard library costs more than a point read's look-up, and a float's digits more than that.

use std::time::Duration;

use http::HeaderValue;

use engine::store::Progress;

/// Enough bytes for three numbers and their separators.
const TEXT_BYTES_MAX: usize = 48;

/// A short text on the stack.
struct HeaderText {
    bytes: [u8; TEXT_BYTES_MAX],
    length: usize,
}

impl HeaderText {
    fn new() -> HeaderText {
        HeaderText { bytes: [0; TEXT_BYTES_MAX], length: 0 }
    }

    fn text(mut self, text: &[u8]) -> HeaderText {
        self.bytes[self.length..][..text.len()].copy_from_slice(text);
        self.length += text.len();
        self
    }

    /// Appends `number`, with zeros in front of it up to `width` digits.
    fn number(self, number: u64, width: usize) -> HeaderText {
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(number);
        let zeros = &b"000"[..width.saturating_sub(digits.len())];
        self.text(zeros).text(digits.as_bytes())
    }

    fn value(&self) -> HeaderValue {
        HeaderValue::from_bytes(&self.bytes[..self.length]).expect("digits and signs are valid in a header")
    }
}

/// An integer as a header value.
pub(super) fn integer(number: u64) -> HeaderValue {
    // Range ids and region counts are small: a static text needs no allocation and no reference count.
    const SINGLE_DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
    if let Some(digit) = usize::try_from(number).ok().and_then(|number| SINGLE_DIGITS.get(number)) {
        return HeaderValue::from_static(digit);
    }
    HeaderText::new().number(number, 1).value()
}

/// The session token of one partition: `0:-1#42`, or `0:1#42#1=40#2=2` where several regions write.
pub(super) fn session_token(range_id: u32, version: i64, progress: &Progress) -> HeaderValue {
    let lsn = progress.lsn.0;
    if progress.versions.regions().next().is_some() {
        let regions = progress.versions.regions().map(|(region, arrived)| format!("#{region}={arrived}"));
        let text = format!("{range_id}:{version}#{lsn}{}", regions.collect::<String>());
        return HeaderValue::try_from(text).expect("digits and signs are valid in a header");
    }
    let sign: &[u8] = if version < 0 { b":-" } else { b":" };
    let text = HeaderText::new().number(range_id.into(), 1).text(sign).number(version.unsigned_abs(), 1);
    text.text(b"#").number(lsn, 1).value()
}

/// Request units with two decimals at most, none for whole charges: `1`, `6.29`.
pub(super) fn charge(charge: f64) -> HeaderValue {
    if charge == 1.0 {
        return HeaderValue::from_static("1");
    }
    // Whole hundredths, and never more than a float counts exactly. No charge is negative.
    let hundredths = (charge * 100.0).round_ties_even().clamp(0.0, 1e15) as u64;
    let whole = HeaderText::new().number(hundredths / 100, 1);
    let text = match hundredths % 100 {
        0 => whole,
        tenths if tenths % 10 == 0 => whole.text(b".").number(tenths / 10, 1),
        decimals => whole.text(b".").number(decimals, 2),
    };
    text.value()
}

/// `0.000` to `0.999`: nearly every response is ready within a millisecond, and a static text needs no
/// allocation and no reference count.
const WITHIN_A_MILLISECOND: [[u8; 5]; 1000] = {
    let mut texts = [*b"0.000"; 1000];
    let mut micros = 0;
    while micros < texts.len() {
        texts[micros][2] += (micros / 100) as u8;
        texts[micros][3] += (micros / 10 % 10) as u8;
        texts[micros][4] += (micros % 10) as u8;
        micros += 1;
    }
    texts
};

/// Milliseconds with microseconds as decimals: `0.117`.
pub(super) fn milliseconds(took: Duration) -> HeaderValue {
    static SHORT: [[u8; 5]; 1000] = WITHIN_A_MILLISECOND;
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let short = usize::try_from(micros).ok().and_then(|micros| SHORT.get(micros));
    if let Some(text) = short.and_then(|text| std::str::from_utf8(text).ok()) {
        return HeaderValue::from_static(text);
    }
    HeaderText::new().number(micros / 1000, 1).text(b".").number(micros % 1000, 3).value()
}

#[cfg(test)]
mod tests {
    use protocol::lsn::Lsn;

    use super::*;

    #[test]
    fn charges_have_at_most_two_decimals_and_no_trailing_zeros() {
        for (units, text) in [
            (1.0, "1"),
            (6.29, "6.29"),
            (2.5, "2.5"),
            (2.05, "2.05"),
            (10.0, "10"),
            (0.0, "0"),
            (0.01, "0.01"),
            (100.0, "100"),
            (1234.567, "1234.57"),
            (0.999, "1"),
            (1e300, "10000000000000"),
        ] {
            assert_eq!(charge(units), text, "{units}");
        }
    }

    #[test]
    fn durations_are_milliseconds_with_three_decimals() {
        assert_eq!(milliseconds(Duration::from_micros(1_234)), "1.234");
        assert_eq!(milliseconds(Duration::from_micros(7)), "0.007");
        assert_eq!(milliseconds(Duration::from_micros(999)), "0.999");
        assert_eq!(milliseconds(Duration::from_micros(1_000)), "1.000");
        assert_eq!(milliseconds(Duration::MAX), "18446744073709551.615");
    }

    #[test]
    fn the_longest_numbers_and_tokens_fit() {
        assert_eq!(integer(0), "0");
        assert_eq!(integer(u64::MAX), "18446744073709551615");
        let progress = |lsn| Progress { lsn: Lsn(lsn), ..Progress::default() };
        assert_eq!(session_token(0, -1, &progress(42)), "0:-1#42");
        assert_eq!(session_token(7, 3, &progress(1)), "7:3#1");
        assert_eq!(session_token(u32::MAX, -1, &progress(u64::MAX)), "4294967295:-1#18446744073709551615");
    }
}
