//! Rows as they are before DISTINCT, ORDER BY, OFFSET, LIMIT and TOP have their say.
//!
//! Whoever returns a result in several pieces does the merging: to go on after a piece, it needs to know
//! where each row stands, not how many there were.

use crate::ast::Direction;
use crate::bound::Pipeline;
use crate::evaluate::{Frame, World};
use crate::value::{Value, encode_whole_order_key};

/// What the rows of a statement are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOrigin {
    /// One document each.
    Documents,
    /// One value (DISTINCT) or one group (GROUP BY) each: documents that are alike share a row.
    Values,
    /// Rows of another query that are values: those that are alike are told apart by their number.
    Rows,
    /// All documents at once. There is one row, or (ORDER BY RANK) where a row stands depends on all others:
    /// nothing but their number tells how far one got.
    AllDocuments,
}

/// A row and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct UnmergedRow {
    /// The row itself.
    pub row: Value,
    /// Bytes whose order is the order of the statement; empty without ORDER BY.
    pub order: Vec<u8>,
    /// Bytes that equal rows of DISTINCT have in common, and that tell groups apart; those of the row where
    /// [rows of another query](RowsOf::Rows) are returned; empty when each row counts.
    pub identity: Vec<u8>,
}

impl UnmergedRow {
    /// The place of `row`. `group` are the values of GROUP BY.
    pub(super) fn new(
        pipeline: &Pipeline,
        row: Value,
        group: &[Value],
        frame: &Frame<'_>,
        world: &World<'_>,
    ) -> UnmergedRow {
        let mut order = Vec::new();
        for part in &pipeline.order {
            let key = part.key.evaluate(frame, world);
            world.effort().spend_on_kept(&key);
            let start = order.len();
            encode_whole_order_key(&key, &mut order);
            if part.direction == Direction::Descending {
                order[start..].iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
        let mut identity = Vec::new();
        if pipeline.distinct || (pipeline.grouping.is_none() && is_over_values(pipeline)) {
            world.effort().spend_on_kept(&row);
            encode_whole_order_key(&row, &mut identity);
        } else {
            group.iter().for_each(|key| encode_whole_order_key(key, &mut identity));
        }
        UnmergedRow { row, order, identity }
    }
}

/// What the rows of `pipeline` are made of. Queries in its FROM clause have no order and no limit.
pub(crate) fn row_origin(pipeline: &Pipeline) -> RowOrigin {
    let one_row = pipeline.grouping.as_ref().is_some_and(|grouping| grouping.single);
    if pipeline.rank.is_some() || one_row {
        RowOrigin::AllDocuments
    } else if merges(pipeline) {
        RowOrigin::Values
    } else if is_over_values(pipeline) {
        RowOrigin::Rows
    } else {
        RowOrigin::Documents
    }
}

/// Whether documents that are alike share a row.
fn merges(pipeline: &Pipeline) -> bool {
    pipeline.grouping.is_some() || pipeline.distinct
}

/// Whether a query in the FROM clause of `pipeline`, however deep, gives values and not documents.
fn is_over_values(pipeline: &Pipeline) -> bool {
    std::iter::successors(super::inner(pipeline), |inner| super::inner(inner)).any(merges)
}
