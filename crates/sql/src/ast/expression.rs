//! Expressions of the AST.

use smol_str::SmolStr;

use super::Query;
use crate::token::Span;
use crate::value::Value;

/// An expression: its kind, its span in the query text, and its nesting depth.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    kind: ExpressionKind,
    span: Span,
    /// Nesting depth, this expression included. Stored so that recursive code knows in advance how much
    /// stack it needs.
    depth: u16,
}

/// The kind of an expression, with its operands.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpressionKind {
    /// A number, string, boolean, null or undefined.
    Literal(Value),
    /// A parameter `@name`; the name is stored without the sign.
    Parameter(SmolStr),
    /// The alias of a source.
    Name(SmolStr),
    /// A property access, `base.name` or `base["name"]`.
    Member {
        /// The object that has the property.
        base: Box<Expression>,
        /// The name of the property.
        name: SmolStr,
        /// The notation, with a dot or brackets.
        form: MemberNotation,
    },
    /// An index access `base[index]`, where the index is not a string literal.
    Index {
        /// The array or object that is indexed.
        base: Box<Expression>,
        /// The index, a number or a string.
        index: Box<Expression>,
    },
    /// An array constructor, `[a, b]`.
    Array(Vec<Expression>),
    /// An object constructor, `{"a": b}`.
    Object(Vec<(SmolStr, Expression)>),
    /// A unary operation such as `-a`; a literal with a minus is a literal.
    Unary {
        /// The operator of the operation.
        operator: UnaryOperator,
        /// The operand of the operation.
        operand: Box<Expression>,
    },
    /// A binary operation such as `a + b`.
    Binary {
        /// The operator of the operation.
        operator: BinaryOperator,
        /// The left operand of the operation.
        left: Box<Expression>,
        /// The right operand of the operation.
        right: Box<Expression>,
    },
    /// A chain `a AND b AND c`, as one node, so that a long chain is not deeply nested.
    Logical {
        /// The operator: AND or OR.
        operator: LogicalOperator,
        /// The operands, at least two; the first is never a chain of the same operator.
        operands: Vec<Expression>,
    },
    /// A conditional, `condition ? then : otherwise`.
    Conditional {
        /// The condition that selects the value.
        condition: Box<Expression>,
        /// The value if the condition is true.
        then: Box<Expression>,
        /// The value if the condition is not true.
        otherwise: Box<Expression>,
    },
    /// A membership test, `needle [NOT] IN (…)`.
    In {
        /// The value that is looked for.
        needle: Box<Expression>,
        /// The values among which it is looked for.
        haystack: Vec<Expression>,
        /// Whether NOT was written.
        negated: bool,
    },
    /// A range test, `value [NOT] BETWEEN low AND high`.
    Between {
        /// The value that is tested.
        value: Box<Expression>,
        /// The lower bound, inclusive.
        low: Box<Expression>,
        /// The upper bound, inclusive.
        high: Box<Expression>,
        /// Whether NOT was written.
        negated: bool,
    },
    /// A pattern match, `value [NOT] LIKE pattern [ESCAPE 'x']`.
    Like {
        /// The value that is matched.
        value: Box<Expression>,
        /// The pattern of the match.
        pattern: Box<Expression>,
        /// The character that makes the next one literal.
        escape: Option<char>,
        /// Whether NOT was written.
        negated: bool,
    },
    /// A function call, `NAME(…)` or `udf.name(…)`.
    Call {
        /// The name of the function as it was written.
        name: FunctionName,
        /// The arguments, in order.
        arguments: Vec<Expression>,
        /// Whether `udf.` was written before the name.
        user_defined: bool,
    },
    /// A subquery used as a value.
    Subquery {
        /// How the rows become one value.
        form: SubqueryKind,
        /// The subquery that returns the rows.
        query: Box<Query>,
    },
}

/// The name of a function as it was written; comparisons ignore case.
#[derive(Clone, Debug, Eq)]
pub struct FunctionName(pub SmolStr);

impl PartialEq for FunctionName {
    fn eq(&self, other: &FunctionName) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

/// The notation of a property access, which rewritten queries preserve. Like spans, all notations compare
/// equal: `c.a` and `c["a"]` are the same expression.
#[derive(Clone, Copy, Debug)]
pub enum MemberNotation {
    /// The notation with a dot, `.name`.
    Dot,
    /// The notation with brackets, `["name"]`.
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
    /// The value of the only row.
    Scalar,
    /// Whether there is any row.
    Exists,
    /// All rows, as an array.
    Array,
    /// Whether every row is true.
    All,
    /// The value of the first row.
    First,
    /// The value of the last row.
    Last,
}

/// An operator with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOperator {
    /// The operator `+`, which keeps a number.
    Plus,
    /// The operator `-`, which negates a number.
    Minus,
    /// The operator `~`, which inverts bits.
    Complement,
    /// The operator `NOT`, which inverts a boolean.
    Not,
}

/// An operator with two operands, except AND and OR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOperator {
    /// The operator `*`, which multiplies two numbers.
    Multiply,
    /// The operator `/`, which divides two numbers.
    Divide,
    /// The operator `%`, which gives the remainder of a division.
    Modulo,
    /// The operator `+`, which adds two numbers.
    Add,
    /// The operator `-`, which subtracts two numbers.
    Subtract,
    /// The string concatenation operator `||`.
    Concat,
    /// The operator `<<`, which shifts bits to the left.
    ShiftLeft,
    /// The operator `>>`, which shifts bits to the right and keeps the sign.
    ShiftRight,
    /// The operator `>>>`, which shifts bits to the right and fills with zeros.
    ShiftRightUnsigned,
    /// The operator `&`, which combines bits with AND.
    BitAnd,
    /// The operator `^`, which combines bits with XOR.
    BitXor,
    /// The operator `|`, which combines bits with OR.
    BitOr,
    /// The operator `=`, which compares for equality.
    Equal,
    /// The comparison operator `!=`, also written `<>`.
    NotEqual,
    /// The operator `<`, which compares for less.
    Less,
    /// The operator `<=`, which compares for less or equal.
    LessOrEqual,
    /// The operator `>`, which compares for greater.
    Greater,
    /// The operator `>=`, which compares for greater or equal.
    GreaterOrEqual,
    /// The operator `??`, which gives the right operand if the left one is undefined.
    Coalesce,
}

/// A logical operator with two or more operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogicalOperator {
    /// True if every operand is true.
    And,
    /// True if any operand is true.
    Or,
}

impl UnaryOperator {
    /// The operator as SQL text.
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
    /// The operator as SQL text.
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
    /// The operator as SQL text.
    pub fn text(self) -> &'static str {
        match self {
            LogicalOperator::And => "AND",
            LogicalOperator::Or => "OR",
        }
    }
}

impl Expression {
    /// An expression of this kind; computes its depth.
    pub fn new(kind: ExpressionKind, span: Span) -> Expression {
        let mut below = 0;
        kind.for_each_child(&mut |child| below = below.max(child.depth));
        if let ExpressionKind::Subquery { query, .. } = &kind {
            below = below.max(query.depth());
        }
        Expression { kind, span, depth: below.saturating_add(1) }
    }

    /// The kind of the expression.
    pub fn kind(&self) -> &ExpressionKind {
        &self.kind
    }

    /// Takes the kind out of the expression.
    pub fn into_kind(self) -> ExpressionKind {
        self.kind
    }

    /// The span of the expression in the query text.
    pub fn span(&self) -> Span {
        self.span
    }

    /// The nesting depth, this expression included.
    pub fn depth(&self) -> u16 {
        self.depth
    }

    /// A chain of AND or OR; a left operand that is a chain of the same operator is extended.
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
    /// Calls `visit` with each direct operand. Subqueries are not visited.
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
