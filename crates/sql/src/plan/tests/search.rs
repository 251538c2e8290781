//! Plans of vector and hybrid search.

use super::*;

#[test]
fn vector_search() {
    let text = "SELECT TOP 10 c.title AS Title, VectorDistance(c.near, @v, true) AS Score FROM c ORDER BY VectorDistance(c.near, @v, true)";
    check(
        text,
        json!({"top": 10, "orderBy": ["Ascending"], "orderByExpressions": ["VectorDistance(c.near, @v, true)"],
            "hasNonStreamingOrderBy": true,
            "rewrittenQuery": "SELECT TOP 10 c._rid, [{\"item\": VectorDistance(c.near, @v, true)}] AS orderByItems, {\"Title\": c.title, \"Score\": VectorDistance(c.near, @v, true)} AS payload FROM c WHERE ({F}) ORDER BY VectorDistance(c.near, @v, true)"}),
    );
    for (text, expected) in [
        ("SELECT TOP 1 * FROM c ORDER BY VectorDistance(c.alike, [1])", "Descending"),
        ("SELECT TOP 1 * FROM c ORDER BY VectorDistance(c.other, [1])", "Descending"),
        (
            "SELECT TOP 1 * FROM c ORDER BY VectorDistance(c.alike, [1], false, {distanceFunction: 'euclidean'})",
            "Ascending",
        ),
        (
            "SELECT TOP 1 * FROM c ORDER BY VectorDistance(c.near, [1], true, {'distanceFunction': 'dotproduct'})",
            "Descending",
        ),
    ] {
        assert_eq!(plan(text)["queryInfo"]["orderBy"], json!([expected]), "{text}");
    }
}

#[test]
fn hybrid_search_with_one_score() {
    let plan = plan("SELECT TOP 10 * FROM c ORDER BY RANK FullTextScore(c.text, \"swim\", \"run\")");
    assert!(plan.get("queryInfo").is_none());
    let info = &plan["hybridSearchQueryInfo"];
    assert_eq!(
        info["globalStatisticsQuery"],
        "SELECT COUNT(1) AS documentCount, [{\"totalWordCount\": SUM(_FullTextWordCount(c.text)), \"hitCounts\": [COUNTIF(FullTextContains(c.text, \"swim\")), COUNTIF(FullTextContains(c.text, \"run\"))]}] AS fullTextStatistics\nFROM c"
    );
    let score = "_FullTextScore(c.text, [\"swim\", \"run\"], {documentdb-formattablehybridsearchquery-totaldocumentcount}, {documentdb-formattablehybridsearchquery-totalwordcount-0}, {documentdb-formattablehybridsearchquery-hitcountsarray-0})";
    assert_eq!(
        notable(&info["componentQueryInfos"][0]),
        json!({"top": 120, "orderBy": ["Descending"], "orderByExpressions": [score], "hasNonStreamingOrderBy": true,
            "rewrittenQuery": format!("SELECT TOP 120 c._rid, [{{\"item\": {score}}}] AS orderByItems, {{\"payload\": c, \"componentScores\": [({score} ?? -1)]}} AS payload FROM c WHERE ({{F}}) ORDER BY {score} DESC")})
    );
    assert_eq!((&info["skip"], &info["take"]), (&json!(null), &json!(10)));
    assert_eq!(info["requiresGlobalStatistics"], true);
    assert_eq!(info["componentWeights"], json!([]));
    assert_eq!(info["componentWithoutPayloadQueryInfos"], json!([]));
    assert_eq!(
        plan["queryRanges"],
        json!([{"min": "", "max": "FF", "isMinInclusive": true, "isMaxInclusive": false}])
    );
}

#[test]
fn hybrid_search_with_several_scores_and_weights() {
    let plan = plan(
        "SELECT c.title FROM c WHERE c.a = 1 ORDER BY RANK RRF(VectorDistance(c.alike, [1, 2]), FullTextScore(c.text, @terms), [1, -0.5]) OFFSET 5 LIMIT 10",
    );
    let info = &plan["hybridSearchQueryInfo"];
    let text = "_FullTextScore(c.text, [\"a\", \"b\"], {documentdb-formattablehybridsearchquery-totaldocumentcount}, {documentdb-formattablehybridsearchquery-totalwordcount-0}, {documentdb-formattablehybridsearchquery-hitcountsarray-0})";
    let scores = format!("[(_VectorScore(c.alike, [1, 2]) ?? -1.79769e+308), ({text} ?? 1.79769e+308)]");
    assert_eq!(
        notable(&info["componentQueryInfos"][0]),
        json!({"limit": 30, "orderBy": ["Descending"], "orderByExpressions": ["_VectorScore(c.alike, [1, 2])"], "hasNonStreamingOrderBy": true,
            "rewrittenQuery": format!("SELECT c._rid, [{{\"item\": _VectorScore(c.alike, [1, 2])}}] AS orderByItems, {{\"payload\": {{\"title\": c.title}}, \"componentScores\": {scores}}} AS payload FROM c WHERE ((c.a = 1) AND ({{F}})) ORDER BY _VectorScore(c.alike, [1, 2]) OFFSET 0 LIMIT 30")})
    );
    assert_eq!(notable(&info["componentQueryInfos"][1])["orderBy"], json!(["Ascending"]));
    assert_eq!(info["componentWeights"], json!([1.0, 0.5]));
    assert_eq!((&info["skip"], &info["take"]), (&json!(5), &json!(10)));
}

#[test]
fn hybrid_search_over_vectors_needs_no_statistics() {
    let plan = plan(
        "SELECT TOP 100 * FROM c ORDER BY RANK RRF(VectorDistance(c.near, [1]), VectorDistance(c.alike, [1]))",
    );
    let info = &plan["hybridSearchQueryInfo"];
    assert_eq!(info["requiresGlobalStatistics"], false);
    assert_eq!(
        info["globalStatisticsQuery"],
        "SELECT COUNT(1) AS documentCount, [] AS fullTextStatistics\nFROM c"
    );
    assert_eq!(info["componentQueryInfos"][1]["top"], 200);
}

#[test]
fn component_queries_can_be_run() {
    let plan = plan(
        "SELECT TOP 1 VALUE c.id FROM c ORDER BY RANK RRF(VectorDistance(c.near, [1]), FullTextScore(c.text, 'x'))",
    );
    let info = &plan["hybridSearchQueryInfo"];
    let mut texts = vec![info["globalStatisticsQuery"].as_str().unwrap()];
    texts.extend(
        info["componentQueryInfos"]
            .as_array()
            .unwrap()
            .iter()
            .map(|info| info["rewrittenQuery"].as_str().unwrap()),
    );
    for text in texts {
        let text = text
            .replace(FILTER, "true")
            .replace("{documentdb-formattablehybridsearchquery-totaldocumentcount}", "2")
            .replace("{documentdb-formattablehybridsearchquery-totalwordcount-0}", "9")
            .replace("{documentdb-formattablehybridsearchquery-hitcountsarray-0}", "[1]");
        let statement =
            Statement::prepare(&text, &[], &schema()).unwrap_or_else(|error| panic!("{text}: {error}"));
        let documents: Vec<Value> = [
            "{\"_rid\":\"r\",\"id\":\"a\",\"near\":[3],\"text\":\"x y\"}",
            "{\"_rid\":\"s\",\"id\":\"b\",\"near\":[1]}",
        ]
        .iter()
        .map(|text| crate::value::parse(text.as_bytes()).unwrap())
        .collect();
        let rows = crate::run_reference(&statement, &documents, crate::QueryContext::default()).unwrap();
        assert!(!rows.is_empty(), "{text}");
        if text.contains("ORDER BY _VectorScore") {
            assert_eq!(rows[0].member("_rid"), &Value::from("s"), "the nearest comes first");
            assert_eq!(rows[0].member("payload").member("componentScores").to_string(), "[-0,-1]");
        }
    }
}
