//! The abstract syntax tree (AST) of a query: built by the parser, read by the binder, rewritten by the
//! planner.
//!
//! Nodes compare by meaning: spans are ignored, and parentheses are not represented. `print` converts an
//! AST to text, fully parenthesised.

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
