//! Tests of the whole function table. Each function is tested in its family and in
//! `tests/cases/functions_*.sqltest`.

use proptest::prelude::*;

use super::*;
use crate::context::{GeometryKind, QueryContext, QuerySchema};
use crate::value::{Number, parse};

/// Calls `name` with arguments written as JSON, `u` for undefined; returns the result in the same form.
pub(super) fn call(name: &str, args: &[&str]) -> String {
    let args: Vec<Value> = args.iter().map(|text| value(text)).collect();
    let schema = QuerySchema::default();
    // The time 2021-01-02T03:04:05.0000000Z.
    let context = FunctionContext::new(
        QueryContext { now: 16_095_566_450_000_000, ..QueryContext::default() },
        &schema,
    );
    show(&(find(name).expect("a known function").call)(&args, &context))
}

/// Parses one argument of [`call`].
pub(super) fn value(text: &str) -> Value {
    match text {
        "u" => Value::Undefined,
        "NaN" => Value::from(f64::NAN),
        "Infinity" => Value::from(f64::INFINITY),
        "-Infinity" => Value::from(f64::NEG_INFINITY),
        json => parse(json.as_bytes()).unwrap_or_else(|error| panic!("{json}: {error}")),
    }
}

/// Writes a result in the form that [`call`] returns.
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

/// Every documented function with its numbers of arguments; `+` for any number from there.
const DOCUMENTED: &str = "
    IS_ARRAY 1, IS_BOOL 1, IS_DEFINED 1, IS_NULL 1, IS_NUMBER 1, IS_OBJECT 1, IS_PRIMITIVE 1, IS_STRING 1,
    IS_FINITE_NUMBER 1, IS_INTEGER 1, IS_DATETIME 1,
    CONCAT 2+, CONTAINS 2-3, STARTSWITH 2-3, ENDSWITH 2-3, STRINGEQUALS 2-3, CONTAINS_ANY_CI 2+,
    CONTAINS_ANY_CS 2+, CONTAINS_ALL_CI 2+, CONTAINS_ALL_CS 2+, INDEX_OF 2-3, LASTINDEXOF 2-3, LEFT 2,
    RIGHT 2, SUBSTRING 3, LENGTH 1, LOWER 1, UPPER 1, REVERSE 1, LTRIM 1-2, RTRIM 1-2, TRIM 1-2, REPLACE 3,
    REPLICATE 2, REGEXMATCH 2-3, STRINGJOIN 2, STRINGSPLIT 2, STRINGTOARRAY 1, STRINGTOOBJECT 1,
    STRINGTOBOOLEAN 1, STRINGTONULL 1, STRINGTONUMBER 1, TOSTRING 1, SUBSTRINGBEFORE 2, SUBSTRINGAFTER 2,
    LASTSUBSTRINGBEFORE 2, LASTSUBSTRINGAFTER 2,
    ARRAY_CONCAT 2+, ARRAY_CONTAINS 2-3, ARRAY_CONTAINS_ANY 2+, ARRAY_CONTAINS_ALL 2+, ARRAY_LENGTH 1,
    ARRAY_SLICE 2-3, ARRAY_SUM 1, ARRAY_AVG 1, ARRAY_MEDIAN 1, ARRAY_MIN 1, ARRAY_MAX 1, SETINTERSECT 2,
    SETUNION 2, SETDIFFERENCE 2, SETEQUAL 2, CHOOSE 2+, OBJECTTOARRAY 1-3,
    ABS 1, ACOS 1, ASIN 1, ATAN 1, ATN2 2, CEILING 1, COS 1, COT 1, DEGREES 1, EXP 1, FLOOR 1, LOG 1-2,
    LOG10 1, PI 0, POWER 2, RADIANS 1, RAND 0, ROUND 1, SIGN 1, SIN 1, SQRT 1, SQUARE 1, TAN 1, TRUNC 1,
    NUMBERBIN 1-2, INTADD 2, INTSUB 2, INTMUL 2, INTDIV 2, INTMOD 2, INTBITAND 2, INTBITOR 2, INTBITXOR 2,
    INTBITNOT 1, INTBITLEFTSHIFT 2, INTBITRIGHTSHIFT 2,
    IIF 3,
    GETCURRENTDATETIME 0, GETCURRENTTIMESTAMP 0, GETCURRENTTICKS 0, GETCURRENTDATETIMESTATIC 0,
    GETCURRENTTIMESTAMPSTATIC 0, GETCURRENTTICKSSTATIC 0, NOW 0-2, AGO 2, DATETIMEADD 3, DATETIMEDIFF 3,
    DATETIMEPART 2, YEAR 1, MONTH 1, DAY 1, DATETIMEBIN 2-4, DATETIMEFROMPARTS 3-7, DATETIMEFORMAT 2,
    DATETIMETOTICKS 1, DATETIMETOTIMESTAMP 1, TICKSTODATETIME 1, TIMESTAMPTODATETIME 1,
    ST_DISTANCE 2, ST_WITHIN 2, ST_INTERSECTS 2, ST_ISVALID 1, ST_ISVALIDDETAILED 1, ST_AREA 1,
    FULLTEXTCONTAINS 2, FULLTEXTCONTAINSALL 2+, FULLTEXTCONTAINSANY 2+, FULLTEXTSCORE 2+, RRF 2+,
    _FULLTEXTSCORE 5, _FULLTEXTWORDCOUNT 1, VECTORDISTANCE 2-4,
    DOCUMENTID 1";

#[test]
fn the_table_is_what_is_documented() {
    let mut documented: Vec<String> = DOCUMENTED.split(',').map(|entry| entry.trim().to_owned()).collect();
    let mut table: Vec<String> = all()
        .map(|function| match (function.min_args, function.max_args) {
            (min, Some(max)) if min == max => format!("{} {min}", function.name),
            (min, Some(max)) => format!("{} {min}-{max}", function.name),
            (min, None) => format!("{} {min}+", function.name),
        })
        .collect();
    documented.sort();
    table.sort();
    assert_eq!(table, documented);
}

#[test]
fn only_clock_and_random_functions_are_impure() {
    let impure: Vec<&str> =
        all().filter(|function| !function.is_pure()).map(|function| function.name).collect();
    let is_impure = |name: &str| {
        name.starts_with("GETCURRENT") || matches!(name, "NOW" | "AGO" | "RAND" | "FULLTEXTSCORE" | "RRF")
    };
    assert!(all().all(|function| is_impure(function.name) == impure.contains(&function.name)), "{impure:?}");
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

/// Strings that have a meaning for some function.
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

/// Property names that some function looks for.
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
        plane in any::<bool>(),
    ) {
        let geometry = if plane { GeometryKind::Geometry } else { GeometryKind::Geography };
        let schema = QuerySchema { geometry, ..QuerySchema::default() };
        let context = FunctionContext::new(QueryContext { now, ..QueryContext::default() }, &schema);
        for function in all() {
            let most = function.max_args.unwrap_or(args.len()) + 1;
            for count in 0..=most.min(args.len()) {
                let _ = (function.call)(&args[..count], &context);
            }
        }
    }
}
