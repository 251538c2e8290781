//! Set functions: arrays without duplicate elements.

use super::argument::{ELEMENTS_MAX, two_arrays};
use super::distinct::DistinctValues;
use super::{Call, Family, Function, FunctionContext, exactly};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    binary("SETDIFFERENCE", difference),
    binary("SETEQUAL", equal),
    binary("SETINTERSECT", intersect),
    binary("SETUNION", union),
];

const fn binary(name: &'static str, call: Call) -> Function {
    exactly(name, 2, Family::Set, call)
}

/// `SETDIFFERENCE(a, b)`: the elements that only `a` has, in the order of `a`.
fn difference(args: &[Value], _: &FunctionContext<'_>) -> Value {
    let Some((left, right)) = two_arrays(args) else { return Value::Undefined };
    // Elements of the other set are not new.
    let mut seen: DistinctValues = right.iter().collect();
    Value::array(left.iter().filter(|element| seen.insert(element)).cloned())
}

/// `SETEQUAL(a, b)`: whether both have the same elements.
fn equal(args: &[Value], _: &FunctionContext<'_>) -> Value {
    let Some((left, right)) = two_arrays(args) else { return Value::Undefined };
    let (in_left, in_right): (DistinctValues, DistinctValues) =
        (left.iter().collect(), right.iter().collect());
    let equal = left.iter().all(|element| in_right.contains(element))
        && right.iter().all(|element| in_left.contains(element));
    Value::Bool(equal)
}

/// `SETINTERSECT(a, b)`: the elements that both have, in the order of `b`.
fn intersect(args: &[Value], _: &FunctionContext<'_>) -> Value {
    let Some((left, right)) = two_arrays(args) else { return Value::Undefined };
    let in_left: DistinctValues = left.iter().collect();
    let mut seen = DistinctValues::default();
    Value::array(right.iter().filter(|element| in_left.contains(element) && seen.insert(element)).cloned())
}

/// `SETUNION(a, b)`: the elements of both, first those of `a`.
fn union(args: &[Value], _: &FunctionContext<'_>) -> Value {
    let Some((left, right)) = two_arrays(args) else { return Value::Undefined };
    if left.len().saturating_add(right.len()) > ELEMENTS_MAX {
        return Value::Undefined;
    }
    let mut seen = DistinctValues::default();
    Value::array(left.iter().chain(right).filter(|element| seen.insert(element)).cloned())
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;

    #[test]
    fn sets_have_no_duplicates_and_keep_their_order() {
        check(&[
            ("SETINTERSECT", r#"[1,2,"A","B"] ; ["A",1]"#, r#"["A",1]"#),
            ("SETINTERSECT", "[1,2,3,4] ; [1,1,1,1]", "[1]"),
            ("SETINTERSECT", "[1] ; []", "[]"),
            ("SETUNION", "[1,2,3,4] ; [3,4,5,6]", "[1,2,3,4,5,6]"),
            ("SETUNION", r#"[{"a":1,"b":2}] ; [{"b":2,"a":1}]"#, r#"[{"a":1,"b":2}]"#),
            ("SETDIFFERENCE", "[1,2,6,7] ; [1,2,3]", "[6,7]"),
            ("SETDIFFERENCE", "[1,1,1,1] ; [2]", "[1]"),
            ("SETEQUAL", "[1,2,3,3] ; [1,2,2,3,1,2]", "true"),
            ("SETEQUAL", "[] ; [1]", "false"),
            ("SETEQUAL", "[1,2] ; [1]", "false"),
            ("SETEQUAL", "[] ; []", "true"),
            ("SETUNION", "[1] ; u", "u"),
            ("SETINTERSECT", "1 ; [1]", "u"),
            ("SETDIFFERENCE", "[1] ; {}", "u"),
            ("SETEQUAL", "[1] ; null", "u"),
        ]);
    }
}
