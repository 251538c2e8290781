//! Evaluation of bound expressions and pipelines over rows.
//!
//! Existing values (a property of a document, a constant) are borrowed, so that filtering a row allocates
//! nothing. An expression never fails: if it has no value, it is undefined. The few errors are recorded in
//! the [`EvaluationContext`], which is checked between rows.

mod operators; // arithmetic, comparison and logic
mod pipeline; // queries over rows

use std::borrow::Cow;
use std::cell::RefCell;

pub use pipeline::{InputDemand, UnmergedRow};
pub(crate) use pipeline::{PipelineState, Ranking, for_each_row, project_row};

use crate::ast::{BinaryOperator, UnaryOperator};
use crate::bound::{BoundExpression, BoundStep};
use crate::context::{QueryContext, QuerySchema};
use crate::error::SqlError;
use crate::functions::{Function, FunctionContext};
use crate::like::LikePattern;
use crate::value::{Value, deep_equal};
use crate::work_budget::WorkBudget;
use pipeline::subquery_value;

/// The values of the sources while a row is evaluated: a linked list with one frame per source, innermost
/// first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    outer: Option<&'a Frame<'a>>,
    binding: Binding<'a>,
}

/// The content of one frame.
#[derive(Clone, Copy, Debug)]
enum Binding<'a> {
    /// The outermost frame, which holds nothing.
    Nothing,
    /// The row of a source.
    Value(&'a Value),
    /// A group and its aggregates.
    Group { keys: &'a [Value], aggregates: &'a [Value] },
}

impl<'a> Frame<'a> {
    /// The outermost frame, which holds nothing.
    pub(crate) const ROOT: Frame<'static> = Frame { outer: None, binding: Binding::Nothing };

    /// Adds a frame that holds the row of a source.
    pub(crate) fn with(outer: &'a Frame<'a>, value: &'a Value) -> Frame<'a> {
        Frame { outer: Some(outer), binding: Binding::Value(value) }
    }

    /// Adds a frame that holds a group.
    pub(crate) fn with_group(outer: &'a Frame<'a>, keys: &'a [Value], aggregates: &'a [Value]) -> Frame<'a> {
        Frame { outer: Some(outer), binding: Binding::Group { keys, aggregates } }
    }

    fn binding(&self, up: usize) -> Binding<'a> {
        let mut frame = *self;
        for _ in 0..up {
            let Some(outer) = frame.outer else { return Binding::Nothing };
            frame = *outer;
        }
        frame.binding
    }

    fn value(&self, up: usize) -> &'a Value {
        match self.binding(up) {
            Binding::Value(value) => value,
            Binding::Nothing | Binding::Group { .. } => &Value::Undefined,
        }
    }
}

/// The state of an execution that evaluation uses besides the row.
#[derive(Debug)]
pub(crate) struct EvaluationContext<'a> {
    /// The context of built-in functions.
    pub(crate) functions: FunctionContext<'a>,
    failure: RefCell<Option<Box<SqlError>>>,
}

impl<'a> EvaluationContext<'a> {
    /// The context of one execution.
    pub(crate) fn new(context: QueryContext, schema: &'a QuerySchema) -> EvaluationContext<'a> {
        EvaluationContext { functions: FunctionContext::new(context, schema), failure: RefCell::new(None) }
    }

    /// Records an error. Only the first one is kept.
    pub(crate) fn fail(&self, error: SqlError) {
        self.failure.borrow_mut().get_or_insert_with(|| Box::new(error));
    }

    /// Returns the recorded error, if there is one.
    pub(crate) fn check(&self) -> Result<(), SqlError> {
        match &*self.failure.borrow() {
            Some(error) => Err((**error).clone()),
            None => self.budget().check(),
        }
    }

    /// The work budget of the execution.
    pub(crate) fn budget(&self) -> &WorkBudget {
        &self.functions.budget
    }
}

impl BoundExpression {
    /// Evaluates the expression for one row.
    pub(crate) fn evaluate<'a>(
        &'a self,
        frame: &'a Frame<'a>,
        context: &EvaluationContext<'_>,
    ) -> Cow<'a, Value> {
        match self {
            BoundExpression::Constant(value) => Cow::Borrowed(value),
            BoundExpression::Source { up } => Cow::Borrowed(frame.value(*up)),
            BoundExpression::Path { up, steps } => Cow::Borrowed(walk(frame.value(*up), steps)),
            BoundExpression::Member { base, name } => match base.evaluate(frame, context) {
                Cow::Borrowed(base) => Cow::Borrowed(base.member(name)),
                Cow::Owned(base) => Cow::Owned(base.member(name).clone()),
            },
            BoundExpression::Index { base, index } => {
                let index = index.evaluate(frame, context);
                match base.evaluate(frame, context) {
                    Cow::Borrowed(base) => Cow::Borrowed(operators::index(base, &index)),
                    Cow::Owned(base) => Cow::Owned(operators::index(&base, &index).clone()),
                }
            }
            BoundExpression::GroupKey { up, index } => match frame.binding(*up) {
                Binding::Group { keys, .. } => Cow::Borrowed(&keys[*index]),
                _ => Cow::Owned(Value::Undefined),
            },
            BoundExpression::Aggregate { up, index } => match frame.binding(*up) {
                Binding::Group { aggregates, .. } => Cow::Borrowed(&aggregates[*index]),
                _ => Cow::Owned(Value::Undefined),
            },
            BoundExpression::Binary { operator: BinaryOperator::Coalesce, left, right } => {
                let left = left.evaluate(frame, context);
                if left.is_defined() { left } else { right.evaluate(frame, context) }
            }
            BoundExpression::Conditional(parts) => {
                let [condition, then, otherwise] = &**parts;
                let chosen = if condition.is_true(frame, context) { then } else { otherwise };
                chosen.evaluate(frame, context)
            }
            computed => Cow::Owned(computed.compute(frame, context)),
        }
    }

    /// Whether the value is exactly `true`.
    pub(crate) fn is_true(&self, frame: &Frame<'_>, context: &EvaluationContext<'_>) -> bool {
        match self {
            BoundExpression::And(operands) => {
                context.budget().spend(self.width())
                    && operands.iter().all(|operand| operand.is_true(frame, context))
            }
            BoundExpression::Alternatives(alternatives) => {
                let candidates = alternatives.candidates(&alternatives.selector().evaluate(frame, context));
                context.budget().spend(1 + candidates.clone().count() as u64)
                    && candidates.into_iter().any(|operand| operand.is_true(frame, context))
            }
            _ => self.evaluate(frame, context).is_true(),
        }
    }

    /// The work units of the expression itself: one, plus one per operand.
    fn width(&self) -> u64 {
        let parts = match self {
            BoundExpression::Array(parts) | BoundExpression::And(parts) | BoundExpression::Or(parts) => {
                parts.len()
            }
            // A property also stores its name, so it counts twice.
            BoundExpression::Object(members) => 4 + 2 * members.len(),
            BoundExpression::In { haystack, .. } => haystack.len(),
            BoundExpression::Call { arguments, .. } => arguments.len(),
            _ => 0,
        };
        1 + parts as u64
    }

    /// Evaluates an expression whose value must be computed rather than borrowed.
    fn compute(&self, frame: &Frame<'_>, context: &EvaluationContext<'_>) -> Value {
        if !context.budget().spend(self.width()) {
            return Value::Undefined;
        }
        match self {
            BoundExpression::Array(elements) => {
                Value::array(elements.iter().map(|element| element.evaluate(frame, context).into_owned()))
            }
            BoundExpression::Object(members) => Value::object(
                members
                    .iter()
                    .map(|(name, value)| (name.clone(), value.evaluate(frame, context).into_owned())),
            ),
            BoundExpression::Unary { operator, operand } => {
                let operand = operand.evaluate(frame, context);
                match operator {
                    UnaryOperator::Not => operators::not(&operand),
                    UnaryOperator::Plus => operators::plus(&operand),
                    UnaryOperator::Minus => operators::minus(&operand),
                    UnaryOperator::Complement => operators::complement(&operand),
                }
            }
            BoundExpression::Binary { operator, left, right } => {
                let (left, right) = (left.evaluate(frame, context), right.evaluate(frame, context));
                context.budget().spend_on_operands(&left, &right);
                operators::binary(*operator, &left, &right)
            }
            BoundExpression::And(operands) => logical(operands, false, frame, context),
            BoundExpression::Or(operands) => logical(operands, true, frame, context),
            BoundExpression::Alternatives(alternatives) => {
                let selected = alternatives.selector().evaluate(frame, context);
                if selected.is_defined() {
                    let candidates = alternatives.candidates(&selected);
                    context.budget().spend(candidates.clone().count() as u64);
                    return logical(candidates, true, frame, context);
                }
                context.budget().spend(alternatives.operands().len() as u64);
                logical(alternatives.operands(), true, frame, context)
            }
            BoundExpression::In { needle, haystack, negated } => {
                let needle = needle.evaluate(frame, context);
                if !needle.is_defined() {
                    return Value::Undefined;
                }
                let found =
                    haystack.iter().any(|element| deep_equal(&needle, &element.evaluate(frame, context)));
                Value::Bool(found != *negated)
            }
            BoundExpression::InConstants { needle, haystack, negated } => {
                let needle = needle.evaluate(frame, context);
                if !needle.is_defined() {
                    return Value::Undefined;
                }
                Value::Bool(haystack.contains(&needle) != *negated)
            }
            BoundExpression::Between { operands, negated } => {
                let [value, low, high] = &**operands;
                let value = value.evaluate(frame, context);
                let inside = operators::and(
                    &operators::binary(BinaryOperator::GreaterOrEqual, &value, &low.evaluate(frame, context)),
                    &operators::binary(BinaryOperator::LessOrEqual, &value, &high.evaluate(frame, context)),
                );
                if *negated { operators::not(&inside) } else { inside }
            }
            BoundExpression::Like { value, pattern, escape, negated } => {
                match (&*value.evaluate(frame, context), &*pattern.evaluate(frame, context)) {
                    (Value::String(text), Value::String(pattern)) => {
                        if !context.budget().spend(like_units(text, pattern.len())) {
                            return Value::Undefined;
                        }
                        Value::Bool(LikePattern::new(pattern, *escape).matches(text) != *negated)
                    }
                    _ => Value::Undefined,
                }
            }
            BoundExpression::LikeConstant { value, pattern, negated } => {
                match &*value.evaluate(frame, context) {
                    Value::String(text) => {
                        if !context.budget().spend(like_units(text, pattern.elements_len())) {
                            return Value::Undefined;
                        }
                        Value::Bool(pattern.matches(text) != *negated)
                    }
                    _ => Value::Undefined,
                }
            }
            BoundExpression::Call { function, arguments } => call(function, arguments, frame, context),
            BoundExpression::Subquery { form, pipeline, span } => {
                subquery_value(*form, (pipeline, *span), frame, context)
            }
            BoundExpression::Failure(error) => {
                context.fail((**error).clone());
                Value::Undefined
            }
            borrowed => unreachable!("{borrowed:?} borrows its value"),
        }
    }
}

/// The work units of a LIKE match, whose pattern is tried at every position of the text at worst.
fn like_units(text: &str, pieces: usize) -> u64 {
    (text.len() as u64).saturating_mul(1 + pieces as u64) / 64
}

fn walk<'a>(value: &'a Value, steps: &[BoundStep]) -> &'a Value {
    steps.iter().fold(value, |value, step| match step {
        BoundStep::Name(name) => value.member(name),
        BoundStep::Index(index) => value.element(*index),
    })
}

/// Evaluates a chain of AND (`decisive` is `false`) or OR (`decisive` is `true`): one decisive operand
/// decides; otherwise the result is undefined if any operand is not a boolean.
fn logical<'a>(
    operands: impl IntoIterator<Item = &'a BoundExpression>,
    decisive: bool,
    frame: &Frame<'_>,
    context: &EvaluationContext<'_>,
) -> Value {
    let mut all_booleans = true;
    for operand in operands {
        match &*operand.evaluate(frame, context) {
            Value::Bool(value) if *value == decisive => return Value::Bool(decisive),
            Value::Bool(_) => {}
            _ => all_booleans = false,
        }
    }
    if all_booleans { Value::Bool(!decisive) } else { Value::Undefined }
}

/// Calls a function. Most functions take one to three arguments, for which no vector is allocated.
fn call(
    function: &Function,
    arguments: &[BoundExpression],
    frame: &Frame<'_>,
    context: &EvaluationContext<'_>,
) -> Value {
    let value = |expression: &BoundExpression| {
        let value = expression.evaluate(frame, context).into_owned();
        context.budget().spend_on_scan(&value, function.weight());
        value
    };
    let result = match arguments {
        [] => (function.call)(&[], &context.functions),
        [first] => (function.call)(&[value(first)], &context.functions),
        [first, second] => (function.call)(&[value(first), value(second)], &context.functions),
        [first, second, third] => {
            (function.call)(&[value(first), value(second), value(third)], &context.functions)
        }
        many => (function.call)(&many.iter().map(value).collect::<Vec<_>>(), &context.functions),
    };
    context.budget().spend_on_scan(&result, 1);
    result
}
