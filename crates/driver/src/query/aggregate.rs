//! Aggregates and groups, put together from what each partition made of them.

use std::collections::HashMap;

use protocol::query::AggregateKind;
use sql::value::{SmolStr, ValueKind, total_order};
use sql::{HashableValue, Value};

use super::plan::{GroupOrderKey, GroupOutput, Grouping};
use super::position::compare_keys;
use super::rows::GroupRow;
use crate::error::{Error, ErrorKind};

/// Groups kept at a time. A query with more is rejected: the groups are kept in memory.
pub(super) const GROUPS_MAX: usize = 1_000_000;

/// The groups so far, in the order in which they appeared.
#[derive(Debug, Default)]
pub(super) struct Groups {
    positions: HashMap<Vec<HashableValue>, usize>,
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    keys: Vec<Value>,
    parts: GroupValue,
}

/// What is known of a group.
#[derive(Debug)]
enum GroupValue {
    Aggregate(Accumulator),
    Value(Value),
    Object(Vec<(SmolStr, Member)>),
}

#[derive(Debug)]
enum Member {
    Aggregate(Accumulator),
    Value(Value),
}

impl Groups {
    /// Adds what one partition knows of a group.
    pub(super) fn add(&mut self, row: GroupRow, output: &GroupOutput) -> Result<(), Error> {
        let identity: Vec<HashableValue> = row.keys.iter().cloned().map(HashableValue::new).collect();
        let at = match self.positions.get(&identity) {
            Some(&at) => at,
            None => {
                if self.groups.len() == GROUPS_MAX {
                    let message =
                        format!("the query has more than {GROUPS_MAX} groups: filter it, or group by less");
                    return Err(Error::new(ErrorKind::BadRequest, message));
                }
                self.positions.insert(identity, self.groups.len());
                self.groups.push(Group { keys: row.keys, parts: GroupValue::new(output, &row.payload) });
                self.groups.len() - 1
            }
        };
        self.groups[at].parts.add(&row.payload);
        Ok(())
    }

    /// Adds what another partition knows.
    pub(super) fn merge(&mut self, other: Groups) -> Result<(), Error> {
        for group in other.groups {
            let identity: Vec<HashableValue> = group.keys.iter().cloned().map(HashableValue::new).collect();
            match self.positions.get(&identity) {
                Some(&at) => self.groups[at].parts.absorb(group.parts),
                None if self.groups.len() == GROUPS_MAX => {
                    let message =
                        format!("the query has more than {GROUPS_MAX} groups: filter it, or group by less");
                    return Err(Error::new(ErrorKind::BadRequest, message));
                }
                None => {
                    self.positions.insert(identity, self.groups.len());
                    self.groups.push(group);
                }
            }
        }
        Ok(())
    }

    /// The rows: sorted as was asked for, and then by their keys, so that they come in the same order
    /// however the partitions were cut. Undefined ones are left out, as the language does.
    pub(super) fn finish(mut self, grouping: &Grouping) -> Vec<Value> {
        self.groups.sort_by(|left, right| {
            let mut orders = left.keys.iter().zip(&right.keys).map(|(left, right)| total_order(left, right));
            orders.find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
        });
        let directions: Vec<_> = grouping.order.iter().map(|(_, direction)| *direction).collect();
        let mut rows: Vec<(Vec<Value>, Value)> = self
            .groups
            .into_iter()
            .map(|group| {
                let row = group.parts.finish();
                let keys = grouping.order.iter().map(|(key, _)| match key {
                    GroupOrderKey::Key(at) => group.keys.get(*at).cloned().unwrap_or_default(),
                    GroupOrderKey::Member(Some(name)) => row.member(name).clone(),
                    GroupOrderKey::Member(None) => row.clone(),
                });
                (keys.collect(), row)
            })
            .filter(|(_, row): &(Vec<Value>, Value)| row.is_defined())
            .collect();
        if !directions.is_empty() {
            rows.sort_by(|left, right| compare_keys(&directions, &left.0, &right.0));
        }
        rows.into_iter().map(|(_, row)| row).collect()
    }
}

impl GroupValue {
    fn new(output: &GroupOutput, payload: &Value) -> GroupValue {
        match output {
            GroupOutput::Aggregate(kind) => GroupValue::Aggregate(Accumulator::new(*kind)),
            GroupOutput::Value => GroupValue::Value(payload.clone()),
            GroupOutput::Object(members) => {
                let members = members.iter().map(|(name, kind)| {
                    let member = match kind {
                        Some(kind) => Member::Aggregate(Accumulator::new(*kind)),
                        None => Member::Value(payload.member(name).clone()),
                    };
                    (SmolStr::new(name), member)
                });
                GroupValue::Object(members.collect())
            }
        }
    }

    fn add(&mut self, payload: &Value) {
        match self {
            // `[{"item": …}]`
            GroupValue::Aggregate(accumulator) => accumulator.add(payload.element(0)),
            GroupValue::Value(_) => {}
            GroupValue::Object(members) => {
                for (name, member) in members {
                    if let Member::Aggregate(accumulator) = member {
                        accumulator.add(payload.member(name));
                    }
                }
            }
        }
    }

    fn absorb(&mut self, other: GroupValue) {
        match (self, other) {
            (GroupValue::Aggregate(mine), GroupValue::Aggregate(theirs)) => mine.absorb(theirs),
            (GroupValue::Object(mine), GroupValue::Object(theirs)) => {
                for ((_, mine), (_, theirs)) in mine.iter_mut().zip(theirs) {
                    if let (Member::Aggregate(mine), Member::Aggregate(theirs)) = (mine, theirs) {
                        mine.absorb(theirs);
                    }
                }
            }
            _ => {}
        }
    }

    fn finish(self) -> Value {
        match self {
            GroupValue::Aggregate(accumulator) => accumulator.finish(),
            GroupValue::Value(value) => value,
            GroupValue::Object(members) => Value::object(members.into_iter().map(|(name, member)| {
                let value = match member {
                    Member::Aggregate(accumulator) => accumulator.finish(),
                    Member::Value(value) => value,
                };
                (name, value)
            })),
        }
    }
}

/// One aggregate over all partitions.
#[derive(Debug)]
pub(super) enum Accumulator {
    /// The count of COUNT and COUNTIF.
    Count(f64),
    /// Undefined once any partition's is.
    Sum(Option<f64>),
    /// The sum, undefined once any partition's is, and how many.
    Average(Option<f64>, f64),
    /// The outermost so far; spoilt once any partition's is.
    Extreme { largest: bool, best: Value, spoilt: bool },
    /// All values, in a list.
    List(Vec<Value>),
    /// Each once, in the order they were met.
    Set(Vec<Value>, std::collections::HashSet<HashableValue>),
}

impl Accumulator {
    fn new(kind: AggregateKind) -> Accumulator {
        match kind {
            AggregateKind::Count | AggregateKind::CountIf => Accumulator::Count(0.0),
            AggregateKind::Sum => Accumulator::Sum(Some(0.0)),
            AggregateKind::Average => Accumulator::Average(Some(0.0), 0.0),
            AggregateKind::Min => {
                Accumulator::Extreme { largest: false, best: Value::Undefined, spoilt: false }
            }
            AggregateKind::Max => {
                Accumulator::Extreme { largest: true, best: Value::Undefined, spoilt: false }
            }
            AggregateKind::MakeList => Accumulator::List(Vec::new()),
            AggregateKind::MakeSet => Accumulator::Set(Vec::new(), Default::default()),
        }
    }

    /// Adds one partition's part: `{"item": …}`.
    fn add(&mut self, part: &Value) {
        let item = part.member("item");
        match self {
            Accumulator::Count(count) => *count += item.as_f64().unwrap_or(0.0),
            Accumulator::Sum(sum) => *sum = sum.zip(item.as_f64()).map(|(sum, part)| sum + part),
            Accumulator::Average(sum, count) => {
                *sum = sum.zip(item.member("sum").as_f64()).map(|(sum, part)| sum + part);
                *count += item.member("count").as_f64().unwrap_or(0.0);
            }
            Accumulator::Extreme { largest, best, spoilt } => {
                // The count tells a partition without values from one whose values have no order.
                let detail = part.member("item2");
                let (value, met) = if detail.is_defined() {
                    let value = detail.member(if *largest { "max" } else { "min" });
                    (value, detail.member("count").as_f64().unwrap_or(0.0) > 0.0)
                } else {
                    (item, item.is_defined())
                };
                if !met {
                    return;
                }
                *spoilt |=
                    !value.is_defined() || matches!(value.kind(), ValueKind::Array | ValueKind::Object);
                keep_extreme(best, value, *largest);
            }
            Accumulator::List(list) => list.extend(item.as_array().unwrap_or_default().iter().cloned()),
            Accumulator::Set(list, seen) => {
                for value in item.as_array().unwrap_or_default() {
                    if seen.insert(HashableValue::new(value.clone())) {
                        list.push(value.clone());
                    }
                }
            }
        }
    }

    fn absorb(&mut self, other: Accumulator) {
        match (self, other) {
            (Accumulator::Count(mine), Accumulator::Count(theirs)) => *mine += theirs,
            (Accumulator::Sum(mine), Accumulator::Sum(theirs)) => {
                *mine = mine.zip(theirs).map(|(mine, theirs)| mine + theirs);
            }
            (Accumulator::Average(mine, count), Accumulator::Average(theirs, others)) => {
                *mine = mine.zip(theirs).map(|(mine, theirs)| mine + theirs);
                *count += others;
            }
            (
                Accumulator::Extreme { largest, best, spoilt },
                Accumulator::Extreme { best: theirs, spoilt: others, .. },
            ) => {
                *spoilt |= others;
                keep_extreme(best, &theirs, *largest);
            }
            (Accumulator::List(mine), Accumulator::List(theirs)) => mine.extend(theirs),
            (Accumulator::Set(mine, seen), Accumulator::Set(theirs, _)) => {
                for value in theirs {
                    if seen.insert(HashableValue::new(value.clone())) {
                        mine.push(value);
                    }
                }
            }
            _ => debug_assert!(false, "two partitions were asked for different aggregates"),
        }
    }

    fn finish(self) -> Value {
        match self {
            Accumulator::Count(count) => Value::from(count),
            Accumulator::Sum(sum) => sum.map_or(Value::Undefined, Value::from),
            Accumulator::Average(sum, count) => match sum {
                Some(sum) if count > 0.0 => Value::from(sum / count),
                _ => Value::Undefined,
            },
            Accumulator::Extreme { best, spoilt, .. } => {
                if spoilt {
                    Value::Undefined
                } else {
                    best
                }
            }
            Accumulator::List(list) | Accumulator::Set(list, _) => Value::array(list),
        }
    }
}

fn keep_extreme(best: &mut Value, value: &Value, largest: bool) {
    let wins = |order: std::cmp::Ordering| if largest { order.is_gt() } else { order.is_lt() };
    if value.is_defined() && (!best.is_defined() || wins(total_order(value, best))) {
        *best = value.clone();
    }
}
