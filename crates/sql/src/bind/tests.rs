//! Tests of constant folding and of binder errors.

use super::*;

fn projection(text: &str) -> BoundExpression {
    let schema = QuerySchema::default();
    let query = parse_query(text).unwrap();
    bind(&query, &[("p".into(), Value::from("x%"))], &schema, MissingParameter::Reject).unwrap().projection
}

#[test]
fn constant_parts_are_computed_once() {
    for text in [
        "SELECT VALUE 1 + 2 * 3",
        "SELECT VALUE {a: [1, 'x' || 'y'], b: undefined}",
        "SELECT VALUE IS_DEFINED(@p.x) OR 5 IN (1, 2)",
        "SELECT VALUE [1, 2][1]",
        "SELECT VALUE @p LIKE 'x%'",
    ] {
        assert!(projection(text).as_constant().is_some(), "{text}");
    }
    for text in ["SELECT VALUE c.a FROM c", "SELECT VALUE 1 + c.a FROM c", "SELECT VALUE (SELECT VALUE 1)"] {
        assert!(projection(text).as_constant().is_none(), "{text}");
    }
}

#[test]
fn constant_patterns_lists_and_paths_are_bound_specially() {
    assert!(matches!(projection("SELECT VALUE c.a LIKE @p FROM c"), BoundExpression::LikeConstant { .. }));
    assert!(matches!(projection("SELECT VALUE c.a IN (1, 'x') FROM c"), BoundExpression::InConstants { .. }));
    let BoundExpression::Path { up: 0, steps } = projection("SELECT VALUE c.a[0]['b'] FROM c") else {
        panic!("not a path")
    };
    assert_eq!(steps.len(), 3);
}

#[test]
fn the_same_aggregate_is_computed_once() {
    let schema = QuerySchema::default();
    let query = parse_query("SELECT VALUE [MIN(c.x), {m: MIN(c['x']), n: COUNT(c.x)}] FROM c").unwrap();
    let pipeline = bind(&query, &[], &schema, MissingParameter::Reject).unwrap();
    assert_eq!(pipeline.grouping.unwrap().aggregates.len(), 2);
}

#[test]
fn a_missing_parameter_can_be_planned_but_not_used_as_a_row_count() {
    let schema = QuerySchema::default();
    let filter = parse_query("SELECT * FROM c WHERE c.a = @a").unwrap();
    assert_eq!(bind(&filter, &[], &schema, MissingParameter::Reject).unwrap_err().code, "SC2002");
    assert!(bind(&filter, &[], &schema, MissingParameter::Defer).is_ok());
    let top = parse_query("SELECT TOP @n * FROM c").unwrap();
    assert_eq!(bind(&top, &[], &schema, MissingParameter::Defer).unwrap_err().code, "SC2002");
}

#[test]
fn computed_properties_must_select_one_value() {
    let check = |name: &str, query: &str| {
        check_computed_property(&ComputedProperty { name: name.into(), query: query.into() })
    };
    assert_eq!(check("cp", "SELECT VALUE c.a || 'x' FROM c"), Ok(()));
    for (name, query) in [
        ("id", "SELECT VALUE c.a FROM c"),
        ("_ts", "SELECT VALUE c.a FROM c"),
        ("", "SELECT VALUE c.a FROM c"),
        ("cp", "SELECT c.a FROM c"),
        ("cp", "SELECT * FROM c"),
        ("cp", "SELECT VALUE 1"),
        ("cp", "SELECT VALUE c.a FROM c WHERE true"),
        ("cp", "SELECT VALUE t FROM c JOIN t IN c.tags"),
        ("cp", "SELECT VALUE t FROM t IN c.tags"),
        ("cp", "SELECT DISTINCT VALUE c.a FROM c"),
        ("cp", "SELECT VALUE c.a FROM c ORDER BY c.a"),
        ("cp", "SELECT VALUE d.a FROM c"),
        ("cp", "SELECT VALUE COUNT(1) FROM c"),
        ("cp", "SELECT VALUE NOPE(c.a) FROM c"),
        ("cp", "not a query"),
    ] {
        assert!(check(name, query).is_err(), "accepted: {name} {query}");
    }
}
