//! Walking a route: items one by one, each with the place where it stands.

use std::ops::Bound;
use std::sync::Arc;

use super::continuation::Position;
use super::route::{Missing, Route};
use super::stream::Stream;
use crate::items::{Item, Ordinal};
use crate::store::PartitionState;
use crate::store::index::{KeyRange, Step, follow};

/// Items of one partition along one route.
pub(super) struct Cursor<'s> {
    items: Box<dyn Iterator<Item = Place> + Send + 's>,
}

/// An item and where it stands.
pub(super) struct Place {
    pub(super) item: Arc<Item>,
    pub(super) position: Position,
}

impl<'s> Cursor<'s> {
    /// Starts at `from`. `order_path` is the single path an ordered walk follows: what the items
    /// without an entry lack.
    pub(super) fn new(
        state: &'s PartitionState,
        route: Route,
        from: &Position,
        order_path: Vec<Step>,
    ) -> Cursor<'s> {
        let items: Box<dyn Iterator<Item = Place> + Send + 's> = match (route, from) {
            (Route::Entries { range, backwards, missing }, from) if continues(&range, from) => {
                let lacking = match (missing, from) {
                    (Missing::None, _) | (Missing::First, Position::Entry(_)) => None,
                    (_, Position::Missing(at)) => Some(*at),
                    _ => Some(Ordinal(0)),
                };
                let after_entries = backwards && matches!(from, Position::Missing(_));
                let entries = (!after_entries).then(|| entries(state, range, backwards, from));
                let lacking = lacking.map(|at| items_lacking(state, order_path, at));
                match missing {
                    Missing::First => {
                        Box::new(lacking.into_iter().flatten().chain(entries.into_iter().flatten()))
                    }
                    _ => Box::new(entries.into_iter().flatten().chain(lacking.into_iter().flatten())),
                }
            }
            // The index has changed its mind since the last page: walk on as that page did.
            (_, Position::Entry(entry)) => {
                let range = KeyRange::prefix(entry[..8].to_vec());
                Box::new(entries(state, range, false, from))
            }
            (Route::Matches(stream), from) => Box::new(matches(state, stream, start(from))),
            (_, from) => Box::new(state.items_from(start(from)).map(in_order)),
        };
        Cursor { items }
    }

    /// The next item.
    pub(super) fn next(&mut self) -> Option<Place> {
        self.items.next()
    }
}

fn start(from: &Position) -> Ordinal {
    match from {
        Position::Item(ordinal) | Position::Missing(ordinal) => *ordinal,
        Position::Start | Position::Entry(_) | Position::Spot(_) | Position::Row(_) => Ordinal(0),
    }
}

/// Whether a walk of `range` goes on where `from` says: among entries of the same kind.
pub(super) fn continues(range: &KeyRange, from: &Position) -> bool {
    match (from, &range.from) {
        (Position::Item(_), _) => false,
        (Position::Entry(entry), Bound::Included(start) | Bound::Excluded(start)) => {
            start.get(..8) == entry.get(..8)
        }
        _ => true,
    }
}

fn in_order(item: &Arc<Item>) -> Place {
    Place { item: Arc::clone(item), position: Position::Item(item.ordinal) }
}

fn matches(state: &PartitionState, mut stream: Stream, from: Ordinal) -> impl Iterator<Item = Place> + Send {
    let mut next = Some(from);
    std::iter::from_fn(move || {
        let found = stream.seek(state, next?)?;
        next = found.0.checked_add(1).map(Ordinal);
        state.item(found).map(in_order)
    })
}

fn entries<'s>(
    state: &'s PartitionState,
    mut range: KeyRange,
    backwards: bool,
    from: &Position,
) -> impl Iterator<Item = Place> + Send + use<'s> {
    if let Position::Entry(entry) = from {
        match backwards {
            false => range.from = Bound::Included(entry.clone()),
            true => range.to = Bound::Included(entry.clone()),
        }
    }
    let mut entries = state.index.range(&range);
    std::iter::from_fn(move || if backwards { entries.next_back() } else { entries.next() }).filter_map(
        |entry| {
            let item = Arc::clone(state.item(entry.ordinal())?);
            Some(Place { item, position: Position::Entry(entry.bytes().to_vec()) })
        },
    )
}

/// Cost grows with the partition: only a look at each item tells what it lacks.
fn items_lacking(
    state: &PartitionState,
    path: Vec<Step>,
    from: Ordinal,
) -> impl Iterator<Item = Place> + Send {
    state
        .items_from(from)
        .filter(move |item| !follow(&item.value(), &path).is_defined())
        .map(|item| Place { item: Arc::clone(item), position: Position::Missing(item.ordinal) })
}
