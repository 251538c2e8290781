//! Tests of partition key ranges, `…/pkranges`.

use http::Method;
use serde_json::json;

use crate::client::TestAccount;

const INCREMENTAL: (&str, &str) = ("a-im", "Incremental Feed");

#[tokio::test]
async fn one_range_covers_the_epk_space_of_a_small_container() {
    let account = TestAccount::with_container().await;
    let response = account.get("/dbs/d/colls/c/pkranges/").await.expect(200);
    let body = response.json();
    assert_eq!(body["_count"], 1);
    let range = &body["PartitionKeyRanges"][0];
    assert_eq!(range["id"], "0");
    assert_eq!((&range["minInclusive"], &range["maxExclusive"]), (&json!(""), &json!("FF")));
    assert_eq!((&range["status"], &range["parents"]), (&json!("online"), &json!([])));
    assert_eq!(range["throughputFraction"], 1.0);
    assert!(range["_self"].as_str().unwrap().ends_with('/'));
    assert!(response.header("etag").is_some());
    assert_eq!(response.header("x-ms-item-count"), Some("1"));
    assert!(response.header("lsn").is_some());
}

#[tokio::test]
async fn ranges_follow_each_other_without_gaps() {
    let account = TestAccount::with(|settings| settings.partitions = std::num::NonZeroU32::new(5));
    account.create_container("d", r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}"#).await;
    let body = account.get("/dbs/d/colls/c/pkranges").await.expect(200).json();
    let ranges = body["PartitionKeyRanges"].as_array().unwrap();
    assert_eq!(ranges.len(), 5);
    assert_eq!(ranges[0]["minInclusive"], "");
    assert_eq!(ranges[4]["maxExclusive"], "FF");
    for pair in ranges.windows(2) {
        assert_eq!(pair[0]["maxExclusive"], pair[1]["minInclusive"]);
    }
}

#[tokio::test]
async fn a_polling_client_gets_304_when_nothing_is_new() {
    let account = TestAccount::with_container().await;
    let path = "/dbs/d/colls/c/pkranges";
    let first =
        account.send(Method::GET, path, &[INCREMENTAL, ("x-ms-max-item-count", "-1")], "").await.expect(200);
    let etag = first.header("etag").unwrap();
    let second =
        account.send(Method::GET, path, &[INCREMENTAL, ("if-none-match", etag)], "").await.expect(304);
    assert!(second.body.is_empty());
    assert_eq!(second.header("etag"), Some(etag));
}

#[tokio::test]
async fn ranges_are_paged_on_request() {
    let account = TestAccount::with(|settings| settings.partitions = std::num::NonZeroU32::new(3));
    account.create_container("d", r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}"#).await;
    let path = "/dbs/d/colls/c/pkranges";
    let first = account.send(Method::GET, path, &[("x-ms-max-item-count", "2")], "").await.expect(200);
    assert_eq!(first.json()["_count"], 2);
    let token = first.header("x-ms-continuation").unwrap().to_owned();
    let second = account.send(Method::GET, path, &[("x-ms-continuation", &token)], "").await.expect(200);
    assert_eq!(second.json()["PartitionKeyRanges"][0]["id"], "2");
    assert_eq!(second.header("x-ms-continuation"), None);
    let bad = [("x-ms-continuation", "x")];
    account.send(Method::GET, path, &bad, "").await.expect_error(400, 0, "Invalid Continuation Token");
}

#[tokio::test]
async fn ranges_of_a_missing_or_recreated_container_are_rejected() {
    let account = TestAccount::with_container().await;
    account.get("/dbs/d/colls/none/pkranges").await.expect_error(404, 1003, "Owner");
    account.get("/dbs/none/colls/c/pkranges").await.expect_error(404, 1003, "Owner");
    let stale = [("x-ms-cosmos-intended-collection-rid", "AAAAAIAAAAA=")];
    account.send(Method::GET, "/dbs/d/colls/c/pkranges", &stale, "").await.expect_error(
        400,
        1024,
        "recreated",
    );
    account.post("/dbs/d/colls/c/pkranges", "{}").await.expect_error(405, 0, "not supported");
}
