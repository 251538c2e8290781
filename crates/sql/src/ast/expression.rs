//! Expressions.

use smol_str::SmolStr;

use super::Query;
use crate::token::Span;
use crate::value::Value;

/// An expression: what it is, where it was written, how deep it nests.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    kind: ExpressionKind,
    span: Span,
    /// Levels below and including this one. Kept, so that whoever walks a tree recursively knows
    /// beforehand how much stack it takes.
    depth: u16,
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpressionKind {
    /// A number, string, boolean, null or undefined.
    Literal(Value),
    /// `@name`, without the sign.
    Parameter(SmolStr),
    /// The alias of a source.
    Name(SmolStr),
    /// `base.name` or `base["name"]`
    Member {
        /// The object.
        base: Box<Expression>,
        /// The member.
        name: SmolStr,
        /// How it was written.
        form: MemberNotation,
    },
    /// `base[index]` where the index is not a string literal.
    Index {
        /// The array or object.
        base: Box<Expression>,
        /// A number or a string.
        index: Box<Expression>,
    },
    /// `[a, b]`
    Array(Vec<Expression>),
    /// `{"a": b}`
    Object(Vec<(SmolStr, Expression)>),
    /// `-a`; a literal with a minus is a literal.
    Unary {
        /// What to do.
        operator: UnaryOperator,
        /// With what.
        operand: Box<Expression>,
    },
    /// `a + b`
    Binary {
        /// What to do.
        operator: BinaryOperator,
        /// With what on the left.
        left: Box<Expression>,
        /// With what on the right.
        right: Box<Expression>,
    },
    /// `a AND b AND c`: a chain is one node, so that a long one is not a deep one.
    Logical {
        /// AND or OR.
        operator: LogicalOperator,
        /// Two or more; the first is never a chain of the same operator.
        operands: Vec<Expression>,
    },
    /// `condition ? then : otherwise`
    Conditional {
        /// What decides.
        condition: Box<Expression>,
        /// The value when it is true.
        then: Box<Expression>,
        /// The value otherwise.
        otherwise: Box<Expression>,
    },
    /// `needle [NOT] IN (…)`
    In {
        /// What is looked for.
        needle: Box<Expression>,
        /// Among these.
        haystack: Vec<Expression>,
        /// NOT was written.
        negated: bool,
    },
    /// `value [NOT] BETWEEN low AND high`
    Between {
        /// What is tested.
        value: Box<Expression>,
        /// The smallest that passes.
        low: Box<Expression>,
        /// The largest that passes.
        high: Box<Expression>,
        /// NOT was written.
        negated: bool,
    },
    /// `value [NOT] LIKE pattern [ESCAPE 'x']`
    Like {
        /// What is tested.
        value: Box<Expression>,
        /// The pattern.
        pattern: Box<Expression>,
        /// The character that makes the next one literal.
        escape: Option<char>,
        /// NOT was written.
        negated: bool,
    },
    /// `NAME(…)` or `udf.name(…)`
    Call {
        /// As written.
        name: FunctionName,
        /// In order.
        arguments: Vec<Expression>,
        /// `udf.` was written before it.
        user_defined: bool,
    },
    /// A query used as a value.
    Subquery {
        /// How its rows become one value.
        form: SubqueryKind,
        /// The rows.
        query: Box<Query>,
    },
}

/// The name of a function, as written; the case of its letters makes no difference.
#[derive(Clone, Debug, Eq)]
pub struct FunctionName(pub SmolStr);

impl PartialEq for FunctionName {
    fn eq(&self, other: &FunctionName) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

/// How a member was written; rewritten queries keep it. Like spans, all forms are equal to each
/// other: `c.a` and `c["a"]` are the same expression.
#[derive(Clone, Copy, Debug)]
pub enum MemberNotation {
    /// `.name`
    Dot,
    /// `["name"]`
    Bracket,
}

impl PartialEq for MemberNotation {
    fn eq(&self, _: &MemberNotation) -> bool {
        true
    }
}

/// How the rows of a subquery become one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubqueryKind {
    /// The only row.
    Scalar,
    /// Whether there is any row.
    Exists,
    /// All rows, as an array.
    Array,
    /// Whether every row is true.
    All,
    /// The first row.
    First,
    /// The last row.
    Last,
}

/// Operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `~`
    Complement,
    /// `NOT`
    Not,
}

/// Operators with two operands, but for AND and OR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOperator {
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `||`
    Concat,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `>>>`
    ShiftRightUnsigned,
    /// `&`
    BitAnd,
    /// `^`
    BitXor,
    /// `|`
    BitOr,
    /// `=`
    Equal,
    /// `!=` or `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `??`
    Coalesce,
}

/// AND and OR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogicalOperator {
    /// Every operand.
    And,
    /// Any operand.
    Or,
}

impl UnaryOperator {
    /// How it is written.
    pub fn text(self) -> &'static str {
        match self {
            UnaryOperator::Plus => "+",
            UnaryOperator::Minus => "-",
            UnaryOperator::Complement => "~",
            UnaryOperator::Not => "NOT",
        }
    }
}

impl BinaryOperator {
    /// How it is written.
    pub fn text(self) -> &'static str {
        match self {
            BinaryOperator::Multiply => "*",
            BinaryOperator::Divide => "/",
            BinaryOperator::Modulo => "%",
            BinaryOperator::Add => "+",
            BinaryOperator::Subtract => "-",
            BinaryOperator::Concat => "||",
            BinaryOperator::ShiftLeft => "<<",
            BinaryOperator::ShiftRight => ">>",
            BinaryOperator::ShiftRightUnsigned => ">>>",
            BinaryOperator::BitAnd => "&",
            BinaryOperator::BitXor => "^",
            BinaryOperator::BitOr => "|",
            BinaryOperator::Equal => "=",
            BinaryOperator::NotEqual => "!=",
            BinaryOperator::Less => "<",
            BinaryOperator::LessOrEqual => "<=",
            BinaryOperator::Greater => ">",
            BinaryOperator::GreaterOrEqual => ">=",
            BinaryOperator::Coalesce => "??",
        }
    }
}

impl LogicalOperator {
    /// How it is written.
    pub fn text(self) -> &'static str {
        match self {
            LogicalOperator::And => "AND",
            LogicalOperator::Or => "OR",
        }
    }
}

impl Expression {
    /// An expression; its depth follows from its parts.
    pub fn new(kind: ExpressionKind, span: Span) -> Expression {
        let mut below = 0;
        kind.for_each_child(&mut |child| below = below.max(child.depth));
        if let ExpressionKind::Subquery { query, .. } = &kind {
            below = below.max(query.depth());
        }
        Expression { kind, span, depth: below.saturating_add(1) }
    }

    /// What it is.
    pub fn kind(&self) -> &ExpressionKind {
        &self.kind
    }

    /// What it is, taken out.
    pub fn into_kind(self) -> ExpressionKind {
        self.kind
    }

    /// Where it was written.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Levels below and including this one.
    pub fn depth(&self) -> u16 {
        self.depth
    }

    /// A chain of AND or OR; a left operand of the same kind is absorbed.
    pub(crate) fn chain(operator: LogicalOperator, left: Expression, right: Expression) -> Expression {
        let span = left.span.to(right.span);
        match left.kind {
            ExpressionKind::Logical { operator: inner, mut operands } if inner == operator => {
                let depth = left.depth.max(right.depth.saturating_add(1));
                operands.push(right);
                Expression { kind: ExpressionKind::Logical { operator, operands }, span, depth }
            }
            kind => {
                let left = Expression { kind, ..left };
                Expression::new(ExpressionKind::Logical { operator, operands: vec![left, right] }, span)
            }
        }
    }
}

impl ExpressionKind {
    /// Calls `visit` with each direct part. Subqueries are not entered.
    pub fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&'a Expression)) {
        match self {
            ExpressionKind::Literal(_)
            | ExpressionKind::Parameter(_)
            | ExpressionKind::Name(_)
            | ExpressionKind::Subquery { .. } => {}
            ExpressionKind::Member { base, .. } => visit(base),
            ExpressionKind::Index { base, index } => {
                visit(base);
                visit(index);
            }
            ExpressionKind::Array(elements) | ExpressionKind::Logical { operands: elements, .. } => {
                elements.iter().for_each(visit);
            }
            ExpressionKind::Object(members) => members.iter().for_each(|(_, value)| visit(value)),
            ExpressionKind::Unary { operand, .. } => visit(operand),
            ExpressionKind::Binary { left, right, .. } => {
                visit(left);
                visit(right);
            }
            ExpressionKind::Conditional { condition, then, otherwise } => {
                visit(condition);
                visit(then);
                visit(otherwise);
            }
            ExpressionKind::In { needle, haystack, .. } => {
                visit(needle);
                haystack.iter().for_each(visit);
            }
            ExpressionKind::Between { value, low, high, .. } => {
                visit(value);
                visit(low);
                visit(high);
            }
            ExpressionKind::Like { value, pattern, .. } => {
                visit(value);
                visit(pattern);
            }
            ExpressionKind::Call { arguments, .. } => arguments.iter().for_each(visit),
        }
    }
}
