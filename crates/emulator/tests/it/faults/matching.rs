//! Which requests a rule finds: by operation, by name, by `_rid`, by key, by range, by region.

use perihelion_emulator::faults::FaultRule;

use super::*;

/// Adds a rule with this `match` and returns the requests that it applies to.
async fn matched_requests(
    fixture: &FaultFixture,
    filter: &Value,
    requests: Vec<Request<Full<Bytes>>>,
) -> Vec<bool> {
    let rule = json!({"id": "r", "match": filter, "effect": {"status": 418}});
    fixture.faults().add(FaultRule::from_json(rule.to_string().as_bytes()).unwrap()).unwrap();
    let mut connection = fixture.connect(ClientProtocol::Http2).await;
    let mut matched = Vec::new();
    for request in requests {
        matched.push(connection.send(request).await.unwrap().status == 418);
    }
    matched
}

#[tokio::test]
async fn rules_match_requests_by_operation_and_resource() {
    let fixture = FaultFixture::start().await;
    let query = [("x-ms-documentdb-isquery", "true"), ("content-type", "application/query+json")];
    let plan = [query[0], query[1], ("x-ms-cosmos-is-query-plan-request", "True")];
    let upsert = [("x-ms-documentdb-is-upsert", "True"), ("x-ms-documentdb-partitionkey", r#"["u"]"#)];
    let docs = "/dbs/d/colls/c/docs";
    let requests = || {
        vec![
            ("account", fixture.account()),
            ("container", fixture.request(Method::GET, "/dbs/d/colls/c", &[], "")),
            ("ranges", fixture.request(Method::GET, "/dbs/d/colls/c/pkranges", &[], "")),
            ("read", fixture.read("there")),
            ("create", fixture.create("there")),
            ("upsert", fixture.request(Method::POST, docs, &upsert, r#"{"id":"u","pk":"u"}"#)),
            ("query", fixture.request(Method::POST, docs, &query, r#"{"query":"SELECT 1"}"#)),
            ("plan", fixture.request(Method::POST, docs, &plan, r#"{"query":"SELECT 1"}"#)),
            ("feed", fixture.request(Method::GET, docs, &[], "")),
            ("changes", fixture.request(Method::GET, docs, &[("a-im", "Incremental Feed")], "")),
            ("nonsense", fixture.request(Method::PUT, docs, &[], "")),
        ]
    };
    let cases: [(Value, &[&str]); 12] = [
        (json!({"operations": ["read"]}), &["read"]),
        (json!({"operations": ["create", "upsert"]}), &["create", "upsert"]),
        (json!({"operations": ["write"]}), &["create", "upsert"]),
        (json!({"operations": ["query"]}), &["query"]),
        (json!({"operations": ["queryPlan", "readFeed", "changeFeed"]}), &["plan", "feed", "changes"]),
        (json!({"operations": ["metadata"]}), &["account", "container", "ranges"]),
        (json!({"resources": ["account"]}), &["account"]),
        (json!({"operations": ["read"], "resources": ["container"]}), &["container"]),
        (json!({"resources": ["partitionKeyRange"]}), &["ranges"]),
        (json!({"methods": ["PUT"]}), &["nonsense"]),
        (json!({"database": "d", "resources": ["container"]}), &["container"]),
        (json!({"container": "other"}), &[]),
    ];
    for (filter, expected) in cases {
        let (names, requests): (Vec<_>, Vec<_>) = requests().into_iter().unzip();
        let matched = matched_requests(&fixture, &filter, requests).await;
        let found: Vec<_> = names.into_iter().zip(matched).filter(|(_, matched)| *matched).collect();
        assert_eq!(found.iter().map(|(name, _)| *name).collect::<Vec<_>>(), expected, "{filter}");
    }
}

#[tokio::test]
async fn a_container_is_found_under_its_rid_too() {
    let fixture = FaultFixture::start().await;
    let response = fixture
        .connect(ClientProtocol::Http1)
        .await
        .send(fixture.request(Method::GET, "/dbs/d/colls/c", &[], ""))
        .await;
    let connection = response.unwrap().body["_self"].as_str().unwrap().to_owned();
    let path = format!("/{}docs", connection.replace("//", "/"));
    let filter = json!({"database": "d", "container": "c"});
    assert_eq!(
        matched_requests(&fixture, &filter, vec![fixture.request(Method::GET, &path, &[], "")]).await,
        [true]
    );
}

#[tokio::test]
async fn a_partition_is_found_by_its_key_and_by_its_range() {
    let fixture = FaultFixture::start().await;
    let ids: Vec<String> = (0..20).map(|n| format!("k{n}")).collect();
    let reads = || ids.iter().map(|id| fixture.read(id)).collect::<Vec<_>>();
    for key in [json!("k3"), json!(["k3"])] {
        let found = matched_requests(&fixture, &json!({ "partitionKey": key }), reads()).await;
        assert_eq!(found.iter().position(|matched| *matched), Some(3));
        assert_eq!(found.iter().filter(|matched| **matched).count(), 1);
    }
    let first = matched_requests(&fixture, &json!({"partitionKeyRange": 0}), reads()).await;
    let second = matched_requests(&fixture, &json!({"partitionKeyRange": 1}), reads()).await;
    assert!(first.iter().any(|matched| *matched) && second.iter().any(|matched| *matched));
    assert!(first.iter().zip(&second).all(|(one, other)| one != other), "every key lies in one of them");
    let ranges = |id: &'static str| {
        vec![fixture.request(
            Method::GET,
            "/dbs/d/colls/c/docs",
            &[("x-ms-documentdb-partitionkeyrangeid", id)],
            "",
        )]
    };
    assert_eq!(matched_requests(&fixture, &json!({"partitionKeyRange": 1}), ranges("0")).await, [false]);
    assert_eq!(matched_requests(&fixture, &json!({"partitionKeyRange": 1}), ranges("1")).await, [true]);
}

#[tokio::test]
async fn a_rule_for_a_region_leaves_the_others_alone() {
    let fixture = FaultFixture::start().await;
    fixture.faults().add(FaultRule::status(503, 0).in_region("east us")).unwrap();
    for (region, expected) in [(0, 200), (1, 503), (2, 200)] {
        let response =
            fixture.connect_to(region, ClientProtocol::Http1).await.send(fixture.account()).await.unwrap();
        assert_eq!(response.status, expected, "region {region}");
    }
}
