//! Which requests a rule finds: by operation, by name, by `_rid`, by key, by range, by region.

use perihelion_emulator::faults::FaultRule;

use super::*;

/// Adds a rule with this `match` and says which of the requests it strikes.
async fn struck(lab: &Lab, filter: &Value, requests: Vec<Request<Full<Bytes>>>) -> Vec<bool> {
    let rule = json!({"id": "r", "match": filter, "effect": {"status": 418}});
    lab.faults().add(FaultRule::from_json(rule.to_string().as_bytes()).unwrap()).unwrap();
    let mut link = lab.link(Spoken::Http2).await;
    let mut struck = Vec::new();
    for request in requests {
        struck.push(link.send(request).await.unwrap().status == 418);
    }
    struck
}

#[tokio::test]
async fn rules_find_requests_by_what_they_ask() {
    let lab = Lab::start().await;
    let query = [("x-ms-documentdb-isquery", "true"), ("content-type", "application/query+json")];
    let plan = [query[0], query[1], ("x-ms-cosmos-is-query-plan-request", "True")];
    let upsert = [("x-ms-documentdb-is-upsert", "True"), ("x-ms-documentdb-partitionkey", r#"["u"]"#)];
    let docs = "/dbs/d/colls/c/docs";
    let requests = || {
        vec![
            ("account", lab.account()),
            ("container", lab.request(Method::GET, "/dbs/d/colls/c", &[], "")),
            ("ranges", lab.request(Method::GET, "/dbs/d/colls/c/pkranges", &[], "")),
            ("read", lab.read("there")),
            ("create", lab.create("there")),
            ("upsert", lab.request(Method::POST, docs, &upsert, r#"{"id":"u","pk":"u"}"#)),
            ("query", lab.request(Method::POST, docs, &query, r#"{"query":"SELECT 1"}"#)),
            ("plan", lab.request(Method::POST, docs, &plan, r#"{"query":"SELECT 1"}"#)),
            ("feed", lab.request(Method::GET, docs, &[], "")),
            ("changes", lab.request(Method::GET, docs, &[("a-im", "Incremental Feed")], "")),
            ("nonsense", lab.request(Method::PUT, docs, &[], "")),
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
        let struck = struck(&lab, &filter, requests).await;
        let found: Vec<_> = names.into_iter().zip(struck).filter(|(_, struck)| *struck).collect();
        assert_eq!(found.iter().map(|(name, _)| *name).collect::<Vec<_>>(), expected, "{filter}");
    }
}

#[tokio::test]
async fn a_container_is_found_under_its_rid_too() {
    let lab = Lab::start().await;
    let answer =
        lab.link(Spoken::Http1).await.send(lab.request(Method::GET, "/dbs/d/colls/c", &[], "")).await;
    let link = answer.unwrap().body["_self"].as_str().unwrap().to_owned();
    let path = format!("/{}docs", link.replace("//", "/"));
    let filter = json!({"database": "d", "container": "c"});
    assert_eq!(struck(&lab, &filter, vec![lab.request(Method::GET, &path, &[], "")]).await, [true]);
}

#[tokio::test]
async fn a_partition_is_found_by_its_key_and_by_its_range() {
    let lab = Lab::start().await;
    let ids: Vec<String> = (0..20).map(|n| format!("k{n}")).collect();
    let reads = || ids.iter().map(|id| lab.read(id)).collect::<Vec<_>>();
    for key in [json!("k3"), json!(["k3"])] {
        let found = struck(&lab, &json!({ "partitionKey": key }), reads()).await;
        assert_eq!(found.iter().position(|struck| *struck), Some(3));
        assert_eq!(found.iter().filter(|struck| **struck).count(), 1);
    }
    let first = struck(&lab, &json!({"partitionKeyRange": 0}), reads()).await;
    let second = struck(&lab, &json!({"partitionKeyRange": 1}), reads()).await;
    assert!(first.iter().any(|struck| *struck) && second.iter().any(|struck| *struck));
    assert!(first.iter().zip(&second).all(|(one, other)| one != other), "every key lies in one of them");
    let ranges = |id: &'static str| {
        vec![lab.request(
            Method::GET,
            "/dbs/d/colls/c/docs",
            &[("x-ms-documentdb-partitionkeyrangeid", id)],
            "",
        )]
    };
    assert_eq!(struck(&lab, &json!({"partitionKeyRange": 1}), ranges("0")).await, [false]);
    assert_eq!(struck(&lab, &json!({"partitionKeyRange": 1}), ranges("1")).await, [true]);
}

#[tokio::test]
async fn a_rule_for_a_region_leaves_the_others_alone() {
    let lab = Lab::start().await;
    lab.faults().add(FaultRule::status(503, 0).in_region("east us")).unwrap();
    for (region, expected) in [(0, 200), (1, 503), (2, 200)] {
        let answer = lab.link_to(region, Spoken::Http1).await.send(lab.account()).await.unwrap();
        assert_eq!(answer.status, expected, "region {region}");
    }
}
