//! A date and time, and its calendar fields.

use time::{Date, Month};

/// Ticks of 100 ns per second.
pub(super) const TICKS_PER_SECOND: i64 = 10_000_000;
/// Ticks of 100 ns per day.
pub(super) const TICKS_PER_DAY: i64 = 86_400 * TICKS_PER_SECOND;

/// The Julian day of 1970-01-01.
const EPOCH_JULIAN_DAY: i64 = 2_440_588;

/// A date and time from the year 1 to the year 9999, in ticks of 100 ns since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DateTime(i64);

/// The calendar fields of a date and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DateTimeFields {
    /// The year, 1 to 9999.
    pub(super) year: i64,
    /// The month, 1 to 12.
    pub(super) month: i64,
    /// The day, 1 to 31.
    pub(super) day: i64,
    /// The hour, 0 to 23.
    pub(super) hour: i64,
    /// The minute, 0 to 59.
    pub(super) minute: i64,
    /// The second, 0 to 59.
    pub(super) second: i64,
    /// The ticks within the second.
    pub(super) fraction: i64,
}

impl DateTime {
    /// The Unix epoch, 1970-01-01T00:00:00Z.
    pub(super) const EPOCH: DateTime = DateTime(0);
    /// The ticks of the earliest date, 0001-01-01T00:00:00Z.
    const FIRST: i64 = -719_162 * TICKS_PER_DAY;
    /// The ticks of the latest date, 9999-12-31T23:59:59.9999999Z.
    const LAST: i64 = 2_932_897 * TICKS_PER_DAY - 1;

    /// The date `ticks` after the epoch, if it is in range.
    pub(super) fn from_ticks(ticks: i64) -> Option<DateTime> {
        (Self::FIRST..=Self::LAST).contains(&ticks).then_some(DateTime(ticks))
    }

    /// Like [`DateTime::from_ticks`], for ticks beyond 64 bits.
    pub(super) fn from_wide_ticks(ticks: i128) -> Option<DateTime> {
        i64::try_from(ticks).ok().and_then(DateTime::from_ticks)
    }

    /// The ticks since the epoch.
    pub(super) fn ticks(self) -> i64 {
        self.0
    }

    /// The date with these fields, if it exists.
    pub(super) fn from_fields(fields: DateTimeFields) -> Option<DateTime> {
        let DateTimeFields { year, month, day, hour, minute, second, fraction } = fields;
        let in_range = (1..=9999).contains(&year)
            && (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second)
            && (0..TICKS_PER_SECOND).contains(&fraction);
        if !in_range {
            return None;
        }
        let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
        let date =
            Date::from_calendar_date(i32::try_from(year).ok()?, month, u8::try_from(day).ok()?).ok()?;
        let days = i64::from(date.to_julian_day()) - EPOCH_JULIAN_DAY;
        let seconds = (hour * 60 + minute) * 60 + second;
        DateTime::from_ticks(days * TICKS_PER_DAY + seconds * TICKS_PER_SECOND + fraction)
    }

    /// The calendar fields of the date.
    pub(super) fn fields(self) -> DateTimeFields {
        let (days, ticks) = (self.0.div_euclid(TICKS_PER_DAY), self.0.rem_euclid(TICKS_PER_DAY));
        let julian_day = i32::try_from(days + EPOCH_JULIAN_DAY).expect("days of the years 1 to 9999 are few");
        let date = Date::from_julian_day(julian_day).expect("the calendar has the years 1 to 9999");
        let seconds = ticks / TICKS_PER_SECOND;
        DateTimeFields {
            year: i64::from(date.year()),
            month: i64::from(u8::from(date.month())),
            day: i64::from(date.day()),
            hour: seconds / 3600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            fraction: ticks % TICKS_PER_SECOND,
        }
    }

    /// `months` later, on the same day or, if the month is shorter, on its last day.
    pub(super) fn add_months(self, months: i64) -> Option<DateTime> {
        let fields = self.fields();
        let month = (fields.year * 12 + fields.month - 1).checked_add(months)?;
        let (year, month) = (month.div_euclid(12), month.rem_euclid(12) + 1);
        if !(1..=9999).contains(&year) {
            return None;
        }
        let days = Month::try_from(u8::try_from(month).ok()?).ok()?.length(i32::try_from(year).ok()?);
        DateTime::from_fields(DateTimeFields { year, month, day: fields.day.min(i64::from(days)), ..fields })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_range_is_the_years_one_to_9999() {
        let day = |year, month, day| DateTimeFields {
            year,
            month,
            day,
            hour: 0,
            minute: 0,
            second: 0,
            fraction: 0,
        };
        assert_eq!(DateTime::from_fields(day(1, 1, 1)), Some(DateTime(DateTime::FIRST)));
        assert_eq!(DateTime::from_fields(day(1970, 1, 1)), Some(DateTime::EPOCH));
        let last =
            DateTimeFields { hour: 23, minute: 59, second: 59, fraction: 9_999_999, ..day(9999, 12, 31) };
        assert_eq!(DateTime::from_fields(last), Some(DateTime(DateTime::LAST)));
        assert_eq!(DateTime(DateTime::LAST).fields(), last);
        assert_eq!(DateTime::from_ticks(DateTime::LAST + 1), None);
        assert_eq!(DateTime::from_ticks(DateTime::FIRST - 1), None);
        for wrong in [day(2021, 2, 29), day(0, 1, 1), day(2021, 13, 1), day(2021, 4, 31), day(2021, 1, 0)] {
            assert_eq!(DateTime::from_fields(wrong), None, "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn fields_and_ticks_convert_back_and_forth(ticks in DateTime::FIRST..=DateTime::LAST) {
            prop_assert_eq!(DateTime::from_fields(DateTime(ticks).fields()), Some(DateTime(ticks)));
        }
    }
}
