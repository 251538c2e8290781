//! The EPK ranges of a query plan.

use protocol::container::PartitionKeyDefinition;
use protocol::partition::{PartitionKey, PartitionKeyComponent, effective_key, prefix_range};
use protocol::query::QueryRange;

use crate::access_path::PartitionKeyFilter;
use crate::statement::Statement;

/// The ranges that can match; sorted and disjoint.
pub(super) fn of(statement: &Statement, definition: &PartitionKeyDefinition) -> Vec<QueryRange> {
    if !statement.has_from() {
        return vec![QueryRange::empty()];
    }
    let keys = match statement.partition_key_filter(definition) {
        PartitionKeyFilter::Full => return vec![QueryRange::full()],
        PartitionKeyFilter::Nothing => return vec![QueryRange::empty()],
        PartitionKeyFilter::Points(keys) | PartitionKeyFilter::Prefixes(keys) => keys,
    };
    let mut ranges: Vec<QueryRange> = keys
        .iter()
        .filter(|key| !has_negative_zero(key))
        .map(|key| {
            if key.components().len() == definition.paths.len() {
                QueryRange::point(effective_key(definition, key))
            } else {
                QueryRange::from(prefix_range(definition, key))
            }
        })
        .collect();
    ranges.sort_by(|left, right| left.min.cmp(&right.min).then_with(|| right.max.cmp(&left.max)));
    // A point inside a prefix adds nothing.
    let mut disjoint: Vec<QueryRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        let inside = disjoint.last().is_some_and(|last: &QueryRange| {
            last.max > range.max
                || (last.max == range.max && (last.is_max_inclusive || !range.is_max_inclusive))
        });
        if !inside {
            disjoint.push(range);
        }
    }
    disjoint
}

/// Whether the key has a negative zero. The service plans `c.pk = 0` as one point, and so do the clients
/// that compare plans.
fn has_negative_zero(key: &PartitionKey) -> bool {
    key.components().iter().any(
        |component| matches!(component, PartitionKeyComponent::Number(value) if *value == 0.0 && value.is_sign_negative()),
    )
}
