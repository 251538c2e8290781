//! Tests of query plans against those of the service, by query.

mod search; // vectors, full text, and both

use protocol::query::QueryPlan;
use serde_json::{Value as Json, json};

use super::*;
use crate::context::{QuerySchema, VectorPolicy};
use crate::value::Value;
use crate::{DistanceFunction, parse_query};

const FILTER: &str = "{documentdb-formattableorderbyquery-filter}";

const PYTHON: &str = "Aggregate,CompositeAggregate,Distinct,MultipleOrderBy,OffsetAndLimit,OrderBy,Top,\
                      NonStreamingOrderBy,HybridSearch,CountIf,WeightedRankFusion";
const JAVASCRIPT: &str = "NonValueAggregate,Aggregate,Distinct,MultipleOrderBy,OffsetAndLimit,OrderBy,Top,\
                          CompositeAggregate,GroupBy,MultipleAggregates,NonStreamingOrderBy,ListAndSetAggregate,\
                          CountIf,HybridSearch,WeightedRankFusion,HybridSearchSkipOrderByRewrite";
const RUST: &str = "Distinct,MultipleOrderBy,NonStreamingOrderBy,OffsetAndLimit,OrderBy,Top";

fn schema() -> QuerySchema {
    let policy = |path: &str, distance| VectorPolicy { path: path.into(), distance };
    QuerySchema {
        vector_policies: vec![
            policy("/near", DistanceFunction::Euclidean),
            policy("/alike", DistanceFunction::Cosine),
        ],
        ..QuerySchema::default()
    }
}

fn plan_with(text: &str, features: &SupportedFeatures) -> Result<QueryPlan, PlanError> {
    let parameters =
        [("n".into(), Value::from(7)), ("terms".into(), Value::array([Value::from("a"), Value::from("b")]))];
    let statement = Statement::prepare_plan(text, &parameters, &schema())?;
    statement.gateway_plan(&PartitionKeyDefinition::hash("/pk").unwrap(), features)
}

fn plan(text: &str) -> Json {
    match plan_with(text, &SupportedFeatures::all()) {
        Ok(plan) => serde_json::to_value(plan).unwrap(),
        Err(error) => panic!("{text}: {error}"),
    }
}

/// The properties of a query info that differ from an empty one, with newlines as spaces and the
/// placeholder as `{F}`.
fn notable(info: &Json) -> Json {
    let empty = serde_json::to_value(QueryInfo::default()).unwrap();
    let members = info.as_object().unwrap().iter().filter(|(name, value)| empty[name.as_str()] != **value);
    let shown = members.map(|(name, value)| {
        let value = match value.as_str() {
            Some(text) if name == "rewrittenQuery" => json!(text.replace('\n', " ").replace(FILTER, "{F}")),
            _ => value.clone(),
        };
        (name.clone(), value)
    });
    Json::Object(shown.collect())
}

#[track_caller]
fn check(text: &str, expected: Json) {
    assert_eq!(notable(&plan(text)["queryInfo"]), expected, "query: {text}");
}

/// Checks that a rewritten query parses and binds.
#[track_caller]
fn check_readable(text: &str) {
    let plan = plan(text);
    let rewritten = plan["queryInfo"]["rewrittenQuery"].as_str().unwrap().replace(FILTER, "true");
    if !rewritten.is_empty() {
        parse_query(&rewritten).unwrap_or_else(|error| panic!("{rewritten}: {error}"));
        Statement::prepare_plan(&rewritten, &[("n".into(), Value::from(1))], &schema()).unwrap();
    }
}

#[test]
fn order_by() {
    check(
        "SELECT * FROM r ORDER BY r.k",
        json!({"orderBy": ["Ascending"], "orderByExpressions": ["r.k"],
            "rewrittenQuery": "SELECT r._rid, [{\"item\": r.k}] AS orderByItems, r AS payload FROM r WHERE ({F}) ORDER BY r.k"}),
    );
    check(
        "SELECT * FROM r WHERE r.x = 1 ORDER BY r.k DESC",
        json!({"orderBy": ["Descending"], "orderByExpressions": ["r.k"],
            "rewrittenQuery": "SELECT r._rid, [{\"item\": r.k}] AS orderByItems, r AS payload FROM r WHERE ((r.x = 1) AND ({F})) ORDER BY r.k DESC"}),
    );
    check(
        "SELECT TOP 10 * FROM r ORDER BY r.k",
        json!({"top": 10, "orderBy": ["Ascending"], "orderByExpressions": ["r.k"],
            "rewrittenQuery": "SELECT TOP 10 r._rid, [{\"item\": r.k}] AS orderByItems, r AS payload FROM r WHERE ({F}) ORDER BY r.k"}),
    );
    check(
        "SELECT c.a, c.b FROM c ORDER BY c.k",
        json!({"orderBy": ["Ascending"], "orderByExpressions": ["c.k"],
            "rewrittenQuery": "SELECT c._rid, [{\"item\": c.k}] AS orderByItems, {\"a\": c.a, \"b\": c.b} AS payload FROM c WHERE ({F}) ORDER BY c.k"}),
    );
    check(
        "SELECT VALUE c.a FROM c ORDER BY c.k",
        json!({"hasSelectValue": true, "orderBy": ["Ascending"], "orderByExpressions": ["c.k"],
            "rewrittenQuery": "SELECT c._rid, [{\"item\": c.k}] AS orderByItems, c.a AS payload FROM c WHERE (({F}) AND IS_DEFINED(c.a)) ORDER BY c.k"}),
    );
    check(
        "SELECT * FROM c ORDER BY c.f1 ASC, c.f2 DESC",
        json!({"orderBy": ["Ascending", "Descending"], "orderByExpressions": ["c.f1", "c.f2"],
            "rewrittenQuery": "SELECT c._rid, [{\"item\": c.f1}, {\"item\": c.f2}] AS orderByItems, c AS payload FROM c WHERE ({F}) ORDER BY c.f1 ASC, c.f2 DESC"}),
    );
    check(
        "SELECT r[0] FROM r ORDER BY r.k",
        json!({"orderBy": ["Ascending"], "orderByExpressions": ["r.k"],
            "rewrittenQuery": "SELECT r._rid, [{\"item\": r.k}] AS orderByItems, {\"$1\": r[0]} AS payload FROM r WHERE ({F}) ORDER BY r.k"}),
    );
    check(
        "SELECT t FROM root AS c JOIN t IN c['tags'] ORDER BY c['na me'].b",
        json!({"orderBy": ["Ascending"], "orderByExpressions": ["c[\"na me\"].b"],
            "rewrittenQuery": "SELECT c._rid, [{\"item\": c[\"na me\"].b}] AS orderByItems, {\"t\": t} AS payload FROM root AS c JOIN t IN c[\"tags\"] WHERE ({F}) ORDER BY c[\"na me\"].b"}),
    );
}

#[test]
fn clauses_are_separated_by_newlines() {
    let plan = plan("SELECT * FROM c WHERE c.a = 'x' ORDER BY c.k");
    assert_eq!(
        plan["queryInfo"]["rewrittenQuery"],
        format!(
            "SELECT c._rid, [{{\"item\": c.k}}] AS orderByItems, c AS payload\nFROM c\nWHERE ((c.a = \"x\") AND ({FILTER}))\nORDER BY c.k"
        )
    );
}

#[test]
fn offset_and_limit() {
    check(
        "SELECT * FROM c OFFSET 1 LIMIT 2",
        json!({"offset": 1, "limit": 2, "rewrittenQuery": "SELECT * FROM c OFFSET 0 LIMIT 3"}),
    );
    check(
        "SELECT * FROM c WHERE c.pk = 'a' OFFSET 1 LIMIT @n",
        json!({"offset": 1, "limit": 7, "rewrittenQuery": "SELECT * FROM c WHERE (c.pk = \"a\") OFFSET 0 LIMIT 8"}),
    );
    check(
        "SELECT * FROM c ORDER BY c.k OFFSET 1 LIMIT 2",
        json!({"offset": 1, "limit": 2, "orderBy": ["Ascending"], "orderByExpressions": ["c.k"],
            "rewrittenQuery": "SELECT c._rid, [{\"item\": c.k}] AS orderByItems, c AS payload FROM c WHERE ({F}) ORDER BY c.k OFFSET 0 LIMIT 3"}),
    );
    check("SELECT TOP 5 * FROM c", json!({"top": 5}));
    check("SELECT TOP @n * FROM c", json!({"top": 7}));
    check("SELECT * FROM c", json!({}));
    check("SELECT VALUE c.a FROM c JOIN t IN c.tags WHERE c.b > @unbound", json!({"hasSelectValue": true}));
}

#[test]
fn distinct() {
    check("SELECT DISTINCT c.a FROM c", json!({"distinctType": "Unordered"}));
    check(
        "SELECT DISTINCT TOP 5 VALUE c.a FROM c",
        json!({"distinctType": "Unordered", "top": 5, "hasSelectValue": true,
            "rewrittenQuery": "SELECT DISTINCT VALUE c.a FROM c"}),
    );
    check(
        "SELECT DISTINCT VALUE c.a FROM c OFFSET 1 LIMIT 2",
        json!({"distinctType": "Unordered", "offset": 1, "limit": 2, "hasSelectValue": true,
            "rewrittenQuery": "SELECT DISTINCT VALUE c.a FROM c"}),
    );
    check(
        "SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a",
        json!({"distinctType": "Ordered", "hasSelectValue": true, "orderBy": ["Ascending"], "orderByExpressions": ["c.a"],
            "rewrittenQuery": "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, c.a AS payload FROM c WHERE (({F}) AND IS_DEFINED(c.a)) ORDER BY c.a"}),
    );
    for (text, expected) in [
        ("SELECT DISTINCT VALUE c.a FROM c ORDER BY c['a'] DESC", "Ordered"),
        ("SELECT DISTINCT VALUE c.a FROM c ORDER BY c.b", "Unordered"),
        ("SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a, c.b", "Unordered"),
        ("SELECT DISTINCT c.a FROM c ORDER BY c.a", "Unordered"),
        ("SELECT DISTINCT VALUE 1", "None"),
        ("SELECT DISTINCT VALUE 1 FROM c", "Unordered"),
        ("SELECT DISTINCT VALUE COUNT(1) FROM c", "Unordered"),
    ] {
        assert_eq!(plan(text)["queryInfo"]["distinctType"], expected, "{text}");
    }
}

#[test]
fn value_aggregates() {
    let expected = |kind: &str, query: &str| json!({"aggregates": [kind], "hasSelectValue": true, "rewrittenQuery": query});
    for (text, kind, rewritten) in [
        ("SELECT VALUE COUNT(1) FROM c", "Count", "SELECT VALUE [{\"item\": COUNT(1)}] FROM c"),
        ("SELECT VALUE sum(c.x) FROM c", "Sum", "SELECT VALUE [{\"item\": SUM(c.x)}] FROM c"),
        (
            "SELECT VALUE AVG(c.x) FROM c WHERE c.y = 1",
            "Average",
            "SELECT VALUE [{\"item\": {\"sum\": SUM(c.x), \"count\": COUNT(c.x)}}] FROM c WHERE (c.y = 1)",
        ),
        (
            "SELECT VALUE MIN(c.x) FROM c",
            "Min",
            "SELECT VALUE [{\"item\": MIN(c.x), \"item2\": {\"min\": MIN(c.x), \"count\": COUNT(c.x)}}] FROM c",
        ),
        (
            "SELECT VALUE MAX(c.x) FROM c",
            "Max",
            "SELECT VALUE [{\"item\": MAX(c.x), \"item2\": {\"max\": MAX(c.x), \"count\": COUNT(c.x)}}] FROM c",
        ),
        ("SELECT VALUE MAKELIST(c.x) FROM c", "MakeList", "SELECT VALUE [{\"item\": MAKELIST(c.x)}] FROM c"),
        ("SELECT VALUE MAKESET(c.x) FROM c", "MakeSet", "SELECT VALUE [{\"item\": MAKESET(c.x)}] FROM c"),
        (
            "SELECT VALUE COUNTIF(c.x > 1) FROM c",
            "CountIf",
            "SELECT VALUE [{\"item\": COUNTIF((c.x > 1))}] FROM c",
        ),
        (
            "SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags",
            "Count",
            "SELECT VALUE [{\"item\": COUNT(1)}] FROM c JOIN t IN c.tags",
        ),
    ] {
        check(text, expected(kind, rewritten));
    }
    check(
        "SELECT DISTINCT TOP 5 VALUE COUNT(1) FROM c",
        json!({"aggregates": ["Count"], "hasSelectValue": true, "distinctType": "Unordered", "top": 5,
            "rewrittenQuery": "SELECT VALUE [{\"item\": COUNT(1)}] FROM c"}),
    );
    check(
        "SELECT VALUE COUNT(1) FROM c OFFSET 0 LIMIT 1",
        json!({"aggregates": ["Count"], "hasSelectValue": true, "offset": 0, "limit": 1,
            "rewrittenQuery": "SELECT VALUE [{\"item\": COUNT(1)}] FROM c"}),
    );
    check(
        "SELECT VALUE COUNT(r.key) FROM r WHERE true ORDER BY r.key",
        json!({"aggregates": ["Count"], "hasSelectValue": true,
            "rewrittenQuery": "SELECT VALUE [{\"item\": COUNT(r.key)}] FROM r WHERE true"}),
    );
}

#[test]
fn list_aggregates() {
    check(
        "SELECT COUNT(1) AS n, AVG(c.x) FROM c",
        json!({"groupByAliases": ["n", "$1"], "groupByAliasToAggregateType": {"n": "Count", "$1": "Average"},
            "rewrittenQuery": "SELECT {\"n\": {\"item\": COUNT(1)}, \"$1\": {\"item\": {\"sum\": SUM(c.x), \"count\": COUNT(c.x)}}} AS payload FROM c"}),
    );
    check(
        "SELECT COUNT(r) From r",
        json!({"groupByAliases": ["$1"], "groupByAliasToAggregateType": {"$1": "Count"},
            "rewrittenQuery": "SELECT {\"$1\": {\"item\": COUNT(r)}} AS payload FROM r"}),
    );
}

#[test]
fn group_by() {
    check(
        "SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g",
        json!({"groupByExpressions": ["c.g"], "groupByAliases": ["g", "n"],
            "groupByAliasToAggregateType": {"g": null, "n": "Count"},
            "rewrittenQuery": "SELECT [{\"item\": c.g}] AS groupByItems, {\"g\": c.g, \"n\": {\"item\": COUNT(1)}} AS payload FROM c GROUP BY c.g"}),
    );
    check(
        "SELECT VALUE COUNT(1) FROM c GROUP BY c.g",
        json!({"groupByExpressions": ["c.g"], "aggregates": ["Count"], "hasSelectValue": true,
            "rewrittenQuery": "SELECT [{\"item\": c.g}] AS groupByItems, [{\"item\": COUNT(1)}] AS payload FROM c GROUP BY c.g"}),
    );
    check(
        "SELECT VALUE c.g FROM c GROUP BY c.g",
        json!({"groupByExpressions": ["c.g"], "hasSelectValue": true,
            "rewrittenQuery": "SELECT [{\"item\": c.g}] AS groupByItems, c.g AS payload FROM c GROUP BY c.g"}),
    );
    check(
        "SELECT c.g, c.h, MIN(c.age) AS low FROM c WHERE c.x = 1 GROUP BY c.g, c.h",
        json!({"groupByExpressions": ["c.g", "c.h"], "groupByAliases": ["g", "h", "low"],
            "groupByAliasToAggregateType": {"g": null, "h": null, "low": "Min"},
            "rewrittenQuery": "SELECT [{\"item\": c.g}, {\"item\": c.h}] AS groupByItems, {\"g\": c.g, \"h\": c.h, \"low\": {\"item\": MIN(c.age), \"item2\": {\"min\": MIN(c.age), \"count\": COUNT(c.age)}}} AS payload FROM c WHERE (c.x = 1) GROUP BY c.g, c.h"}),
    );
    check(
        "SELECT TOP 3 c.g FROM c GROUP BY c.g ORDER BY c.g",
        json!({"groupByExpressions": ["c.g"], "groupByAliases": ["g"], "groupByAliasToAggregateType": {"g": null}, "top": 3,
            "rewrittenQuery": "SELECT [{\"item\": c.g}] AS groupByItems, {\"g\": c.g} AS payload FROM c GROUP BY c.g"}),
    );
}

#[test]
fn distinct_counts() {
    check(
        "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.x FROM c)",
        json!({"distinctType": "Unordered", "hasSelectValue": true, "dCountInfo": {"dCountAlias": ""},
            "rewrittenQuery": "SELECT DISTINCT VALUE c.x FROM c"}),
    );
    check(
        "SELECT COUNT(1) AS n FROM (SELECT DISTINCT VALUE c.x FROM c) AS d",
        json!({"distinctType": "Unordered", "dCountInfo": {"dCountAlias": "n"},
            "rewrittenQuery": "SELECT DISTINCT VALUE c.x FROM c"}),
    );
}

#[test]
fn unsupported_features_are_named() {
    for (features, text, missing) in [
        (PYTHON, "SELECT COUNT(1) FROM c", "NonValueAggregate"),
        (PYTHON, "SELECT c.g FROM c GROUP BY c.g", "GroupBy"),
        (PYTHON, "SELECT COUNT(1), SUM(c.x) FROM c", "NonValueAggregate, MultipleAggregates"),
        (PYTHON, "SELECT VALUE MAKELIST(c.x) FROM c", "ListAndSetAggregate"),
        (RUST, "SELECT VALUE COUNT(1) FROM c", "Aggregate"),
        (RUST, "SELECT VALUE AVG(c.x) FROM c", "Aggregate"),
        (RUST, "SELECT TOP 1 * FROM c ORDER BY RANK FullTextScore(c.t, 'a')", "HybridSearch"),
        (JAVASCRIPT, "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.x FROM c)", "DCount"),
        (
            "",
            "SELECT DISTINCT TOP 1 c.a FROM c ORDER BY c.a, c.b OFFSET 1 LIMIT 1",
            "Distinct, OrderBy, MultipleOrderBy, Top, OffsetAndLimit",
        ),
    ] {
        let error = plan_with(text, &SupportedFeatures::parse(features)).unwrap_err();
        assert_eq!(
            error.service_message(),
            format!(
                "Query contains the following features, which the calling client does not support: {missing}"
            ),
            "{text}"
        );
    }
    for (features, text) in [
        (PYTHON, "SELECT VALUE AVG(c.x) FROM c"),
        (PYTHON, "SELECT DISTINCT TOP 5 VALUE c.a FROM c ORDER BY c.a, c.b"),
        (JAVASCRIPT, "SELECT c.g, COUNT(1), MAKESET(c.x), COUNTIF(c.y) FROM c GROUP BY c.g"),
        (RUST, "SELECT TOP 5 * FROM c ORDER BY VectorDistance(c.near, [1])"),
        ("", "SELECT c.a FROM c JOIN t IN c.tags WHERE t = 1"),
    ] {
        assert!(plan_with(text, &SupportedFeatures::parse(features)).is_ok(), "{text}");
    }
}

#[test]
fn queries_without_a_plan() {
    for (text, message) in [
        (
            "SELECT VALUE FLOOR(AVG(c.x)) FROM c",
            "{\"Errors\":[\"Compositions of aggregates and other expressions are not allowed.\"]}",
        ),
        ("SELECT VALUE {'sum': SUM(c.x)} FROM c", "Compositions of aggregates"),
        ("SELECT VALUE [SUM(c.x)] FROM c", "Compositions of aggregates"),
        ("SELECT c.g, ABS(AVG(c.x)) FROM c GROUP BY c.g", "Compositions of aggregates"),
        ("SELECT * FROM c ORDER BY LOWER(c.x)", "\"code\":\"SC2206\""),
        ("SELECT * FROM c ORDER BY c.x + 1", "\"code\":\"SC2206\""),
        ("SELECT VALUE x FROM (SELECT DISTINCT VALUE c.x FROM c) x", "cannot be merged across partitions"),
        ("SELECT BADFUNC(c.x) FROM c", "\"location\":{\"start\":7,\"end\":14}"),
    ] {
        let error = plan_with(text, &SupportedFeatures::all()).unwrap_err();
        assert!(error.service_message().contains(message), "{text}: {}", error.service_message());
    }
}

#[test]
fn ranges() {
    use protocol::partition::{PartitionKey, effective_key, prefix_range};
    let one = PartitionKeyDefinition::hash("/pk").unwrap();
    let two = PartitionKeyDefinition::multi_hash(&["/a", "/b"]).unwrap();
    let ranges = |text: &str, definition: &PartitionKeyDefinition| {
        let statement = Statement::prepare(text, &[], &QuerySchema::default()).unwrap();
        let plan = statement.gateway_plan(definition, &SupportedFeatures::all()).unwrap();
        serde_json::to_value(plan.query_ranges).unwrap()
    };
    let point = |hex: String| json!({"min": hex, "max": hex, "isMinInclusive": true, "isMaxInclusive": true});
    let of = |value: &str| effective_key(&one, &PartitionKey::single(value)).to_hex();
    let full = json!([{"min": "", "max": "FF", "isMinInclusive": true, "isMaxInclusive": false}]);
    let no_match = json!([point(String::new())]);
    assert_eq!(ranges("SELECT * FROM c", &one), full);
    assert_eq!(ranges("SELECT * FROM c WHERE c.pk > 'a'", &one), full);
    assert_eq!(ranges("SELECT * FROM c WHERE c.pk LIKE 'a%'", &one), full);
    assert_eq!(ranges("SELECT * FROM c WHERE c.pk = 'a'", &one), json!([point(of("a"))]));
    assert_eq!(ranges("SELECT * FROM c WHERE c.pk LIKE 'a'", &one), json!([point(of("a"))]));
    let mut several = [of("a"), of("b"), of("c")];
    several.sort();
    assert_eq!(
        ranges("SELECT * FROM c WHERE c.pk IN ('c', 'a', 'b', 'a') OR c.pk = 'b'", &one),
        Json::Array(several.into_iter().map(point).collect())
    );
    let single = |key: PartitionKey| json!([point(effective_key(&one, &key).to_hex())]);
    assert_eq!(ranges("SELECT * FROM c WHERE c.pk", &one), single(PartitionKey::single(true)));
    assert_eq!(ranges("SELECT * FROM c WHERE NOT c.pk", &one), single(PartitionKey::single(false)));
    assert_eq!(ranges("SELECT * FROM c WHERE c.pk = 0", &one), single(PartitionKey::single(0.0)));
    for text in
        ["SELECT VALUE 1", "SELECT * FROM c WHERE false", "SELECT * FROM c WHERE c.pk = 'a' AND c.pk = 'b'"]
    {
        assert_eq!(ranges(text, &one), no_match, "{text}");
    }
    let prefix = prefix_range(&two, &PartitionKey::single("x"));
    let expected = json!([{"min": prefix.min.to_hex(), "max": prefix.max.to_hex(), "isMinInclusive": true, "isMaxInclusive": false}]);
    assert_eq!(prefix.max.to_hex(), format!("{}FF", prefix.min.to_hex()));
    assert_eq!(ranges("SELECT * FROM c WHERE c.a = 'x'", &two), expected);
    assert_eq!(ranges("SELECT * FROM c WHERE c.a = 'x' OR c.a = 'x' AND c.b = 'y'", &two), expected);
    let both = effective_key(&two, &PartitionKey::new(vec!["x".into(), "y".into()])).to_hex();
    assert_eq!(ranges("SELECT * FROM c WHERE c.a = 'x' AND c.b = 'y'", &two), json!([point(both)]));
}

#[test]
fn rewritten_queries_can_be_prepared() {
    for text in [
        "SELECT * FROM r WHERE r.x = 1 OR r.y LIKE 'a%' ESCAPE '!' ORDER BY r.k DESC",
        "SELECT VALUE {a: c.x, 'b c': [1, null, undefined]} FROM c JOIN t IN c.tags ORDER BY c.k OFFSET 1 LIMIT @n",
        "SELECT DISTINCT TOP @n VALUE c.a ?? 1 FROM c",
        "SELECT c.g, MIN(c.x), AVG(c.y) m FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags) GROUP BY c.g",
        "SELECT COUNT(1), SUM(c.x) FROM c",
        "SELECT TOP 5 * FROM c ORDER BY VectorDistance(c.near, [1, -2.5e-7])",
        "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.x FROM c)",
    ] {
        check_readable(text);
    }
}
