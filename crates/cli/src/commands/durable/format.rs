//! Times, sizes and texts as the tables of `peri durable` show them.

use emulator::clock::{Clock, Ticks};

/// The ticks of a millisecond.
const TICKS: i64 = 10_000;

/// The current time of this machine.
pub(super) fn now() -> Ticks {
    Clock::system().now()
}

/// A time in milliseconds since 1970, to the second: `2026-11-15 19:23:36`. Empty for none.
pub(super) fn time(milliseconds: u64) -> String {
    let text = timestamp(milliseconds);
    text.get(..19).unwrap_or(&text).replace('T', " ")
}

/// A time in milliseconds since 1970 as text: `2026-11-15T19:23:36.123Z`. Empty for none.
pub(super) fn timestamp(milliseconds: u64) -> String {
    match i64::try_from(milliseconds).ok().and_then(|milliseconds| milliseconds.checked_mul(TICKS)) {
        Some(0) => String::new(),
        Some(ticks) => Ticks(ticks).to_string(),
        None => format!("{milliseconds} ms since 1970"),
    }
}

/// A duration in milliseconds: `12 ms`, `1.24 s`, `5 min 3 s`, `2 h 5 min`.
pub(super) fn duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1_000;
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{:.2} s", milliseconds as f64 / 1_000.0),
        60_000..3_600_000 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ if seconds < 2 * 86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// A number of bytes: `512 B`, `1.5 KB`, `2.0 MB`.
pub(super) fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{:.1} KB", bytes as f64 / 1_024.0),
        _ => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
    }
}

/// The first characters of a text, and a mark if there are more.
pub(super) fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A count with its noun: `1 instance`, `2 instances`.
pub(super) fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_durations_and_sizes_have_units() {
        assert_eq!(time(1_794_770_616_123), "2026-11-15 19:23:36");
        assert_eq!(timestamp(1_794_770_616_123), "2026-11-15T19:23:36.123Z");
        assert_eq!((time(0), timestamp(u64::MAX)), (String::new(), format!("{} ms since 1970", u64::MAX)));
        let durations = [12, 1_240, 303_000, 7_500_000, 200_000_000].map(duration);
        assert_eq!(durations, ["12 ms", "1.24 s", "5 min 3 s", "2 h 5 min", "2 d 7 h"]);
        assert_eq!([0, 1_536, 2 << 20].map(bytes), ["0 B", "1.5 KB", "2.0 MB"]);
        assert_eq!((cut("東日本", 2), cut("ab", 2)), ("東日…".to_owned(), "ab".to_owned()));
    }
}
