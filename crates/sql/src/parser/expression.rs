//! Parsing of expressions by operator precedence.
//!
//! Operators and open parentheses are pushed on an explicit stack, so that neither causes recursion.
//! Precedence is in one table: the constants below and [`infix`]; a higher power binds tighter.

use super::{Parser, within_depth};
use crate::ast::{BinaryOperator, Expression, ExpressionKind, LogicalOperator, UnaryOperator};
use crate::error::{SqlError, code};
use crate::token::{Span, Symbol, Token};
use crate::value::{Number, Value};

/// The power of parentheses, and of `?` before its `:`, past which nothing is reduced.
const BARRIER: u8 = 0;
/// The power of a conditional, `a ? b :`.
const CONDITIONAL_POWER: u8 = 1;
const OR_POWER: u8 = 3;
const AND_POWER: u8 = 4;
const NOT_POWER: u8 = 5;
/// The power of IN, BETWEEN and LIKE.
const MEMBERSHIP_POWER: u8 = 6;
/// The power of the prefix operators `+ - ~`.
const PREFIX_POWER: u8 = 15;

/// The infix operators that are symbols, and their powers.
fn infix(symbol: Symbol) -> Option<(BinaryOperator, u8)> {
    Some(match symbol {
        Symbol::Star => (BinaryOperator::Multiply, 14),
        Symbol::Slash => (BinaryOperator::Divide, 14),
        Symbol::Percent => (BinaryOperator::Modulo, 14),
        Symbol::Plus => (BinaryOperator::Add, 13),
        Symbol::Minus => (BinaryOperator::Subtract, 13),
        Symbol::Concat => (BinaryOperator::Concat, 12),
        Symbol::ShiftLeft => (BinaryOperator::ShiftLeft, 11),
        Symbol::ShiftRight => (BinaryOperator::ShiftRight, 11),
        Symbol::ShiftRightUnsigned => (BinaryOperator::ShiftRightUnsigned, 11),
        Symbol::And => (BinaryOperator::BitAnd, 10),
        Symbol::Xor => (BinaryOperator::BitXor, 9),
        Symbol::Or => (BinaryOperator::BitOr, 8),
        Symbol::Equal => (BinaryOperator::Equal, 7),
        Symbol::NotEqual | Symbol::NotEqualAngles => (BinaryOperator::NotEqual, 7),
        Symbol::Less => (BinaryOperator::Less, 7),
        Symbol::LessOrEqual => (BinaryOperator::LessOrEqual, 7),
        Symbol::Greater => (BinaryOperator::Greater, 7),
        Symbol::GreaterOrEqual => (BinaryOperator::GreaterOrEqual, 7),
        Symbol::Coalesce => (BinaryOperator::Coalesce, 2),
        _ => return None,
    })
}

/// An operator whose last operand is still to be parsed, or an open parenthesis.
enum Pending {
    Parenthesis,
    /// A conditional `a ?`, before the colon.
    Then,
    /// A conditional `a ? b :`, before the last operand.
    Otherwise,
    Prefix(UnaryOperator, Span),
    Infix(BinaryOperator, u8),
    Logical(LogicalOperator),
    /// A range test `a BETWEEN b`, before the AND.
    BetweenLow {
        negated: bool,
    },
    /// A range test `a BETWEEN b AND`, before the last operand.
    BetweenHigh {
        negated: bool,
    },
    Like {
        negated: bool,
        escape: Option<char>,
    },
}

impl Pending {
    fn power(&self) -> u8 {
        match self {
            Pending::Parenthesis | Pending::Then => BARRIER,
            Pending::Otherwise => CONDITIONAL_POWER,
            Pending::Prefix(UnaryOperator::Not, _) => NOT_POWER,
            Pending::Prefix(..) => PREFIX_POWER,
            Pending::Infix(_, power) => *power,
            Pending::Logical(LogicalOperator::And) => AND_POWER,
            Pending::Logical(LogicalOperator::Or) => OR_POWER,
            Pending::BetweenLow { .. } | Pending::BetweenHigh { .. } | Pending::Like { .. } => {
                MEMBERSHIP_POWER
            }
        }
    }
}

/// The parsed operands and the pending operators.
#[derive(Default)]
struct Stack {
    operands: Vec<Expression>,
    pending: Vec<Pending>,
}

/// What follows an operand.
enum AfterOperand {
    /// Another operand follows the operator.
    Operand,
    /// Another operator follows: the last one is complete.
    Operator,
    /// The expression ends here.
    End,
}

impl Parser {
    pub(super) fn expression(&mut self) -> Result<Expression, SqlError> {
        self.nested(Parser::operations)
    }

    /// One or more expressions between commas.
    pub(super) fn expressions(&mut self) -> Result<Vec<Expression>, SqlError> {
        let mut expressions = vec![self.expression()?];
        while self.eat(Symbol::Comma) {
            expressions.push(self.expression()?);
        }
        Ok(expressions)
    }

    /// Operands and the operators between them.
    fn operations(&mut self) -> Result<Expression, SqlError> {
        let mut stack = Stack::default();
        loop {
            self.prefixes(&mut stack);
            let operand = self.primary()?;
            let operand = self.postfix(operand)?;
            stack.operands.push(operand);
            loop {
                match self.operator(&mut stack)? {
                    AfterOperand::Operand => break,
                    AfterOperand::Operator => {}
                    AfterOperand::End => {
                        self.reduce(&mut stack, |_| true)?;
                        return Ok(stack.operands.pop().expect("an expression leaves its value"));
                    }
                }
            }
        }
    }

    /// Operators and opening parentheses before an operand.
    fn prefixes(&mut self, stack: &mut Stack) {
        loop {
            let operator = match self.token() {
                Token::Symbol(Symbol::Plus) => UnaryOperator::Plus,
                Token::Symbol(Symbol::Minus) => UnaryOperator::Minus,
                Token::Symbol(Symbol::Complement) => UnaryOperator::Complement,
                Token::Word(word) if word.eq_ignore_ascii_case("NOT") => UnaryOperator::Not,
                Token::Symbol(Symbol::OpenParenthesis) if !self.is_keyword_after(1, "SELECT") => {
                    stack.pending.push(Pending::Parenthesis);
                    self.advance();
                    continue;
                }
                _ => return,
            };
            stack.pending.push(Pending::Prefix(operator, self.span()));
            self.advance();
        }
    }

    /// The operator after an operand, if there is one.
    fn operator(&mut self, stack: &mut Stack) -> Result<AfterOperand, SqlError> {
        if let Token::Symbol(symbol) = self.token() {
            let Some((operator, power)) = infix(*symbol) else { return self.punctuation(stack) };
            self.reduce(stack, |waiting| waiting.power() >= power)?;
            stack.pending.push(Pending::Infix(operator, power));
            self.advance();
            return Ok(AfterOperand::Operand);
        }
        let Token::Word(_) = self.token() else { return Ok(self.no_operator()) };
        if self.is_keyword("AND") {
            self.and(stack)
        } else if self.is_keyword("OR") {
            self.reduce(stack, |waiting| waiting.power() >= OR_POWER)?;
            stack.pending.push(Pending::Logical(LogicalOperator::Or));
            self.advance();
            Ok(AfterOperand::Operand)
        } else if self.is_keyword("ESCAPE") {
            self.escape(stack)
        } else {
            self.membership(stack)
        }
    }

    /// `?`, `:` and `)`, if they belong to this expression.
    fn punctuation(&mut self, stack: &mut Stack) -> Result<AfterOperand, SqlError> {
        match self.token() {
            Token::Symbol(Symbol::Question) => {
                self.reduce(stack, |waiting| waiting.power() > CONDITIONAL_POWER)?;
                stack.pending.push(Pending::Then);
                self.advance();
                Ok(AfterOperand::Operand)
            }
            Token::Symbol(Symbol::Colon) => {
                self.reduce(stack, |waiting| waiting.power() > BARRIER)?;
                let Some(waiting @ Pending::Then) = stack.pending.last_mut() else {
                    return Ok(self.no_operator());
                };
                *waiting = Pending::Otherwise;
                self.advance();
                Ok(AfterOperand::Operand)
            }
            Token::Symbol(Symbol::CloseParenthesis) => {
                self.reduce(stack, |waiting| waiting.power() > BARRIER)?;
                let Some(Pending::Parenthesis) = stack.pending.last() else { return Ok(self.no_operator()) };
                stack.pending.pop();
                self.advance();
                let inner = stack.operands.pop().expect("a parenthesis holds an expression");
                let operand = self.postfix(inner)?;
                stack.operands.push(operand);
                Ok(AfterOperand::Operator)
            }
            _ => Ok(self.no_operator()),
        }
    }

    fn no_operator(&mut self) -> AfterOperand {
        self.note_expected("an operator");
        AfterOperand::End
    }

    fn and(&mut self, stack: &mut Stack) -> Result<AfterOperand, SqlError> {
        let waiting_between = |waiting: &Pending| matches!(waiting, Pending::BetweenLow { .. });
        let inside = stack.pending.iter().rev().take_while(|waiting| waiting.power() > BARRIER);
        if inside.into_iter().any(waiting_between) {
            self.reduce(stack, |waiting| !waiting_between(waiting))?;
            let Some(Pending::BetweenLow { negated }) = stack.pending.pop() else {
                unreachable!("reducing stops at the BETWEEN that is waiting for its AND");
            };
            stack.pending.push(Pending::BetweenHigh { negated });
        } else {
            self.reduce(stack, |waiting| waiting.power() >= AND_POWER)?;
            stack.pending.push(Pending::Logical(LogicalOperator::And));
        }
        self.advance();
        Ok(AfterOperand::Operand)
    }

    /// `[NOT] IN (…)`, `[NOT] BETWEEN` and `[NOT] LIKE` after an operand.
    fn membership(&mut self, stack: &mut Stack) -> Result<AfterOperand, SqlError> {
        let negated = self.is_keyword("NOT");
        let ahead = usize::from(negated);
        let is = |keyword| self.is_keyword_after(ahead, keyword);
        let (is_in, is_between, is_like) = (is("IN"), is("BETWEEN"), is("LIKE"));
        if !is_in && !is_between && !is_like {
            return Ok(self.no_operator());
        }
        self.reduce(stack, |waiting| waiting.power() >= MEMBERSHIP_POWER)?;
        (0..=ahead).for_each(|_| self.advance());
        if is_in {
            let needle = Box::new(stack.operands.pop().expect("an operator follows its operand"));
            self.expect(Symbol::OpenParenthesis)?;
            let haystack = self.expressions()?;
            self.expect(Symbol::CloseParenthesis)?;
            let span = needle.span().to(self.span_before());
            let kind = ExpressionKind::In { needle, haystack, negated };
            stack.operands.push(within_depth(Expression::new(kind, span))?);
            return Ok(AfterOperand::Operator);
        }
        stack.pending.push(if is_between {
            Pending::BetweenLow { negated }
        } else {
            Pending::Like { negated, escape: None }
        });
        Ok(AfterOperand::Operand)
    }

    /// The ESCAPE after a LIKE pattern.
    fn escape(&mut self, stack: &mut Stack) -> Result<AfterOperand, SqlError> {
        self.reduce(stack, |waiting| waiting.power() > MEMBERSHIP_POWER)?;
        let Some(Pending::Like { escape: escape @ None, .. }) = stack.pending.last_mut() else {
            return Err(self.unexpected());
        };
        self.advance();
        let character = match self.token() {
            Token::String(text) => {
                let mut characters = text.chars();
                characters.next().filter(|_| characters.next().is_none())
            }
            _ => {
                self.note_expected("a string");
                return Err(self.unexpected());
            }
        };
        let Some(character) = character else {
            let message = "the escape sequence of LIKE must be a string of exactly one character";
            return Err(SqlError::new(code::SYNTAX, self.span(), message));
        };
        *escape = Some(character);
        self.advance();
        Ok(AfterOperand::Operator)
    }

    /// Completes pending operators, the last one first, while `ready` returns true.
    fn reduce(&mut self, stack: &mut Stack, ready: impl Fn(&Pending) -> bool) -> Result<(), SqlError> {
        while let Some(operator) = stack.pending.pop_if(|waiting| ready(waiting)) {
            let mut operand = || stack.operands.pop().expect("every operator has its operands");
            let last = operand();
            let reduced = match operator {
                Pending::Parenthesis => {
                    self.note_expected(Symbol::CloseParenthesis.quoted());
                    return Err(self.unexpected());
                }
                Pending::Then => {
                    self.note_expected(Symbol::Colon.quoted());
                    return Err(self.unexpected());
                }
                Pending::Otherwise => {
                    let (then, condition) = (operand(), operand());
                    let span = condition.span().to(last.span());
                    let (condition, then, otherwise) = (Box::new(condition), Box::new(then), Box::new(last));
                    Expression::new(ExpressionKind::Conditional { condition, then, otherwise }, span)
                }
                Pending::Prefix(operator, start) => prefixed(operator, last, start),
                Pending::Infix(operator, _) => {
                    let left = operand();
                    let span = left.span().to(last.span());
                    let (left, right) = (Box::new(left), Box::new(last));
                    Expression::new(ExpressionKind::Binary { operator, left, right }, span)
                }
                Pending::Logical(operator) => Expression::chain(operator, operand(), last),
                Pending::BetweenLow { .. } => {
                    self.note_expected("AND");
                    return Err(self.unexpected());
                }
                Pending::BetweenHigh { negated } => {
                    let (low, value) = (operand(), operand());
                    let span = value.span().to(last.span());
                    let (value, low, high) = (Box::new(value), Box::new(low), Box::new(last));
                    Expression::new(ExpressionKind::Between { value, low, high, negated }, span)
                }
                Pending::Like { negated, escape } => {
                    let value = operand();
                    let span = value.span().to(last.span());
                    let (value, pattern) = (Box::new(value), Box::new(last));
                    Expression::new(ExpressionKind::Like { value, pattern, escape, negated }, span)
                }
            };
            stack.operands.push(within_depth(reduced)?);
        }
        Ok(())
    }
}

/// Applies a prefix operator; a number with a minus is a negative literal.
fn prefixed(operator: UnaryOperator, operand: Expression, start: Span) -> Expression {
    let span = start.to(operand.span());
    if let (UnaryOperator::Minus, ExpressionKind::Literal(Value::Number(number))) = (operator, operand.kind())
    {
        return Expression::new(ExpressionKind::Literal(Value::Number(negated(*number))), span);
    }
    Expression::new(ExpressionKind::Unary { operator, operand: Box::new(operand) }, span)
}

fn negated(number: Number) -> Number {
    const MAGNITUDE_OF_MIN: u64 = i64::MIN.unsigned_abs();
    match number {
        // Only a double has a negative zero.
        Number::Int(0) => Number::Float(-0.0),
        Number::Int(value) => value.checked_neg().map_or(Number::UInt(MAGNITUDE_OF_MIN), Number::Int),
        Number::UInt(MAGNITUDE_OF_MIN) => Number::Int(i64::MIN),
        other => Number::from_f64(-other.as_f64()),
    }
}
