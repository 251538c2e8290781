//! How the documents that may match a query are found: the choice of access path.
//!
//! In: what the query could use (`sql::access`), where it may look (a stretch of the ring), and the
//! state with its index. Out: a [`Route`]. The choice counts entries of the index, never more than
//! [`FEW`] per condition, so choosing stays cheap however large the container is.

use std::ops::Bound;

use protocol::partition::EpkRange;
use sql::Value;
use sql::access_path::{AccessPath, DocPath, DocStep, Filter, Predicate};
use sql::ast::Direction;
use sql::value::{OrderKeyPrecision, ValueKind, encode_order_key};

use super::stream::Stream;
use crate::items::Ordinal;
use crate::store::PartitionState;
use crate::store::index::{IndexSpace, KeyRange, Step, after_prefix, composite_space};

/// A condition with fewer matches than this is collected rather than walked.
const FEW: usize = 1024;

/// An access path.
#[derive(Debug)]
pub(super) enum Route {
    /// Every item, in order of creation.
    Scan,
    /// Items that satisfy conditions, in order of creation.
    Matches(Stream),
    /// Index entries, in the order of their values.
    Entries { range: KeyRange, backwards: bool, missing: Missing },
}

/// Where items without the indexed value come in an ordered walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// There are none, or the query does not want them.
    None,
    /// Ascending: undefined sorts before everything.
    First,
    /// Descending.
    Last,
}

/// An access path and what it promises.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) route: Route,
    /// Every item on the route satisfies WHERE: it need not be evaluated again.
    pub(super) exact: bool,
    /// Items come in the order of ORDER BY.
    pub(super) ordered: bool,
    /// The index served a condition or the order.
    pub(super) indexed: bool,
}

/// Chooses the access path of one partition.
pub(super) fn choose(access: &AccessPath, state: &PartitionState, within: &EpkRange, whole: bool) -> Choice {
    let narrowed = narrow(&access.filter, state);
    let in_scope = if whole { Narrowed::anything() } else { on_the_ring(within, state) };
    let conditions: Vec<Stream> = [narrowed.stream, in_scope.stream].into_iter().flatten().collect();
    let indexed = !conditions.is_empty() || narrowed.walk.is_some();
    let matches = match conditions.len() {
        0 => None,
        1 => conditions.into_iter().next(),
        _ => Some(Stream::All(conditions)),
    };
    // A walk gives way to a stream, and then its condition is still to be checked.
    let exact = access.exact && narrowed.exact && (narrowed.walk.is_none() || matches.is_none());
    let few = matches.as_ref().is_some_and(|stream| stream.estimate(state, FEW) < FEW);
    let walk_is_as_short = whole && orders_by_its_only_condition(access);
    if (!few || walk_is_as_short)
        && let Some(walk) = in_order(access, state)
    {
        return walk;
    }
    // The stretch of the ring is checked per item in any case, so walking it alone stays exact.
    let route = match (matches, narrowed.walk, in_scope.walk) {
        (Some(stream), _, _) => Route::Matches(stream),
        (None, Some(range), _) | (None, None, Some(range)) => {
            Route::Entries { range, backwards: false, missing: Missing::None }
        }
        (None, None, None) => Route::Scan,
    };
    Choice { route, exact, ordered: false, indexed }
}

/// The access path that has the order of ORDER BY, whether or not a shorter one exists.
pub(super) fn in_order(access: &AccessPath, state: &PartitionState) -> Option<Choice> {
    let route = ordered_route(access, state)?;
    let exact = access.exact && matches!(access.filter, Filter::All);
    Some(Choice { route, exact, ordered: true, indexed: true })
}

/// Whether a walk in the order of ORDER BY that met entries of `space` went backwards; `None` when it
/// cannot have met any.
pub(super) fn went_backwards(access: &AccessPath, space: IndexSpace) -> Option<bool> {
    match access.order.as_slice() {
        [] => None,
        [(path, direction)] => (steps_of(path).iter().collect::<IndexSpace>() == space)
            .then_some(*direction == Direction::Descending),
        order => composite_spaces(order).iter().position(|of_order| *of_order == space).map(|at| at == 1),
    }
}

/// The composite indexes that have an order: the one to walk forwards and the one to walk backwards.
fn composite_spaces(order: &[(DocPath, Direction)]) -> [IndexSpace; 2] {
    let parts = |reversed: bool| -> Vec<(Vec<Step>, bool)> {
        let part = |(path, direction): &(DocPath, Direction)| {
            (steps_of(path), (*direction == Direction::Descending) != reversed)
        };
        order.iter().map(part).collect()
    };
    [composite_space(&parts(false)), composite_space(&parts(true))]
}

/// What one condition allows.
struct Narrowed {
    /// Items that satisfy it, when there are few or it is an equality.
    stream: Option<Stream>,
    /// The index entries that satisfy it, when there are many.
    walk: Option<KeyRange>,
    /// Stream or walk hold nothing that does not satisfy it.
    exact: bool,
}

impl Narrowed {
    fn anything() -> Narrowed {
        Narrowed { stream: None, walk: None, exact: true }
    }

    fn unknown() -> Narrowed {
        Narrowed { stream: None, walk: None, exact: false }
    }
}

fn narrow(filter: &Filter, state: &PartitionState) -> Narrowed {
    match filter {
        Filter::All => Narrowed::anything(),
        Filter::Nothing => Narrowed { stream: Some(Stream::List(Vec::new())), walk: None, exact: true },
        Filter::Predicate { path, predicate: test } => narrow_test(path, test, state),
        Filter::And(parts) => {
            let parts: Vec<Narrowed> = parts.iter().map(|part| narrow(part, state)).collect();
            let walks = parts.iter().filter(|part| part.walk.is_some()).count();
            let mut exact = parts.iter().all(|part| part.exact);
            let (mut streams, mut walk) = (Vec::new(), None);
            for part in parts {
                streams.extend(part.stream);
                walk = walk.or(part.walk);
            }
            match streams.len() {
                0 => Narrowed { stream: None, walk, exact: exact && walks <= 1 },
                count => {
                    exact &= walks == 0;
                    let stream = if count == 1 { streams.pop() } else { Some(Stream::All(streams)) };
                    Narrowed { stream, walk: None, exact }
                }
            }
        }
        Filter::Or(parts) => {
            let parts: Vec<Narrowed> = parts.iter().map(|part| narrow(part, state)).collect();
            let exact = parts.iter().all(|part| part.exact);
            let mut streams = Vec::with_capacity(parts.len());
            for part in parts {
                match (part.stream, part.walk) {
                    (Some(stream), _) => streams.push(stream),
                    (None, Some(range)) => streams.push(collect(&range, state)),
                    // One side can be anything, so both together can.
                    (None, None) => return Narrowed { stream: None, walk: None, exact },
                }
            }
            Narrowed { stream: Some(Stream::Any(streams)), walk: None, exact }
        }
    }
}

fn narrow_test(path: &DocPath, test: &Predicate, state: &PartitionState) -> Narrowed {
    let steps = steps_of(path);
    if !state.schema.policy.is_indexed(&steps) {
        return Narrowed::unknown();
    }
    let through_elements = steps.contains(&Step::Element);
    let space: IndexSpace = steps.iter().collect();
    let precise = state.index.count(space).imprecise == 0;
    match test {
        Predicate::Equals(value) => {
            let mut term = space.to_bytes().to_vec();
            match encode_order_key(value, &mut term) {
                Some(precision) => Narrowed {
                    stream: Some(Stream::term(term)),
                    walk: None,
                    exact: precision == OrderKeyPrecision::Exact,
                },
                None => Narrowed::unknown(),
            }
        }
        Predicate::Range { .. } | Predicate::Prefix(_) | Predicate::Defined => {
            let Some(range) = range_of(space, test) else { return Narrowed::unknown() };
            let exact = precise || matches!(test, Predicate::Defined);
            if through_elements || state.index.count_up_to(&range, FEW) < FEW {
                Narrowed { stream: Some(collect(&range, state)), walk: None, exact }
            } else {
                Narrowed { stream: None, walk: Some(range), exact }
            }
        }
    }
}

/// The entries of `space` that satisfy a test over a range of values of one type.
fn range_of(space: IndexSpace, test: &Predicate) -> Option<KeyRange> {
    let key = |value: &Value| {
        let mut key = space.to_bytes().to_vec();
        encode_order_key(value, &mut key).map(|_| key)
    };
    match test {
        Predicate::Equals(value) => key(value).map(KeyRange::prefix),
        Predicate::Defined => Some(KeyRange::prefix(space.to_bytes().to_vec())),
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
            let mut of_kind = space.to_bytes().to_vec();
            of_kind.push(kind as u8);
            let all = KeyRange::prefix(of_kind);
            // A cut string shares its key with longer ones, so its own key is never left out.
            let is_cut = |key: &[u8]| kind == ValueKind::String && key.ends_with(&[0xFF]);
            let from = match low {
                Bound::Unbounded => all.from,
                Bound::Included(value) => Bound::Included(key(value)?),
                Bound::Excluded(value) => match key(value)? {
                    key if is_cut(&key) => Bound::Included(key),
                    key => Bound::Included(after_prefix(&key)?),
                },
            };
            let to = match high {
                Bound::Unbounded => all.to,
                Bound::Included(value) => Bound::Excluded(after_prefix(&key(value)?)?),
                Bound::Excluded(value) => match key(value)? {
                    key if is_cut(&key) => Bound::Excluded(after_prefix(&key)?),
                    key => Bound::Excluded(key),
                },
            };
            Some(KeyRange { from, to })
        }
    }
}

/// The entries of the partition-key index within a stretch of the ring.
fn on_the_ring(within: &EpkRange, state: &PartitionState) -> Narrowed {
    let bound = |key: &[u8]| [IndexSpace::EPK.to_bytes().as_slice(), key].concat();
    let range = KeyRange {
        from: Bound::Included(bound(within.min.as_bytes())),
        to: Bound::Excluded(bound(within.max.as_bytes())),
    };
    if *within == EpkRange::point(within.min.clone()) {
        return Narrowed {
            stream: Some(Stream::term(bound(within.min.as_bytes()))),
            walk: None,
            exact: true,
        };
    }
    if state.index.count_up_to(&range, FEW) < FEW {
        Narrowed { stream: Some(collect(&range, state)), walk: None, exact: true }
    } else {
        Narrowed { stream: None, walk: Some(range), exact: true }
    }
}

fn collect(range: &KeyRange, state: &PartitionState) -> Stream {
    Stream::list(state.index.range(range).map(|entry| entry.ordinal()).collect::<Vec<Ordinal>>())
}

/// A walk of the index in the order of ORDER BY, if one exists.
fn ordered_route(access: &AccessPath, state: &PartitionState) -> Option<Route> {
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
        let condition = same_path_condition(&access.filter, path).and_then(|test| range_of(space, test));
        let missing = match condition {
            Some(_) => Missing::None,
            None if count.entries == state.len() as u64 => Missing::None,
            None if backwards => Missing::Last,
            None => Missing::First,
        };
        let range = condition.unwrap_or_else(|| KeyRange::prefix(space.to_bytes().to_vec()));
        return Some(Route::Entries { range, backwards, missing });
    }
    let exists =
        |space: IndexSpace| state.schema.policy.composites().iter().any(|composite| composite.space == space);
    let [forwards, backwards] = composite_spaces(&access.order);
    let (space, backwards) =
        [(forwards, false), (backwards, true)].into_iter().find(|(space, _)| exists(*space))?;
    (state.index.count(space).imprecise == 0).then(|| Route::Entries {
        range: KeyRange::prefix(space.to_bytes().to_vec()),
        backwards,
        missing: Missing::None,
    })
}

/// Whether the walk in order passes exactly the entries that satisfy the conditions.
fn orders_by_its_only_condition(access: &AccessPath) -> bool {
    match (access.order.as_slice(), &access.filter) {
        ([(path, _)], Filter::Predicate { path: tested, .. }) => tested == path,
        _ => false,
    }
}

/// A condition on `path` that every match satisfies.
fn same_path_condition<'a>(filter: &'a Filter, path: &DocPath) -> Option<&'a Predicate> {
    match filter {
        Filter::Predicate { path: tested, predicate: test } if tested == path => Some(test),
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
