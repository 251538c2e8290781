//! The function VECTORDISTANCE.
//!
//! The binder adds the distance function of the path's embedding policy to the options. Without it, the
//! function common to all of the container's policies is used, or else cosine.

use super::argument::or_undefined;
use super::{Family, Function, FunctionContext, between};
use crate::context::{DistanceFunction, QuerySchema};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] =
    &[between("VECTORDISTANCE", (2, 4), Family::Vector, vector_distance)];

/// `VECTORDISTANCE(v1, v2[, bruteForce[, options]])`: every search is exact here, so of the options only
/// the distance function has an effect.
fn vector_distance(args: &[Value], context: &FunctionContext<'_>) -> Value {
    let [Value::Array(left), Value::Array(right), rest @ ..] = args else { return Value::Undefined };
    let options = match rest {
        [] | [Value::Bool(_)] => None,
        [Value::Bool(_), Value::Object(options)] => Some(options),
        _ => return Value::Undefined,
    };
    let function = match options.and_then(|options| options.get("distanceFunction")) {
        None => Some(default_function(context.schema)),
        Some(name) => name.as_str().and_then(DistanceFunction::from_name),
    };
    or_undefined(function.and_then(|function| distance(left, right, function)))
}

fn default_function(schema: &QuerySchema) -> DistanceFunction {
    match schema.vector_policies.as_slice() {
        [first, rest @ ..] if rest.iter().all(|policy| policy.distance == first.distance) => first.distance,
        _ => DistanceFunction::default(),
    }
}

/// The distance of two vectors; `None` unless both are numeric and have the same, positive length.
fn distance(left: &[Value], right: &[Value], function: DistanceFunction) -> Option<f64> {
    if left.is_empty() || left.len() != right.len() {
        return None;
    }
    if function == DistanceFunction::Cosine {
        return cosine(left, right);
    }
    let (mut product, mut apart_squared) = (0.0, 0.0);
    for (left, right) in left.iter().zip(right) {
        let (left, right) = (left.as_f64()?, right.as_f64()?);
        product += left * right;
        apart_squared += (left - right) * (left - right);
    }
    Some(if function == DistanceFunction::DotProduct { product } else { f64::sqrt(apart_squared) })
}

/// Cosine similarity of vectors of single precision, in single precision, as in the service. Sums are exact, so
/// that they do not depend on their order; a zero vector has no direction.
fn cosine(left: &[Value], right: &[Value]) -> Option<f64> {
    let (mut product, mut left_squared, mut right_squared) = (0.0, 0.0, 0.0);
    for (left, right) in left.iter().zip(right) {
        let (left, right) = (f64::from(left.as_f64()? as f32), f64::from(right.as_f64()? as f32));
        product += left * right;
        left_squared += left * left;
        right_squared += right * right;
    }
    let lengths = f64::sqrt(left_squared) * f64::sqrt(right_squared);
    (lengths > 0.0).then(|| f64::from((product / lengths) as f32))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check, value};
    use super::*;
    use crate::context::{QueryContext, VectorPolicy};

    #[test]
    fn vectors_compare_by_the_chosen_function() {
        check(&[
            ("VECTORDISTANCE", "[1,0] ; [1,0]", "1"),
            ("VECTORDISTANCE", "[1,0] ; [0,1]", "0"),
            ("VECTORDISTANCE", "[1,0] ; [-2,0]", "-1"),
            ("VECTORDISTANCE", "[3,4] ; [3,4] ; true", "1"),
            // Single precision: 1 / sqrt(2) has the digits of a 32-bit number.
            ("VECTORDISTANCE", "[1,0] ; [1,1]", "0.7071067690849304"),
            ("VECTORDISTANCE", r#"[1,2,3] ; [4,5,6] ; false ; {"distanceFunction":"dotproduct"}"#, "32"),
            ("VECTORDISTANCE", r#"[1,2,3] ; [4,6,3] ; false ; {"distanceFunction":"Euclidean"}"#, "5"),
            ("VECTORDISTANCE", r#"[1,0] ; [1,0] ; true ; {"dataType":"float32"}"#, "1"),
            ("VECTORDISTANCE", r#"[1,0] ; [1,0] ; true ; {"distanceFunction":"manhattan"}"#, "u"),
            ("VECTORDISTANCE", "[1,0] ; [1,0,0]", "u"),
            ("VECTORDISTANCE", "[] ; []", "u"),
            ("VECTORDISTANCE", "[0,0] ; [1,0]", "u"),
            ("VECTORDISTANCE", "[[1,0]] ; [[1,0]]", "u"),
            ("VECTORDISTANCE", r#"[1,"0"] ; [1,0]"#, "u"),
            ("VECTORDISTANCE", "1 ; [1]", "u"),
            ("VECTORDISTANCE", "[1] ; [1] ; 1", "u"),
            ("VECTORDISTANCE", "[1] ; [1] ; true ; 1", "u"),
            ("VECTORDISTANCE", "[1] ; u", "u"),
        ]);
    }

    #[test]
    fn the_containers_policy_decides_when_the_query_does_not() {
        let policy = |distance| VectorPolicy { path: "/v".to_owned(), distance };
        let dot_product = |policies| {
            let schema = QuerySchema { vector_policies: policies, ..QuerySchema::default() };
            let context = FunctionContext::new(QueryContext::default(), &schema);
            vector_distance(&[value("[1,2]"), value("[3,4]")], &context) == Value::from(11)
        };
        assert!(dot_product(vec![policy(DistanceFunction::DotProduct)]));
        assert!(!dot_product(vec![policy(DistanceFunction::DotProduct), policy(DistanceFunction::Cosine)]));
        assert!(!dot_product(Vec::new()));
    }
}
