//! The clauses of a query: SELECT … FROM … WHERE … GROUP BY … ORDER BY … OFFSET … LIMIT.

use smol_str::SmolStr;

use super::{Expression, ExpressionKind, MemberNotation, Source};
use crate::token::Span;

/// A query or subquery.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// Whether `DISTINCT` was written.
    pub distinct: bool,
    /// The row count of `TOP`.
    pub top: Option<RowCount>,
    /// The SELECT clause, which projects each row.
    pub selection: Selection,
    /// The first source and the joined ones; empty without FROM.
    pub from: Vec<Source>,
    /// The condition of `WHERE`.
    pub filter: Option<Expression>,
    /// The `GROUP BY` expressions; empty without the clause.
    pub group_by: Vec<Expression>,
    /// The `ORDER BY` clause.
    pub order_by: OrderBy,
    /// The `OFFSET … LIMIT …` clause.
    pub offset_limit: Option<OffsetLimit>,
    /// The span of the query in the text.
    pub span: Span,
}

/// The projection between SELECT and FROM.
#[derive(Clone, Debug, PartialEq)]
pub enum Selection {
    /// `SELECT *`: the whole document.
    Star,
    /// `SELECT VALUE expression`: one value per row.
    Value(Expression),
    /// A select list: one object per row.
    List(Vec<SelectItem>),
}

/// One item of a select list.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectItem {
    /// The expression of the item.
    pub expression: Expression,
    /// The alias, if one was written.
    pub alias: Option<SmolStr>,
}

/// A number of rows, of TOP, OFFSET or LIMIT.
#[derive(Clone, Debug, PartialEq)]
pub struct RowCount {
    /// The number, as a literal or a parameter.
    pub kind: RowCountKind,
    /// The span of the number in the query text.
    pub span: Span,
}

/// A number of rows as it was written.
#[derive(Clone, Debug, PartialEq)]
pub enum RowCountKind {
    /// A literal; the binder validates its range.
    Literal(crate::value::Value),
    /// A parameter `@name`; the name is stored without the sign.
    Parameter(SmolStr),
}

/// The `OFFSET … LIMIT …` clause.
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetLimit {
    /// The number of rows to skip.
    pub offset: RowCount,
    /// The largest number of rows to return after that.
    pub limit: RowCount,
}

/// The ORDER BY clause of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderBy {
    /// The query has no ORDER BY clause.
    None,
    /// Orders by these items, the first one being the most significant.
    Keys(Vec<OrderByItem>),
    /// `ORDER BY RANK`: orders by relevance.
    Rank(Expression),
}

/// One item of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderByItem {
    /// The expression to order by.
    pub expression: Expression,
    /// The direction, if one was written.
    pub direction: Option<Direction>,
}

/// A direction of ORDER BY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the smallest value to the largest.
    Ascending,
    /// From the largest value to the smallest.
    Descending,
}

impl SelectItem {
    /// The alias, or the name that SQL infers: the last segment of a property path.
    pub fn inferred_name(&self) -> Option<&SmolStr> {
        match (&self.alias, self.expression.kind()) {
            (Some(alias), _) => Some(alias),
            (
                None,
                ExpressionKind::Member { name, form: MemberNotation::Dot | MemberNotation::Bracket, .. },
            ) => Some(name),
            (None, ExpressionKind::Name(name)) => Some(name),
            _ => None,
        }
    }
}

impl Selection {
    /// The expressions of the clause.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let (value, list) = match self {
            Selection::Star => (None, &[][..]),
            Selection::Value(expression) => (Some(expression), &[][..]),
            Selection::List(items) => (None, &items[..]),
        };
        value.into_iter().chain(list.iter().map(|item| &item.expression))
    }
}

/// The names of the items in order: the inferred one, or `$1`, `$2`, … counted over unnamed items.
pub fn item_names(items: &[SelectItem]) -> Vec<SmolStr> {
    let mut unnamed = 0;
    items
        .iter()
        .map(|item| match item.inferred_name() {
            Some(name) => name.clone(),
            None => {
                unnamed += 1;
                smol_str::format_smolstr!("${unnamed}")
            }
        })
        .collect()
}

impl Query {
    /// The nesting depth of its expressions.
    pub(super) fn depth(&self) -> u16 {
        let own = self.selection.expressions().chain(&self.filter).chain(&self.group_by);
        let order = match &self.order_by {
            OrderBy::None => 0,
            OrderBy::Keys(keys) => keys.iter().map(|key| key.expression.depth()).max().unwrap_or(0),
            OrderBy::Rank(expression) => expression.depth(),
        };
        let sources = self.from.iter().map(Source::depth).max().unwrap_or(0);
        own.map(Expression::depth).max().unwrap_or(0).max(order).max(sources)
    }
}
