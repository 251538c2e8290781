//! AST to query text, in the canonical form of rewritten queries.
//!
//! Every operation is parenthesised, strings are double-quoted, AS is explicit, clauses are separated by
//! newlines. Parsing the text gives an equal AST.

use std::fmt::Write as _;

use super::query::{RowCountKind, item_names};
use super::{
    Collection, Direction, Expression, ExpressionKind, MemberNotation, OrderBy, PathStep, Query, RowCount,
    Selection, Source, SubqueryKind, UnaryOperator,
};
use crate::value::{Value, write_json_string};

/// The canonical text of a query.
pub fn print_query(query: &Query) -> String {
    let mut out = String::new();
    write_query(query, "\n", &mut out);
    out
}

/// The canonical text of an expression.
pub fn print_expression(expression: &Expression) -> String {
    let mut out = String::new();
    write_expression(expression, &mut out);
    out
}

/// The canonical text of the sources after FROM.
pub fn print_sources(sources: &[Source]) -> String {
    let mut out = String::new();
    write_sources(sources, "\n", &mut out);
    out
}

/// The canonical text of a row count.
pub fn print_row_count(count: &RowCount) -> String {
    let mut out = String::new();
    write_count(count, &mut out);
    out
}

/// Whether `name` can be written without quotes.
pub fn is_plain_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first == '_' || first == '$' || first.is_alphabetic())
        && characters.all(|c| c == '_' || c == '$' || c.is_alphanumeric())
}

fn write_query(query: &Query, clause_break: &str, out: &mut String) {
    out.push_str("SELECT ");
    if query.distinct {
        out.push_str("DISTINCT ");
    }
    if let Some(top) = &query.top {
        out.push_str("TOP ");
        write_count(top, out);
        out.push(' ');
    }
    write_selection(&query.selection, out);
    if !query.from.is_empty() {
        out.push_str(clause_break);
        out.push_str("FROM ");
        write_sources(&query.from, clause_break, out);
    }
    if let Some(filter) = &query.filter {
        out.push_str(clause_break);
        out.push_str("WHERE ");
        write_expression(filter, out);
    }
    if !query.group_by.is_empty() {
        out.push_str(clause_break);
        out.push_str("GROUP BY ");
        write_list(&query.group_by, out);
    }
    write_order(&query.order_by, clause_break, out);
    if let Some(clause) = &query.offset_limit {
        out.push_str(clause_break);
        out.push_str("OFFSET ");
        write_count(&clause.offset, out);
        out.push_str(" LIMIT ");
        write_count(&clause.limit, out);
    }
}

fn write_order(order_by: &OrderBy, clause_break: &str, out: &mut String) {
    match order_by {
        OrderBy::None => {}
        OrderBy::Rank(score) => {
            out.push_str(clause_break);
            out.push_str("ORDER BY RANK ");
            write_expression(score, out);
        }
        OrderBy::Keys(keys) => {
            out.push_str(clause_break);
            out.push_str("ORDER BY ");
            for (at, key) in keys.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                write_expression(&key.expression, out);
                match key.direction {
                    None => {}
                    Some(Direction::Ascending) => out.push_str(" ASC"),
                    Some(Direction::Descending) => out.push_str(" DESC"),
                }
            }
        }
    }
}

fn write_selection(selection: &Selection, out: &mut String) {
    match selection {
        Selection::Star => out.push('*'),
        Selection::Value(expression) => {
            out.push_str("VALUE ");
            write_expression(expression, out);
        }
        Selection::List(items) => {
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                write_expression(&item.expression, out);
                if let Some(alias) = &item.alias {
                    let _ = write!(out, " AS {alias}");
                }
            }
        }
    }
}

/// The object expression of a select list: `{"a": c.a, "$1": (c.b + 1)}`.
pub(crate) fn print_items_as_object(
    items: &[super::SelectItem],
    print_item: &mut dyn FnMut(&Expression) -> String,
) -> String {
    let mut out = String::from("{");
    for (at, (name, item)) in item_names(items).iter().zip(items).enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        write_quoted(name, &mut out);
        out.push_str(": ");
        out.push_str(&print_item(&item.expression));
    }
    out.push('}');
    out
}

fn write_count(count: &RowCount, out: &mut String) {
    match &count.kind {
        RowCountKind::Literal(value) => {
            let _ = write!(out, "{value}");
        }
        RowCountKind::Parameter(name) => {
            let _ = write!(out, "@{name}");
        }
    }
}

fn write_sources(sources: &[Source], clause_break: &str, out: &mut String) {
    for (at, source) in sources.iter().enumerate() {
        if at > 0 {
            out.push_str(clause_break);
            out.push_str("JOIN ");
        }
        if let (true, Some(alias)) = (source.iterate, &source.alias) {
            let _ = write!(out, "{alias} IN ");
        }
        match &source.collection {
            Collection::Path { root, steps } => {
                out.push_str(root);
                steps.iter().for_each(|step| write_step(step, out));
            }
            Collection::Subquery(query) => write_subquery(query, out),
            Collection::Value(value) => out.push_str(&print_expression(value)),
        }
        if let (false, Some(alias)) = (source.iterate, &source.alias) {
            let _ = write!(out, " AS {alias}");
        }
    }
}

fn write_step(step: &PathStep, out: &mut String) {
    match step {
        PathStep::Dot(name) => {
            let _ = write!(out, ".{name}");
        }
        PathStep::Bracket(name) => {
            out.push('[');
            write_quoted(name, out);
            out.push(']');
        }
        PathStep::Index(index) => {
            let _ = write!(out, "[{index}]");
        }
    }
}

fn write_subquery(query: &Query, out: &mut String) {
    out.push('(');
    write_query(query, " ", out);
    out.push(')');
}

fn write_list(expressions: &[Expression], out: &mut String) {
    for (at, expression) in expressions.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        write_expression(expression, out);
    }
}

fn write_expression(expression: &Expression, out: &mut String) {
    match expression.kind() {
        ExpressionKind::Literal(value) => write_literal(value, out),
        ExpressionKind::Parameter(name) => {
            let _ = write!(out, "@{name}");
        }
        ExpressionKind::Name(name) => out.push_str(name),
        ExpressionKind::Member { base, name, form } => {
            write_base(base, out);
            match form {
                MemberNotation::Dot => {
                    let _ = write!(out, ".{name}");
                }
                MemberNotation::Bracket => {
                    out.push('[');
                    write_quoted(name, out);
                    out.push(']');
                }
            }
        }
        ExpressionKind::Index { base, index } => {
            write_base(base, out);
            out.push('[');
            write_expression(index, out);
            out.push(']');
        }
        ExpressionKind::Array(elements) => {
            out.push('[');
            write_list(elements, out);
            out.push(']');
        }
        ExpressionKind::Object(members) => {
            out.push('{');
            for (at, (name, value)) in members.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                write_quoted(name, out);
                out.push_str(": ");
                write_expression(value, out);
            }
            out.push('}');
        }
        ExpressionKind::Call { name, arguments, user_defined } => {
            if *user_defined {
                out.push_str("udf.");
            }
            out.push_str(&name.0);
            out.push('(');
            write_list(arguments, out);
            out.push(')');
        }
        ExpressionKind::Subquery { form, query } => {
            out.push_str(match form {
                SubqueryKind::Scalar => "",
                SubqueryKind::Exists => "EXISTS",
                SubqueryKind::Array => "ARRAY",
                SubqueryKind::All => "ALL",
                SubqueryKind::First => "FIRST",
                SubqueryKind::Last => "LAST",
            });
            write_subquery(query, out);
        }
        operation => write_operation(operation, out),
    }
}

/// Writes an operation in its own parentheses.
fn write_operation(operation: &ExpressionKind, out: &mut String) {
    out.push('(');
    match operation {
        ExpressionKind::Unary { operator, operand } => {
            out.push_str(operator.text());
            if *operator == UnaryOperator::Not {
                out.push(' ');
            }
            write_expression(operand, out);
        }
        ExpressionKind::Binary { operator, left, right } => {
            write_expression(left, out);
            let _ = write!(out, " {} ", operator.text());
            write_expression(right, out);
        }
        ExpressionKind::Logical { operator, operands } => {
            // Nested pairs, as the service prints them.
            (2..operands.len()).for_each(|_| out.push('('));
            for (at, operand) in operands.iter().enumerate() {
                if at > 0 {
                    let _ = write!(out, " {} ", operator.text());
                }
                write_expression(operand, out);
                if at > 0 && at + 1 < operands.len() {
                    out.push(')');
                }
            }
        }
        ExpressionKind::Conditional { condition, then, otherwise } => {
            write_expression(condition, out);
            out.push_str(" ? ");
            write_expression(then, out);
            out.push_str(" : ");
            write_expression(otherwise, out);
        }
        ExpressionKind::In { needle, haystack, negated } => {
            write_expression(needle, out);
            out.push_str(if *negated { " NOT IN (" } else { " IN (" });
            write_list(haystack, out);
            out.push(')');
        }
        ExpressionKind::Between { value, low, high, negated } => {
            write_expression(value, out);
            out.push_str(if *negated { " NOT BETWEEN " } else { " BETWEEN " });
            write_expression(low, out);
            out.push_str(" AND ");
            write_expression(high, out);
        }
        ExpressionKind::Like { value, pattern, escape, negated } => {
            write_expression(value, out);
            out.push_str(if *negated { " NOT LIKE " } else { " LIKE " });
            write_expression(pattern, out);
            if let Some(escape) = escape {
                out.push_str(" ESCAPE ");
                write_quoted(escape.encode_utf8(&mut [0; 4]), out);
            }
        }
        other => unreachable!("{other:?} is not written with an operator"),
    }
    out.push(')');
}

/// Writes the base of a property or index access. A number is parenthesised, because it would absorb the
/// dot.
fn write_base(base: &Expression, out: &mut String) {
    if matches!(base.kind(), ExpressionKind::Literal(Value::Number(_))) {
        out.push('(');
        write_expression(base, out);
        out.push(')');
    } else {
        write_expression(base, out);
    }
}

fn write_literal(value: &Value, out: &mut String) {
    match value {
        Value::Undefined => out.push_str("undefined"),
        Value::String(text) => write_quoted(text, out),
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

/// Appends `text` in double quotes with JSON's escapes.
pub(crate) fn write_quoted(text: &str, out: &mut String) {
    let mut bytes = Vec::with_capacity(text.len() + 2);
    write_json_string(text, &mut bytes);
    out.push_str(&String::from_utf8_lossy(&bytes));
}
