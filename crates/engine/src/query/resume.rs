//! Resume filters: where a client's ordered merge left off, as ORDER BY values and an item.
//!
//! A client that merges several ranges keeps the values of the last row that it returned, and the item of the
//! range that served it. To continue, it asks each range for the rows from those values on. Input: the values,
//! as far as the client knows them. Output: a [`SortPosition`], which a page compares with each row, and from
//! which a scan of an index in order begins.

use sql::ast::Direction;
use sql::value::{ValueKind, encode_hash_order_key, encode_whole_order_key};
use sql::{RowOrigin, Statement, Value};
use thiserror::Error;

use super::access_method::AccessMethod;
use super::continuation::ItemPosition;
use super::sort_position::{IDENTITY_LENGTH, SortPosition, TieOrder, identity_of_item};
use crate::items::Ordinal;

/// The rows that a client wants, in the order of ORDER BY.
#[derive(Clone, Debug)]
pub struct ResumeFilter {
    /// One value for each ORDER BY column.
    pub values: Vec<ResumeValue>,
    /// The first item among those with these values; all of them without it.
    pub item: Option<Ordinal>,
    /// Whether rows with exactly these values are left out; with an item, those of this item.
    pub exclude: bool,
}

/// The value of one ORDER BY column, as far as a client knows it.
#[derive(Clone, Debug)]
pub enum ResumeValue {
    /// A value that is known in full: undefined, null, a boolean, a number or a string.
    Whole(Value),
    /// An array of which only the distinct hash is known.
    ArrayHash(u128),
    /// An object of which only the distinct hash is known.
    ObjectHash(u128),
}

/// A resume filter that does not fit its query.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("The resumeFilter needs a query with ORDER BY, and as many values as that has columns.")]
pub struct InvalidResumeFilter;

impl ResumeFilter {
    /// Checks that the filter can be one of this statement.
    pub(super) fn check(&self, statement: &Statement) -> Result<(), InvalidResumeFilter> {
        let columns = statement.directions().count();
        let fits = columns > 0 && columns == self.values.len() && statement.has_from();
        if fits && statement.row_origin() != RowOrigin::AllDocuments {
            Ok(())
        } else {
            Err(InvalidResumeFilter)
        }
    }

    /// The position of the first row that is wanted.
    pub(super) fn position(&self, statement: &Statement, ties: TieOrder) -> SortPosition {
        let mut order = Vec::new();
        for (value, direction) in self.values.iter().zip(statement.directions()) {
            let start = order.len();
            value.encode(&mut order);
            if direction == Direction::Descending {
                order[start..].iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
        // Rows that are not of single items (DISTINCT) are told apart by their values, of any length.
        let of_items = statement.row_origin() == RowOrigin::Documents;
        let identity = match self.item.filter(|_| of_items) {
            Some(item) => {
                let mut first_row = identity_of_item(item, 0, ties);
                if self.exclude {
                    first_row[size_of::<Ordinal>()..].fill(0xFF);
                }
                first_row.to_vec()
            }
            None if self.exclude => vec![0xFF; IDENTITY_LENGTH],
            None if of_items => vec![0; IDENTITY_LENGTH],
            None => Vec::new(),
        };
        SortPosition::whole(&order, &identity, ties)
    }

    /// Where a scan of the index in order begins, so that it meets every row from the position on.
    pub(super) fn scan_start(&self, position: &SortPosition, access_method: &AccessMethod) -> ItemPosition {
        let AccessMethod::Entries { range, backwards, .. } = access_method else {
            return ItemPosition::Start;
        };
        if let [ResumeValue::Whole(Value::Undefined)] = self.values.as_slice() {
            // Items without the value have no entries, and come in order of creation.
            let end = Ordinal(if *backwards { u64::MAX } else { 0 });
            return ItemPosition::Undefined(self.item.unwrap_or(end));
        }
        match range.space() {
            Some(space) => ItemPosition::Entry(position.to_entry(&space, *backwards)),
            None => ItemPosition::Start,
        }
    }
}

impl ResumeValue {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            ResumeValue::Whole(value) => encode_whole_order_key(value, out),
            ResumeValue::ArrayHash(hash) => encode_hash_order_key(ValueKind::Array, *hash, out),
            ResumeValue::ObjectHash(hash) => encode_hash_order_key(ValueKind::Object, *hash, out),
        }
    }
}
