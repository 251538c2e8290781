//! Tests of splits and merges: at once, after a lock, and step by step.

use std::time::Duration;

use serde_json::{Value, json};

use super::account::{KEY, two_regions};
use crate::live::{LiveAccount, LiveResponse};

const PARTITIONS: &str = "/databases/d/containers/c/partitions";
/// How long a test waits for something that should happen at once.
const SOON: Duration = Duration::from_secs(30);

/// An account whose clock stands still, with one item in one container.
async fn standing_still() -> LiveAccount {
    let account = LiveAccount::with(|_| {}).await;
    account.create_container(json!({})).await;
    account.create(json!({ "id": "1", "pk": "p" })).await.expect(201);
    account
}

async fn read_range(account: &LiveAccount) -> LiveResponse {
    account.get("/dbs/d/colls/c/docs", &[("x-ms-documentdb-partitionkeyrangeid", "0")]).await
}

fn id(operation: &LiveResponse) -> String {
    operation.body["operationId"].as_str().unwrap().to_owned()
}

/// Waits for the end of an operation.
async fn end_of(account: &LiveAccount, id: &str) -> Value {
    let ended = async {
        loop {
            let operation = account.control_get(&format!("/operations/{id}")).await.expect(200).body;
            if operation["status"] != "Running" {
                return operation;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, ended).await.expect("it ends")
}

#[tokio::test]
async fn splits_and_merges_report_the_ranges_they_replace() {
    let account = two_regions().await;
    let split = account.control_post(&format!("{PARTITIONS}/0/split"), json!({})).await.expect(202).body;
    let expected = json!({
        "operationId": "1", "kind": "split", "status": "Succeeded", "phase": "Succeeded", "database": "d",
        "container": "c", "retired": [0], "ranges": [1, 2], "children": [1, 2], "into": null, "error": null,
    });
    assert_eq!(split, expected);
    let listed = account.control_get("/partitions?container=c").await.expect(200).body;
    assert_eq!(listed["partitions"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&listed["partitions"][0]["range"], &listed["partitions"][0]["parents"]),
        (&json!(1), &json!([0]))
    );
    account.get("/dbs/d/colls/c/docs/1", &[KEY]).await.expect(200);
    for (member, made) in [("ranges", 3), ("partitionIds", 6)] {
        let neighbours: Vec<Value> = account.control_get("/partitions").await.body["partitions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|partition| partition["range"].clone())
            .collect();
        let merge = json!({ member: neighbours });
        let merged = account.control_post(&format!("{PARTITIONS}/merge"), merge).await.expect(202).body;
        assert_eq!((&merged["retired"], &merged["into"]), (&json!(neighbours), &json!(made)));
        account
            .control_post(&format!("{PARTITIONS}/{made}/split"), json!({ "mode": "midpoint" }))
            .await
            .expect(202);
    }
}

#[tokio::test]
async fn impossible_operations_are_rejected_at_once() {
    let account = two_regions().await;
    let split = |range: &str| format!("{PARTITIONS}/{range}/split");
    for (path, body, status) in [
        (split("9"), json!({}), 404),
        (split("9"), json!({ "progressionMode": "manual" }), 404),
        (split("x"), json!({}), 400),
        (split("0"), json!({ "epk": "zz" }), 400),
        (split("0"), json!({ "epk": "FF", "lockDurationMs": 1000 }), 400),
        (split("0"), json!({ "mode": "epk" }), 400),
        (split("0"), json!({ "mode": "midpoint", "epk": "1F" }), 400),
        (split("0"), json!({ "mode": "thirds" }), 400),
        (split("0"), json!({ "progressionMode": "slow" }), 400),
        (format!("{PARTITIONS}/merge"), json!({ "ranges": [0] }), 400),
        (format!("{PARTITIONS}/merge"), json!({}), 400),
        ("/databases/d/containers/other/partitions/0/split".to_owned(), json!({}), 404),
        ("/operations/7/advance".to_owned(), json!({}), 404),
        ("/operations/x/cancel".to_owned(), json!({}), 404),
    ] {
        account.control_post(&path, body.clone()).await.expect(status);
    }
    account.control_get("/operations/1").await.expect(404);
}

#[tokio::test]
async fn requests_by_the_id_of_a_locked_range_get_410_until_the_lock_ends() {
    let account = standing_still().await;
    let range = format!("{PARTITIONS}/0");
    account.control_post(&format!("{range}/lock"), json!({})).await.expect(200);
    assert_eq!(read_range(&account).await.expect(410).sub_status(), "1007");
    account.get("/dbs/d/colls/c/docs/1", &[KEY]).await.expect(200);
    account.control_post(&format!("{range}/unlock"), json!({})).await.expect(200);
    read_range(&account).await.expect(200);
    for (body, seconds) in [(json!({}), 60), (json!({ "for": "5s" }), 5)] {
        account.control_post(&format!("{range}/lock"), body).await.expect(200);
        account.advance(seconds - 1);
        assert_eq!(read_range(&account).await.expect(410).sub_status(), "1007");
        account.advance(1);
        read_range(&account).await.expect(200);
    }
}

/// The version of the list of ranges, and the status of each.
async fn ranges(account: &LiveAccount, seen: Option<&str>) -> (u16, String, Vec<String>) {
    let mut headers = vec![("a-im", "Incremental Feed")];
    headers.extend(seen.map(|etag| ("if-none-match", etag)));
    let listed = account.get("/dbs/d/colls/c/pkranges", &headers).await;
    let ranges = listed.body["PartitionKeyRanges"].as_array().cloned().unwrap_or_default();
    let text =
        |range: &Value| format!("{} {}", range["id"].as_str().unwrap(), range["status"].as_str().unwrap());
    (listed.status, listed.header("etag").to_owned(), ranges.iter().map(text).collect())
}

#[tokio::test]
async fn while_ranges_are_swapped_every_request_to_them_gets_410_and_the_feed_shows_it() {
    let account = standing_still().await;
    let (_, before, listed) = ranges(&account, None).await;
    assert_eq!(listed, ["0 online"]);
    let manual = json!({ "progressionMode": "manual" });
    account.control_post(&format!("{PARTITIONS}/0/split"), manual.clone()).await.expect(202);
    account.get("/dbs/d/colls/c/docs/1", &[KEY]).await.expect(200);
    assert_eq!(ranges(&account, Some(&before)).await.0, 304, "it is only prepared");

    account.control_post("/operations/1/advance", json!({})).await.expect(200);
    let item = json!({ "id": "1", "pk": "p" });
    for gone in [
        account.get("/dbs/d/colls/c/docs/1", &[KEY]).await,
        account.create(json!({ "id": "2", "pk": "p" })).await,
        account.put("/dbs/d/colls/c/docs/1", &[KEY], item.clone()).await,
        account.delete("/dbs/d/colls/c/docs/1", &[KEY]).await,
        account.query("SELECT * FROM c", &[KEY]).await,
        read_range(&account).await,
    ] {
        assert_eq!(gone.expect(410).sub_status(), "1007");
    }
    let (status, during, listed) = ranges(&account, Some(&before)).await;
    assert_eq!((status, listed), (200, vec!["0 splitting".to_owned()]));
    assert!(during != before, "{during}");
    assert_eq!(ranges(&account, Some(&during)).await.0, 304);

    account.control_post("/operations/1/advance", json!({})).await.expect(200);
    assert_eq!(end_of(&account, "1").await["status"], "Succeeded");
    let (_, after, listed) = ranges(&account, Some(&during)).await;
    assert_eq!(listed, ["1 online", "2 online"]);
    account.get("/dbs/d/colls/c/docs/1", &[KEY]).await.expect(200);

    // A cancelled operation, and one that expires, leave the ranges as they were.
    let merge = json!({ "partitionIds": [1, 2], "progressionMode": "manual" });
    account.control_post(&format!("{PARTITIONS}/merge"), merge).await.expect(202);
    account.control_post("/operations/2/advance", json!({})).await.expect(200);
    account.get("/dbs/d/colls/c/docs/1", &[KEY]).await.expect(410);
    let (_, merging, listed) = ranges(&account, Some(&after)).await;
    assert_eq!(listed, ["1 splitting", "2 splitting"]);
    account.control_post("/operations/2/cancel", json!({})).await.expect(200);
    account.get("/dbs/d/colls/c/docs/1", &[KEY]).await.expect(200);
    let (_, cancelled, listed) = ranges(&account, Some(&merging)).await;
    assert_eq!((listed, cancelled), (vec!["1 online".to_owned(), "2 online".to_owned()], after.clone()));
    account.control_post(&format!("{PARTITIONS}/1/split"), manual).await.expect(202);
    account.control_post("/operations/3/advance", json!({})).await.expect(200);
    account.advance(60);
    assert_eq!(ranges(&account, Some(&after)).await.0, 304, "the mark has ended");
}

/// The client that started it may have been killed meanwhile.
#[tokio::test]
async fn a_locked_split_continues_by_itself() {
    let account = standing_still().await;
    let begun =
        account.control_post(&format!("{PARTITIONS}/0/split"), json!({ "lockDurationMs": 5000 })).await;
    assert_eq!((&begun.body["phase"], begun.status), (&json!("Swapping"), 202));
    assert_eq!(read_range(&account).await.expect(410).sub_status(), "1007");
    let taken = account.control_post(&format!("{PARTITIONS}/0/split"), json!({})).await.expect(409);
    assert!(taken.message().contains("operation '1'"), "{}", taken.message());
    let advanced = account.control_post("/operations/1/advance", json!({})).await.expect(409);
    assert!(advanced.message().contains("by itself"), "{}", advanced.message());
    account.advance(5);
    let ended = end_of(&account, &id(&begun)).await;
    assert_eq!((&ended["phase"], &ended["children"]), (&json!("Succeeded"), &json!([1, 2])));
    assert_eq!(read_range(&account).await.expect(410).sub_status(), "1002");
}

#[tokio::test]
async fn a_manual_split_waits_for_each_step() {
    let account = standing_still().await;
    let manual = json!({ "progressionMode": "manual" });
    let begun = account.control_post(&format!("{PARTITIONS}/0/split"), manual).await.expect(202);
    let id = id(&begun);
    assert_eq!((&begun.body["phase"], &begun.body["status"]), (&json!("Preparing"), &json!("Running")));
    read_range(&account).await.expect(200);
    let swapping = account.control_post(&format!("/operations/{id}/advance"), json!({})).await.expect(200);
    assert_eq!(swapping.body["phase"], "Swapping");
    assert_eq!(read_range(&account).await.expect(410).sub_status(), "1007");
    let last = account.control_post(&format!("/operations/{id}/advance"), json!({})).await.expect(200);
    assert_eq!(last.body["phase"], "Swapping", "the end comes a moment later");
    let ended = end_of(&account, &id).await;
    assert_eq!((&ended["phase"], &ended["retired"]), (&json!("Succeeded"), &json!([0])));
    for step in ["advance", "cancel"] {
        account.control_post(&format!("/operations/{id}/{step}"), json!({})).await.expect(409);
    }
    account.get("/dbs/d/colls/c/docs/1", &[KEY]).await.expect(200);
}

#[tokio::test]
async fn cancelled_and_unfinished_operations_change_nothing() {
    let account = standing_still().await;
    let begin = |body: Value| {
        let account = &account;
        async move { id(&account.control_post(&format!("{PARTITIONS}/0/split"), body).await.expect(202)) }
    };
    let manual = json!({ "progressionMode": "manual" });
    let cancelled = begin(manual.clone()).await;
    account.control_post(&format!("/operations/{cancelled}/advance"), json!({})).await.expect(200);
    let failed =
        account.control_post(&format!("/operations/{cancelled}/cancel"), json!({})).await.expect(200).body;
    assert_eq!((&failed["phase"], &failed["error"]), (&json!("Failed"), &json!("it was cancelled")));
    read_range(&account).await.expect(200);

    let held = begin(json!({ "lockDurationMs": 5000 })).await;
    account.control_post(&format!("/operations/{held}/cancel"), json!({})).await.expect(200);
    account.advance(5);
    assert_eq!(end_of(&account, &held).await["phase"], "Failed");

    let forgotten = begin(manual).await;
    account.control_post(&format!("/operations/{forgotten}/advance"), json!({})).await.expect(200);
    account.advance(60);
    read_range(&account).await.expect(200);
    let failed = account.control_get(&format!("/operations/{forgotten}")).await.expect(200).body;
    assert_eq!(failed["phase"], "Failed");
    assert!(failed["error"].as_str().unwrap().contains("nobody advanced it for 1m"), "{failed}");
    account.control_post(&format!("{PARTITIONS}/0/split"), json!({})).await.expect(202);
}
