//! Plans that count distinct rows: `SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.x FROM c)`.

use protocol::query::{DCountInfo, DistinctType, QueryInfo};

use super::aggregate::as_aggregate;
use crate::ast::{
    Collection, Expression, ExpressionKind, OrderBy, Query, Selection, item_names, print_query,
};
use crate::functions::aggregate::Aggregate;
use crate::statement::Statement;

/// The plan if the query counts distinct rows: partitions return distinct rows, and the client counts them.
pub(super) fn info(statement: &Statement) -> Option<QueryInfo> {
    let query = statement.query();
    let inner = counted(query)?;
    let alias = match &query.selection {
        Selection::Value(value) => counts_rows(value).then(String::new)?,
        Selection::List(items) => match &items[..] {
            [item] if counts_rows(&item.expression) => item_names(items).first()?.to_string(),
            _ => return None,
        },
        Selection::Star => return None,
    };
    Some(QueryInfo {
        distinct_type: DistinctType::Unordered,
        has_select_value: matches!(query.selection, Selection::Value(_)),
        rewritten_query: print_query(inner),
        d_count_info: Some(DCountInfo { d_count_alias: alias }),
        ..QueryInfo::default()
    })
}

/// The distinct query that is counted, if the outer query does nothing else.
fn counted(query: &Query) -> Option<&Query> {
    let [source] = &query.from[..] else { return None };
    let Collection::Subquery(inner) = &source.collection else { return None };
    let only_counts = query.filter.is_none()
        && query.group_by.is_empty()
        && query.order_by == OrderBy::None
        && query.top.is_none()
        && query.offset_limit.is_none()
        && !query.distinct
        && !source.iterate;
    let only_removes_duplicates = inner.distinct && inner.group_by.is_empty();
    (only_counts && only_removes_duplicates).then_some(inner)
}

/// Whether the expression is `COUNT(1)`, or a count of any other defined constant.
fn counts_rows(expression: &Expression) -> bool {
    match as_aggregate(expression) {
        Some((Aggregate::Count, argument)) => {
            matches!(argument.kind(), ExpressionKind::Literal(value) if value.is_defined())
        }
        _ => false,
    }
}
