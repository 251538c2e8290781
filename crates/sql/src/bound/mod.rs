//! A query ready to run: names are positions, functions are pointers, constants are values.
//!
//! The binder builds it once; evaluation reads it for every row and allocates only what the row's
//! own values need.

mod output; // what rows are made of, and when they are known

use smol_str::SmolStr;

pub use output::{InputOrder, RowOrigin};

use crate::ast::{BinaryOperator, Direction, SubqueryKind, UnaryOperator};
use crate::error::SqlError;
use crate::functions::Function;
use crate::functions::aggregate::Aggregate;
use crate::like::LikePattern;
use crate::value::{Value, total_order};

/// An expression, compiled. `up` counts frames from the innermost one, which is 0.
#[derive(Debug)]
pub(crate) enum BoundExpression {
    /// The same for every row.
    Constant(Value),
    /// What a source is bound to.
    Source { up: usize },
    /// A path into what a source is bound to.
    Path { up: usize, steps: Vec<BoundStep> },
    /// `base.name`
    Member { base: Box<BoundExpression>, name: SmolStr },
    /// `base[index]`
    Index { base: Box<BoundExpression>, index: Box<BoundExpression> },
    /// `[…]`
    Array(Box<[BoundExpression]>),
    /// `{…}`
    Object(Box<[(SmolStr, BoundExpression)]>),
    /// `-a` and its siblings.
    Unary { operator: UnaryOperator, operand: Box<BoundExpression> },
    /// `a + b` and its siblings.
    Binary { operator: BinaryOperator, left: Box<BoundExpression>, right: Box<BoundExpression> },
    /// `a AND b AND …`
    And(Box<[BoundExpression]>),
    /// `a OR b OR …`
    Or(Box<[BoundExpression]>),
    /// `a ? b : c`
    Conditional(Box<[BoundExpression; 3]>),
    /// `a IN (…)`
    In { needle: Box<BoundExpression>, haystack: Box<[BoundExpression]>, negated: bool },
    /// `a IN (…)` where everything in the parentheses is constant.
    InConstants { needle: Box<BoundExpression>, haystack: ConstantSet, negated: bool },
    /// `a BETWEEN b AND c`: the value, the low end, the high end.
    Between { operands: Box<[BoundExpression; 3]>, negated: bool },
    /// `a LIKE b` with a pattern that differs from row to row.
    Like { value: Box<BoundExpression>, pattern: Box<BoundExpression>, escape: Option<char>, negated: bool },
    /// `a LIKE 'b%'`
    LikeConstant { value: Box<BoundExpression>, pattern: LikePattern, negated: bool },
    /// A built-in function.
    Call { function: &'static Function, arguments: Box<[BoundExpression]> },
    /// A query used as a value.
    Subquery { form: SubqueryKind, pipeline: Box<Pipeline>, span: crate::token::Span },
    /// The n-th GROUP BY key of the current group.
    GroupKey { up: usize, index: usize },
    /// The n-th aggregate of the current group.
    Aggregate { up: usize, index: usize },
    /// Something that can be planned but not run, such as an unbound parameter.
    Failure(Box<SqlError>),
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BoundStep {
    /// `.name`
    Name(SmolStr),
    /// `[0]`
    Index(usize),
}

/// Constants in the order of ORDER BY, for look-up.
#[derive(Debug)]
pub(crate) struct ConstantSet(Vec<Value>);

impl ConstantSet {
    /// Sorts `values`; undefined ones are dropped, since nothing equals undefined.
    pub(crate) fn new(mut values: Vec<Value>) -> ConstantSet {
        values.retain(Value::is_defined);
        values.sort_by(total_order);
        ConstantSet(values)
    }

    /// Whether an equal value is among them. Cost grows with the logarithm of their number.
    pub(crate) fn contains(&self, value: &Value) -> bool {
        self.0.binary_search_by(|constant| total_order(constant, value)).is_ok()
    }

    /// In order.
    pub(crate) fn values(&self) -> &[Value] {
        &self.0
    }
}

/// A query or subquery, compiled: what to iterate, keep, group and return.
#[derive(Debug)]
pub(crate) struct Pipeline {
    /// Where the rows of the first source come from.
    pub(crate) input: PipelineInput,
    /// Sources that depend on the row so far, outermost first.
    pub(crate) sources: Vec<BoundSource>,
    /// WHERE.
    pub(crate) filter: Option<BoundExpression>,
    /// GROUP BY and aggregates.
    pub(crate) grouping: Option<Grouping>,
    /// DISTINCT.
    pub(crate) distinct: bool,
    /// ORDER BY.
    pub(crate) order: Vec<SortKey>,
    /// ORDER BY RANK.
    pub(crate) rank: Option<Rank>,
    /// What a row becomes.
    pub(crate) projection: BoundExpression,
    /// TOP.
    pub(crate) top: Option<u64>,
    /// OFFSET and LIMIT.
    pub(crate) window: Option<(u64, u64)>,
}

impl Pipeline {
    /// Rows to skip.
    pub(crate) fn offset(&self) -> u64 {
        self.window.map_or(0, |(offset, _)| offset)
    }

    /// Rows to return after that: the smaller of TOP and LIMIT.
    pub(crate) fn limit(&self) -> Option<u64> {
        let limit = self.window.map(|(_, limit)| limit);
        self.top.into_iter().chain(limit).min()
    }
}

/// Where the rows of a query start.
#[derive(Debug)]
pub(crate) enum PipelineInput {
    /// One row that depends on nothing but the frames outside.
    Outer,
    /// One row per document of the container.
    Documents,
    /// One row per row of another query over the container.
    Rows(Box<Pipeline>),
}

/// A source evaluated once per row of the sources before it. Each binds one more frame.
#[derive(Debug)]
pub(crate) enum BoundSource {
    /// The value itself, unless it is undefined.
    Value(BoundExpression),
    /// Each element of an array.
    Elements(BoundExpression),
    /// Each row of a subquery.
    Rows(Box<Pipeline>),
    /// Each element of each row of a subquery that is an array.
    RowElements(Box<Pipeline>),
}

/// GROUP BY and aggregates. What follows it sees one frame in place of the query's own sources.
#[derive(Debug)]
pub(crate) struct Grouping {
    /// Evaluated per row.
    pub(crate) keys: Vec<BoundExpression>,
    /// Fed per row.
    pub(crate) aggregates: Vec<(Aggregate, BoundExpression)>,
    /// Without GROUP BY there is exactly one group, even over no rows.
    pub(crate) single: bool,
}

/// One key of ORDER BY.
#[derive(Debug)]
pub(crate) struct SortKey {
    pub(crate) key: BoundExpression,
    pub(crate) direction: Direction,
}

/// ORDER BY RANK: relevance of each component, fused by reciprocal rank.
#[derive(Debug)]
pub(crate) struct Rank {
    pub(crate) components: Vec<RankComponent>,
    pub(crate) weights: Vec<f64>,
}

/// One score of ORDER BY RANK.
#[derive(Debug)]
pub(crate) enum RankComponent {
    /// `FullTextScore(path, term, …)`
    Text { path: BoundExpression, terms: Vec<BoundExpression> },
    /// `VectorDistance(…)` and the direction that puts the nearest first.
    Vector { distance: BoundExpression, direction: Direction },
}

impl BoundExpression {
    /// The constant it is, if it is one.
    pub(crate) fn as_constant(&self) -> Option<&Value> {
        match self {
            BoundExpression::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Whether `found` holds for it or any of its parts. Subqueries count as wholes.
    pub(crate) fn any(&self, found: &dyn Fn(&BoundExpression) -> bool) -> bool {
        let any_of =
            |expressions: &[BoundExpression]| expressions.iter().any(|expression| expression.any(found));
        found(self)
            || match self {
                BoundExpression::Constant(_)
                | BoundExpression::Source { .. }
                | BoundExpression::Path { .. }
                | BoundExpression::Subquery { .. }
                | BoundExpression::GroupKey { .. }
                | BoundExpression::Aggregate { .. }
                | BoundExpression::Failure(_) => false,
                BoundExpression::Member { base, .. } => base.any(found),
                BoundExpression::Index { base, index } => base.any(found) || index.any(found),
                BoundExpression::Array(expressions)
                | BoundExpression::And(expressions)
                | BoundExpression::Or(expressions) => any_of(expressions),
                BoundExpression::Object(members) => {
                    members.iter().any(|(_, expression)| expression.any(found))
                }
                BoundExpression::Unary { operand, .. } => operand.any(found),
                BoundExpression::Binary { left, right, .. } => left.any(found) || right.any(found),
                BoundExpression::Conditional(expressions)
                | BoundExpression::Between { operands: expressions, .. } => any_of(&expressions[..]),
                BoundExpression::In { needle, haystack, .. } => needle.any(found) || any_of(haystack),
                BoundExpression::InConstants { needle, .. } => needle.any(found),
                BoundExpression::Like { value, pattern, .. } => value.any(found) || pattern.any(found),
                BoundExpression::LikeConstant { value, .. } => value.any(found),
                BoundExpression::Call { arguments, .. } => any_of(arguments),
            }
    }
}
