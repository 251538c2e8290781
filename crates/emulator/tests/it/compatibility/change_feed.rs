//! Changes, in both modes and from every start.

use serde_json::{Value, json};

use super::super::live::LiveAccount;
use super::fixture::{CompatibilityFixture, DOCS, KEY};
use super::{LiveResponse, Probes, ignored, refused, supported};

pub(super) fn probes() -> Probes {
    vec![
        ("feed-latest", supported!(latest)),
        ("feed-all-versions", supported!(all_versions)),
        (
            "feed-all-versions-start",
            refused!(all_versions_start, "FullFidelity Change Feed must have valid If-None-Match header."),
        ),
        ("feed-now", supported!(from_now)),
        ("feed-time", supported!(from_a_time)),
        ("feed-etag", supported!(from_an_etag)),
        ("feed-range", supported!(of_a_range)),
        ("feed-epk", supported!(of_positions)),
        ("feed-query", supported!(with_a_query)),
        ("feed-key", supported!(of_a_key)),
        ("feed-everywhere", supported!(of_everything)),
        ("feed-page-size", supported!(page_size)),
        ("feed-batches", supported!(batches_stay_together)),
        ("feed-retired-range", supported!(retired_range)),
        ("feed-retention", ignored!(retention)),
        ("feed-other-mode", refused!(other_mode, "a-im")),
        ("feed-wire-format", ignored!(wire_format)),
        ("feed-ranges", supported!(feed_ranges)),
    ]
}

const LATEST: (&str, &str) = ("a-im", "Incremental Feed");
const ALL: (&str, &str) = ("a-im", "Full-Fidelity Feed");
const RANGE: (&str, &str) = ("x-ms-documentdb-partitionkeyrangeid", "0");

async fn fresh(fixture: &CompatibilityFixture) -> String {
    let docs = fixture.container(json!({})).await + "/docs";
    for id in ["1", "2"] {
        fixture.account.post(&docs, &[KEY], json!({"id": id, "pk": "a"})).await.expect(201);
    }
    docs
}

fn ids(response: &LiveResponse) -> Vec<&str> {
    response.documents().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

async fn latest(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    fixture
        .account
        .put(&format!("{docs}/1"), &[KEY], json!({"id": "1", "pk": "a", "n": 2}))
        .await
        .expect(200);
    let feed = fixture.account.get(&docs, &[LATEST, RANGE]).await.expect(200);
    assert_eq!(ids(&feed), ["2", "1"]);
    assert!(feed.documents()[0]["_lsn"].is_u64());
}

async fn all_versions(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let now = fixture.account.get(&docs, &[ALL, RANGE, ("if-none-match", "*")]).await.expect(304);
    fixture.account.post(&docs, &[KEY], json!({"id": "3", "pk": "a"})).await.expect(201);
    fixture
        .account
        .put(&format!("{docs}/3"), &[KEY], json!({"id": "3", "pk": "a", "n": 2}))
        .await
        .expect(200);
    fixture.account.delete(&format!("{docs}/3"), &[KEY]).await.expect(204);
    let feed =
        fixture.account.get(&docs, &[ALL, RANGE, ("if-none-match", now.header("etag"))]).await.expect(200);
    let kinds: Vec<&Value> = feed.documents().iter().map(|row| &row["metadata"]["operationType"]).collect();
    assert_eq!(kinds, ["create", "replace", "delete"]);
    let metadata = &feed.documents()[2]["metadata"];
    assert_eq!((&metadata["id"], &metadata["partitionKey"]), (&json!("3"), &json!({"pk": "a"})));
}

async fn all_versions_start(fixture: &CompatibilityFixture) -> LiveResponse {
    fixture.account.get(&fresh(fixture).await, &[ALL, RANGE]).await
}

async fn from_now(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let now = fixture.account.get(&docs, &[LATEST, RANGE, ("if-none-match", "*")]).await.expect(304);
    fixture.account.post(&docs, &[KEY], json!({"id": "3", "pk": "a"})).await.expect(201);
    let feed =
        fixture.account.get(&docs, &[LATEST, RANGE, ("if-none-match", now.header("etag"))]).await.expect(200);
    assert_eq!(ids(&feed), ["3"]);
}

async fn from_a_time(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    for (date, count) in [("Sun, 15 Nov 2026 00:00:00 GMT", 2), ("Mon, 15 Nov 2027 00:00:00 GMT", 0)] {
        let feed = fixture.account.get(&docs, &[LATEST, RANGE, ("if-modified-since", date)]).await;
        assert_eq!((feed.status, feed.documents().len()), (if count == 0 { 304 } else { 200 }, count));
    }
}

async fn from_an_etag(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let feed = fixture.account.get(&docs, &[LATEST, RANGE]).await.expect(200);
    let etag = ("if-none-match", feed.header("etag"));
    let nothing = fixture.account.get(&docs, &[LATEST, RANGE, etag]).await.expect(304);
    assert_eq!(nothing.header("etag"), etag.1);
    fixture.account.get(&docs, &[LATEST, RANGE, ("if-none-match", "nonsense")]).await.expect(400);
}

async fn of_a_range(fixture: &CompatibilityFixture) {
    let feed = fixture.account.get(&fresh(fixture).await, &[LATEST, RANGE]).await.expect(200);
    assert_eq!(feed.documents().len(), 2);
}

async fn of_positions(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let kind = ("x-ms-read-key-type", "EffectivePartitionKeyRange");
    let mut seen = 0;
    for (start, end) in [("", "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"), ("1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "FF")]
    {
        let headers = [LATEST, RANGE, kind, ("x-ms-start-epk", start), ("x-ms-end-epk", end)];
        seen += fixture.account.get(&docs, &headers).await.documents().len();
    }
    assert_eq!(seen, 2);
}

async fn with_a_query(fixture: &CompatibilityFixture) {
    let headers = [KEY, ("a-im", "Incremental Feed"), ("x-ms-documentdb-isquery", "true")];
    let body = json!({"query": "SELECT * FROM c WHERE c.id = '2'"});
    let page = fixture.account.post(DOCS, &headers, body).await.expect(200);
    let ids: Vec<&Value> = page.documents().iter().map(|item| &item["id"]).collect();
    assert_eq!(ids, ["2"]);
}

async fn of_a_key(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let other = ("x-ms-documentdb-partitionkey", r#"["b"]"#);
    assert_eq!(fixture.account.get(&docs, &[LATEST, KEY]).await.expect(200).documents().len(), 2);
    fixture.account.get(&docs, &[LATEST, other]).await.expect(304);
}

async fn of_everything(fixture: &CompatibilityFixture) {
    assert_eq!(fixture.account.get(&fresh(fixture).await, &[LATEST]).await.expect(200).documents().len(), 2);
}

async fn page_size(fixture: &CompatibilityFixture) {
    let feed = fixture
        .account
        .get(&fresh(fixture).await, &[LATEST, RANGE, ("x-ms-max-item-count", "1")])
        .await
        .expect(200);
    assert_eq!(ids(&feed), ["1"]);
}

async fn batches_stay_together(fixture: &CompatibilityFixture) {
    let docs = fixture.container(json!({})).await + "/docs";
    let operations: Vec<Value> = (0..5)
        .map(|n| json!({"operationType": "Create", "resourceBody": {"id": n.to_string(), "pk": "a"}}))
        .collect();
    fixture
        .account
        .post(&docs, &[KEY, ("x-ms-cosmos-is-batch-request", "true")], json!(operations))
        .await
        .expect(200);
    let feed = fixture.account.get(&docs, &[LATEST, RANGE, ("x-ms-max-item-count", "2")]).await.expect(200);
    assert_eq!(feed.documents().len(), 5);
}

async fn retired_range(fixture: &CompatibilityFixture) {
    let range = ("x-ms-documentdb-partitionkeyrangeid", "77");
    let gone = fixture.account.get(&fresh(fixture).await, &[LATEST, range]).await.expect(410);
    assert_eq!(gone.sub_status(), "1002");
}

async fn retention(fixture: &CompatibilityFixture) -> (LiveResponse, LiveResponse) {
    let mut responses = Vec::new();
    for policy in [json!({}), json!({"changeFeedPolicy": {"retentionDuration": 5}})] {
        let docs = fixture.container(policy).await + "/docs";
        let now = fixture.account.get(&docs, &[ALL, RANGE, ("if-none-match", "*")]).await.expect(304);
        fixture.account.post(&docs, &[KEY], json!({"id": "1", "pk": "a"})).await.expect(201);
        let mut feed = fixture
            .account
            .get(&docs, &[ALL, RANGE, ("if-none-match", now.header("etag"))])
            .await
            .expect(200);
        feed.body = json!(feed.documents()[0]["metadata"]["operationType"]);
        responses.push(feed);
    }
    let with = responses.pop().unwrap();
    (responses.pop().unwrap(), with)
}

async fn other_mode(fixture: &CompatibilityFixture) -> LiveResponse {
    fixture.account.get(&fresh(fixture).await, &[("a-im", "Other Feed"), RANGE]).await
}

async fn wire_format(fixture: &CompatibilityFixture) -> (LiveResponse, LiveResponse) {
    let docs = fresh(fixture).await;
    let version = ("x-ms-cosmos-changefeed-wire-format-version", "2021-09-15");
    (
        fixture.account.get(&docs, &[LATEST, RANGE]).await,
        fixture.account.get(&docs, &[LATEST, RANGE, version]).await,
    )
}

/// Ranges as the container has them, and a client's own cut through the middle of one: each item is
/// in one of them, in queries and in the change feed.
async fn feed_ranges(_: &CompatibilityFixture) {
    let account = LiveAccount::with_container(2, json!({})).await;
    for n in 0..40 {
        account.create(json!({"id": n.to_string(), "pk": format!("k{n}")})).await.expect(201);
    }
    let ranges = account.get("/dbs/d/colls/c/pkranges", &[]).await.expect(200).body;
    let [low, high] = ranges["PartitionKeyRanges"].as_array().unwrap().as_slice() else {
        panic!("two ranges")
    };
    let border = low["maxExclusive"].as_str().unwrap();
    assert_eq!((&low["minInclusive"], &high["minInclusive"]), (&json!(""), &json!(border)));
    let cut = "30000000000000000000000000000000";
    assert!(border < cut);
    let (mut requested, mut fed) = (Vec::new(), Vec::new());
    for (min, max) in [("", border), (border, cut), (cut, "FF")] {
        let headers = [
            ("x-ms-read-key-type", "EffectivePartitionKeyRange"),
            ("x-ms-start-epk", min),
            ("x-ms-end-epk", max),
        ];
        let found = account.query("SELECT VALUE c.id FROM c", &headers).await.expect(200);
        let of_this_range = found.documents().to_vec();
        assert!(!of_this_range.is_empty() && of_this_range.len() < 40, "{min}..{max}");
        let feed = [headers[0], headers[1], headers[2], ("a-im", "Incremental Feed")];
        let changes = account.get(DOCS, &feed).await.expect(200);
        let mut ids: Vec<Value> = changes.documents().iter().map(|item| item["id"].clone()).collect();
        let mut same = of_this_range.clone();
        for list in [&mut ids, &mut same] {
            list.sort_by_key(|id| id.as_str().map(str::to_owned));
        }
        assert_eq!(ids, same, "{min}..{max}");
        requested.extend(of_this_range);
        fed.extend(ids);
    }
    for list in [&mut requested, &mut fed] {
        list.sort_by_key(|id| id.as_str().map(str::to_owned));
        assert_eq!(list.len(), 40);
        list.dedup();
        assert_eq!(list.len(), 40);
    }
}
