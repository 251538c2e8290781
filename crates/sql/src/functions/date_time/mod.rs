//! Functions of dates and times.
//!
//! A date is ISO 8601 text in UTC; `text` reads and writes it, `moment` knows the calendar, `part`
//! the units from years to nanoseconds, `format` the patterns. The current time comes from the
//! environment: it stands still during a run, so the `…STATIC` functions equal their twins.

mod format;
mod moment;
mod part;
pub(super) mod text;

use moment::{Fields, Moment};
use part::Part;

use super::argument::{or_undefined, whole};
use super::{Call, Environment, Family, Function, between, exactly};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    exactly("AGO", 2, Family::Clock, ago),
    of("DATETIMEADD", 3, add),
    between("DATETIMEBIN", (2, 4), Family::DateTime, bin),
    of("DATETIMEDIFF", 3, diff),
    of("DATETIMEFORMAT", 2, formatted),
    between("DATETIMEFROMPARTS", (3, 7), Family::DateTime, from_parts),
    of("DATETIMEPART", 2, part_of),
    of("DATETIMETOTICKS", 1, |args, _| or_undefined(single(args).map(Moment::ticks))),
    of("DATETIMETOTIMESTAMP", 1, |args, _| or_undefined(single(args).map(timestamp))),
    of("DAY", 1, |args, _| or_undefined(single(args).map(|moment| Part::Day.of(moment)))),
    clock("GETCURRENTDATETIME", current),
    clock("GETCURRENTDATETIMESTATIC", current),
    clock("GETCURRENTTICKS", |_, environment| Value::from(environment.now)),
    clock("GETCURRENTTICKSSTATIC", |_, environment| Value::from(environment.now)),
    clock("GETCURRENTTIMESTAMP", |_, environment| or_undefined(now(environment).map(timestamp))),
    clock("GETCURRENTTIMESTAMPSTATIC", |_, environment| or_undefined(now(environment).map(timestamp))),
    of("MONTH", 1, |args, _| or_undefined(single(args).map(|moment| Part::Month.of(moment)))),
    between("NOW", (0, 2), Family::Clock, now_plus),
    of("TICKSTODATETIME", 1, |args, _| {
        text_of(args.first().and_then(Value::as_i64).and_then(Moment::from_ticks))
    }),
    of("TIMESTAMPTODATETIME", 1, from_timestamp),
    of("YEAR", 1, |args, _| or_undefined(single(args).map(|moment| Part::Year.of(moment)))),
];

/// Ticks of one millisecond.
const TICKS_PER_MILLISECOND: i64 = 10_000;

const fn of(name: &'static str, args: usize, call: Call) -> Function {
    exactly(name, args, Family::DateTime, call)
}

const fn clock(name: &'static str, call: Call) -> Function {
    exactly(name, 0, Family::Clock, call)
}

fn moment_of(value: &Value) -> Option<Moment> {
    value.as_str().and_then(text::parse)
}

fn part_named(value: &Value) -> Option<Part> {
    value.as_str().and_then(Part::from_name)
}

/// The one argument, as a date.
fn single(args: &[Value]) -> Option<Moment> {
    match args {
        [date] => moment_of(date),
        _ => None,
    }
}

fn text_of(moment: Option<Moment>) -> Value {
    or_undefined(moment.map(text::format))
}

fn now(environment: &Environment<'_>) -> Option<Moment> {
    Moment::from_ticks(environment.now)
}

/// Whole milliseconds since the epoch.
fn timestamp(moment: Moment) -> i64 {
    moment.ticks().div_euclid(TICKS_PER_MILLISECOND)
}

/// `GETCURRENTDATETIME()`
fn current(_: &[Value], environment: &Environment<'_>) -> Value {
    text_of(now(environment))
}

/// `NOW([part, n])`
fn now_plus(args: &[Value], environment: &Environment<'_>) -> Value {
    match args {
        [] => current(args, environment),
        [part, count] => text_of(shifted(part, whole(count), now(environment))),
        _ => Value::Undefined,
    }
}

/// `AGO(part, n)`
fn ago(args: &[Value], environment: &Environment<'_>) -> Value {
    match args {
        [part, count] => text_of(shifted(part, whole(count).and_then(i64::checked_neg), now(environment))),
        _ => Value::Undefined,
    }
}

/// `DATETIMEADD(part, n, date)`
fn add(args: &[Value], _: &Environment<'_>) -> Value {
    match args {
        [part, count, date] => text_of(shifted(part, whole(count), moment_of(date))),
        _ => Value::Undefined,
    }
}

fn shifted(part: &Value, count: Option<i64>, moment: Option<Moment>) -> Option<Moment> {
    part_named(part)?.add(moment?, count?)
}

/// `DATETIMEDIFF(part, start, end)`
fn diff(args: &[Value], _: &Environment<'_>) -> Value {
    let [part, start, end] = args else { return Value::Undefined };
    let (Some(part), Some(start), Some(end)) = (part_named(part), moment_of(start), moment_of(end)) else {
        return Value::Undefined;
    };
    let boundaries = part.boundaries(start, end);
    i64::try_from(boundaries).map_or_else(|_| Value::from(boundaries as f64), Value::from)
}

/// `DATETIMEPART(part, date)`
fn part_of(args: &[Value], _: &Environment<'_>) -> Value {
    match args {
        [part, date] => {
            or_undefined(part_named(part).zip(moment_of(date)).map(|(part, moment)| part.of(moment)))
        }
        _ => Value::Undefined,
    }
}

/// `DATETIMEBIN(date, part[, size[, origin]])`
fn bin(args: &[Value], _: &Environment<'_>) -> Value {
    let [date, part, ..] = args else { return Value::Undefined };
    let size = args.get(2).map_or(Some(1), whole).filter(|size| *size > 0);
    let origin = args.get(3).map_or(Some(Moment::EPOCH), moment_of).filter(|origin| is_binnable(*origin));
    let (Some(part), Some(moment), Some(size), Some(origin)) =
        (part_named(part), moment_of(date), size, origin)
    else {
        return Value::Undefined;
    };
    text_of(part.bin(moment, size, origin))
}

/// Bins start no earlier than 1601, when the Windows epoch does.
fn is_binnable(origin: Moment) -> bool {
    Part::Year.of(origin) >= 1601
}

/// `DATETIMEFROMPARTS(year, month, day[, hour[, minute[, second[, ticks]]]])`
fn from_parts(args: &[Value], _: &Environment<'_>) -> Value {
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
    text_of(Moment::from_fields(Fields { year, month, day, hour, minute, second, fraction }))
}

/// `DATETIMEFORMAT(date, pattern)`
fn formatted(args: &[Value], _: &Environment<'_>) -> Value {
    match args {
        [date, Value::String(pattern)] => {
            or_undefined(moment_of(date).and_then(|moment| format::format(moment, pattern)))
        }
        _ => Value::Undefined,
    }
}

/// `TIMESTAMPTODATETIME(milliseconds)`
fn from_timestamp(args: &[Value], _: &Environment<'_>) -> Value {
    let milliseconds = args.first().and_then(Value::as_i64);
    text_of(milliseconds.and_then(|ms| ms.checked_mul(TICKS_PER_MILLISECOND)).and_then(Moment::from_ticks))
}

#[cfg(test)]
mod tests;
