//! Properties of the whole table. What each function computes is tested in its family and in
//! `tests/cases/functions_*.sqltest`.

use proptest::prelude::*;

use super::*;
use crate::context::{Context, Schema};
use crate::value::{Number, parse};

/// Calls `name` with arguments written as JSON, `u` for undefined; the result likewise.
pub(super) fn call(name: &str, args: &[&str]) -> String {
    let args: Vec<Value> = args.iter().map(|text| value(text)).collect();
    let schema = Schema::default();
    // 2021-01-02T03:04:05.0000000Z
    let environment = Environment::new(Context { now: 16_095_566_450_000_000, random_seed: 1 }, &schema);
    show(&(find(name).expect("a known function").call)(&args, &environment))
}

/// Reads one argument of [`call`].
pub(super) fn value(text: &str) -> Value {
    match text {
        "u" => Value::Undefined,
        "NaN" => Value::from(f64::NAN),
        "Infinity" => Value::from(f64::INFINITY),
        "-Infinity" => Value::from(f64::NEG_INFINITY),
        json => parse(json.as_bytes()).unwrap_or_else(|error| panic!("{json}: {error}")),
    }
}

/// Writes a result the way [`call`] returns it.
pub(super) fn show(value: &Value) -> String {
    match value {
        Value::Undefined => "u".to_owned(),
        Value::Number(number) => number.to_string(),
        other => other.to_string(),
    }
}

/// Checks a table of `(function, arguments separated by " ; ", result)`.
#[track_caller]
pub(super) fn check(cases: &[(&str, &str, &str)]) {
    let mut wrong = Vec::new();
    for (name, args, expected) in cases {
        let split: Vec<&str> = if args.is_empty() { Vec::new() } else { args.split(" ; ").collect() };
        let result = call(name, &split);
        if result != *expected {
            wrong.push(format!("{name}({args}) = {result}, expected {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_are_upper_case_unique_and_found_in_any_case() {
    let mut names: Vec<&str> = all().map(|function| function.name).collect();
    assert!(names.iter().all(|name| name.to_ascii_uppercase() == *name));
    assert!(names.iter().all(|name| find(&name.to_ascii_lowercase()).is_some()));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(find("NO_SUCH_FUNCTION").is_none());
}

#[test]
fn no_function_takes_fewer_than_it_needs() {
    for function in all() {
        assert!(function.max_args.is_none_or(|max| function.min_args <= max), "{}", function.name);
    }
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Undefined),
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..12).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(|number| Value::Number(Number::UInt(number))),
        any::<f64>().prop_map(Value::from),
        (-200.0..200.0).prop_map(Value::from),
        ".{0,12}".prop_map(|text: String| Value::from(text.as_str())),
        prop::sample::select(TEXTS).prop_map(Value::from),
    ]
}

/// Strings that some function takes seriously.
const TEXTS: &[&str] = &[
    "",
    "year",
    "mm",
    "ns",
    "day",
    "hour",
    "2021-01-02T03:04:05.1234567Z",
    "2021-02-29",
    "9999-12-31T23:59:59.9999999Z",
    "0001-01-01",
    "yyyy-MM-dd HH:mm:ss.fff\\",
    "[1,2",
    "{\"a\":1}",
    "12e3",
    "a(b|c)*",
    "im",
    "Point",
    "Polygon",
    "😀é",
    "AAAAAQ==",
    "36ZyAPW+uN8NAAAAAAAAAA==",
    "cosine",
];

fn argument() -> impl Strategy<Value = Value> {
    let nested = scalar().prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::array),
            prop::collection::vec((prop::sample::select(NAMES), inner), 0..4).prop_map(|members| {
                Value::object(members.into_iter().map(|(name, value)| (name.into(), value)))
            }),
        ]
    });
    prop_oneof![4 => nested, 1 => geometry()]
}

/// Member names that some function looks for.
const NAMES: &[&str] = &["a", "k", "type", "coordinates", "geometries", "crs", "_rid", "distanceFunction"];

fn geometry() -> impl Strategy<Value = Value> {
    let number = prop_oneof![(-3i64..3).prop_map(Value::from), (-200.0..200.0).prop_map(Value::from)];
    let position = prop::collection::vec(number, 1..4).prop_map(Value::array).boxed();
    let line = prop::collection::vec(position.clone(), 0..6)
        .prop_flat_map(|positions| {
            any::<bool>().prop_map(move |close| {
                let mut positions = positions.clone();
                positions.extend(positions.first().filter(|_| close).cloned());
                Value::array(positions)
            })
        })
        .boxed();
    let polygon = prop::collection::vec(line.clone(), 0..3).prop_map(Value::array).boxed();
    let many = prop::collection::vec(polygon.clone(), 0..3).prop_map(Value::array).boxed();
    let kinds = prop::sample::select(
        &["Point", "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon"][..],
    );
    (kinds, prop_oneof![position, line, polygon, many]).prop_map(|(kind, coordinates)| {
        Value::object([("type".into(), Value::from(kind)), ("coordinates".into(), coordinates)])
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn no_arguments_make_any_function_panic(
        args in prop::collection::vec(argument(), 0..9),
        now in any::<i64>(),
    ) {
        let schema = Schema::default();
        let environment = Environment::new(Context { now, random_seed: 1 }, &schema);
        for function in all() {
            let most = function.max_args.unwrap_or(args.len()) + 1;
            for count in 0..=most.min(args.len()) {
                let _ = (function.call)(&args[..count], &environment);
            }
        }
    }
}
