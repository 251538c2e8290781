//! DISTINCT over merged rows.

use std::collections::HashSet;

use bytes::Bytes;
use protocol::query::DistinctType;
use sql::value::parse;
use sql::{HashableValue, Value};

use crate::error::{Error, ErrorKind};

/// Distinct rows kept at a time. A query with more is rejected, because they are kept in memory.
pub(super) const ROWS_MAX: usize = 1_000_000;

/// Which rows were returned before.
#[derive(Debug)]
pub(super) enum Distinct {
    /// All rows are let through.
    Off,
    /// Equal rows follow each other.
    Ordered(Option<(HashableValue, Bytes)>),
    /// Equal rows may be anywhere.
    Unordered(SeenRows),
}

/// Rows that were returned, by their fingerprints.
#[derive(Debug, Default)]
pub(super) struct SeenRows {
    /// Rows of this run.
    rows: HashSet<u128>,
    /// In runs that this one continues from.
    before: HashSet<u64>,
}

impl SeenRows {
    /// Adds a row; says whether it is new.
    fn add(&mut self, row: &Value) -> Result<bool, Error> {
        let fingerprint = fingerprint(row);
        let is_new = !self.before.contains(&short(fingerprint)) && self.rows.insert(fingerprint);
        if self.rows.len() + self.before.len() > ROWS_MAX {
            let message =
                format!("the query has more than {ROWS_MAX} distinct rows: filter it, or select less");
            return Err(Error::new(ErrorKind::BadRequest, message));
        }
        Ok(is_new)
    }

    /// All rows, for another run to continue from.
    fn all(&self) -> Vec<u64> {
        self.before.iter().copied().chain(self.rows.iter().copied().map(short)).collect()
    }
}

/// The half that a continuation carries: two of a million rows share one with a probability of one in
/// ten million.
fn short(fingerprint: u128) -> u64 {
    fingerprint as u64
}

impl Distinct {
    pub(super) fn new(kind: DistinctType) -> Distinct {
        match kind {
            DistinctType::None => Distinct::Off,
            DistinctType::Ordered => Distinct::Ordered(None),
            DistinctType::Unordered => Distinct::Unordered(SeenRows::default()),
        }
    }

    /// Resumes an earlier run: after its last row, or knowing all of its rows.
    pub(super) fn resume(self, last: Option<&str>, met: Vec<u64>) -> Result<Distinct, Error> {
        match (self, last) {
            (Distinct::Ordered(_), Some(last)) => {
                let text = Bytes::copy_from_slice(last.as_bytes());
                Ok(Distinct::Ordered(Some((HashableValue::new(value(&text)?), text))))
            }
            (Distinct::Unordered(_), _) => {
                let before = met.into_iter().collect();
                Ok(Distinct::Unordered(SeenRows { rows: HashSet::new(), before }))
            }
            (other, _) => Ok(other),
        }
    }

    /// Whether a row, given as JSON, is new.
    pub(super) fn is_new(&mut self, row: &Bytes) -> Result<bool, Error> {
        match self {
            Distinct::Off => Ok(true),
            Distinct::Ordered(last) => {
                let identity = HashableValue::new(value(row)?);
                if last.as_ref().is_some_and(|(last, _)| *last == identity) {
                    return Ok(false);
                }
                *last = Some((identity, row.clone()));
                Ok(true)
            }
            Distinct::Unordered(met) => met.add(&value(row)?),
        }
    }

    /// What another run needs to continue: the last row, or all of them.
    pub(super) fn saved_state(&self) -> (Option<String>, Vec<u64>) {
        match self {
            Distinct::Off | Distinct::Ordered(None) => (None, Vec::new()),
            Distinct::Ordered(Some((_, text))) => {
                (Some(String::from_utf8_lossy(text).into_owned()), Vec::new())
            }
            Distinct::Unordered(met) => (None, met.all()),
        }
    }
}

/// A fingerprint that is the same for values that the language holds equal, in every process and version: it is
/// part of continuations, so it is written by hand and never changes.
fn fingerprint(value: &Value) -> u128 {
    let mut state = START;
    hash_value(value, &mut state.0, &mut state.1);
    finished(state)
}

const START: (u64, u64) = (0xcbf2_9ce4_8422_2325, 0x8422_2325_cbf2_9ce4);

fn finished((low, high): (u64, u64)) -> u128 {
    u128::from(mix(high)) << 64 | u128::from(mix(low))
}

fn hash_value(value: &Value, low: &mut u64, high: &mut u64) {
    let mut take = |bytes: &[u8]| {
        for byte in bytes {
            *low = (*low ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
            *high = (high.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    };
    take(&[value.kind() as u8]);
    match value {
        Value::Undefined | Value::Null => {}
        Value::Bool(value) => take(&[u8::from(*value)]),
        // Adding zero gives both zeros the same bits.
        Value::Number(number) => take(&(number.as_f64() + 0.0).to_bits().to_le_bytes()),
        Value::String(text) => {
            take(text.as_bytes());
            take(&text.len().to_le_bytes());
        }
        Value::Array(elements) => {
            take(&elements.len().to_le_bytes());
            for element in elements.iter() {
                hash_value(element, low, high);
            }
        }
        Value::Object(members) => {
            take(&members.len().to_le_bytes());
            // A sum does not depend on the order of the members.
            let sum = members.iter().fold(0u128, |sum, (name, member)| {
                let mut pair = START;
                hash_value(&Value::String(name.clone()), &mut pair.0, &mut pair.1);
                hash_value(member, &mut pair.0, &mut pair.1);
                sum.wrapping_add(finished(pair))
            });
            take(&sum.to_le_bytes());
        }
    }
}

/// Spreads every bit over all of them.
fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

fn value(text: &Bytes) -> Result<Value, Error> {
    parse(text).map_err(|error| Error::new(ErrorKind::BadResponse, format!("a row is not JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_one_fingerprint_and_others_have_others() {
        let equal = [
            ("1", "1.0"),
            ("0", "-0"),
            (r#"{"a":1,"b":[2,{"c":null}]}"#, r#"{"b":[2.0,{"c":null}],"a":1.0}"#),
        ];
        let of = |text: &str| fingerprint(&parse(text.as_bytes()).expect("JSON"));
        for (left, right) in equal {
            assert_eq!(of(left), of(right), "{left} {right}");
        }
        let mut different: Vec<String> = [
            "null",
            "true",
            "false",
            "1",
            "\"1\"",
            "[1]",
            "[[1]]",
            "[1,2]",
            "[2,1]",
            "[]",
            "{}",
            "\"\"",
            r#"{"a":1}"#,
            r#"{"a":2}"#,
            r#"{"b":1}"#,
            r#"{"a":"b"}"#,
            r#"{"b":"a"}"#,
            r#"{"a":1,"b":2}"#,
            r#"{"a":2,"b":1}"#,
            r#"["a","b"]"#,
            r#"["ab",""]"#,
        ]
        .map(str::to_owned)
        .to_vec();
        different.extend((0..5000).map(|number| format!(r#"{{"g":"g{}","n":{number}}}"#, number % 7)));
        let long: HashSet<u128> = different.iter().map(|text| of(text)).collect();
        let halves: HashSet<u64> = different.iter().map(|text| short(of(text))).collect();
        assert_eq!((long.len(), halves.len()), (different.len(), different.len()));
    }

    #[test]
    fn fingerprints_do_not_change_from_version_to_version() {
        let value = parse(br#"{"a":[1,"x",null]}"#).expect("JSON");
        assert_eq!(short(fingerprint(&value)), PINNED);
    }

    const PINNED: u64 = 0xa90b_1043_3674_b21b;

    #[test]
    fn a_resumed_run_repeats_no_row() {
        let row = |number: i64| Bytes::from(number.to_string());
        let mut first = Distinct::new(DistinctType::Unordered);
        assert!(first.is_new(&row(1)).expect("JSON") && first.is_new(&row(2)).expect("JSON"));
        let (last, met) = first.saved_state();
        let mut second =
            Distinct::new(DistinctType::Unordered).resume(last.as_deref(), met).expect("goes on");
        for (number, is_new) in [(2, false), (3, true), (1, false), (3, false)] {
            assert_eq!(second.is_new(&row(number)).expect("JSON"), is_new, "{number}");
        }
        assert_eq!(second.saved_state().1.len(), 3);
    }
}
