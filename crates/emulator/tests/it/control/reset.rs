//! Deleting all databases at once.

use serde_json::json;

use super::account;

#[tokio::test]
async fn a_reset_deletes_every_database_and_keeps_the_rest() {
    let account = account().await;
    account.create_container(json!({})).await;
    account.post("/dbs", &[], json!({ "id": "other" })).await.expect(201);
    account.control_post("/snapshots/before", json!({})).await.expect(200);
    let deleted = account.control_post("/reset", json!({})).await.expect(200).body;
    assert_eq!(deleted["deleted"], json!(["d", "other"]));
    assert_eq!(account.get("/dbs", &[]).await.expect(200).body["_count"], 0);
    assert_eq!(account.control_post("/reset", json!({})).await.expect(200).body["deleted"], json!([]));
    account.control_post("/snapshots/before/restore", json!({})).await.expect(200);
    account.get("/dbs/d/colls/c", &[]).await.expect(200);
}
