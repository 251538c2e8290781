//! Rows before DISTINCT, ORDER BY, OFFSET, LIMIT and TOP are applied.
//!
//! A caller that returns a result in pages merges rows itself. To resume after a page it needs the sort
//! position of each row, not only the number of rows.

use super::super::{EvaluationContext, Frame};
use crate::ast::Direction;
use crate::bound::Pipeline;
use crate::value::{Value, encode_whole_order_key};

/// A row with its sort position.
#[derive(Clone, Debug, PartialEq)]
pub struct UnmergedRow {
    /// The row after the projection.
    pub row: Value,
    /// Bytes that sort in the order of the statement; empty without ORDER BY.
    pub order: Vec<u8>,
    /// Bytes that identify the row: of DISTINCT, equal for equal rows; of GROUP BY, the keys of the group;
    /// of [rows of another query](crate::RowOrigin::Rows), the row itself. Empty if each row counts.
    pub identity: Vec<u8>,
}

impl UnmergedRow {
    /// Computes the sort position of `row`. `group` are the GROUP BY keys.
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
