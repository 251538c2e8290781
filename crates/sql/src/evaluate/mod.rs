//! Compiled expression and frames to value.
//!
//! Values that already exist (a member of a document, a constant) are borrowed, so that filtering a
//! row allocates nothing. An expression never stops a run half way: something that has no value is
//! undefined, and the few things that are errors leave a note in [`World`], which the run reads
//! between rows.

mod operators;

use std::borrow::Cow;
use std::cell::RefCell;

use crate::ast::{BinaryOperator, UnaryOperator};
use crate::bound::{Code, Step};
use crate::context::{QueryContext, QuerySchema};
use crate::error::SqlError;
use crate::execution::subquery_value;
use crate::functions::{Environment, Function};
use crate::like::LikePattern;
use crate::value::{Value, deep_equal};
use crate::work_budget::Effort;

/// What names stand for while a row is evaluated: one link per source, innermost first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    outer: Option<&'a Frame<'a>>,
    binding: Binding<'a>,
}

/// What one link holds.
#[derive(Clone, Copy, Debug)]
enum Binding<'a> {
    /// Outside of everything.
    Nothing,
    /// The row of a source.
    Value(&'a Value),
    /// A group and its aggregates.
    Group { keys: &'a [Value], aggregates: &'a [Value] },
}

impl<'a> Frame<'a> {
    /// Outside of everything.
    pub(crate) const ROOT: Frame<'static> = Frame { outer: None, binding: Binding::Nothing };

    /// `outer` with one more source bound to `value`.
    pub(crate) fn with(outer: &'a Frame<'a>, value: &'a Value) -> Frame<'a> {
        Frame { outer: Some(outer), binding: Binding::Value(value) }
    }

    /// `outer` with a group.
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

/// Everything besides the row that evaluation may use.
#[derive(Debug)]
pub(crate) struct World<'a> {
    /// For built-in functions.
    pub(crate) functions: Environment<'a>,
    failure: RefCell<Option<Box<SqlError>>>,
}

impl<'a> World<'a> {
    /// The world of one run.
    pub(crate) fn new(context: QueryContext, schema: &'a QuerySchema) -> World<'a> {
        World { functions: Environment::new(context, schema), failure: RefCell::new(None) }
    }

    /// Notes that the run cannot succeed. The first note stays.
    pub(crate) fn fail(&self, error: SqlError) {
        self.failure.borrow_mut().get_or_insert_with(|| Box::new(error));
    }

    /// The note, if there is one.
    pub(crate) fn check(&self) -> Result<(), SqlError> {
        match &*self.failure.borrow() {
            Some(error) => Err((**error).clone()),
            None => self.effort().check(),
        }
    }

    /// What the run has done and may still do.
    pub(crate) fn effort(&self) -> &Effort {
        &self.functions.effort
    }
}

impl Code {
    /// The value for one row.
    pub(crate) fn evaluate<'a>(&'a self, frame: &'a Frame<'a>, world: &World<'_>) -> Cow<'a, Value> {
        match self {
            Code::Constant(value) => Cow::Borrowed(value),
            Code::Source { up } => Cow::Borrowed(frame.value(*up)),
            Code::Path { up, steps } => Cow::Borrowed(walk(frame.value(*up), steps)),
            Code::Member { base, name } => match base.evaluate(frame, world) {
                Cow::Borrowed(base) => Cow::Borrowed(base.member(name)),
                Cow::Owned(base) => Cow::Owned(base.member(name).clone()),
            },
            Code::Index { base, index } => {
                let index = index.evaluate(frame, world);
                match base.evaluate(frame, world) {
                    Cow::Borrowed(base) => Cow::Borrowed(operators::index(base, &index)),
                    Cow::Owned(base) => Cow::Owned(operators::index(&base, &index).clone()),
                }
            }
            Code::GroupKey { up, index } => match frame.binding(*up) {
                Binding::Group { keys, .. } => Cow::Borrowed(&keys[*index]),
                _ => Cow::Owned(Value::Undefined),
            },
            Code::Aggregate { up, index } => match frame.binding(*up) {
                Binding::Group { aggregates, .. } => Cow::Borrowed(&aggregates[*index]),
                _ => Cow::Owned(Value::Undefined),
            },
            Code::Binary { operator: BinaryOperator::Coalesce, left, right } => {
                let left = left.evaluate(frame, world);
                if left.is_defined() { left } else { right.evaluate(frame, world) }
            }
            Code::Conditional(parts) => {
                let [condition, then, otherwise] = &**parts;
                let chosen = if condition.is_true(frame, world) { then } else { otherwise };
                chosen.evaluate(frame, world)
            }
            computed => Cow::Owned(computed.compute(frame, world)),
        }
    }

    /// Whether the value is exactly `true`.
    pub(crate) fn is_true(&self, frame: &Frame<'_>, world: &World<'_>) -> bool {
        self.evaluate(frame, world).is_true()
    }

    /// How many parts are evaluated to get the value, at least one.
    fn width(&self) -> u64 {
        let parts = match self {
            Code::Array(parts) | Code::And(parts) | Code::Or(parts) => parts.len(),
            // A member is stored under its name, and takes twice the room.
            Code::Object(members) => 4 + 2 * members.len(),
            Code::In { haystack, .. } => haystack.len(),
            Code::Call { arguments, .. } => arguments.len(),
            _ => 0,
        };
        1 + parts as u64
    }

    /// The value for one row, of expressions that make a new one.
    fn compute(&self, frame: &Frame<'_>, world: &World<'_>) -> Value {
        if !world.effort().spend(self.width()) {
            return Value::Undefined;
        }
        match self {
            Code::Array(elements) => {
                Value::array(elements.iter().map(|element| element.evaluate(frame, world).into_owned()))
            }
            Code::Object(members) => Value::object(
                members.iter().map(|(name, value)| (name.clone(), value.evaluate(frame, world).into_owned())),
            ),
            Code::Unary { operator, operand } => {
                let operand = operand.evaluate(frame, world);
                match operator {
                    UnaryOperator::Not => operators::not(&operand),
                    UnaryOperator::Plus => operators::plus(&operand),
                    UnaryOperator::Minus => operators::minus(&operand),
                    UnaryOperator::Complement => operators::complement(&operand),
                }
            }
            Code::Binary { operator, left, right } => {
                let (left, right) = (left.evaluate(frame, world), right.evaluate(frame, world));
                world.effort().spend_on_operands(&left, &right);
                operators::binary(*operator, &left, &right)
            }
            Code::And(operands) => logical(operands, false, frame, world),
            Code::Or(operands) => logical(operands, true, frame, world),
            Code::In { needle, haystack, negated } => {
                let needle = needle.evaluate(frame, world);
                if !needle.is_defined() {
                    return Value::Undefined;
                }
                let found = haystack.iter().any(|straw| deep_equal(&needle, &straw.evaluate(frame, world)));
                Value::Bool(found != *negated)
            }
            Code::InConstants { needle, haystack, negated } => {
                let needle = needle.evaluate(frame, world);
                if !needle.is_defined() {
                    return Value::Undefined;
                }
                Value::Bool(haystack.contains(&needle) != *negated)
            }
            Code::Between { operands, negated } => {
                let [value, low, high] = &**operands;
                let value = value.evaluate(frame, world);
                let inside = operators::and(
                    &operators::binary(BinaryOperator::GreaterOrEqual, &value, &low.evaluate(frame, world)),
                    &operators::binary(BinaryOperator::LessOrEqual, &value, &high.evaluate(frame, world)),
                );
                if *negated { operators::not(&inside) } else { inside }
            }
            Code::Like { value, pattern, escape, negated } => {
                match (&*value.evaluate(frame, world), &*pattern.evaluate(frame, world)) {
                    (Value::String(text), Value::String(pattern)) => {
                        if !world.effort().spend(like_units(text, pattern.len())) {
                            return Value::Undefined;
                        }
                        Value::Bool(LikePattern::new(pattern, *escape).matches(text) != *negated)
                    }
                    _ => Value::Undefined,
                }
            }
            Code::LikeConstant { value, pattern, negated } => match &*value.evaluate(frame, world) {
                Value::String(text) => {
                    if !world.effort().spend(like_units(text, pattern.pieces_len())) {
                        return Value::Undefined;
                    }
                    Value::Bool(pattern.matches(text) != *negated)
                }
                _ => Value::Undefined,
            },
            Code::Call { function, arguments } => call(function, arguments, frame, world),
            Code::Subquery { form, pipeline, span } => subquery_value(*form, (pipeline, *span), frame, world),
            Code::Failure(error) => {
                world.fail((**error).clone());
                Value::Undefined
            }
            borrowed => unreachable!("{borrowed:?} borrows its value"),
        }
    }
}

/// A pattern is tried from every place of the text at worst.
fn like_units(text: &str, pieces: usize) -> u64 {
    (text.len() as u64).saturating_mul(1 + pieces as u64) / 64
}

fn walk<'a>(value: &'a Value, steps: &[Step]) -> &'a Value {
    steps.iter().fold(value, |value, step| match step {
        Step::Name(name) => value.member(name),
        Step::Index(index) => value.element(*index),
    })
}

/// A chain that `decisive` decides: `false` for AND, `true` for OR. Otherwise undefined if any
/// operand is not a boolean.
fn logical(operands: &[Code], decisive: bool, frame: &Frame<'_>, world: &World<'_>) -> Value {
    let mut all_booleans = true;
    for operand in operands {
        match &*operand.evaluate(frame, world) {
            Value::Bool(value) if *value == decisive => return Value::Bool(decisive),
            Value::Bool(_) => {}
            _ => all_booleans = false,
        }
    }
    if all_booleans { Value::Bool(!decisive) } else { Value::Undefined }
}

/// Most functions take one to three arguments: those need no vector.
fn call(function: &Function, arguments: &[Code], frame: &Frame<'_>, world: &World<'_>) -> Value {
    let value = |code: &Code| {
        let value = code.evaluate(frame, world).into_owned();
        world.effort().spend_on_surface(&value, function.weight());
        value
    };
    let result = match arguments {
        [] => (function.call)(&[], &world.functions),
        [first] => (function.call)(&[value(first)], &world.functions),
        [first, second] => (function.call)(&[value(first), value(second)], &world.functions),
        [first, second, third] => {
            (function.call)(&[value(first), value(second), value(third)], &world.functions)
        }
        many => (function.call)(&many.iter().map(value).collect::<Vec<_>>(), &world.functions),
    };
    world.effort().spend_on_surface(&result, 1);
    result
}
