//! Plans of aggregates and GROUP BY: each partition returns partial aggregates that a client combines.

use protocol::query::{AggregateKind, QueryInfo};

use super::items;
use super::rewrite::RewrittenQuery;
use crate::ast::{
    Expression, ExpressionKind, Query, Selection, item_names, print_expression, print_items_as_object,
};
use crate::error::{SqlError, code};
use crate::functions::aggregate::Aggregate;

/// Adds grouping and aggregation to the plan. OFFSET, LIMIT, TOP, DISTINCT and ORDER BY are left to the
/// client, which alone has whole groups.
pub(super) fn complete(info: &mut QueryInfo, query: &Query) -> Result<(), SqlError> {
    let payload = match &query.selection {
        Selection::Star => return Err(not_allowed(query)),
        Selection::Value(value) => {
            if let Some((aggregate, argument)) = as_aggregate(value) {
                info.aggregates = vec![kind(aggregate)];
                format!("[{}]", part(aggregate, argument))
            } else {
                check_plain(value, query)?;
                print_expression(value)
            }
        }
        Selection::List(list) => {
            for (alias, item) in item_names(list).iter().zip(list) {
                let aggregate = as_aggregate(&item.expression).map(|(aggregate, _)| kind(aggregate));
                if aggregate.is_none() {
                    check_plain(&item.expression, query)?;
                }
                info.group_by_aliases.push(alias.to_string());
                info.group_by_alias_to_aggregate_type.push((alias.to_string(), aggregate));
            }
            print_items_as_object(list, &mut |expression| match as_aggregate(expression) {
                Some((aggregate, argument)) => part(aggregate, argument),
                None => print_expression(expression),
            })
        }
    };
    info.group_by_expressions = query.group_by.iter().map(print_expression).collect();
    let is_value = info.has_select_value;
    let selection = match (query.group_by.is_empty(), is_value) {
        (true, true) => format!("VALUE {payload}"),
        (true, false) => format!("{payload} AS payload"),
        (false, _) => format!("{} AS groupByItems, {payload} AS payload", items(query.group_by.iter())),
    };
    let text = RewrittenQuery::over(query).with_selection(selection).filtered_by(query.filter.as_ref());
    info.rewritten_query = text.grouped_by(&query.group_by).to_string();
    Ok(())
}

/// The aggregate function and argument, if the whole expression is an aggregate.
pub(super) fn as_aggregate(expression: &Expression) -> Option<(Aggregate, &Expression)> {
    match expression.kind() {
        ExpressionKind::Call { name, arguments, user_defined: false } => match &arguments[..] {
            [argument] => Aggregate::find(&name.0).map(|aggregate| (aggregate, argument)),
            _ => None,
        },
        _ => None,
    }
}

fn contains_aggregate(expression: &Expression) -> bool {
    let mut found = as_aggregate(expression).is_some();
    expression.kind().for_each_child(&mut |child| found = found || contains_aggregate(child));
    found
}

/// Checks that the expression is a plain aggregate: a client cannot combine values computed from
/// aggregates.
fn check_plain(expression: &Expression, query: &Query) -> Result<(), SqlError> {
    if contains_aggregate(expression) { Err(not_allowed(query)) } else { Ok(()) }
}

fn not_allowed(query: &Query) -> SqlError {
    let message = "Compositions of aggregates and other expressions are not allowed.";
    SqlError::new(code::UNCODED, query.span, message)
}

/// The expression by which a partition returns its partial aggregate.
fn part(aggregate: Aggregate, argument: &Expression) -> String {
    let argument = print_expression(argument);
    match aggregate {
        Aggregate::Avg => format!("{{\"item\": {{\"sum\": SUM({argument}), \"count\": COUNT({argument})}}}}"),
        Aggregate::Min => extreme("MIN", "min", &argument),
        Aggregate::Max => extreme("MAX", "max", &argument),
        Aggregate::Count => format!("{{\"item\": COUNT({argument})}}"),
        Aggregate::Sum => format!("{{\"item\": SUM({argument})}}"),
        Aggregate::CountIf => format!("{{\"item\": COUNTIF({argument})}}"),
        Aggregate::MakeList => format!("{{\"item\": MAKELIST({argument})}}"),
        Aggregate::MakeSet => format!("{{\"item\": MAKESET({argument})}}"),
    }
}

/// The partial MIN or MAX; its count tells an empty partition from an undefined result.
fn extreme(function: &str, member: &str, argument: &str) -> String {
    format!(
        "{{\"item\": {function}({argument}), \"item2\": {{\"{member}\": {function}({argument}), \"count\": COUNT({argument})}}}}"
    )
}

fn kind(aggregate: Aggregate) -> AggregateKind {
    match aggregate {
        Aggregate::Count => AggregateKind::Count,
        Aggregate::Sum => AggregateKind::Sum,
        Aggregate::Avg => AggregateKind::Average,
        Aggregate::Min => AggregateKind::Min,
        Aggregate::Max => AggregateKind::Max,
        Aggregate::CountIf => AggregateKind::CountIf,
        Aggregate::MakeList => AggregateKind::MakeList,
        Aggregate::MakeSet => AggregateKind::MakeSet,
    }
}
