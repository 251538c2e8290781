//! A query as data: what the parser builds, the binder reads and the planner rewrites.
//!
//! Trees compare by meaning: where something was written (its span) is ignored, parentheses are
//! gone. `print` turns a tree back into text, fully parenthesised.

mod expression;
mod from;
mod print;
mod query;

pub use expression::{
    BinaryOperator, Expression, ExpressionKind, FunctionName, LogicalOperator, MemberNotation, SubqueryKind,
    UnaryOperator,
};
pub use from::{Collection, PathStep, Source};
pub(crate) use print::print_items_as_object;
pub use print::{is_plain_name, print_expression, print_query, print_row_count, print_sources};
pub use query::{
    Direction, OffsetLimit, OrderBy, OrderByItem, Query, RowCount, RowCountKind, SelectItem, Selection,
    item_names,
};
