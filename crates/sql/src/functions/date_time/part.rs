//! Years to nanoseconds: adding them, counting them, rounding to them.

use super::moment::{Moment, TICKS_PER_DAY, TICKS_PER_SECOND};

/// A part of a date or a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
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

/// How long a part is.
enum Length {
    /// Months, whose days vary.
    Months(i64),
    /// Always the same; nanoseconds, so that even the shortest part is whole.
    Nanoseconds(i128),
}

/// Nanoseconds of one tick.
const TICK: i128 = 100;

impl Part {
    /// Reads one of the names of a part, in any case.
    pub(super) fn from_name(name: &str) -> Option<Part> {
        const NAMES: &[(&str, Part)] = &[
            ("year", Part::Year),
            ("yyyy", Part::Year),
            ("yy", Part::Year),
            ("month", Part::Month),
            ("mm", Part::Month),
            ("m", Part::Month),
            ("day", Part::Day),
            ("dd", Part::Day),
            ("d", Part::Day),
            ("hour", Part::Hour),
            ("hh", Part::Hour),
            ("minute", Part::Minute),
            ("mi", Part::Minute),
            ("n", Part::Minute),
            ("second", Part::Second),
            ("ss", Part::Second),
            ("s", Part::Second),
            ("millisecond", Part::Millisecond),
            ("ms", Part::Millisecond),
            ("microsecond", Part::Microsecond),
            ("mcs", Part::Microsecond),
            ("nanosecond", Part::Nanosecond),
            ("ns", Part::Nanosecond),
        ];
        let known = NAMES.iter().find(|(candidate, _)| candidate.eq_ignore_ascii_case(name));
        known.map(|(_, part)| *part)
    }

    fn length(self) -> Length {
        let second = i128::from(TICKS_PER_SECOND) * TICK;
        match self {
            Part::Year => Length::Months(12),
            Part::Month => Length::Months(1),
            Part::Day => Length::Nanoseconds(i128::from(TICKS_PER_DAY) * TICK),
            Part::Hour => Length::Nanoseconds(3600 * second),
            Part::Minute => Length::Nanoseconds(60 * second),
            Part::Second => Length::Nanoseconds(second),
            Part::Millisecond => Length::Nanoseconds(1_000_000),
            Part::Microsecond => Length::Nanoseconds(1_000),
            Part::Nanosecond => Length::Nanoseconds(1),
        }
    }

    /// The value of this part of `moment`. Parts of a second give the whole fraction in that unit.
    pub(super) fn of(self, moment: Moment) -> i64 {
        let fields = moment.fields();
        match self {
            Part::Year => fields.year,
            Part::Month => fields.month,
            Part::Day => fields.day,
            Part::Hour => fields.hour,
            Part::Minute => fields.minute,
            Part::Second => fields.second,
            Part::Millisecond => fields.fraction / 10_000,
            Part::Microsecond => fields.fraction / 10,
            Part::Nanosecond => fields.fraction * 100,
        }
    }

    /// `count` parts after `moment`, if the calendar has it.
    pub(super) fn add(self, moment: Moment, count: i64) -> Option<Moment> {
        match self.length() {
            Length::Months(months) => moment.add_months(count.checked_mul(months)?),
            Length::Nanoseconds(length) => {
                Moment::from_wide_ticks(i128::from(moment.ticks()) + i128::from(count) * length / TICK)
            }
        }
    }

    /// How many boundaries of this part lie between two moments; negative when `end` is earlier.
    pub(super) fn boundaries(self, start: Moment, end: Moment) -> i128 {
        let index = |moment: Moment| match self.length() {
            Length::Months(months) => i128::from(month_of(moment).div_euclid(months)),
            Length::Nanoseconds(length) => (i128::from(moment.ticks()) * TICK).div_euclid(length),
        };
        index(end) - index(start)
    }

    /// The start of the bin of `size` parts, counted from `origin`, in which `moment` lies.
    pub(super) fn bin(self, moment: Moment, size: i64, origin: Moment) -> Option<Moment> {
        match self.length() {
            Length::Months(months) => {
                let size = size.checked_mul(months)?;
                let bins = (month_of(moment) - month_of(origin)).div_euclid(size);
                let start = origin.add_months(bins.checked_mul(size)?)?;
                // Later in the month than the moment: the bin before.
                if start <= moment { Some(start) } else { origin.add_months((bins - 1).checked_mul(size)?) }
            }
            Length::Nanoseconds(length) => {
                let size = length * i128::from(size);
                let since = (i128::from(moment.ticks()) - i128::from(origin.ticks())) * TICK;
                let start = since.div_euclid(size) * size;
                Moment::from_wide_ticks(i128::from(origin.ticks()) + start.div_euclid(TICK))
            }
        }
    }
}

/// Months since the year 0.
fn month_of(moment: Moment) -> i64 {
    let fields = moment.fields();
    fields.year * 12 + fields.month - 1
}
