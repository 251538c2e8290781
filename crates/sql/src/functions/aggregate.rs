//! Aggregates: many rows in, one value out.
//!
//! An [`Accumulator`] sees the argument of every row of its group and is asked once at the end.
//! Which rows form a group, and what an empty input yields, is the run's business.

use super::distinct::DistinctValues;
use crate::value::{Value, ValueKind, total_order};

/// The aggregate functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Aggregate {
    /// How many rows had a defined argument.
    Count,
    /// The sum of numbers; 0 without any.
    Sum,
    /// The mean of numbers; undefined without any.
    Avg,
    /// The first in the order of types and values.
    Min,
    /// The last in the order of types and values.
    Max,
    /// How many rows had exactly `true`.
    CountIf,
    /// All defined arguments, in order.
    MakeList,
    /// The distinct defined arguments, in the order they were first seen.
    MakeSet,
}

impl Aggregate {
    /// The aggregate called `name`, in any case. All of them take exactly one argument.
    pub(crate) fn find(name: &str) -> Option<Aggregate> {
        [
            ("COUNT", Aggregate::Count),
            ("SUM", Aggregate::Sum),
            ("AVG", Aggregate::Avg),
            ("MIN", Aggregate::Min),
            ("MAX", Aggregate::Max),
            ("COUNTIF", Aggregate::CountIf),
            ("MAKELIST", Aggregate::MakeList),
            ("MAKESET", Aggregate::MakeSet),
        ]
        .into_iter()
        .find(|(candidate, _)| candidate.eq_ignore_ascii_case(name))
        .map(|(_, aggregate)| aggregate)
    }

    /// An accumulator that has seen nothing.
    pub(crate) fn start(self) -> Accumulator {
        match self {
            Aggregate::Count => Accumulator::Count(0),
            Aggregate::CountIf => Accumulator::CountIf(0),
            Aggregate::Sum => Accumulator::Sum(Total::default()),
            Aggregate::Avg => Accumulator::Avg(Total::default()),
            Aggregate::Min => Accumulator::Min(Extreme::default()),
            Aggregate::Max => Accumulator::Max(Extreme::default()),
            Aggregate::MakeList => Accumulator::MakeList(Vec::new()),
            Aggregate::MakeSet => {
                Accumulator::MakeSet { members: Vec::new(), seen: Box::new(DistinctValues::default()) }
            }
        }
    }
}

/// An aggregate under way.
#[derive(Debug)]
pub(crate) enum Accumulator {
    /// See [`Aggregate::Count`].
    Count(i64),
    /// See [`Aggregate::CountIf`].
    CountIf(i64),
    /// See [`Aggregate::Sum`].
    Sum(Total),
    /// See [`Aggregate::Avg`].
    Avg(Total),
    /// See [`Aggregate::Min`].
    Min(Extreme),
    /// See [`Aggregate::Max`].
    Max(Extreme),
    /// See [`Aggregate::MakeList`].
    MakeList(Vec<Value>),
    /// See [`Aggregate::MakeSet`].
    MakeSet {
        /// In the order they were first seen.
        members: Vec<Value>,
        /// The same, for look-up.
        seen: Box<DistinctValues>,
    },
}

impl Accumulator {
    /// Whether it holds on to what is pushed, rather than to a number.
    pub(crate) fn retains_values(&self) -> bool {
        matches!(self, Accumulator::MakeList(_) | Accumulator::MakeSet { .. })
    }

    /// Takes the argument of one row.
    pub(crate) fn push(&mut self, value: &Value) {
        if !value.is_defined() {
            return;
        }
        match self {
            Accumulator::Count(count) => *count += 1,
            Accumulator::CountIf(count) => *count += i64::from(value.is_true()),
            Accumulator::Sum(total) | Accumulator::Avg(total) => total.push(value),
            Accumulator::Min(extreme) => extreme.push(value, |order| order.is_lt()),
            Accumulator::Max(extreme) => extreme.push(value, |order| order.is_gt()),
            Accumulator::MakeList(members) => members.push(value.clone()),
            Accumulator::MakeSet { members, seen } => {
                if seen.insert(value) {
                    members.push(value.clone());
                }
            }
        }
    }

    /// The value for everything pushed.
    pub(crate) fn finish(self) -> Value {
        match self {
            Accumulator::Count(count) | Accumulator::CountIf(count) => Value::from(count),
            Accumulator::Sum(total) => total.sum(),
            Accumulator::Avg(total) => total.mean(),
            Accumulator::Min(extreme) | Accumulator::Max(extreme) => extreme.finish(),
            Accumulator::MakeList(members) | Accumulator::MakeSet { members, .. } => Value::array(members),
        }
    }
}

/// A sum, and whether it makes sense.
#[derive(Debug, Default)]
pub(crate) struct Total {
    sum: f64,
    count: u64,
    met_other: bool,
}

impl Total {
    /// Adds a defined value. One that is no number spoils the total for good.
    pub(super) fn push(&mut self, value: &Value) {
        match value.as_f64() {
            Some(number) => {
                self.sum += number;
                self.count += 1;
            }
            None => self.met_other = true,
        }
    }

    /// 0 without numbers, undefined when anything else was met.
    pub(super) fn sum(&self) -> Value {
        if self.met_other { Value::Undefined } else { Value::from(self.sum) }
    }

    /// Undefined without numbers, and when anything else was met.
    pub(super) fn mean(&self) -> Value {
        if self.met_other || self.count == 0 {
            Value::Undefined
        } else {
            Value::from(self.sum / self.count as f64)
        }
    }
}

/// The outermost primitive so far.
#[derive(Debug, Default)]
pub(crate) struct Extreme {
    best: Value,
    met_composite: bool,
}

impl Extreme {
    /// Takes a defined value; `wins` says which order against the best so far replaces it. An array
    /// or an object, which have no order, spoils the result for good.
    pub(super) fn push(&mut self, value: &Value, wins: fn(std::cmp::Ordering) -> bool) {
        if matches!(value.kind(), ValueKind::Array | ValueKind::Object) {
            self.met_composite = true;
        } else if !self.best.is_defined() || wins(total_order(value, &self.best)) {
            self.best = value.clone();
        }
    }

    /// Undefined without primitives, and when an array or object was met.
    pub(super) fn finish(self) -> Value {
        if self.met_composite { Value::Undefined } else { self.best }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::parse;

    /// `undefined` is written `u`.
    fn run(name: &str, inputs: &str) -> String {
        let mut accumulator = Aggregate::find(name).unwrap().start();
        for input in inputs.split_whitespace() {
            let value = if input == "u" { Value::Undefined } else { parse(input.as_bytes()).unwrap() };
            accumulator.push(&value);
        }
        let result = accumulator.finish();
        if result.is_defined() { result.to_string() } else { "u".to_owned() }
    }

    #[test]
    fn each_aggregate_follows_its_rules_for_undefined_and_odd_types() {
        for (name, inputs, expected) in [
            ("count", "", "0"),
            ("COUNT", "1 u null \"a\" [] {}", "5"),
            ("SUM", "", "0"),
            ("SUM", "1 u 2.5", "3.5"),
            ("SUM", "1 null", "u"),
            ("SUM", "1 \"2\" 3", "u"),
            ("AVG", "", "u"),
            ("AVG", "u", "u"),
            ("AVG", "1 2 u", "1.5"),
            ("AVG", "1 true", "u"),
            ("MIN", "", "u"),
            ("MIN", "u 3 1 2", "1"),
            ("MIN", "\"a\" 3 true null", "null"),
            ("MIN", "false 3", "false"),
            ("MIN", "1 []", "u"),
            ("MAX", "", "u"),
            ("MAX", "u 3 1 2", "3"),
            ("MAX", "\"a\" 3 true null", "\"a\""),
            ("MAX", "{} 1", "u"),
            ("COUNTIF", "true false u 1 true null", "2"),
            ("MAKELIST", "", "[]"),
            ("MAKELIST", "1 u \"a\" 1 [2]", "[1,\"a\",1,[2]]"),
            ("MAKESET", "", "[]"),
            ("MAKESET", "1 u \"a\" 1.0 [2] [2] null null", "[1,\"a\",[2],null]"),
            ("MAKESET", r#"{"a":1,"b":2} {"b":2,"a":1}"#, r#"[{"a":1,"b":2}]"#),
        ] {
            assert_eq!(run(name, inputs), expected, "{name}({inputs})");
        }
        assert_eq!(Aggregate::find("MEDIAN"), None);
    }
}
