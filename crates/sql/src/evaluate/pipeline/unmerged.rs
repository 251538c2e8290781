//! Rows as they are before DISTINCT, ORDER BY, OFFSET, LIMIT and TOP have their say.
//!
//! Whoever returns a result in several pieces does the merging: to go on after a piece, it needs to know
//! where each row stands, not how many there were.

use super::super::{EvaluationContext, Frame};
use crate::ast::Direction;
use crate::bound::Pipeline;
use crate::value::{Value, encode_whole_order_key};

/// A row and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct UnmergedRow {
    /// The row itself.
    pub row: Value,
    /// Bytes whose order is the order of the statement; empty without ORDER BY.
    pub order: Vec<u8>,
    /// Bytes that equal rows of DISTINCT have in common, and that tell groups apart; those of the row where
    /// [rows of another query](crate::RowOrigin::Rows) are returned; empty when each row counts.
    pub identity: Vec<u8>,
}

impl UnmergedRow {
    /// The place of `row`. `group` are the values of GROUP BY.
    pub(super) fn new(
        pipeline: &Pipeline,
        row: Value,
        group: &[Value],
        frame: &Frame<'_>,
        context: &EvaluationContext<'_>,
    ) -> UnmergedRow {
        let mut order = Vec::new();
        for part in &pipeline.order {
            let key = part.key.evaluate(frame, context);
            context.budget().spend_on_retained(&key);
            let start = order.len();
            encode_whole_order_key(&key, &mut order);
            if part.direction == Direction::Descending {
                order[start..].iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
        let mut identity = Vec::new();
        if pipeline.distinct || (pipeline.grouping.is_none() && pipeline.reads_values()) {
            context.budget().spend_on_retained(&row);
            encode_whole_order_key(&row, &mut identity);
        } else {
            group.iter().for_each(|key| encode_whole_order_key(key, &mut identity));
        }
        UnmergedRow { row, order, identity }
    }
}
