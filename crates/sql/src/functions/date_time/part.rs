//! Date and time parts, from years to nanoseconds: adding, counting and binning.

use super::calendar::{DateTime, TICKS_PER_DAY, TICKS_PER_SECOND};

/// A part of a date or a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DateTimePart {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

/// The length of a part.
enum Length {
    /// A number of months, whose lengths vary.
    Months(i64),
    /// A fixed length in nanoseconds, so that even the shortest part is whole.
    Nanoseconds(i128),
}

/// The nanoseconds of one tick.
const TICK: i128 = 100;

impl DateTimePart {
    /// Parses one of the names of a part, in any case.
    pub(super) fn from_name(name: &str) -> Option<DateTimePart> {
        const NAMES: &[(&str, DateTimePart)] = &[
            ("year", DateTimePart::Year),
            ("yyyy", DateTimePart::Year),
            ("yy", DateTimePart::Year),
            ("month", DateTimePart::Month),
            ("mm", DateTimePart::Month),
            ("m", DateTimePart::Month),
            ("day", DateTimePart::Day),
            ("dd", DateTimePart::Day),
            ("d", DateTimePart::Day),
            ("hour", DateTimePart::Hour),
            ("hh", DateTimePart::Hour),
            ("minute", DateTimePart::Minute),
            ("mi", DateTimePart::Minute),
            ("n", DateTimePart::Minute),
            ("second", DateTimePart::Second),
            ("ss", DateTimePart::Second),
            ("s", DateTimePart::Second),
            ("millisecond", DateTimePart::Millisecond),
            ("ms", DateTimePart::Millisecond),
            ("microsecond", DateTimePart::Microsecond),
            ("mcs", DateTimePart::Microsecond),
            ("nanosecond", DateTimePart::Nanosecond),
            ("ns", DateTimePart::Nanosecond),
        ];
        let known = NAMES.iter().find(|(candidate, _)| candidate.eq_ignore_ascii_case(name));
        known.map(|(_, part)| *part)
    }

    fn length(self) -> Length {
        let second = i128::from(TICKS_PER_SECOND) * TICK;
        match self {
            DateTimePart::Year => Length::Months(12),
            DateTimePart::Month => Length::Months(1),
            DateTimePart::Day => Length::Nanoseconds(i128::from(TICKS_PER_DAY) * TICK),
            DateTimePart::Hour => Length::Nanoseconds(3600 * second),
            DateTimePart::Minute => Length::Nanoseconds(60 * second),
            DateTimePart::Second => Length::Nanoseconds(second),
            DateTimePart::Millisecond => Length::Nanoseconds(1_000_000),
            DateTimePart::Microsecond => Length::Nanoseconds(1_000),
            DateTimePart::Nanosecond => Length::Nanoseconds(1),
        }
    }

    /// The value of this part of `date_time`. Parts of a second give the whole fraction in that unit.
    pub(super) fn of(self, date_time: DateTime) -> i64 {
        let fields = date_time.fields();
        match self {
            DateTimePart::Year => fields.year,
            DateTimePart::Month => fields.month,
            DateTimePart::Day => fields.day,
            DateTimePart::Hour => fields.hour,
            DateTimePart::Minute => fields.minute,
            DateTimePart::Second => fields.second,
            DateTimePart::Millisecond => fields.fraction / 10_000,
            DateTimePart::Microsecond => fields.fraction / 10,
            DateTimePart::Nanosecond => fields.fraction * 100,
        }
    }

    /// The date `count` parts after `date_time`, if it is in range.
    pub(super) fn add(self, date_time: DateTime, count: i64) -> Option<DateTime> {
        match self.length() {
            Length::Months(months) => date_time.add_months(count.checked_mul(months)?),
            Length::Nanoseconds(length) => {
                DateTime::from_wide_ticks(i128::from(date_time.ticks()) + i128::from(count) * length / TICK)
            }
        }
    }

    /// How many boundaries of this part lie between two dates; negative if `end` is earlier.
    pub(super) fn boundaries(self, start: DateTime, end: DateTime) -> i128 {
        let index = |date_time: DateTime| match self.length() {
            Length::Months(months) => i128::from(month_of(date_time).div_euclid(months)),
            Length::Nanoseconds(length) => (i128::from(date_time.ticks()) * TICK).div_euclid(length),
        };
        index(end) - index(start)
    }

    /// The start of the bin of `size` parts, counted from `origin`, that contains `date_time`. A bin is not
    /// shorter than a tick.
    pub(super) fn bin(self, date_time: DateTime, size: i64, origin: DateTime) -> Option<DateTime> {
        match self.length() {
            Length::Months(months) => {
                let size = size.checked_mul(months)?;
                let bins = (month_of(date_time) - month_of(origin)).div_euclid(size);
                let start = origin.add_months(bins.checked_mul(size)?)?;
                // The bin starts later in the month than the date: the previous bin contains it.
                if start <= date_time {
                    Some(start)
                } else {
                    origin.add_months((bins - 1).checked_mul(size)?)
                }
            }
            Length::Nanoseconds(length) => {
                let size = length * i128::from(size);
                if size < TICK {
                    return None;
                }
                let since = (i128::from(date_time.ticks()) - i128::from(origin.ticks())) * TICK;
                let start = since.div_euclid(size) * size;
                DateTime::from_wide_ticks(i128::from(origin.ticks()) + start.div_euclid(TICK))
            }
        }
    }
}

/// The months since the year 0.
fn month_of(date_time: DateTime) -> i64 {
    let fields = date_time.fields();
    fields.year * 12 + fields.month - 1
}
