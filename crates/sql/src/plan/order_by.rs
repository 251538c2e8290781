//! Plans of ORDER BY: each partition returns its rows with their sort keys, which a client merges.

use protocol::query::QueryInfo;

use super::features::is_computed_score;
use super::rewrite::RewrittenQuery;
use super::{items, sort_order};
use crate::ast::{
    Direction, Expression, ExpressionKind, OrderByItem, Query, Selection, print_expression,
    print_items_as_object,
};
use crate::error::{SqlError, code};
use crate::statement::Statement;

/// Adds an ordered merge to the plan.
pub(super) fn complete(
    info: &mut QueryInfo,
    statement: &Statement,
    keys: &[OrderByItem],
) -> Result<(), SqlError> {
    let (query, pipeline) = (statement.query(), statement.pipeline());
    for (key, compiled) in keys.iter().zip(&pipeline.order) {
        let is_score = is_computed_score(&compiled.key);
        if !is_score && !is_path(&key.expression) {
            let message = format!(
                "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path: {}",
                print_expression(&key.expression)
            );
            return Err(SqlError::new(code::ORDER_BY_NOT_A_PATH, key.expression.span(), message));
        }
        info.has_non_streaming_order_by |= is_score;
        info.order_by.push(sort_order(compiled.direction));
        info.order_by_expressions.push(print_expression(&key.expression));
    }
    let selection = format!(
        "{}._rid, {} AS orderByItems, {} AS payload",
        root_alias(query),
        items(keys.iter().map(|key| &key.expression)),
        payload(query)
    );
    let mut text = RewrittenQuery::over(query)
        .with_selection(selection)
        .filtered_by(query.filter.as_ref())
        .resumable()
        .keeping_defined(&query.selection)
        .ordered_by(order_clause(keys));
    // Rows that a client still has to deduplicate cannot be limited here.
    if !query.distinct {
        text = text.with_top(pipeline.top);
        if let Some((offset, limit)) = pipeline.offset_limit {
            text = text.with_offset_limit(offset.saturating_add(limit));
        }
    }
    info.rewritten_query = text.to_string();
    Ok(())
}

/// The alias whose `_rid` identifies a row's document.
pub(super) fn root_alias(query: &Query) -> String {
    query.from.first().and_then(|source| source.name()).map_or_else(|| "root".to_owned(), ToString::to_string)
}

/// The expression of the original row.
pub(super) fn payload(query: &Query) -> String {
    match &query.selection {
        Selection::Star => root_alias(query),
        Selection::Value(value) => print_expression(value),
        Selection::List(list) => print_items_as_object(list, &mut print_expression),
    }
}

fn order_clause(keys: &[OrderByItem]) -> String {
    let keys: Vec<String> = keys
        .iter()
        .map(|key| {
            let direction = match key.direction {
                None => "",
                Some(Direction::Ascending) => " ASC",
                Some(Direction::Descending) => " DESC",
            };
            format!("{}{direction}", print_expression(&key.expression))
        })
        .collect();
    keys.join(", ")
}

/// Whether the expression is a path such as `c.a.b[0]`.
fn is_path(expression: &Expression) -> bool {
    match expression.kind() {
        ExpressionKind::Name(_) => true,
        ExpressionKind::Member { base, .. } => is_path(base),
        ExpressionKind::Index { base, index } => {
            is_path(base) && matches!(index.kind(), ExpressionKind::Literal(_) | ExpressionKind::Parameter(_))
        }
        _ => false,
    }
}
