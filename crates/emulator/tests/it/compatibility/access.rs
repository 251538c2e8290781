//! Compatibility probes of users, permissions, scripts and other unsupported resources.

use http::Method;
use serde_json::json;

use super::fixture::{CompatibilityFixture, DOCS, KEY};
use super::{LiveResponse, Probe, Probes, refused, supported};

pub(super) fn probes() -> Probes {
    vec![
        ("users", supported!(users)),
        ("permissions", supported!(permissions)),
        ("stored-procedures", supported!(stored_procedures)),
        ("stored-procedure-execution", refused!(stored_procedure_execution, "stored procedures")),
        ("triggers", supported!(triggers)),
        ("trigger-headers", refused!(trigger_headers, "triggers")),
        ("user-functions", supported!(user_functions)),
        ("script-logging", Probe::IgnoredHeader("x-ms-documentdb-script-enable-logging", "true")),
        ("script-feeds", supported!(script_feeds)),
        ("client-encryption-keys", supported!(client_encryption_keys)),
        ("attachments", refused!(attachments, "attachments")),
        ("conflicts", supported!(conflicts)),
        ("partition-key-delete", supported!(partition_key_delete)),
    ]
}

async fn users(fixture: &CompatibilityFixture) {
    let created = fixture.account.post("/dbs/d/users", &[], json!({"id": "u"})).await.expect(201);
    assert_eq!(fixture.account.get("/dbs/d/users/u", &[]).await.expect(200).body, created.body);
    fixture.account.put("/dbs/d/users/u", &[], json!({"id": "v"})).await.expect(200);
    fixture.account.delete("/dbs/d/users/v", &[]).await.expect(204);
}

async fn permissions(fixture: &CompatibilityFixture) {
    fixture.account.post("/dbs/d/users", &[], json!({"id": "reader"})).await.expect(201);
    let path = "/dbs/d/users/reader/permissions";
    let terms = json!({"id": "p", "permissionMode": "Read", "resource": "dbs/d/colls/c"});
    let created = fixture
        .account
        .post(path, &[("x-ms-documentdb-expiry-seconds", "60")], terms.clone())
        .await
        .expect(201);
    assert!(created.body["_token"].as_str().unwrap().starts_with("type=resource&ver=1"));
    let twice = json!({"id": "q", "permissionMode": "All", "resource": "dbs/d/colls/c"});
    fixture.account.post(path, &[], twice).await.expect(409);
    fixture.account.post(path, &[("x-ms-documentdb-expiry-seconds", "5")], terms).await.expect(400);
    fixture.account.get(path, &[]).await.expect(200);
    fixture.account.delete(&format!("{path}/p"), &[]).await.expect(204);
}

async fn script(fixture: &CompatibilityFixture, feed: &str) {
    let body = json!({"id": "s", "body": "function () {}", "triggerType": "Pre", "triggerOperation": "All"});
    let path = format!("{}/{feed}", fixture.container(json!({})).await);
    fixture.account.post(&path, &[], body.clone()).await.expect(201);
    fixture.account.put(&format!("{path}/s"), &[], body).await.expect(200);
    fixture.account.delete(&format!("{path}/s"), &[]).await.expect(204);
}

async fn stored_procedures(fixture: &CompatibilityFixture) {
    script(fixture, "sprocs").await
}

async fn stored_procedure_execution(fixture: &CompatibilityFixture) -> LiveResponse {
    let path = format!("{}/sprocs", fixture.container(json!({})).await);
    fixture.account.post(&path, &[], json!({"id": "s", "body": "function () {}"})).await.expect(201);
    fixture.account.post(&format!("{path}/s"), &[KEY], json!([])).await
}

async fn triggers(fixture: &CompatibilityFixture) {
    script(fixture, "triggers").await
}

async fn trigger_headers(fixture: &CompatibilityFixture) -> LiveResponse {
    let header = ("x-ms-documentdb-pre-trigger-include", "t");
    fixture.account.post(DOCS, &[KEY, header], json!({"id": "triggered", "pk": "a"})).await
}

async fn user_functions(fixture: &CompatibilityFixture) {
    script(fixture, "udfs").await
}

async fn script_feeds(fixture: &CompatibilityFixture) {
    for (feed, plural) in
        [("sprocs", "StoredProcedures"), ("triggers", "Triggers"), ("udfs", "UserDefinedFunctions")]
    {
        let path = format!("/dbs/d/colls/c/{feed}");
        assert_eq!(fixture.account.get(&path, &[]).await.expect(200).body[plural], json!([]));
        fixture.account.get(&format!("{path}/x"), &[]).await.expect(404);
    }
}

async fn client_encryption_keys(fixture: &CompatibilityFixture) {
    let key = json!({
        "id": "access",
        "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256",
        "wrappedDataEncryptionKey": "AQID",
        "keyWrapMetadata": {"type": "t", "name": "n", "value": "v", "algorithm": "RSA-OAEP"},
    });
    let feed = "/dbs/d/clientencryptionkeys";
    let created = fixture.account.post(feed, &[], key.clone()).await.expect(201).body;
    let one = format!("{feed}/access");
    assert_eq!(fixture.account.get(&one, &[]).await.expect(200).body, created);
    fixture.account.put(&one, &[("if-match", "\"other\"")], key).await.expect(412);
    fixture.account.delete(&one, &[]).await.expect(204);
}

async fn attachments(fixture: &CompatibilityFixture) -> LiveResponse {
    fixture.account.post(&format!("{DOCS}/1/attachments"), &[KEY], json!({"id": "x"})).await
}

async fn conflicts(fixture: &CompatibilityFixture) {
    assert_eq!(
        fixture.account.get("/dbs/d/colls/c/conflicts", &[]).await.expect(200).body["Conflicts"],
        json!([])
    );
    fixture.account.get("/dbs/d/colls/c/conflicts/x", &[]).await.expect(404);
    fixture.account.delete("/dbs/d/colls/c/conflicts/x", &[]).await.expect(404);
}

async fn partition_key_delete(fixture: &CompatibilityFixture) {
    let path = fixture.container(json!({})).await;
    for (id, key) in [("1", "a"), ("2", "a"), ("1", "b")] {
        let header = ("x-ms-documentdb-partitionkey", &*format!("[\"{key}\"]"));
        fixture
            .account
            .post(&format!("{path}/docs"), &[header], json!({"id": id, "pk": key}))
            .await
            .expect(201);
    }
    let all = format!("{path}/operations/partitionkeydelete");
    let response = fixture.account.send(Method::POST, &all, &[KEY], "".into()).await;
    assert!([200, 204].contains(&response.status), "{response:?}");
    let left = fixture.account.get(&format!("{path}/docs"), &[]).await.expect(200);
    assert_eq!(left.documents().len(), 1);
}
