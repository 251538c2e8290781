//! Queries as requests: scopes, pages, headers, plans.

use base64::Engine as _;
use serde_json::{Value, json};

use super::fixture::{CompatibilityFixture, DOCS, KEY};
use super::{LiveResponse, PlanCase, Probe, Probes, ignored, refused, supported};

pub(super) fn probes() -> Probes {
    let mut probes = vec![
        ("query-request", supported!(query_request)),
        ("query-parameters", supported!(query_parameters)),
        ("query-key", supported!(query_key)),
        ("query-range", supported!(query_range)),
        ("query-epk", supported!(query_epk)),
        ("query-epk-point", refused!(query_epk_point, "x-ms-read-key-type")),
        ("query-cross-partition", supported!(query_cross_partition)),
        (
            "query-cross-partition-off",
            refused!(query_cross_partition_off, "x-ms-documentdb-query-enablecrosspartition"),
        ),
        ("query-key-in-filter", supported!(query_key_in_filter)),
        ("query-without-from", supported!(query_without_from)),
        ("query-merge", supported!(query_merge)),
        ("query-max-item-count", supported!(query_max_item_count)),
        ("query-continuation", supported!(query_continuation)),
        ("query-bad-continuation", refused!(query_bad_continuation, "Invalid Continuation Token")),
        ("query-continuation-limit", supported!(query_continuation_limit)),
        ("query-metrics", supported!(query_metrics)),
        ("query-index-metrics", supported!(query_index_metrics)),
        ("query-index-metrics-v2", supported!(query_index_metrics_v2)),
        ("query-advice", Probe::IgnoredHeader("x-ms-cosmos-populatequeryadvice", "true")),
        ("query-enable-scan", Probe::IgnoredHeader("x-ms-documentdb-query-enable-scan", "true")),
        (
            "query-parallelize",
            Probe::IgnoredHeader("x-ms-documentdb-query-parallelizecrosspartitionquery", "true"),
        ),
        (
            "query-continuation-expected",
            Probe::IgnoredHeader("x-ms-documentdb-query-iscontinuationexpected", "False"),
        ),
        ("query-optimistic", supported!(query_optimistic)),
        ("query-body", refused!(query_body, "'more' is not supported")),
        ("query-resume-filter", supported!(query_resume_filter)),
        (
            "query-correlation",
            Probe::IgnoredHeader("x-ms-cosmos-correlated-activityid", "8af85aa5-0000-0000-0000-000000000000"),
        ),
        ("query-thin-client-hints", Probe::IgnoredHeader("x-ms-thinclient-pkrange-max", "FF")),
        ("query-dedicated-gateway", Probe::IgnoredHeader("x-ms-dedicatedgateway-max-age", "1000")),
        ("query-text-limit", supported!(query_text_limit)),
        ("query-effort", refused!(query_work_budget, "too much work")),
        ("query-errors", supported!(query_errors)),
        ("query-index-use", supported!(query_index_use)),
        ("plan-request", supported!(plan_request)),
        ("plan-ranges", supported!(plan_ranges)),
        ("plan-unsupported-features", supported!(plan_unsupported_features)),
        ("plan-hybrid-skip-rewrite", ignored!(plan_hybrid_skip_rewrite)),
    ];
    probes.extend(PLANS.iter().map(|(id, cases)| (*id, Probe::Plans(cases))));
    probes
}

const CROSS: (&str, &str) = ("x-ms-documentdb-query-enablecrosspartition", "True");
const RANGE: (&str, &str) = ("x-ms-documentdb-partitionkeyrangeid", "0");
const FEATURES: &str = "NonValueAggregate,Aggregate,Distinct,MultipleOrderBy,OffsetAndLimit,OrderBy,Top,CompositeAggregate,\
    GroupBy,MultipleAggregates,NonStreamingOrderBy,ListAndSetAggregate,CountIf,HybridSearch,WeightedRankFusion,DCount";

async fn query_request(fixture: &CompatibilityFixture) {
    let body = json!({"query": "SELECT VALUE 1"});
    let by_type =
        fixture.account.post(DOCS, &[KEY, ("content-type", "application/query+json")], body.clone()).await;
    let by_header = fixture.account.post(DOCS, &[KEY, ("x-ms-documentdb-isquery", "True")], body).await;
    assert_eq!(
        (by_type.expect(200).documents(), by_header.expect(200).documents()),
        (&[json!(1)][..], &[json!(1)][..])
    );
}

async fn query_parameters(fixture: &CompatibilityFixture) {
    for name in ["@n", "n"] {
        let body = json!({"query": "SELECT VALUE c.id FROM c WHERE c.n = @n", "parameters": [{"name": name, "value": 2}]});
        let found =
            fixture.account.post(DOCS, &[KEY, ("x-ms-documentdb-isquery", "true")], body).await.expect(200);
        assert_eq!(found.documents(), [json!("2")]);
    }
    fixture.account.query("SELECT @missing", &[KEY]).await.expect(400);
}

async fn query_key(fixture: &CompatibilityFixture) {
    let other = ("x-ms-documentdb-partitionkey", r#"["nobody"]"#);
    assert!(fixture.account.query("SELECT * FROM c", &[other]).await.expect(200).documents().is_empty());
    assert_eq!(fixture.account.query("SELECT * FROM c", &[KEY]).await.expect(200).documents().len(), 3);
}

async fn query_range(fixture: &CompatibilityFixture) {
    fixture.account.query("SELECT * FROM c", &[RANGE]).await.expect(200);
    let gone = fixture
        .account
        .query("SELECT * FROM c", &[("x-ms-documentdb-partitionkeyrangeid", "9")])
        .await
        .expect(410);
    assert_eq!(gone.sub_status(), "1002");
}

const EPK: (&str, &str) = ("x-ms-read-key-type", "EffectivePartitionKeyRange");
/// The position of the key `a`, and the next.
const A: (&str, &str) = ("3A5381E1114EB8D3FCC90795045B49B7", "3A5381E1114EB8D3FCC90795045B49B8");

async fn query_epk(fixture: &CompatibilityFixture) {
    let exactly = [RANGE, EPK, ("x-ms-start-epk", A.0), ("x-ms-end-epk", A.1)];
    assert_eq!(fixture.account.query("SELECT * FROM c", &exactly).await.expect(200).documents().len(), 3);
    let nothing = [RANGE, EPK, ("x-ms-start-epk", A.1), ("x-ms-end-epk", A.1)];
    fixture.account.query("SELECT * FROM c", &nothing).await.expect(400);
}

async fn query_epk_point(fixture: &CompatibilityFixture) -> LiveResponse {
    let headers = [RANGE, ("x-ms-read-key-type", "EffectivePartitionKey"), ("x-ms-start-epk", A.0)];
    fixture.account.query("SELECT * FROM c", &headers).await
}

async fn query_cross_partition(fixture: &CompatibilityFixture) {
    let rows = fixture
        .account
        .query("SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.vector)", &[CROSS])
        .await
        .expect(200);
    assert_eq!(rows.documents().len(), 3);
}

async fn query_cross_partition_off(fixture: &CompatibilityFixture) -> LiveResponse {
    fixture.account.query("SELECT * FROM c", &[]).await
}

async fn query_key_in_filter(fixture: &CompatibilityFixture) {
    let rows = fixture
        .account
        .query("SELECT VALUE c.n FROM c WHERE c.pk = 'a' ORDER BY c.n DESC", &[CROSS])
        .await
        .expect(200);
    assert_eq!(rows.documents(), [json!(3), json!(2), json!(1)]);
}

async fn query_without_from(fixture: &CompatibilityFixture) {
    assert_eq!(
        fixture.account.query("SELECT VALUE 1 + 1", &[CROSS]).await.expect(200).documents(),
        [json!(2)]
    );
}

async fn query_merge(fixture: &CompatibilityFixture) {
    let rejected = fixture.account.query("SELECT * FROM c ORDER BY c.n", &[CROSS]).await.expect(400);
    assert_eq!(rejected.sub_status(), "1004");
    let plan: Value = serde_json::from_str(rejected.body["additionalErrorInfo"].as_str().unwrap()).unwrap();
    assert_eq!(plan["queryInfo"]["orderBy"], json!(["Ascending"]));
}

async fn query_max_item_count(fixture: &CompatibilityFixture) {
    let page =
        fixture.account.query("SELECT * FROM c", &[KEY, ("x-ms-max-item-count", "2")]).await.expect(200);
    assert_eq!((page.documents().len(), page.header("x-ms-item-count")), (2, "2"));
    let all =
        fixture.account.query("SELECT * FROM c", &[KEY, ("x-ms-max-item-count", "-1")]).await.expect(200);
    assert_eq!(all.documents().len(), 3);
}

async fn query_continuation(fixture: &CompatibilityFixture) {
    let one = ("x-ms-max-item-count", "1");
    let (mut seen, mut token) = (Vec::new(), String::new());
    loop {
        let mut headers = vec![KEY, one];
        if !token.is_empty() {
            headers.push(("x-ms-continuation", &token));
        }
        let page = fixture.account.query("SELECT VALUE c.id FROM c", &headers).await.expect(200);
        seen.extend_from_slice(page.documents());
        token = page.header("x-ms-continuation").to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen, ["1", "2", "3"]);
}

async fn query_bad_continuation(fixture: &CompatibilityFixture) -> LiveResponse {
    fixture.account.query("SELECT * FROM c", &[KEY, ("x-ms-continuation", "nonsense")]).await
}

async fn query_continuation_limit(fixture: &CompatibilityFixture) {
    let headers =
        [KEY, ("x-ms-max-item-count", "1"), ("x-ms-documentdb-responsecontinuationtokenlimitinkb", "1")];
    let page = fixture.account.query("SELECT * FROM c ORDER BY c.name", &headers).await.expect(200);
    assert!((1..=1024).contains(&page.header("x-ms-continuation").len()));
}

async fn query_optimistic(fixture: &CompatibilityFixture) {
    let headers = [KEY, ("x-ms-cosmos-query-optimisticdirectexecute", "true")];
    let page = fixture.account.query("SELECT VALUE COUNT(1) FROM c", &headers).await.expect(200);
    assert_eq!(page.header("x-ms-cosmos-query-requiresdistribution"), "False");
}

async fn query_body(fixture: &CompatibilityFixture) -> LiveResponse {
    let headers = [KEY, ("x-ms-documentdb-isquery", "true"), ("content-type", "application/query+json")];
    fixture
        .account
        .post("/dbs/d/colls/c/docs", &headers, json!({"query": "SELECT * FROM c", "more": 1}))
        .await
}

async fn query_resume_filter(fixture: &CompatibilityFixture) {
    let headers = [KEY, ("x-ms-documentdb-isquery", "true"), ("content-type", "application/query+json")];
    for (exclude, expected) in [(false, json!([2, 3])), (true, json!([3]))] {
        let filter = json!({"value": [2], "exclude": exclude});
        let body = json!({"query": "SELECT VALUE c.n FROM c ORDER BY c.n", "resumeFilter": filter});
        let page = fixture.account.post("/dbs/d/colls/c/docs", &headers, body).await.expect(200);
        assert_eq!(page.body["Documents"], expected);
    }
}

async fn query_metrics(fixture: &CompatibilityFixture) {
    let requested = [KEY, ("x-ms-documentdb-populatequerymetrics", "True")];
    let metrics = fixture.account.query("SELECT * FROM c", &requested).await.expect(200);
    let header = metrics.header("x-ms-documentdb-query-metrics");
    assert!(header.split(';').all(|pair| pair.split('=').count() == 2), "{header}");
    assert!(header.contains("retrievedDocumentCount=3;"), "{header}");
}

async fn query_index_metrics(fixture: &CompatibilityFixture) {
    let requested = [KEY, ("x-ms-cosmos-populateindexmetrics", "true")];
    let response = fixture.account.query("SELECT * FROM c WHERE c.n = 1", &requested).await.expect(200);
    let text =
        base64::prelude::BASE64_STANDARD.decode(response.header("x-ms-cosmos-index-utilization")).unwrap();
    let metrics: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(metrics["UtilizedSingleIndexes"][0]["IndexSpec"], "/n/?");
}

async fn query_index_metrics_v2(fixture: &CompatibilityFixture) {
    let requested = [KEY, ("x-ms-cosmos-populateindexmetrics-v2", "true")];
    let response = fixture.account.query("SELECT * FROM c WHERE c.n = 1", &requested).await.expect(200);
    let text = percent_encoding::percent_decode_str(response.header("x-ms-cosmos-index-utilization"));
    let metrics: Value = serde_json::from_str(&text.decode_utf8().unwrap()).unwrap();
    assert_eq!(metrics["UtilizedIndexes"]["SingleIndexes"][0]["IndexSpec"], "/n/?");
}

async fn query_text_limit(fixture: &CompatibilityFixture) {
    let long = |bytes: usize| format!("SELECT VALUE 1 --{}", "x".repeat(bytes));
    fixture.account.query(&long(500 * 1024), &[KEY]).await.expect(200);
    fixture.account.query(&long(513 * 1024), &[KEY]).await.expect(400);
}

async fn query_work_budget(fixture: &CompatibilityFixture) -> LiveResponse {
    let doubling = (0..40).fold("SELECT VALUE [1] FROM c".to_owned(), |inner, _| {
        format!("SELECT VALUE [x, x] FROM ({inner}) x")
    });
    fixture.account.query(&doubling, &[KEY]).await
}

async fn query_errors(fixture: &CompatibilityFixture) {
    for (text, code) in [
        ("SELECT * frm c", "SC1001"),
        ("SELECT VALUE x.a FROM c", "SC2001"),
        ("SELECT BADFUNC(1)", "SC2005"),
        ("SELECT * FROM c GROUP BY c.n", "SC2041"),
        ("SELECT STARTSWITH('a')", "SC2050"),
        ("SELECT c.n, COUNT(1) FROM c", "SC2102"),
        ("SELECT VALUE (SELECT TOP 1 VALUE 1)", "SC2203"),
    ] {
        let rejected = fixture.account.query(text, &[KEY]).await.expect(400);
        assert!(
            rejected.message().contains(code) && rejected.message().contains("location"),
            "{text}: {}",
            rejected.message()
        );
    }
}

async fn query_index_use(fixture: &CompatibilityFixture) {
    let requested = [RANGE, ("x-ms-documentdb-populatequerymetrics", "true")];
    for (text, loaded) in [
        ("SELECT * FROM c WHERE c.name = 'Alpha'", "retrievedDocumentCount=1;"),
        ("SELECT * FROM c WHERE STARTSWITH(c.name, 'Al')", "retrievedDocumentCount=1;"),
        ("SELECT * FROM c WHERE c.name IN ('Alpha', 'beta')", "retrievedDocumentCount=2;"),
        ("SELECT VALUE COUNT(1) FROM c", "retrievedDocumentCount=0;"),
    ] {
        let response = fixture.account.query(text, &requested).await.expect(200);
        let header = response.header("x-ms-documentdb-query-metrics");
        assert!(header.contains(loaded), "{text}: {header}");
    }
}

async fn plan_request(fixture: &CompatibilityFixture) {
    let body = json!({"query": "SELECT * FROM c ORDER BY c.n"});
    // Like the Python SDK: no query header, a plain content type.
    let headers = [
        ("x-ms-cosmos-is-query-plan-request", "True"),
        ("x-ms-cosmos-supported-query-features", FEATURES),
        ("content-type", "application/json"),
    ];
    let plan = fixture.account.post(DOCS, &headers, body).await.expect(200).body;
    assert_eq!(plan["partitionedQueryExecutionInfoVersion"], 2);
    assert_eq!(plan["queryInfo"]["aggregates"], json!([]));
}

async fn plan_ranges(fixture: &CompatibilityFixture) {
    let full = fixture.plan("SELECT * FROM c", FEATURES).await.expect(200).body;
    assert_eq!(
        full["queryRanges"],
        json!([{"min": "", "max": "FF", "isMinInclusive": true, "isMaxInclusive": false}])
    );
    let point = fixture.plan("SELECT * FROM c WHERE c.pk = 'a'", FEATURES).await.expect(200).body;
    assert_eq!(
        point["queryRanges"],
        json!([{"min": A.0, "max": A.0, "isMinInclusive": true, "isMaxInclusive": true}])
    );
}

async fn plan_unsupported_features(fixture: &CompatibilityFixture) {
    let rejected = fixture.plan("SELECT c.n, COUNT(1) FROM c GROUP BY c.n", "OrderBy").await.expect(400);
    assert!(
        rejected.message().contains("which the calling client does not support"),
        "{}",
        rejected.message()
    );
}

async fn plan_hybrid_skip_rewrite(fixture: &CompatibilityFixture) -> (LiveResponse, LiveResponse) {
    let query = "SELECT TOP 2 * FROM c ORDER BY RANK FullTextScore(c.text, 'fox')";
    let with = format!("{FEATURES},HybridSearchSkipOrderByRewrite");
    (fixture.plan(query, FEATURES).await, fixture.plan(query, &with).await)
}

/// Queries that need merging, with a JSON pointer into their plan and the expected value.
const PLANS: &[(&str, &[PlanCase])] = &[
    (
        "plan-order-by",
        &[
            ("SELECT * FROM c ORDER BY c.n", "/queryInfo/orderByExpressions", r#"["c.n"]"#),
            ("SELECT * FROM c ORDER BY c.n DESC", "/queryInfo/orderBy", r#"["Descending"]"#),
        ],
    ),
    (
        "plan-multiple-order-by",
        &[("SELECT * FROM c ORDER BY c.n, c.m DESC", "/queryInfo/orderBy", r#"["Ascending","Descending"]"#)],
    ),
    ("plan-top", &[("SELECT TOP 5 * FROM c", "/queryInfo/top", "5")]),
    (
        "plan-offset-limit",
        &[
            ("SELECT * FROM c OFFSET 1 LIMIT 2", "/queryInfo/limit", "2"),
            (
                "SELECT * FROM c OFFSET 1 LIMIT 2",
                "/queryInfo/rewrittenQuery",
                r#""SELECT *\nFROM c\nOFFSET 0 LIMIT 3""#,
            ),
        ],
    ),
    (
        "plan-distinct",
        &[
            ("SELECT DISTINCT c.n FROM c", "/queryInfo/distinctType", r#""Unordered""#),
            ("SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n", "/queryInfo/distinctType", r#""Ordered""#),
        ],
    ),
    ("plan-aggregate", &[("SELECT VALUE SUM(c.n) FROM c", "/queryInfo/aggregates", r#"["Sum"]"#)]),
    (
        "plan-composite-aggregate",
        &[("SELECT VALUE AVG(c.n) FROM c", "/queryInfo/aggregates", r#"["Average"]"#)],
    ),
    (
        "plan-non-value-aggregate",
        &[("SELECT COUNT(1) AS n FROM c", "/queryInfo/groupByAliasToAggregateType", r#"{"n":"Count"}"#)],
    ),
    (
        "plan-multiple-aggregates",
        &[(
            "SELECT MIN(c.n) AS a, MAX(c.n) AS b FROM c",
            "/queryInfo/groupByAliasToAggregateType",
            r#"{"a":"Min","b":"Max"}"#,
        )],
    ),
    (
        "plan-list-and-set",
        &[
            ("SELECT VALUE MAKELIST(c.n) FROM c", "/queryInfo/aggregates", r#"["MakeList"]"#),
            ("SELECT VALUE MAKESET(c.n) FROM c", "/queryInfo/aggregates", r#"["MakeSet"]"#),
        ],
    ),
    ("plan-count-if", &[("SELECT VALUE COUNTIF(c.even) FROM c", "/queryInfo/aggregates", r#"["CountIf"]"#)]),
    (
        "plan-group-by",
        &[("SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n", "/queryInfo/groupByExpressions", r#"["c.n"]"#)],
    ),
    (
        "plan-distinct-count",
        &[(
            "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.n FROM c)",
            "/queryInfo/distinctType",
            r#""Unordered""#,
        )],
    ),
    (
        "plan-vector",
        &[(
            "SELECT TOP 2 c.id FROM c ORDER BY VectorDistance(c.vector, [1,0,0])",
            "/queryInfo/hasNonStreamingOrderBy",
            "true",
        )],
    ),
    (
        "plan-hybrid",
        &[(
            "SELECT TOP 2 * FROM c ORDER BY RANK FullTextScore(c.text, 'fox')",
            "/hybridSearchQueryInfo/requiresGlobalStatistics",
            "true",
        )],
    ),
    (
        "plan-weighted-fusion",
        &[(
            "SELECT TOP 2 * FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'fox'), VectorDistance(c.vector, [1,0,0]), [2, 1])",
            "/hybridSearchQueryInfo/componentWeights",
            "[2.0,1.0]",
        )],
    ),
];

/// Requests each plan and checks the value at the pointer.
pub(super) async fn check_plans(fixture: &CompatibilityFixture, cases: &[PlanCase]) {
    for (query, pointer, expected) in cases {
        let plan = fixture.plan(query, FEATURES).await.expect(200).body;
        let expected: Value = serde_json::from_str(expected).unwrap();
        assert_eq!(plan.pointer(pointer), Some(&expected), "{query}: {plan}");
    }
}
