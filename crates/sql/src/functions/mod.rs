//! The built-in functions: one table, one file per family.
//!
//! Input: argument values and a [`FunctionContext`]. Output: a value, undefined if the arguments are
//! invalid. A function never fails and never panics, whatever its arguments. The binder checks the number
//! of arguments by [`Function::min_args`] and [`Function::max_args`]. Aggregates are accumulators in
//! [`aggregate`], outside the table.

pub(crate) mod aggregate;
mod argument;
mod array;
mod conditional;
mod context;
mod date_time;
pub(crate) mod distinct;
mod full_text;
mod integer;
mod math;
mod other;
mod set;
mod spatial;
mod string;
mod type_check;
mod vector;

use std::collections::HashMap;
use std::sync::LazyLock;

pub(crate) use argument::{TEXT_BYTES_MAX, fits_as_json};
pub(crate) use context::FunctionContext;
pub(crate) use full_text::in_language;

use crate::value::Value;

/// A built-in function of SQL.
#[derive(Debug)]
pub(crate) struct Function {
    /// The documented name, in upper case.
    pub(crate) name: &'static str,
    /// The smallest number of arguments.
    pub(crate) min_args: usize,
    /// The largest number of arguments; `None` for any number.
    pub(crate) max_args: Option<usize>,
    /// The family of the function.
    pub(crate) family: Family,
    /// The implementation. It accepts any number of arguments of any type.
    pub(crate) call: Call,
}

/// The signature of every function implementation.
pub(crate) type Call = fn(&[Value], &FunctionContext<'_>) -> Value;

/// The family of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// `IS_…`: defined for every argument, undefined included.
    TypeCheck,
    /// Functions whose argument is a string.
    String,
    /// Functions whose argument is an array.
    Array,
    /// Functions of arrays as sets.
    Set,
    /// Mathematical functions of numbers.
    Math,
    /// Functions that select one of their arguments.
    Conditional,
    /// Functions of dates, ticks and timestamps that depend only on their arguments.
    DateTime,
    /// The current time, which is constant within an execution.
    Clock,
    /// RAND, which differs at each call.
    Random,
    /// Functions of GeoJSON objects.
    Spatial,
    /// Functions of full-text search.
    FullText,
    /// Functions of vector embeddings.
    Vector,
    /// Functions that are only allowed in ORDER BY RANK; undefined when called.
    Rank,
    /// Functions of no other family.
    Other,
}

impl Function {
    /// Whether equal arguments always give equal results, so that a call with constants can be folded when
    /// the statement is prepared.
    pub(crate) fn is_pure(&self) -> bool {
        !matches!(self.family, Family::Clock | Family::Random | Family::Rank)
    }

    /// The work units per element or byte group of the arguments: more for functions that split, compare or
    /// sort than for those that only scan.
    pub(crate) fn weight(&self) -> u64 {
        match self.family {
            Family::FullText => 16,
            Family::Set => 8,
            _ => 1,
        }
    }
}

/// The function called `name`, in any case.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    static BY_NAME: LazyLock<HashMap<&'static str, &'static Function>> =
        LazyLock::new(|| all().map(|function| (function.name, function)).collect());
    BY_NAME.get(name.to_ascii_uppercase().as_str()).copied()
}

/// All functions, by family.
pub(crate) fn all() -> impl Iterator<Item = &'static Function> {
    const FAMILIES: &[&[Function]] = &[
        type_check::FUNCTIONS,
        string::FUNCTIONS,
        array::FUNCTIONS,
        set::FUNCTIONS,
        math::FUNCTIONS,
        integer::FUNCTIONS,
        conditional::FUNCTIONS,
        date_time::FUNCTIONS,
        spatial::FUNCTIONS,
        full_text::FUNCTIONS,
        vector::FUNCTIONS,
        other::FUNCTIONS,
    ];
    FAMILIES.iter().copied().flatten()
}

/// A table entry for a function of exactly `args` arguments.
const fn exactly(name: &'static str, args: usize, family: Family, call: Call) -> Function {
    Function { name, min_args: args, max_args: Some(args), family, call }
}

/// A table entry for a function of `min` to `max` arguments.
const fn between(name: &'static str, (min, max): (usize, usize), family: Family, call: Call) -> Function {
    Function { name, min_args: min, max_args: Some(max), family, call }
}

/// A table entry for a function of `min` arguments or more.
const fn at_least(name: &'static str, min: usize, family: Family, call: Call) -> Function {
    Function { name, min_args: min, max_args: None, family, call }
}

#[cfg(test)]
mod tests;
