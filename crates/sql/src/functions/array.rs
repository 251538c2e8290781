//! Array functions. Set functions are in `set`.

use super::aggregate::{Extreme, Total};
use super::argument::{ELEMENTS_MAX, optional_bool, or_undefined, whole};
use super::{Call, Family, Function, FunctionContext, at_least, between, exactly};
use crate::value::{Value, deep_equal};

pub(super) const FUNCTIONS: &[Function] = &[
    unary("ARRAY_AVG", |args, _| of_numbers(args, |total| total.mean())),
    at_least("ARRAY_CONCAT", 2, Family::Array, concat),
    between("ARRAY_CONTAINS", (2, 3), Family::Array, contains),
    at_least("ARRAY_CONTAINS_ALL", 2, Family::Array, |args, _| contains_terms(args, false)),
    at_least("ARRAY_CONTAINS_ANY", 2, Family::Array, |args, _| contains_terms(args, true)),
    unary("ARRAY_LENGTH", length),
    unary("ARRAY_MAX", |args, _| extreme(args, |order| order.is_gt())),
    unary("ARRAY_MEDIAN", median),
    unary("ARRAY_MIN", |args, _| extreme(args, |order| order.is_lt())),
    between("ARRAY_SLICE", (2, 3), Family::Array, slice),
    unary("ARRAY_SUM", |args, _| of_numbers(args, |total| total.sum())),
];

const fn unary(name: &'static str, call: Call) -> Function {
    exactly(name, 1, Family::Array, call)
}

/// `ARRAY_CONCAT(a, b, …)`: all elements in one array.
fn concat(args: &[Value], _: &FunctionContext<'_>) -> Value {
    let mut count: usize = 0;
    for arg in args {
        let Value::Array(elements) = arg else { return Value::Undefined };
        count = count.saturating_add(elements.len());
    }
    if count > ELEMENTS_MAX {
        return Value::Undefined;
    }
    // If the other arrays are empty, the array itself is the result.
    match args.iter().find(|arg| arg.as_array().is_some_and(|elements| elements.len() == count)) {
        Some(whole) => whole.clone(),
        None => Value::array(args.iter().filter_map(Value::as_array).flatten().cloned()),
    }
}

/// `ARRAY_CONTAINS(a, x[, partial])`: with `partial`, an element needs to have only the properties of `x`.
fn contains(args: &[Value], _: &FunctionContext<'_>) -> Value {
    let [Value::Array(elements), wanted, ..] = args else { return Value::Undefined };
    let Some(partial) = optional_bool(args, 2, false).filter(|_| wanted.is_defined()) else {
        return Value::Undefined;
    };
    let found = match wanted {
        Value::Object(members) if partial => elements.iter().any(|element| {
            element.as_object().is_some_and(|element| {
                members
                    .iter()
                    .all(|(name, value)| element.get(name).is_some_and(|own| deep_equal(own, value)))
            })
        }),
        _ => holds(elements, wanted),
    };
    Value::Bool(found)
}

fn holds(elements: &[Value], wanted: &Value) -> bool {
    elements.iter().any(|element| deep_equal(element, wanted))
}

/// Whether the array contains any (`decisive` is true) or all (`decisive` is false) of the values. As in OR
/// and AND, a decisive result wins over undefined, and undefined over its opposite.
fn contains_terms(args: &[Value], decisive: bool) -> Value {
    let Some((Value::Array(elements), terms)) = args.split_first() else { return Value::Undefined };
    let mut met_undefined = false;
    for wanted in terms {
        if !wanted.is_defined() {
            met_undefined = true;
        } else if holds(elements, wanted) == decisive {
            return Value::Bool(decisive);
        }
    }
    if met_undefined { Value::Undefined } else { Value::Bool(!decisive) }
}

/// `ARRAY_LENGTH(a)`: the number of elements.
fn length(args: &[Value], _: &FunctionContext<'_>) -> Value {
    match args {
        [Value::Array(elements)] => or_undefined(i64::try_from(elements.len()).ok()),
        _ => Value::Undefined,
    }
}

/// `ARRAY_SLICE(a, start[, count])`: a negative start counts from the end.
fn slice(args: &[Value], _: &FunctionContext<'_>) -> Value {
    let [array @ Value::Array(elements), start, ..] = args else { return Value::Undefined };
    let count = match args.get(2) {
        None => Some(i64::MAX),
        Some(count) => whole(count),
    };
    let (Some(start), Some(count)) = (whole(start), count) else { return Value::Undefined };
    let start = match usize::try_from(start) {
        Ok(start) => start.min(elements.len()),
        Err(_) => elements.len().saturating_sub(usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX)),
    };
    let count = usize::try_from(count).unwrap_or(0).min(elements.len() - start);
    if count == elements.len() {
        return array.clone();
    }
    Value::array(elements[start..start + count].iter().cloned())
}

fn of_numbers(args: &[Value], finish: fn(&Total) -> Value) -> Value {
    let [Value::Array(elements)] = args else { return Value::Undefined };
    let mut total = Total::default();
    elements.iter().for_each(|element| total.push(element));
    finish(&total)
}

fn extreme(args: &[Value], wins: fn(std::cmp::Ordering) -> bool) -> Value {
    let [Value::Array(elements)] = args else { return Value::Undefined };
    let mut extreme = Extreme::default();
    elements.iter().for_each(|element| extreme.push(element, wins));
    extreme.finish()
}

/// `ARRAY_MEDIAN(a)`: the middle number, or the mean of the two in the middle.
fn median(args: &[Value], _: &FunctionContext<'_>) -> Value {
    let [Value::Array(elements)] = args else { return Value::Undefined };
    let Some(mut numbers) = elements.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>() else {
        return Value::Undefined;
    };
    if numbers.is_empty() {
        return Value::Undefined;
    }
    let middle = numbers.len() / 2;
    let (below, upper, _) = numbers.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    match below.iter().copied().max_by(f64::total_cmp).filter(|_| elements.len() % 2 == 0) {
        Some(lower) => Value::from((lower + upper) / 2.0),
        None => Value::from(upper),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;

    #[test]
    fn elements_are_found_whole_or_in_part() {
        check(&[
            ("ARRAY_CONTAINS", r#"["a","b"] ; "a""#, "true"),
            ("ARRAY_CONTAINS", r#"["a","b"] ; "c""#, "false"),
            ("ARRAY_CONTAINS", "[1,2] ; 1.0", "true"),
            ("ARRAY_CONTAINS", r#"[{"a":1,"b":2}] ; {"b":2,"a":1}"#, "true"),
            ("ARRAY_CONTAINS", r#"[{"a":1,"b":2}] ; {"a":1}"#, "false"),
            ("ARRAY_CONTAINS", r#"[{"a":1,"b":2}] ; {"a":1} ; true"#, "true"),
            ("ARRAY_CONTAINS", r#"[{"a":1,"b":2}] ; {"a":2} ; true"#, "false"),
            ("ARRAY_CONTAINS", "[1] ; 1 ; true", "true"),
            ("ARRAY_CONTAINS", "[1] ; 1 ; 1", "u"),
            ("ARRAY_CONTAINS", "[1] ; u", "u"),
            ("ARRAY_CONTAINS", "u ; 1", "u"),
            ("ARRAY_CONTAINS", "\"abc\" ; \"a\"", "u"),
            ("ARRAY_CONTAINS_ANY", "[1,2,3,4] ; 1 ; u", "true"),
            ("ARRAY_CONTAINS_ANY", "[1,2,3,4] ; 5 ; u", "u"),
            ("ARRAY_CONTAINS_ANY", "[] ; 1", "false"),
            ("ARRAY_CONTAINS_ALL", "[1,2,3,4] ; 1 ; u", "u"),
            ("ARRAY_CONTAINS_ALL", "[1,2,3,4] ; 5 ; u", "false"),
            ("ARRAY_CONTAINS_ALL", "[1,true,\"3\",[1]] ; [1] ; \"3\"", "true"),
        ]);
    }

    #[test]
    fn arrays_are_joined_cut_and_measured() {
        check(&[
            ("ARRAY_CONCAT", "[1] ; [2] ; [3,4]", "[1,2,3,4]"),
            ("ARRAY_CONCAT", "[] ; []", "[]"),
            ("ARRAY_CONCAT", "[] ; [1]", "[1]"),
            ("ARRAY_CONCAT", "[1] ; 2", "u"),
            ("ARRAY_LENGTH", "[1,2,3]", "3"),
            ("ARRAY_LENGTH", "\"abc\"", "u"),
            ("ARRAY_SLICE", "[1,2,3,4] ; 1", "[2,3,4]"),
            ("ARRAY_SLICE", "[1,2,3,4] ; 1 ; 2", "[2,3]"),
            ("ARRAY_SLICE", "[1,2,3,4] ; -2 ; 1", "[3]"),
            ("ARRAY_SLICE", "[1,2,3,4] ; -100 ; 2", "[1,2]"),
            ("ARRAY_SLICE", "[1,2,3,4] ; 100", "[]"),
            ("ARRAY_SLICE", "[1,2,3,4] ; 0 ; 0", "[]"),
            ("ARRAY_SLICE", "[1,2,3,4] ; 0 ; -1", "[]"),
            ("ARRAY_SLICE", "[1,2,3,4] ; 0 ; 1e300", "[1,2,3,4]"),
            ("ARRAY_SLICE", "[1,2,3,4] ; -1e300", "[1,2,3,4]"),
            ("ARRAY_SLICE", "[1,2,3,4] ; 1.5", "u"),
            ("ARRAY_SLICE", "[1,2,3,4] ; 1 ; u", "u"),
        ]);
    }

    #[test]
    fn arrays_are_summed_up() {
        check(&[
            ("ARRAY_SUM", "[1,2,3,4]", "10"),
            ("ARRAY_SUM", "[]", "0"),
            ("ARRAY_SUM", "[1,null]", "u"),
            ("ARRAY_AVG", "[1.0,2.0,3.3,4.7]", "2.75"),
            ("ARRAY_AVG", "[1,-2.7,3,-4]", "-0.675"),
            ("ARRAY_AVG", "[]", "u"),
            ("ARRAY_MEDIAN", "[4,1,3,2]", "2.5"),
            ("ARRAY_MEDIAN", "[1.0,2.0,3.3,4.7,7.8]", "3.3"),
            ("ARRAY_MEDIAN", "[1,-2.7,3,-4]", "-0.8500000000000001"),
            ("ARRAY_MEDIAN", "[7]", "7"),
            ("ARRAY_MEDIAN", "[]", "u"),
            ("ARRAY_MEDIAN", "[1,\"a\"]", "u"),
            ("ARRAY_MIN", r#"[12,"abc",true,false,null]"#, "null"),
            ("ARRAY_MAX", r#"[12,"abc",true,false,null]"#, "\"abc\""),
            ("ARRAY_MIN", r#"["abc","ABC","aBc"]"#, "\"ABC\""),
            ("ARRAY_MAX", "[1,[2]]", "u"),
            ("ARRAY_MAX", "[]", "u"),
            ("ARRAY_MAX", "1", "u"),
        ]);
    }
}
