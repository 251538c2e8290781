//! AccessPath methods: how the documents that may match a query are found.
//!
//! In: what the query could use (`sql::access`), where it may look (an EPK range), and the state with its
//! index. Out: an [`AccessPlan`]. Choosing counts index entries, never more than [`FEW_MATCHES`] per
//! condition, so it stays cheap however large the container is.

use std::ops::Bound;

use protocol::partition::EpkRange;
use sql::access_path::{AccessPath, DocPath, DocStep, Filter, Predicate};
use sql::ast::Direction;
use sql::value::{OrderKeyPrecision, ValueKind, encode_order_key};
use sql::{Statement, Value};

use super::ordinal_stream::OrdinalStream;
use super::sort_position::TieOrder;
use crate::items::Ordinal;
use crate::store::PartitionState;
use crate::store::index::{IndexSpace, KeyRange, Policy, Step, after_prefix, composite_space};

/// A condition with fewer matches than this is collected rather than scanned.
const FEW_MATCHES: usize = 1024;

/// An access method to the items of one partition.
#[derive(Debug)]
pub(super) enum AccessMethod {
    /// Every item, in order of creation.
    FullScan,
    /// Every item, in reverse order of creation.
    FullScanBackwards,
    /// Items that satisfy conditions, in order of creation.
    Matches(OrdinalStream),
    /// Index entries, in the order of their values.
    Entries { range: KeyRange, backwards: bool, undefined_values: UndefinedValues },
}

/// Where items without the indexed value come in an ordered scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UndefinedValues {
    /// There are none, or the query does not want them.
    None,
    /// Ascending: undefined sorts before everything.
    First,
    /// Descending: undefined sorts after everything.
    Last,
}

/// An access method and what it guarantees.
#[derive(Debug)]
pub(super) struct AccessPlan {
    pub(super) access_method: AccessMethod,
    /// Every item it yields satisfies WHERE: it need not be evaluated again.
    pub(super) exact: bool,
    /// Items come in the order of ORDER BY.
    pub(super) ordered: bool,
    /// The index served a condition or the order.
    pub(super) indexed: bool,
}

/// Chooses the access method of one partition.
pub(super) fn choose(
    access: &AccessPath,
    state: &PartitionState,
    within: &EpkRange,
    whole: bool,
) -> AccessPlan {
    let candidates = narrow(&access.filter, state);
    let in_scope = if whole { Candidates::anything() } else { in_epk_range(within, state) };
    let conditions: Vec<OrdinalStream> = [candidates.stream, in_scope.stream].into_iter().flatten().collect();
    let indexed = !conditions.is_empty() || candidates.range.is_some();
    let matches = match conditions.len() {
        0 => None,
        1 => conditions.into_iter().next(),
        _ => Some(OrdinalStream::All(conditions)),
    };
    // A stream is preferred to a scan, and then the scan's condition is still to be checked.
    let exact = access.exact && candidates.exact && (candidates.range.is_none() || matches.is_none());
    let few = matches.as_ref().is_some_and(|stream| stream.estimate(state, FEW_MATCHES) < FEW_MATCHES);
    let scan_is_as_short = whole && orders_by_its_conditions(access, &state.schema.policy);
    if (!few || scan_is_as_short)
        && let Some(plan) = in_order(access, state)
    {
        return plan;
    }
    // The EPK range is checked per item in any case, so scanning it alone stays exact.
    let access_method = match (matches, candidates.range, in_scope.range) {
        (Some(stream), _, _) => AccessMethod::Matches(stream),
        (None, Some(range), _) | (None, None, Some(range)) => {
            AccessMethod::Entries { range, backwards: false, undefined_values: UndefinedValues::None }
        }
        (None, None, None) => AccessMethod::FullScan,
    };
    AccessPlan { access_method, exact, ordered: false, indexed }
}

/// The access method that has the order of ORDER BY, whether or not a shorter one exists.
pub(super) fn in_order(access: &AccessPath, state: &PartitionState) -> Option<AccessPlan> {
    let access_method = ordered_method(access, state)?;
    let exact = access.exact && matches!(access.filter, Filter::All);
    Some(AccessPlan { access_method, exact, ordered: true, indexed: true })
}

/// Whether a scan in the order of ORDER BY that met entries of `space` went backwards; `None` when it cannot
/// have met any.
pub(super) fn went_backwards(access: &AccessPath, space: IndexSpace) -> Option<bool> {
    match access.order.as_slice() {
        [] => None,
        [(path, direction)] => (steps_of(path).iter().collect::<IndexSpace>() == space)
            .then_some(*direction == Direction::Descending),
        order => composite_spaces(order).iter().position(|of_order| *of_order == space).map(|at| at == 1),
    }
}

/// The order of items with equal sort keys. It depends on the query and the indexing policy alone, so that a
/// client that continues by item finds the same order whatever method serves it: that of the composite index
/// that has the order of ORDER BY, otherwise that of the first column.
pub(super) fn tie_order(statement: &Statement, policy: &Policy) -> TieOrder {
    let order = &statement.access_path().order;
    let of_composite = if order.len() > 1 { composite_scan(order, policy) } else { None };
    let backwards = match of_composite {
        Some((_, backwards)) => backwards,
        None => statement.is_stated_descending(),
    };
    if backwards { TieOrder::Backwards } else { TieOrder::Forwards }
}

/// The composite index that has an order, and whether it has to be scanned backwards.
fn composite_scan(order: &[(DocPath, Direction)], policy: &Policy) -> Option<(IndexSpace, bool)> {
    let exists = |space: IndexSpace| policy.composites().iter().any(|composite| composite.space == space);
    let [forwards, backwards] = composite_spaces(order);
    [(forwards, false), (backwards, true)].into_iter().find(|(space, _)| exists(*space))
}

/// The composite indexes that have an order: the one to scan forwards and the one to scan backwards.
pub(super) fn composite_spaces(order: &[(DocPath, Direction)]) -> [IndexSpace; 2] {
    let parts = |reversed: bool| -> Vec<(Vec<Step>, bool)> {
        let part = |(path, direction): &(DocPath, Direction)| {
            (steps_of(path), (*direction == Direction::Descending) != reversed)
        };
        order.iter().map(part).collect()
    };
    [composite_space(&parts(false)), composite_space(&parts(true))]
}

/// The items that one condition selects, as far as the index knows.
struct Candidates {
    /// Items that satisfy it, when there are few or it is an equality.
    stream: Option<OrdinalStream>,
    /// The index entries that satisfy it, when there are many.
    range: Option<KeyRange>,
    /// Whether stream and range hold only items that satisfy it.
    exact: bool,
}

impl Candidates {
    fn anything() -> Candidates {
        Candidates { stream: None, range: None, exact: true }
    }

    fn unknown() -> Candidates {
        Candidates { stream: None, range: None, exact: false }
    }
}

fn narrow(filter: &Filter, state: &PartitionState) -> Candidates {
    match filter {
        Filter::All => Candidates::anything(),
        Filter::Nothing => {
            Candidates { stream: Some(OrdinalStream::List(Vec::new())), range: None, exact: true }
        }
        Filter::Predicate { path, predicate } => narrow_predicate(path, predicate, state),
        Filter::And(parts) => {
            let parts: Vec<Candidates> = parts.iter().map(|part| narrow(part, state)).collect();
            let ranges = parts.iter().filter(|part| part.range.is_some()).count();
            let mut exact = parts.iter().all(|part| part.exact);
            let (mut streams, mut range) = (Vec::new(), None);
            for part in parts {
                streams.extend(part.stream);
                range = range.or(part.range);
            }
            match streams.len() {
                0 => Candidates { stream: None, range, exact: exact && ranges <= 1 },
                count => {
                    exact &= ranges == 0;
                    let stream = if count == 1 { streams.pop() } else { Some(OrdinalStream::All(streams)) };
                    Candidates { stream, range: None, exact }
                }
            }
        }
        Filter::Or(parts) => {
            let parts: Vec<Candidates> = parts.iter().map(|part| narrow(part, state)).collect();
            let exact = parts.iter().all(|part| part.exact);
            let mut streams = Vec::with_capacity(parts.len());
            for part in parts {
                match (part.stream, part.range) {
                    (Some(stream), _) => streams.push(stream),
                    (None, Some(range)) => streams.push(collect(&range, state)),
                    // One side can be anything, so both together can.
                    (None, None) => return Candidates { stream: None, range: None, exact },
                }
            }
            Candidates { stream: Some(OrdinalStream::any(streams)), range: None, exact }
        }
    }
}

fn narrow_predicate(path: &DocPath, predicate: &Predicate, state: &PartitionState) -> Candidates {
    let steps = steps_of(path);
    if !state.schema.policy.is_indexed(&steps) {
        return Candidates::unknown();
    }
    let through_elements = steps.contains(&Step::Element);
    let space: IndexSpace = steps.iter().collect();
    let precise = state.index.count(space).imprecise == 0;
    match predicate {
        Predicate::Equals(value) => {
            let mut term = space.to_bytes().to_vec();
            match encode_order_key(value, &mut term) {
                Some(precision) => Candidates {
                    stream: Some(OrdinalStream::term(term)),
                    range: None,
                    exact: precision == OrderKeyPrecision::Exact,
                },
                None => Candidates::unknown(),
            }
        }
        Predicate::Range { .. } | Predicate::Prefix(_) | Predicate::Defined => {
            let Some(range) = range_of(&space.to_bytes(), predicate) else { return Candidates::unknown() };
            let exact = precise || matches!(predicate, Predicate::Defined);
            if through_elements || state.index.count_up_to(&range, FEW_MATCHES) < FEW_MATCHES {
                Candidates { stream: Some(collect(&range, state)), range: None, exact }
            } else {
                Candidates { stream: None, range: Some(range), exact }
            }
        }
    }
}

/// The entries that begin with `base` and whose next value satisfies a predicate over a range of values of one type.
fn range_of(base: &[u8], predicate: &Predicate) -> Option<KeyRange> {
    let key = |value: &Value| {
        let mut key = base.to_vec();
        encode_order_key(value, &mut key).map(|_| key)
    };
    match predicate {
        Predicate::Equals(value) => key(value).map(KeyRange::prefix),
        Predicate::Defined => Some(KeyRange::prefix(base.to_vec())),
        Predicate::Prefix(text) => {
            let mut prefix = key(&Value::String(text.clone()))?;
            // Without its end, the key of a string is the beginning of the keys of all that start with it.
            let end = if prefix.ends_with(&[0, 0]) { 2 } else { 1 };
            prefix.truncate(prefix.len() - end);
            Some(KeyRange::prefix(prefix))
        }
        Predicate::Range { low, high } => {
            let kind = match (low, high) {
                (Bound::Included(value) | Bound::Excluded(value), _)
                | (Bound::Unbounded, Bound::Included(value) | Bound::Excluded(value)) => value.kind(),
                (Bound::Unbounded, Bound::Unbounded) => return None,
            };
            let mut of_kind = base.to_vec();
            of_kind.push(kind as u8);
            let all = KeyRange::prefix(of_kind);
            // A cut string shares its key with longer ones, so its own key is never left out.
            let is_truncated = |key: &[u8]| kind == ValueKind::String && key.ends_with(&[0xFF]);
            let from = match low {
                Bound::Unbounded => all.from,
                Bound::Included(value) => Bound::Included(key(value)?),
                Bound::Excluded(value) => match key(value)? {
                    key if is_truncated(&key) => Bound::Included(key),
                    key => Bound::Included(after_prefix(&key)?),
                },
            };
            let to = match high {
                Bound::Unbounded => all.to,
                Bound::Included(value) => Bound::Excluded(after_prefix(&key(value)?)?),
                Bound::Excluded(value) => match key(value)? {
                    key if is_truncated(&key) => Bound::Excluded(after_prefix(&key)?),
                    key => Bound::Excluded(key),
                },
            };
            Some(KeyRange { from, to })
        }
    }
}

/// The entries of the partition key index within an EPK range.
fn in_epk_range(within: &EpkRange, state: &PartitionState) -> Candidates {
    let bound = |key: &[u8]| [IndexSpace::EPK.to_bytes().as_slice(), key].concat();
    let range = KeyRange {
        from: Bound::Included(bound(within.min.as_bytes())),
        to: Bound::Excluded(bound(within.max.as_bytes())),
    };
    if *within == EpkRange::point(within.min.clone()) {
        return Candidates {
            stream: Some(OrdinalStream::term(bound(within.min.as_bytes()))),
            range: None,
            exact: true,
        };
    }
    if state.index.count_up_to(&range, FEW_MATCHES) < FEW_MATCHES {
        Candidates { stream: Some(collect(&range, state)), range: None, exact: true }
    } else {
        Candidates { stream: None, range: Some(range), exact: true }
    }
}

fn collect(range: &KeyRange, state: &PartitionState) -> OrdinalStream {
    OrdinalStream::list(state.index.range(range).map(|entry| entry.ordinal()).collect::<Vec<Ordinal>>())
}

/// A scan of the index in the order of ORDER BY, if there is one.
fn ordered_method(access: &AccessPath, state: &PartitionState) -> Option<AccessMethod> {
    let (first, rest) = access.order.split_first()?;
    if rest.is_empty() {
        let (path, direction) = first;
        let steps = steps_of(path);
        if steps.contains(&Step::Element) || !state.schema.policy.is_indexed(&steps) {
            return None;
        }
        let space: IndexSpace = steps.iter().collect();
        let count = state.index.count(space);
        if count.imprecise > 0 {
            return None;
        }
        let backwards = *direction == Direction::Descending;
        let condition = same_path_condition(&access.filter, path)
            .and_then(|predicate| range_of(&space.to_bytes(), predicate));
        let undefined_values = match condition {
            Some(_) => UndefinedValues::None,
            None if count.entries == state.len() as u64 => UndefinedValues::None,
            None if backwards => UndefinedValues::Last,
            None => UndefinedValues::First,
        };
        let range = condition.unwrap_or_else(|| KeyRange::prefix(space.to_bytes().to_vec()));
        return Some(AccessMethod::Entries { range, backwards, undefined_values });
    }
    let (space, backwards) = composite_scan(&access.order, &state.schema.policy)?;
    (state.index.count(space).imprecise == 0).then(|| AccessMethod::Entries {
        range: composite_range(access, space, backwards).range,
        backwards,
        undefined_values: UndefinedValues::None,
    })
}

/// The entries of a composite index that can satisfy the conditions of a query.
struct CompositeRange {
    range: KeyRange,
    /// How many of the first paths have a condition that the range takes into account.
    paths: usize,
}

/// Narrows a composite index down by the conditions on its first paths: those that are equal to a value, and then one that
/// is within a range.
fn composite_range(access: &AccessPath, space: IndexSpace, backwards: bool) -> CompositeRange {
    let mut base = space.to_bytes().to_vec();
    for (paths, (path, direction)) in access.order.iter().enumerate() {
        let is_descending = (*direction == Direction::Descending) != backwards;
        let start = base.len();
        match same_path_condition(&access.filter, path) {
            Some(Predicate::Equals(value)) => {
                if encode_order_key(value, &mut base) != Some(OrderKeyPrecision::Exact) {
                    base.truncate(start);
                    return CompositeRange { range: KeyRange::prefix(base), paths };
                }
                if is_descending {
                    base[start..].iter_mut().for_each(|byte| *byte = !*byte);
                }
            }
            Some(predicate @ Predicate::Range { .. }) if !is_descending => {
                return match range_of(&base, predicate) {
                    Some(range) => CompositeRange { range, paths: paths + 1 },
                    None => CompositeRange { range: KeyRange::prefix(base), paths },
                };
            }
            _ => return CompositeRange { range: KeyRange::prefix(base), paths },
        }
    }
    CompositeRange { range: KeyRange::prefix(base), paths: access.order.len() }
}

/// Whether the ordered scan passes exactly the entries that satisfy the conditions.
fn orders_by_its_conditions(access: &AccessPath, policy: &Policy) -> bool {
    let conditions = match &access.filter {
        Filter::Predicate { .. } => std::slice::from_ref(&access.filter),
        Filter::And(parts) => parts.as_slice(),
        _ => return false,
    };
    let ordered = match access.order.as_slice() {
        [] => return false,
        [single] => std::slice::from_ref(single),
        order => match composite_scan(order, policy) {
            Some((space, backwards)) => &order[..composite_range(access, space, backwards).paths],
            None => return false,
        },
    };
    // One condition on each path, and each is taken into account.
    let is_ordered = |filter: &Filter| match filter {
        Filter::Predicate { path, .. } => ordered.iter().any(|(of_order, _)| of_order == path),
        _ => false,
    };
    conditions.len() <= ordered.len() && conditions.iter().all(is_ordered)
}

/// A condition on `path` that every match satisfies.
fn same_path_condition<'a>(filter: &'a Filter, path: &DocPath) -> Option<&'a Predicate> {
    match filter {
        Filter::Predicate { path: tested, predicate } if tested == path => Some(predicate),
        Filter::And(parts) => parts.iter().find_map(|part| same_path_condition(part, path)),
        _ => None,
    }
}

pub(super) fn steps_of(path: &DocPath) -> Vec<Step> {
    path.0
        .iter()
        .map(|step| match step {
            DocStep::Key(name) => Step::Key(name.to_string()),
            DocStep::Element => Step::Element,
        })
        .collect()
}
