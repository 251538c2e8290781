//! SELECT … FROM … WHERE … GROUP BY … ORDER BY … OFFSET … LIMIT.

use smol_str::SmolStr;

use super::{Expression, ExpressionKind, MemberNotation, Source};
use crate::token::Span;

/// One query or subquery.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// `DISTINCT` was written.
    pub distinct: bool,
    /// `TOP n`.
    pub top: Option<RowCount>,
    /// What each row becomes.
    pub selection: Selection,
    /// The first source and the joined ones; empty without FROM.
    pub from: Vec<Source>,
    /// `WHERE`.
    pub filter: Option<Expression>,
    /// `GROUP BY`; empty without.
    pub group_by: Vec<Expression>,
    /// `ORDER BY`.
    pub order_by: OrderBy,
    /// `OFFSET … LIMIT …`.
    pub offset_limit: Option<OffsetLimit>,
    /// Where it was written.
    pub span: Span,
}

/// The part between SELECT and FROM.
#[derive(Clone, Debug, PartialEq)]
pub enum Selection {
    /// `*`
    Star,
    /// `VALUE expression`
    Value(Expression),
    /// One object per row.
    List(Vec<SelectItem>),
}

/// One member of the object a row becomes.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectItem {
    /// What it holds.
    pub expression: Expression,
    /// Its name, when one was written.
    pub alias: Option<SmolStr>,
}

/// A number of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct RowCount {
    /// A literal or a parameter.
    pub kind: RowCountKind,
    /// Where it was written.
    pub span: Span,
}

/// How a number of rows was given.
#[derive(Clone, Debug, PartialEq)]
pub enum RowCountKind {
    /// A number; whether it can be counted to is the binder's business.
    Literal(crate::value::Value),
    /// `@name`, without the sign.
    Parameter(SmolStr),
}

/// `OFFSET … LIMIT …`
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetLimit {
    /// Rows to skip.
    pub offset: RowCount,
    /// Rows to return after that.
    pub limit: RowCount,
}

/// The order of the rows.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderBy {
    /// As they come.
    None,
    /// By these keys, the first one first.
    Keys(Vec<OrderByItem>),
    /// `ORDER BY RANK`: by relevance.
    Rank(Expression),
}

/// One key of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderByItem {
    /// What to compare.
    pub expression: Expression,
    /// The direction, when one was written.
    pub direction: Option<Direction>,
}

/// Which end comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

impl SelectItem {
    /// The name the language gives an item without alias: the last segment of a property path.
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
    /// The expressions it consists of.
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
    /// How deep its expressions nest.
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
