//! Bound queries: the output of the binder, in which names are resolved to frames, functions to pointers
//! and constants to values.
//!
//! The binder builds it once. Evaluation reads it for every row and allocates only for the values of that
//! row.

mod alternatives; // long disjunctions
mod output; // what rows are made of, and when they are known

use smol_str::SmolStr;

pub(crate) use alternatives::Alternatives;
pub use output::{InputOrder, RowOrigin};

use crate::ast::{BinaryOperator, Direction, SubqueryKind, UnaryOperator};
use crate::context::FullTextLanguage;
use crate::error::SqlError;
use crate::functions::Function;
use crate::functions::aggregate::Aggregate;
use crate::like::LikePattern;
use crate::value::{Value, total_order};

/// A bound expression. `up` counts frames from the innermost one, which is 0.
#[derive(Debug)]
pub(crate) enum BoundExpression {
    /// A value that does not depend on the row.
    Constant(Value),
    /// The value of a source.
    Source { up: usize },
    /// A path into the value of a source.
    Path { up: usize, steps: Vec<BoundStep> },
    /// A property access, `base.name`.
    Member { base: Box<BoundExpression>, name: SmolStr },
    /// An index access, `base[index]`.
    Index { base: Box<BoundExpression>, index: Box<BoundExpression> },
    /// An array constructor such as `[a, b]`.
    Array(Box<[BoundExpression]>),
    /// An object constructor such as `{"a": b}`.
    Object(Box<[(SmolStr, BoundExpression)]>),
    /// A unary operation such as `-a`.
    Unary { operator: UnaryOperator, operand: Box<BoundExpression> },
    /// A binary operation such as `a + b`.
    Binary { operator: BinaryOperator, left: Box<BoundExpression>, right: Box<BoundExpression> },
    /// A conjunction, `a AND b AND …`.
    And(Box<[BoundExpression]>),
    /// A disjunction, `a OR b OR …`.
    Or(Box<[BoundExpression]>),
    /// A long disjunction, whose operands are found by the value of a path.
    Alternatives(Box<Alternatives>),
    /// A conditional, `a ? b : c`.
    Conditional(Box<[BoundExpression; 3]>),
    /// A membership test, `a IN (…)`.
    In { needle: Box<BoundExpression>, haystack: Box<[BoundExpression]>, negated: bool },
    /// A membership test `a IN (…)` among constants.
    InConstants { needle: Box<BoundExpression>, haystack: ConstantSet, negated: bool },
    /// A range test `a BETWEEN b AND c`: the value, the lower bound, the upper bound.
    Between { operands: Box<[BoundExpression; 3]>, negated: bool },
    /// A pattern match `a LIKE b` whose pattern depends on the row.
    Like { value: Box<BoundExpression>, pattern: Box<BoundExpression>, escape: Option<char>, negated: bool },
    /// A pattern match `a LIKE 'b%'` with a constant pattern.
    LikeConstant { value: Box<BoundExpression>, pattern: LikePattern, negated: bool },
    /// A call of a built-in function.
    Call { function: &'static Function, arguments: Box<[BoundExpression]> },
    /// A subquery used as a value.
    Subquery { form: SubqueryKind, pipeline: Box<Pipeline>, span: crate::token::Span },
    /// The n-th GROUP BY key of the current group.
    GroupKey { up: usize, index: usize },
    /// The n-th aggregate of the current group.
    Aggregate { up: usize, index: usize },
    /// An expression that can be planned but not executed, such as a missing parameter.
    Failure(Box<SqlError>),
}

/// One step of a bound path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BoundStep {
    /// The property of this name.
    Name(SmolStr),
    /// The array element at this index.
    Index(usize),
}

/// A sorted list of constants, for binary search.
#[derive(Debug)]
pub(crate) struct ConstantSet(Vec<Value>);

impl ConstantSet {
    /// Sorts `values`. Undefined values are dropped, since nothing equals undefined.
    pub(crate) fn new(mut values: Vec<Value>) -> ConstantSet {
        values.retain(Value::is_defined);
        values.sort_by(total_order);
        ConstantSet(values)
    }

    /// Whether an equal value is in the set. Cost: logarithmic in the number of constants.
    pub(crate) fn contains(&self, value: &Value) -> bool {
        self.0.binary_search_by(|constant| total_order(constant, value)).is_ok()
    }

    /// The constants in ORDER BY order.
    pub(crate) fn values(&self) -> &[Value] {
        &self.0
    }
}

/// A bound query or subquery: its input, filter, grouping, order and projection.
#[derive(Debug)]
pub(crate) struct Pipeline {
    /// The rows that the query reads.
    pub(crate) input: PipelineInput,
    /// The sources after the first, each of which may depend on the previous ones.
    pub(crate) sources: Vec<BoundSource>,
    /// The condition of WHERE.
    pub(crate) filter: Option<BoundExpression>,
    /// GROUP BY keys and aggregates.
    pub(crate) grouping: Option<Grouping>,
    /// Whether duplicate rows are removed.
    pub(crate) distinct: bool,
    /// The sort keys of ORDER BY.
    pub(crate) order: Vec<SortKey>,
    /// The scores of ORDER BY RANK.
    pub(crate) rank: Option<Rank>,
    /// The expression that each row becomes.
    pub(crate) projection: BoundExpression,
    /// The row count of TOP.
    pub(crate) top: Option<u64>,
    /// The row counts of OFFSET and LIMIT.
    pub(crate) offset_limit: Option<(u64, u64)>,
}

impl Pipeline {
    /// The number of rows to skip.
    pub(crate) fn offset(&self) -> u64 {
        self.offset_limit.map_or(0, |(offset, _)| offset)
    }

    /// The largest number of rows to return: the smaller of TOP and LIMIT.
    pub(crate) fn limit(&self) -> Option<u64> {
        let limit = self.offset_limit.map(|(_, limit)| limit);
        self.top.into_iter().chain(limit).min()
    }
}

/// The rows that a query reads.
#[derive(Debug)]
pub(crate) enum PipelineInput {
    /// A single row that depends only on the outer frames.
    Outer,
    /// One row per document of the container.
    Documents,
    /// One row per row of a query in FROM.
    Rows(Box<Pipeline>),
}

/// A source that is evaluated once per row of the previous sources. Each source adds one frame.
#[derive(Debug)]
pub(crate) enum BoundSource {
    /// The value itself, unless it is undefined.
    Value(BoundExpression),
    /// Each element of an array.
    Elements(BoundExpression),
    /// Each row of a subquery.
    Rows(Box<Pipeline>),
    /// Each element of each row of a subquery whose rows are arrays.
    RowElements(Box<Pipeline>),
}

/// GROUP BY and aggregates. Expressions after grouping see one frame in place of the query's own sources.
#[derive(Debug)]
pub(crate) struct Grouping {
    /// The GROUP BY keys, evaluated per row.
    pub(crate) keys: Vec<BoundExpression>,
    /// The aggregates and their arguments, which are evaluated per row.
    pub(crate) aggregates: Vec<(Aggregate, BoundExpression)>,
    /// Whether there is no GROUP BY, so that there is exactly one group, even without rows.
    pub(crate) single: bool,
}

/// One sort key of ORDER BY.
#[derive(Debug)]
pub(crate) struct SortKey {
    pub(crate) key: BoundExpression,
    pub(crate) direction: Direction,
}

/// ORDER BY RANK: the scores, which are combined by reciprocal rank fusion.
#[derive(Debug)]
pub(crate) struct Rank {
    pub(crate) components: Vec<RankComponent>,
    pub(crate) weights: Vec<f64>,
}

/// One score of ORDER BY RANK.
#[derive(Debug)]
pub(crate) enum RankComponent {
    /// A full-text score, `FullTextScore(path, term, …)`, and the language of the texts.
    Text { path: BoundExpression, language: FullTextLanguage, terms: Vec<BoundExpression> },
    /// A vector distance, and the direction that puts the nearest vector first.
    Vector { distance: BoundExpression, direction: Direction },
}

impl BoundExpression {
    /// The value of a constant expression.
    pub(crate) fn as_constant(&self) -> Option<&Value> {
        match self {
            BoundExpression::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Whether `found` returns true for the expression or any of its operands. Subqueries are not entered.
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
                BoundExpression::Alternatives(alternatives) => any_of(alternatives.operands()),
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
