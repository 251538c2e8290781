//! Aggregate functions: many rows in, one value out.
//!
//! An [`Accumulator`] takes the argument of every row of a group and computes the value at the end.
//! Grouping is done by the pipeline.

use super::distinct::DistinctValues;
use crate::value::{Value, ValueKind, total_order};

/// An aggregate function of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Aggregate {
    /// The number of rows with a defined argument.
    Count,
    /// The sum of numbers; 0 without any.
    Sum,
    /// The mean of numbers; undefined without any.
    Avg,
    /// The smallest value in the order of types and values.
    Min,
    /// The largest value in the order of types and values.
    Max,
    /// The number of rows whose argument is exactly `true`.
    CountIf,
    /// All defined arguments, in order.
    MakeList,
    /// The distinct defined arguments, in the order of their first occurrence.
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

    /// An accumulator without input.
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

/// The state of an aggregate while rows are processed.
#[derive(Debug)]
pub(crate) enum Accumulator {
    /// The state of [`Aggregate::Count`], the count.
    Count(i64),
    /// The state of [`Aggregate::CountIf`], the count.
    CountIf(i64),
    /// The state of [`Aggregate::Sum`], the sum.
    Sum(Total),
    /// The state of [`Aggregate::Avg`], sum and count.
    Avg(Total),
    /// The state of [`Aggregate::Min`], the smallest value.
    Min(Extreme),
    /// The state of [`Aggregate::Max`], the largest value.
    Max(Extreme),
    /// The state of [`Aggregate::MakeList`], all values.
    MakeList(Vec<Value>),
    /// The state of [`Aggregate::MakeSet`], the distinct values.
    MakeSet {
        /// The values in the order of their first occurrence.
        members: Vec<Value>,
        /// The values as a set, for lookup.
        seen: Box<DistinctValues>,
    },
}

impl Accumulator {
    /// Whether the state retains the values themselves.
    pub(crate) fn retains_values(&self) -> bool {
        matches!(self, Accumulator::MakeList(_) | Accumulator::MakeSet { .. })
    }

    /// Adds the argument of one row.
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

    /// The value of the aggregate over all rows.
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

/// A sum, and whether all values were numbers.
#[derive(Debug, Default)]
pub(crate) struct Total {
    sum: f64,
    count: u64,
    met_other: bool,
}

impl Total {
    /// Adds a defined value. A value that is not a number makes the result undefined.
    pub(super) fn push(&mut self, value: &Value) {
        match value.as_f64() {
            Some(number) => {
                self.sum += number;
                self.count += 1;
            }
            None => self.met_other = true,
        }
    }

    /// The sum: 0 without numbers, undefined if any value was not a number.
    pub(super) fn sum(&self) -> Value {
        if self.met_other { Value::Undefined } else { Value::from(self.sum) }
    }

    /// The mean: undefined without numbers, and if any value was not a number.
    pub(super) fn mean(&self) -> Value {
        if self.met_other || self.count == 0 {
            Value::Undefined
        } else {
            Value::from(self.sum / self.count as f64)
        }
    }
}

/// The smallest or largest primitive value so far.
#[derive(Debug, Default)]
pub(crate) struct Extreme {
    best: Value,
    met_composite: bool,
}

impl Extreme {
    /// Adds a defined value; `wins` says which ordering against the best value replaces it. An array or
    /// object, which has no order, makes the result undefined.
    pub(super) fn push(&mut self, value: &Value, wins: fn(std::cmp::Ordering) -> bool) {
        if matches!(value.kind(), ValueKind::Array | ValueKind::Object) {
            self.met_composite = true;
        } else if !self.best.is_defined() || wins(total_order(value, &self.best)) {
            self.best = value.clone();
        }
    }

    /// The value: undefined without primitives, and if any value was an array or object.
    pub(super) fn finish(self) -> Value {
        if self.met_composite { Value::Undefined } else { self.best }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::parse;

    /// Runs an aggregate over JSON values; `undefined` is written `u`.
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
    fn aggregates_of_undefined_and_mixed_types() {
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
