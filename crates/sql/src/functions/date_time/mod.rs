//! Date and time functions.
//!
//! A date is ISO 8601 text in UTC: `text` reads and writes it, `calendar` has its fields, `part` the units
//! from years to nanoseconds, `format` the patterns. The current time comes from the context and is
//! constant within an execution, so the `…STATIC` functions equal the others.

mod calendar;
mod format;
mod part;
pub(super) mod text;

use calendar::{DateTime, DateTimeFields};
use part::DateTimePart;

use super::argument::{or_undefined, whole};
use super::{Call, Family, Function, FunctionContext, between, exactly};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    exactly("AGO", 2, Family::Clock, ago),
    of("DATETIMEADD", 3, add),
    between("DATETIMEBIN", (2, 4), Family::DateTime, bin),
    of("DATETIMEDIFF", 3, diff),
    of("DATETIMEFORMAT", 2, formatted),
    between("DATETIMEFROMPARTS", (3, 7), Family::DateTime, from_parts),
    of("DATETIMEPART", 2, part_of),
    of("DATETIMETOTICKS", 1, |args, _| or_undefined(single(args).map(DateTime::ticks))),
    of("DATETIMETOTIMESTAMP", 1, |args, _| or_undefined(single(args).map(timestamp))),
    of("DAY", 1, |args, _| or_undefined(single(args).map(|date_time| DateTimePart::Day.of(date_time)))),
    clock("GETCURRENTDATETIME", current),
    clock("GETCURRENTDATETIMESTATIC", current),
    clock("GETCURRENTTICKS", |_, context| Value::from(context.now)),
    clock("GETCURRENTTICKSSTATIC", |_, context| Value::from(context.now)),
    clock("GETCURRENTTIMESTAMP", |_, context| or_undefined(now(context).map(timestamp))),
    clock("GETCURRENTTIMESTAMPSTATIC", |_, context| or_undefined(now(context).map(timestamp))),
    of("MONTH", 1, |args, _| or_undefined(single(args).map(|date_time| DateTimePart::Month.of(date_time)))),
    between("NOW", (0, 2), Family::Clock, now_plus),
    of("TICKSTODATETIME", 1, |args, _| {
        text_of(args.first().and_then(Value::as_i64).and_then(DateTime::from_ticks))
    }),
    of("TIMESTAMPTODATETIME", 1, from_timestamp),
    of("YEAR", 1, |args, _| or_undefined(single(args).map(|date_time| DateTimePart::Year.of(date_time)))),
];

/// Ticks of 100 ns per millisecond.
const TICKS_PER_MILLISECOND: i64 = 10_000;

const fn of(name: &'static str, args: usize, call: Call) -> Function {
    exactly(name, args, Family::DateTime, call)
}

const fn clock(name: &'static str, call: Call) -> Function {
    exactly(name, 0, Family::Clock, call)
}

fn date_time_of(value: &Value) -> Option<DateTime> {
    value.as_str().and_then(text::parse)
}

fn part_named(value: &Value) -> Option<DateTimePart> {
    value.as_str().and_then(DateTimePart::from_name)
}

/// The single argument as a date.
fn single(args: &[Value]) -> Option<DateTime> {
    match args {
        [date] => date_time_of(date),
        _ => None,
    }
}

fn text_of(date_time: Option<DateTime>) -> Value {
    or_undefined(date_time.map(text::format))
}

fn now(context: &FunctionContext<'_>) -> Option<DateTime> {
    DateTime::from_ticks(context.now)
}

/// The whole milliseconds since the epoch.
fn timestamp(date_time: DateTime) -> i64 {
    date_time.ticks().div_euclid(TICKS_PER_MILLISECOND)
}

/// `GETCURRENTDATETIME()`: the current time as text.
fn current(_: &[Value], context: &FunctionContext<'_>) -> Value {
    text_of(now(context))
}

/// `NOW([part, n])`: the current time plus n parts.
fn now_plus(args: &[Value], context: &FunctionContext<'_>) -> Value {
    match args {
        [] => current(args, context),
        [part, count] => text_of(shifted(part, whole(count), now(context))),
        _ => Value::Undefined,
    }
}

/// `AGO(part, n)`: the current time minus n parts.
fn ago(args: &[Value], context: &FunctionContext<'_>) -> Value {
    match args {
        [part, count] => text_of(shifted(part, whole(count).and_then(i64::checked_neg), now(context))),
        _ => Value::Undefined,
    }
}

/// `DATETIMEADD(part, n, date)`: the date plus n parts.
fn add(args: &[Value], _: &FunctionContext<'_>) -> Value {
    match args {
        [part, count, date] => text_of(shifted(part, whole(count), date_time_of(date))),
        _ => Value::Undefined,
    }
}

fn shifted(part: &Value, count: Option<i64>, date_time: Option<DateTime>) -> Option<DateTime> {
    part_named(part)?.add(date_time?, count?)
}

/// `DATETIMEDIFF(part, start, end)`: the number of part boundaries between.
fn diff(args: &[Value], _: &FunctionContext<'_>) -> Value {
    let [part, start, end] = args else { return Value::Undefined };
    let (Some(part), Some(start), Some(end)) = (part_named(part), date_time_of(start), date_time_of(end))
    else {
        return Value::Undefined;
    };
    let boundaries = part.boundaries(start, end);
    i64::try_from(boundaries).map_or_else(|_| Value::from(boundaries as f64), Value::from)
}

/// `DATETIMEPART(part, date)`: the value of one part.
fn part_of(args: &[Value], _: &FunctionContext<'_>) -> Value {
    match args {
        [part, date] => {
            or_undefined(part_named(part).zip(date_time_of(date)).map(|(part, date_time)| part.of(date_time)))
        }
        _ => Value::Undefined,
    }
}

/// `DATETIMEBIN(date, part[, size[, origin]])`: the start of the bin of the date.
fn bin(args: &[Value], _: &FunctionContext<'_>) -> Value {
    let [date, part, ..] = args else { return Value::Undefined };
    let size = args.get(2).map_or(Some(1), whole).filter(|size| *size > 0);
    let origin =
        args.get(3).map_or(Some(DateTime::EPOCH), date_time_of).filter(|origin| is_binnable(*origin));
    let (Some(part), Some(date_time), Some(size), Some(origin)) =
        (part_named(part), date_time_of(date), size, origin)
    else {
        return Value::Undefined;
    };
    text_of(part.bin(date_time, size, origin))
}

/// Whether bins may start at `origin`: not before 1601, the Windows epoch.
fn is_binnable(origin: DateTime) -> bool {
    DateTimePart::Year.of(origin) >= 1601
}

/// `DATETIMEFROMPARTS(year, month, day[, hour[, minute[, second[, ticks]]]])`: the date with these fields.
fn from_parts(args: &[Value], _: &FunctionContext<'_>) -> Value {
    let mut parts = [0; 7];
    if args.len() > parts.len() {
        return Value::Undefined;
    }
    for (part, arg) in parts.iter_mut().zip(args) {
        match whole(arg) {
            Some(number) => *part = number,
            None => return Value::Undefined,
        }
    }
    let [year, month, day, hour, minute, second, fraction] = parts;
    text_of(DateTime::from_fields(DateTimeFields { year, month, day, hour, minute, second, fraction }))
}

/// `DATETIMEFORMAT(date, pattern)`: the date written by a pattern.
fn formatted(args: &[Value], _: &FunctionContext<'_>) -> Value {
    match args {
        [date, Value::String(pattern)] => {
            or_undefined(date_time_of(date).and_then(|date_time| format::format(date_time, pattern)))
        }
        _ => Value::Undefined,
    }
}

/// `TIMESTAMPTODATETIME(milliseconds)`: the date of a timestamp.
fn from_timestamp(args: &[Value], _: &FunctionContext<'_>) -> Value {
    let milliseconds = args.first().and_then(Value::as_i64);
    text_of(milliseconds.and_then(|ms| ms.checked_mul(TICKS_PER_MILLISECOND)).and_then(DateTime::from_ticks))
}

#[cfg(test)]
mod tests;
