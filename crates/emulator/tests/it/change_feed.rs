//! The change feed on the wire, in both modes.

use serde_json::{Value, json};

use crate::live::{LiveAccount, LiveResponse};

const LATEST: (&str, &str) = ("a-im", "Incremental Feed");
const ALL: (&str, &str) = ("a-im", "Full-Fidelity Feed");
const RANGE: (&str, &str) = ("x-ms-documentdb-partitionkeyrangeid", "0");
const PATH: &str = "/dbs/d/colls/c/docs";
const A: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);

fn ids(response: &LiveResponse) -> Vec<&str> {
    response.documents().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn each_item_appears_once_at_its_newest_version_in_order_of_writing() {
    let account = LiveAccount::with_container(1, json!({})).await;
    for id in ["1", "2", "3"] {
        account.create(json!({"id": id, "pk": "a"})).await.expect(201);
    }
    account.put("/dbs/d/colls/c/docs/1", &[A], json!({"id": "1", "pk": "a", "n": 2})).await.expect(200);
    account.delete("/dbs/d/colls/c/docs/2", &[A]).await.expect(204);
    let feed = account.get(PATH, &[LATEST, RANGE]).await.expect(200);
    assert_eq!(ids(&feed), ["3", "1"]);
    assert!(feed.documents()[0]["_lsn"].is_u64());
    let end = ("if-none-match", feed.header("etag"));
    let nothing = account.get(PATH, &[LATEST, RANGE, end]).await.expect(304);
    assert_eq!(nothing.header("etag"), end.1);
    account.create(json!({"id": "4", "pk": "a"})).await.expect(201);
    let more = account.get(PATH, &[LATEST, RANGE, end]).await.expect(200);
    assert_eq!(ids(&more), ["4"]);
}

#[tokio::test]
async fn a_feed_starts_now_or_at_a_time() {
    let account = LiveAccount::with_container(1, json!({})).await;
    account.create(json!({"id": "1", "pk": "a"})).await.expect(201);
    let now = account.get(PATH, &[LATEST, RANGE, ("if-none-match", "*")]).await.expect(304);
    let time = httpdate::fmt_http_date(account.clock.now().to_system_time());
    account.advance(10);
    account.create(json!({"id": "2", "pk": "a"})).await.expect(201);
    let after = account.get(PATH, &[LATEST, RANGE, ("if-none-match", now.header("etag"))]).await.expect(200);
    assert_eq!(ids(&after), ["2"]);
    let universal = time.replace("GMT", "UTC");
    for date in [&time, &universal] {
        let since = account.get(PATH, &[LATEST, RANGE, ("if-modified-since", date)]).await.expect(200);
        assert_eq!(ids(&since), ["2"], "{date}");
    }
}

#[tokio::test]
async fn pages_keep_a_batch_together_and_lose_nothing() {
    let account = LiveAccount::with_container(1, json!({})).await;
    for round in 0..4 {
        let operations: Vec<Value> = (0..3)
            .map(|at| json!({"operationType": "Create", "resourceBody": {"id": format!("{round}-{at}"), "pk": "a"}}))
            .collect();
        account
            .post(PATH, &[A, ("x-ms-cosmos-is-batch-request", "true")], json!(operations))
            .await
            .expect(200);
    }
    let (mut seen, mut etag) = (Vec::new(), String::new());
    loop {
        let mut headers = vec![LATEST, RANGE, ("x-ms-max-item-count", "2")];
        if !etag.is_empty() {
            headers.push(("if-none-match", &etag));
        }
        let page = account.get(PATH, &headers).await;
        if page.status == 304 {
            break;
        }
        assert_eq!(page.documents().len(), 3);
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        etag = page.header("etag").to_owned();
    }
    assert_eq!(seen.len(), 12);
}

#[tokio::test]
async fn the_feed_of_all_versions_contains_deletes() {
    let account = LiveAccount::with_container(1, json!({})).await;
    for start in [vec![ALL, RANGE], vec![ALL, RANGE, ("if-modified-since", "Sun, 15 Nov 2026 00:00:00 GMT")]]
    {
        account.get(PATH, &start).await.expect(400);
    }
    let now = account.get(PATH, &[ALL, RANGE, ("if-none-match", "*")]).await.expect(304);
    account.create(json!({"id": "1", "pk": "a", "n": 1})).await.expect(201);
    account.put("/dbs/d/colls/c/docs/1", &[A], json!({"id": "1", "pk": "a", "n": 2})).await.expect(200);
    account.delete("/dbs/d/colls/c/docs/1", &[A]).await.expect(204);
    let version = ("x-ms-cosmos-changefeed-wire-format-version", "2021-09-15");
    let feed =
        account.get(PATH, &[ALL, RANGE, version, ("if-none-match", now.header("etag"))]).await.expect(200);
    let kinds: Vec<&str> =
        feed.documents().iter().map(|row| row["metadata"]["operationType"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["create", "replace", "delete"]);
    let [created, replaced, deleted] = feed.documents() else { panic!("three changes") };
    assert_eq!(created["current"]["n"], 1);
    assert_eq!(replaced["current"]["n"], 2);
    assert!(feed.documents().iter().all(|row| row.get("previous").is_none()));
    assert_eq!(replaced["metadata"]["previousImageLSN"], created["metadata"]["lsn"]);
    assert_eq!(
        (&deleted["metadata"]["id"], &deleted["metadata"]["partitionKey"]),
        (&json!("1"), &json!({"pk": "a"}))
    );
    assert_eq!(deleted["metadata"]["timeToLiveExpired"], false);
}

#[tokio::test]
async fn a_feed_over_several_partitions_continues_in_each() {
    let account = LiveAccount::with_container(3, json!({})).await;
    let (mut seen, mut etag) = (Vec::new(), String::new());
    for round in 0..2 {
        for n in 0..10 {
            account.create(json!({"id": format!("{round}-{n}"), "pk": n.to_string()})).await.expect(201);
        }
        loop {
            let mut headers = vec![LATEST];
            if !etag.is_empty() {
                headers.push(("if-none-match", &etag));
            }
            let page = account.get(PATH, &headers).await;
            etag = page.header("etag").to_owned();
            if page.status == 304 {
                break;
            }
            seen.extend(ids(&page).into_iter().map(str::to_owned));
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 20);
}

#[tokio::test]
async fn an_expired_item_is_a_delete_in_the_change_feed() {
    let account = LiveAccount::with_container(1, json!({"defaultTtl": 10})).await;
    let now = account.get(PATH, &[ALL, RANGE, ("if-none-match", "*")]).await.expect(304);
    account.create(json!({"id": "1", "pk": "a"})).await.expect(201);
    account.advance(11);
    let feed = account.get(PATH, &[ALL, RANGE, ("if-none-match", now.header("etag"))]).await.expect(200);
    let delivered: Vec<_> =
        feed.documents().iter().map(|row| &row["metadata"]["timeToLiveExpired"]).collect();
    assert_eq!(delivered, [&json!(null), &json!(true)]);
}
