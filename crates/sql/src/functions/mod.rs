//! The built-in functions: one table, one file per family.
//!
//! In: argument values and an [`FunctionContext`]. Out: a value, undefined when the arguments do not
//! fit; a function never fails and never panics, whatever it is given. Whether the number of
//! arguments fits is the binder's question, answered from [`Function::min_args`] and
//! [`Function::max_args`]. Aggregates see many rows and are accumulators in [`aggregate`], outside
//! the table.

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

use crate::value::Value;

/// One built-in function.
#[derive(Debug)]
pub(crate) struct Function {
    /// Upper case, as documented.
    pub(crate) name: &'static str,
    /// The fewest arguments it takes.
    pub(crate) min_args: usize,
    /// The most arguments it takes; `None` for any number.
    pub(crate) max_args: Option<usize>,
    /// Its kind.
    pub(crate) family: Family,
    /// Computes it. Tolerates any number of arguments of any kind.
    pub(crate) call: Call,
}

/// How every function is called.
pub(crate) type Call = fn(&[Value], &FunctionContext<'_>) -> Value;

/// What a function is about, where a caller treats families differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// `IS_…`: defined for every argument, undefined included.
    TypeCheck,
    /// Text in, text or facts about it out.
    String,
    /// Arrays.
    Array,
    /// Arrays as sets.
    Set,
    /// Numbers.
    Math,
    /// Chooses between its arguments.
    Conditional,
    /// Calendar dates, ticks and timestamps; a function of its arguments alone.
    DateTime,
    /// The current time: the same throughout a run, different in the next.
    Clock,
    /// RAND: different at each call.
    Random,
    /// GeoJSON.
    Spatial,
    /// Words.
    FullText,
    /// Embeddings.
    Vector,
    /// Meaningful only in ORDER BY RANK; undefined when called.
    Rank,
    /// Everything else.
    Other,
}

impl Function {
    /// Whether equal arguments always give equal results, so that a call over constants can be
    /// computed once when the statement is prepared.
    pub(crate) fn is_pure(&self) -> bool {
        !matches!(self.family, Family::Clock | Family::Random | Family::Rank)
    }

    /// How much more than a look it takes at what its arguments hold: words are found, cut and
    /// compared, members of sets are put in order.
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

/// Every function, by family.
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
