//! GROUP BY and aggregates over rows.

use std::collections::HashMap;

use super::super::{EvaluationContext, Frame};
use crate::bound::Grouping;
use crate::functions::aggregate::Accumulator;
use crate::value::{HashableValue, Value};

/// The groups so far, in the order of their first row. Memory grows with their number.
#[derive(Debug)]
pub(super) struct Groups<'a> {
    grouping: &'a Grouping,
    group_indexes: HashMap<Vec<HashableValue>, usize>,
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    keys: Vec<Value>,
    accumulators: Vec<Accumulator>,
}

impl<'a> Groups<'a> {
    pub(super) fn new(grouping: &'a Grouping) -> Groups<'a> {
        let mut groups = Groups { grouping, group_indexes: HashMap::new(), groups: Vec::new() };
        if grouping.single {
            groups.start(Vec::new());
        }
        groups
    }

    fn start(&mut self, keys: Vec<Value>) -> usize {
        let accumulators = self.grouping.aggregates.iter().map(|(aggregate, _)| aggregate.start()).collect();
        self.groups.push(Group { keys, accumulators });
        self.groups.len() - 1
    }

    /// Adds one row to its group.
    pub(super) fn push(&mut self, frame: &Frame<'_>, context: &EvaluationContext<'_>) {
        let at = if self.grouping.single { 0 } else { self.group_index(frame, context) };
        for (accumulator, (_, argument)) in
            self.groups[at].accumulators.iter_mut().zip(&self.grouping.aggregates)
        {
            let value = argument.evaluate(frame, context);
            if accumulator.retains_values() {
                context.budget().spend_on_retained(&value);
            }
            accumulator.push(&value);
        }
    }

    /// Adds `rows` rows of which only the number matters.
    pub(super) fn push_count(&mut self, rows: u64) {
        for group in &mut self.groups {
            for accumulator in &mut group.accumulators {
                if let Accumulator::Count(count) = accumulator {
                    *count = count.saturating_add_unsigned(rows);
                }
            }
        }
    }

    fn group_index(&mut self, frame: &Frame<'_>, context: &EvaluationContext<'_>) -> usize {
        let keys: Vec<HashableValue> = self
            .grouping
            .keys
            .iter()
            .map(|key| HashableValue::new(key.evaluate(frame, context).into_owned()))
            .collect();
        if let Some(at) = self.group_indexes.get(&keys) {
            return *at;
        }
        context.budget().spend_on_group();
        for key in &keys {
            context.budget().spend_on_retained(key.value());
        }
        let at = self.start(keys.iter().map(|key| key.value().clone()).collect());
        self.group_indexes.insert(keys, at);
        at
    }

    /// The keys and aggregates of each group.
    pub(super) fn finish(self) -> impl Iterator<Item = (Vec<Value>, Vec<Value>)> {
        self.groups
            .into_iter()
            .map(|group| (group.keys, group.accumulators.into_iter().map(Accumulator::finish).collect()))
    }
}
