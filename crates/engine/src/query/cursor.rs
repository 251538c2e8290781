//! A cursor over an access method: items one by one, each with its position.

use std::ops::Bound;
use std::sync::Arc;

use super::access_method::{AccessMethod, UndefinedValues};
use super::continuation::ItemPosition;
use super::ordinal_stream::OrdinalStream;
use super::run_limit::RunLimit;
use crate::items::{Item, Ordinal};
use crate::store::PartitionState;
use crate::store::index::{KeyRange, Step, follow};

/// The items of one partition along one access method.
pub(super) struct Cursor<'s> {
    items: Box<dyn Iterator<Item = PositionedItem> + 's>,
    limit: &'s RunLimit,
}

/// An item and its position.
pub(super) struct PositionedItem {
    pub(super) item: Arc<Item>,
    pub(super) position: ItemPosition,
}

impl<'s> Cursor<'s> {
    /// A cursor that starts at `from`. `order_path` is the single path of an ordered scan, which items
    /// without an entry lack.
    pub(super) fn new(
        state: &'s PartitionState,
        access_method: AccessMethod,
        from: &ItemPosition,
        order_path: Vec<Step>,
        limit: &'s RunLimit,
    ) -> Cursor<'s> {
        let items: Box<dyn Iterator<Item = PositionedItem> + 's> = match (access_method, from) {
            (AccessMethod::Entries { range, backwards, undefined_values }, from)
                if continues(&range, from) =>
            {
                let undefined = match (undefined_values, from) {
                    (UndefinedValues::None, _) | (UndefinedValues::First, ItemPosition::Entry(_)) => None,
                    (_, ItemPosition::Undefined(at)) => Some(*at),
                    _ => Some(Ordinal(if backwards { u64::MAX } else { 0 })),
                };
                let after_entries = backwards && matches!(from, ItemPosition::Undefined(_));
                let entries = (!after_entries).then(|| entries(state, range, backwards, from));
                let undefined =
                    undefined.map(|at| items_without_value(state, order_path, at, backwards, limit));
                match undefined_values {
                    UndefinedValues::First => {
                        Box::new(undefined.into_iter().flatten().chain(entries.into_iter().flatten()))
                    }
                    _ => Box::new(entries.into_iter().flatten().chain(undefined.into_iter().flatten())),
                }
            }
            // The index no longer has this order: continue as the last page did.
            (_, ItemPosition::Entry(entry)) => {
                let range = KeyRange::prefix(entry[..8].to_vec());
                Box::new(entries(state, range, false, from))
            }
            (AccessMethod::FullScanBackwards, from) => {
                let last = match from {
                    ItemPosition::Start => Ordinal(u64::MAX),
                    from => start(from),
                };
                Box::new(state.items_back_from(last).map(in_order))
            }
            (AccessMethod::Matches(stream), from) => Box::new(matches(state, stream, start(from))),
            (_, from) => Box::new(state.items_from(start(from)).map(in_order)),
        };
        Cursor { items, limit }
    }

    /// The next item on the access method, unless the run has reached its limit.
    pub(super) fn next(&mut self) -> Option<PositionedItem> {
        self.items.next().filter(|found| self.limit.allow(&found.item))
    }
}

fn start(from: &ItemPosition) -> Ordinal {
    match from {
        ItemPosition::Item(ordinal) | ItemPosition::Undefined(ordinal) => *ordinal,
        ItemPosition::Start
        | ItemPosition::Entry(_)
        | ItemPosition::Sorted(_)
        | ItemPosition::RowCount(_) => Ordinal(0),
    }
}

/// Whether a scan of `range` can continue at `from`: among entries of the same kind.
pub(super) fn continues(range: &KeyRange, from: &ItemPosition) -> bool {
    match (from, &range.from) {
        (ItemPosition::Item(_), _) => false,
        (ItemPosition::Entry(entry), Bound::Included(start) | Bound::Excluded(start)) => {
            start.get(..8) == entry.get(..8)
        }
        _ => true,
    }
}

fn in_order(item: &Arc<Item>) -> PositionedItem {
    PositionedItem { item: Arc::clone(item), position: ItemPosition::Item(item.ordinal) }
}

fn matches(
    state: &PartitionState,
    mut stream: OrdinalStream,
    from: Ordinal,
) -> impl Iterator<Item = PositionedItem> {
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
    from: &ItemPosition,
) -> impl Iterator<Item = PositionedItem> + use<'s> {
    if let ItemPosition::Entry(entry) = from {
        // A client may name an entry outside of the range that its query is restricted to.
        match (backwards, &range.from, &range.to) {
            (false, Bound::Included(start) | Bound::Excluded(start), _) if start > entry => {}
            (false, ..) => range.from = Bound::Included(entry.clone()),
            (true, _, Bound::Included(end) | Bound::Excluded(end)) if end <= entry => {}
            (true, ..) => range.to = Bound::Included(entry.clone()),
        }
    }
    let mut entries = state.index.range(&range);
    std::iter::from_fn(move || if backwards { entries.next_back() } else { entries.next() }).filter_map(
        |entry| {
            let item = Arc::clone(state.item(entry.ordinal())?);
            Some(PositionedItem { item, position: ItemPosition::Entry(entry.bytes().to_vec()) })
        },
    )
}

/// Items without a value, in order of creation from `from` on, or `backwards` from `from` to the oldest. Cost
/// grows with the partition: every item has to be read to see what it lacks.
fn items_without_value(
    state: &PartitionState,
    path: Vec<Step>,
    from: Ordinal,
    backwards: bool,
    limit: &RunLimit,
) -> impl Iterator<Item = PositionedItem> {
    let forwards = (!backwards).then(|| state.items_from(from));
    let backwards = backwards.then(|| state.items_back_from(from));
    let items = forwards.into_iter().flatten().chain(backwards.into_iter().flatten());
    let allowed = items.take_while(|item| limit.allow(item));
    allowed.filter(move |item| !follow(&item.value(), &path).is_defined()).map(|item| PositionedItem {
        item: Arc::clone(item),
        position: ItemPosition::Undefined(item.ordinal),
    })
}
