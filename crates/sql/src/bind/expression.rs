//! Binding of expressions, by kind.

use smol_str::SmolStr;

use super::Binder;
use super::query::QueryPosition;
use super::scope::Resolution;
use crate::ast::{Expression, ExpressionKind, LogicalOperator, print_expression};
use crate::bound::{Alternatives, BoundExpression, BoundStep, ConstantSet};
use crate::error::{SqlError, code};
use crate::evaluate::Frame;
use crate::like::LikePattern;
use crate::token::Span;
use crate::value::Value;

impl Binder<'_> {
    pub(super) fn expression(&mut self, expression: &Expression) -> Result<BoundExpression, SqlError> {
        self.any_expression(expression).map_err(|error| match expression.kind() {
            // The error names the whole path rather than only its first name.
            ExpressionKind::Member { .. } if error.code == code::NEITHER_GROUPED_NOR_AGGREGATED => {
                not_grouped(&print_expression(expression), expression.span())
            }
            _ => error,
        })
    }

    fn any_expression(&mut self, expression: &Expression) -> Result<BoundExpression, SqlError> {
        if let Some(key) = self.scopes.group_key(expression) {
            return Ok(key);
        }
        let span = expression.span();
        let bound = match expression.kind() {
            ExpressionKind::Literal(value) => return Ok(BoundExpression::Constant(value.clone())),
            ExpressionKind::Parameter(name) => return self.bind_parameter(name, span),
            ExpressionKind::Name(name) => return self.name(name, span),
            ExpressionKind::Member { base, name, .. } => return self.member(base, name),
            ExpressionKind::Index { base, index } => return self.index(base, index),
            ExpressionKind::Call { name, arguments, user_defined } => {
                return self.call((&name.0, *user_defined), arguments, span);
            }
            ExpressionKind::Subquery { form, query } => {
                self.check_subquery(query)?;
                let pipeline = Box::new(self.query(query, QueryPosition::Nested)?);
                return Ok(BoundExpression::Subquery { form: *form, pipeline, span });
            }
            ExpressionKind::Array(elements) => BoundExpression::Array(self.all(elements)?),
            ExpressionKind::Object(members) => BoundExpression::Object(
                members
                    .iter()
                    .map(|(name, value)| Ok((name.clone(), self.expression(value)?)))
                    .collect::<Result<_, SqlError>>()?,
            ),
            ExpressionKind::Unary { operator, operand } => {
                BoundExpression::Unary { operator: *operator, operand: self.boxed(operand)? }
            }
            ExpressionKind::Binary { operator, left, right } => BoundExpression::Binary {
                operator: *operator,
                left: self.boxed(left)?,
                right: self.boxed(right)?,
            },
            ExpressionKind::Logical { operator, operands } => {
                let operands = self.all(operands)?;
                match operator {
                    LogicalOperator::And => BoundExpression::And(operands),
                    LogicalOperator::Or => match Alternatives::new(operands) {
                        Ok(alternatives) => BoundExpression::Alternatives(Box::new(alternatives)),
                        Err(operands) => BoundExpression::Or(operands),
                    },
                }
            }
            ExpressionKind::Conditional { condition, then, otherwise } => {
                let parts =
                    [self.expression(condition)?, self.expression(then)?, self.expression(otherwise)?];
                BoundExpression::Conditional(Box::new(parts))
            }
            ExpressionKind::In { needle, haystack, negated } => {
                self.membership(needle, haystack, *negated)?
            }
            ExpressionKind::Between { value, low, high, negated } => {
                let operands = [self.expression(value)?, self.expression(low)?, self.expression(high)?];
                BoundExpression::Between { operands: Box::new(operands), negated: *negated }
            }
            ExpressionKind::Like { value, pattern, escape, negated } => {
                let (value, pattern) = (self.boxed(value)?, self.boxed(pattern)?);
                match pattern.as_constant() {
                    Some(Value::String(text)) => BoundExpression::LikeConstant {
                        value,
                        pattern: LikePattern::new(text, *escape),
                        negated: *negated,
                    },
                    _ => BoundExpression::Like { value, pattern, escape: *escape, negated: *negated },
                }
            }
        };
        Ok(self.folded(bound))
    }

    fn boxed(&mut self, expression: &Expression) -> Result<Box<BoundExpression>, SqlError> {
        self.expression(expression).map(Box::new)
    }

    pub(super) fn all(&mut self, expressions: &[Expression]) -> Result<Box<[BoundExpression]>, SqlError> {
        expressions.iter().map(|expression| self.expression(expression)).collect()
    }

    /// Replaces an expression that gives the same value for every row of every execution by a constant.
    pub(super) fn folded(&self, code: BoundExpression) -> BoundExpression {
        let varies = code.any(&|part| match part {
            BoundExpression::Source { .. }
            | BoundExpression::Path { .. }
            | BoundExpression::Subquery { .. }
            | BoundExpression::GroupKey { .. }
            | BoundExpression::Aggregate { .. }
            | BoundExpression::Failure(_) => true,
            BoundExpression::Call { function, .. } => !function.is_pure(),
            _ => false,
        });
        if varies {
            code
        } else {
            BoundExpression::Constant(code.evaluate(&Frame::ROOT, &self.context).into_owned())
        }
    }

    fn name(&mut self, name: &SmolStr, span: Span) -> Result<BoundExpression, SqlError> {
        match self.scopes.find(name) {
            Resolution::Source { up, .. } => Ok(BoundExpression::Source { up }),
            Resolution::Grouped => Err(not_grouped(name, span)),
            Resolution::Unknown => match name.as_str() {
                "NaN" => Ok(BoundExpression::Constant(Value::from(f64::NAN))),
                "Infinity" => Ok(BoundExpression::Constant(Value::from(f64::INFINITY))),
                _ => {
                    let message = format!("Identifier '{name}' could not be resolved.");
                    Err(SqlError::new(code::UNKNOWN_NAME, span, message))
                }
            },
        }
    }

    fn member(&mut self, base: &Expression, name: &SmolStr) -> Result<BoundExpression, SqlError> {
        if let Some(computed) = self.computed_property(base, name)? {
            return Ok(computed);
        }
        let base = self.expression(base)?;
        Ok(self.step(base, BoundStep::Name(name.clone())))
    }

    fn index(&mut self, base: &Expression, index: &Expression) -> Result<BoundExpression, SqlError> {
        let index = self.expression(index)?;
        match index.as_constant() {
            Some(Value::String(name)) => {
                let name = name.clone();
                self.member(base, &name)
            }
            Some(Value::Number(number)) if number.as_i64().is_some_and(|index| index >= 0) => {
                let at = number.as_i64().and_then(|index| usize::try_from(index).ok()).unwrap_or(usize::MAX);
                let base = self.expression(base)?;
                Ok(self.step(base, BoundStep::Index(at)))
            }
            _ => {
                let base = self.boxed(base)?;
                Ok(self.folded(BoundExpression::Index { base, index: Box::new(index) }))
            }
        }
    }

    /// Adds one step to a path, or to any other value.
    fn step(&self, base: BoundExpression, step: BoundStep) -> BoundExpression {
        match (base, step) {
            (BoundExpression::Source { up }, step) => BoundExpression::Path { up, steps: vec![step] },
            (BoundExpression::Path { up, mut steps }, step) => {
                steps.push(step);
                BoundExpression::Path { up, steps }
            }
            (base, BoundStep::Name(name)) => {
                self.folded(BoundExpression::Member { base: Box::new(base), name })
            }
            (base, BoundStep::Index(index)) => {
                let index = BoundExpression::Constant(Value::from(i64::try_from(index).unwrap_or(i64::MAX)));
                self.folded(BoundExpression::Index { base: Box::new(base), index: Box::new(index) })
            }
        }
    }

    /// `c.name` where `c` is a whole document and `name` is a computed property. A computed property sees
    /// stored properties only, so that two of them cannot refer to each other endlessly.
    fn computed_property(
        &mut self,
        base: &Expression,
        name: &SmolStr,
    ) -> Result<Option<BoundExpression>, SqlError> {
        let ExpressionKind::Name(alias) = base.kind() else { return Ok(None) };
        let Resolution::Source { up, is_document: true } = self.scopes.find(alias) else { return Ok(None) };
        let Some(at) = self.computed.iter().position(|computed| computed.name == *name) else {
            return Ok(None);
        };
        let value = self.computed[at].value.clone();
        let entries = self.scopes.enter_computed(up, &self.computed[at].alias);
        let group_around = self.scopes.group_at.take();
        let bound = self.expression(&value);
        self.scopes.leave_computed(entries);
        self.scopes.group_at = group_around;
        bound.map(Some)
    }

    fn membership(
        &mut self,
        needle: &Expression,
        haystack: &[Expression],
        negated: bool,
    ) -> Result<BoundExpression, SqlError> {
        let needle = self.boxed(needle)?;
        let haystack = self.all(haystack)?;
        if haystack.iter().all(|element| element.as_constant().is_some()) {
            let constants = haystack.iter().filter_map(BoundExpression::as_constant).cloned().collect();
            return Ok(BoundExpression::InConstants {
                needle,
                haystack: ConstantSet::new(constants),
                negated,
            });
        }
        Ok(BoundExpression::In { needle, haystack, negated })
    }
}

fn not_grouped(what: &str, span: Span) -> SqlError {
    let message = format!(
        "Property reference '{what}' is invalid in the select list because it is not contained in either an \
         aggregate function or the GROUP BY clause."
    );
    SqlError::new(code::NEITHER_GROUPED_NOR_AGGREGATED, span, message)
}
