//! Tests of the request log and the metrics, through the control port.

use std::collections::BTreeMap;

use http::Method;
use perihelion_emulator::EmulatorConfig;
use serde_json::{Value, json};

use super::account;
use crate::live::{LiveAccount, LiveResponse};

const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["p"]"#);

/// A container with an item that was read, missed and read again, unsigned.
async fn used() -> LiveAccount {
    let account = account().await;
    account.create_container(json!({})).await;
    account.create(json!({ "id": "1", "pk": "p" })).await.expect(201);
    account.get("/dbs/d/colls/c/docs/1", &[KEY, ("user-agent", "a test")]).await.expect(200);
    account.get("/dbs/d/colls/c/docs/2", &[KEY]).await.expect(404);
    account.send_unsigned(Method::GET, "/dbs/d/colls/c/docs/1", &[], bytes::Bytes::new()).await.expect(401);
    account
}

fn requests(response: LiveResponse) -> Vec<Value> {
    response.expect(200).body["requests"].as_array().unwrap().clone()
}

#[tokio::test]
async fn the_request_log_shows_each_request_and_its_outcome() {
    let account = used().await;
    let all = requests(account.control_get("/requests").await);
    let operations: Vec<&str> = all.iter().map(|request| request["operation"].as_str().unwrap()).collect();
    assert_eq!(
        operations,
        ["unknown", "read_item", "read_item", "create_item", "create_container", "create_database"]
    );
    let read = &all[2];
    let expected = json!({
        "number": 4, "region": "South Central US", "method": "GET", "operation": "read_item",
        "path": "/dbs/d/colls/c/docs/1", "database": "d", "container": "c", "range": 0, "status": 200,
        "subStatus": 0, "charge": 1.0, "userAgent": "a test", "rules": [],
    });
    for (member, value) in expected.as_object().unwrap() {
        assert_eq!(&read[member], value, "{member} of {read}");
    }
    assert_eq!(read["activityId"].as_str().unwrap().len(), 36);
    assert!(read["durationMs"].as_f64().unwrap() > 0.0 && read["time"].as_str().unwrap().ends_with('Z'));
    assert_eq!((&all[0]["container"], &all[0]["status"]), (&json!("c"), &json!(401)), "by its path");
}

#[tokio::test]
async fn requests_can_be_narrowed() {
    let account = used().await;
    for (query, expected) in [
        ("", 6),
        ("limit=2", 2),
        ("limit=0", 0),
        ("status=404", 1),
        ("status=4xx", 2),
        ("container=d/c", 4),
        ("container=c&status=201", 1),
        ("container=x/c", 0),
        ("operation=read_item", 2),
        ("region=southcentralus", 6),
        ("after=4", 2),
    ] {
        assert_eq!(
            requests(account.control_get(&format!("/requests?{query}")).await).len(),
            expected,
            "{query}"
        );
    }
    for (query, status) in
        [("limit=many", 400), ("status=good", 400), ("region=Mars", 404), ("colour=red", 400)]
    {
        account.control_get(&format!("/requests?{query}")).await.expect(status);
    }
}

#[tokio::test]
async fn the_request_log_has_the_configured_capacity() {
    let mut config = EmulatorConfig::default();
    config.request_log_capacity = 2;
    let account = LiveAccount::start(config).await;
    for _ in 0..5 {
        account.get("/dbs", &[]).await.expect(200);
    }
    let response = account.control_get("/requests").await;
    assert_eq!(response.body["newest"], 5);
    assert_eq!(requests(response).len(), 2);
}

#[tokio::test]
async fn a_request_record_names_the_faults_that_were_injected() {
    let account = used().await;
    let rule = json!({
        "id": "busy", "match": { "operations": ["read"] }, "effect": { "status": 429, "subStatus": 3200 },
    });
    account.control_post("/faults", rule).await.expect(200);
    account.get("/dbs/d/colls/c/docs/1", &[KEY]).await.expect(429);
    let last = requests(account.control_get("/requests?limit=1").await).remove(0);
    assert_eq!((&last["rules"], &last["operation"]), (&json!(["busy"]), &json!("read_item")), "{last}");
    assert_eq!((&last["status"], &last["subStatus"]), (&json!(429), &json!(3200)));
}

#[tokio::test]
async fn requests_whose_client_disconnected_are_marked() {
    let account = std::sync::Arc::new(used().await);
    let late = |id: &str, delayed: &str, operation: &str| {
        let matched = json!({ "operations": [operation] });
        json!({ "id": id, "match": matched, "effect": { "delay": "10m", "delayed": delayed } })
    };
    account.control_post("/faults", late("before", "request", "read")).await.expect(200);
    account.control_post("/faults", late("after", "answer", "create")).await.expect(200);
    for (operation, rule, is_done) in [("read_item", "before", false), ("create_item", "after", true)] {
        let asking = tokio::spawn({
            let account = std::sync::Arc::clone(&account);
            async move {
                match is_done {
                    false => account.get("/dbs/d/colls/c/docs/1", &[KEY]).await,
                    true => account.create(json!({ "id": "2", "pk": "p" })).await,
                }
            }
        });
        account.running().faults().wait_for_delayed_requests(1).await;
        asking.abort();
        account.running().faults().wait_for_delayed_requests(0).await;
        let left = loop {
            let found = requests(account.control_get("/requests?status=499&limit=1").await);
            match found.into_iter().find(|request| request["operation"] == operation) {
                Some(request) => break request,
                None => tokio::task::yield_now().await,
            }
        };
        assert_eq!((&left["outcome"], &left["rules"]), (&json!("unanswered"), &json!([rule])), "{left}");
        assert_eq!(left["charge"].as_f64().unwrap() > 0.0, is_done, "{left}");
    }
    let responded = requests(account.control_get("/requests?status=201&limit=1").await).remove(0);
    assert_eq!(responded["outcome"], "answered");
}

#[tokio::test]
async fn the_partitions_route_shows_requests_and_charges() {
    let account = used().await;
    let listed = account.control_get("/partitions").await.expect(200).body;
    let served = &listed["partitions"][0]["regions"]["South Central US"];
    assert_eq!((&served["requests"], &served["throttled"]), (&json!(3), &json!(0)), "{served}");
    assert!(served["requestUnits"].as_f64().unwrap() > 2.0, "{served}");
    for member in ["meanMs", "p50Ms", "p99Ms"] {
        assert!(served[member].as_f64().unwrap() > 0.0, "{served}");
    }
}

/// The samples of an exposition, by name and labels, after a check of its form.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    let mut family = "";
    let mut families = Vec::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            family = help.split(' ').next().unwrap();
            assert!(!families.contains(&family), "{family} comes twice");
            families.push(family);
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, family, "TYPE follows HELP");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
        } else {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            assert!(sample.starts_with(family), "{line} is not of {family}");
            let twice = samples.insert(sample.to_owned(), value.parse().unwrap());
            assert_eq!(twice, None, "{sample} comes twice");
        }
    }
    samples
}

#[tokio::test]
async fn metrics_count_requests_and_partitions() {
    let account = used().await;
    let response = account.control_get("/metrics").await.expect(200);
    assert_eq!(response.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let samples = samples(response.body.as_str().unwrap());
    let read = r#"region="South Central US",operation="read_item""#;
    let partition = r#"region="South Central US",database="d",container="c",range="0""#;
    for (sample, expected) in [
        (format!(r#"perihelion_requests_total{{{read},status="200",sub_status="0"}}"#), 1.0),
        (format!(r#"perihelion_requests_total{{{read},status="404",sub_status="0"}}"#), 1.0),
        (format!(r#"perihelion_request_duration_seconds_count{{{read}}}"#), 2.0),
        (format!(r#"perihelion_request_duration_seconds_bucket{{{read},le="+Inf"}}"#), 2.0),
        (format!(r#"perihelion_request_duration_seconds_bucket{{{read},le="10"}}"#), 2.0),
        (format!(r#"perihelion_partition_requests_total{{{partition}}}"#), 3.0),
        (format!(r#"perihelion_partition_throttled_total{{{partition}}}"#), 0.0),
        (format!(r#"perihelion_partition_lsn{{{partition}}}"#), 2.0),
        (r#"perihelion_partition_items{database="d",container="c",range="0"}"#.to_owned(), 1.0),
        (r#"perihelion_region_writes{region="South Central US"}"#.to_owned(), 1.0),
        ("perihelion_partitions".to_owned(), 1.0),
    ] {
        assert_eq!(samples.get(&sample), Some(&expected), "{sample}");
    }
}

#[tokio::test]
async fn names_that_need_it_are_escaped_and_deleted_containers_disappear() {
    let account = account().await;
    account.post("/dbs", &[], json!({ "id": "quo\"te" })).await.expect(201);
    let definition = json!({ "id": "c", "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 } });
    account.post("/dbs/quo%22te/colls", &[], definition).await.expect(201);
    let item = json!({ "id": "1", "pk": "p" });
    account.post("/dbs/quo%22te/colls/c/docs", &[KEY], item).await.expect(201);
    let metrics = account.control_get("/metrics").await.expect(200);
    let label = r#"database="quo\"te""#;
    assert!(samples(metrics.body.as_str().unwrap()).keys().any(|sample| sample.contains(label)));
    account.delete("/dbs/quo%22te/colls/c", &[]).await.expect(204);
    let metrics = account.control_get("/metrics").await.expect(200);
    assert!(!metrics.body.as_str().unwrap().contains("perihelion_partition_requests_total{"));
}
