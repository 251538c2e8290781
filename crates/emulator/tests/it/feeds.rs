//! Feeds of resources other than items: both directions, page by page.

use serde_json::{Value, json};

use crate::live::LiveAccount;

const REVERSE: (&str, &str) = ("x-ms-enumeration-direction", "Reverse");

/// The ids of a feed, two at a time.
async fn ids(account: &LiveAccount, feed: &str, plural: &str, headers: &[(&str, &str)]) -> Vec<String> {
    let (mut ids, mut token) = (Vec::new(), String::new());
    loop {
        let mut all = [headers, &[("x-ms-max-item-count", "2")]].concat();
        if !token.is_empty() {
            all.push(("x-ms-continuation", &token));
        }
        let page = account.get(feed, &all).await.expect(200);
        let entries = page.body[plural].as_array().unwrap();
        ids.extend(entries.iter().map(|entry| entry["id"].as_str().unwrap().to_owned()));
        token = page.header("x-ms-continuation").to_owned();
        if token.is_empty() {
            return ids;
        }
    }
}

#[tokio::test]
async fn every_feed_of_resources_is_read_backwards_on_request() {
    let account = LiveAccount::with_container(1, json!({})).await;
    account.post("/dbs/d/users", &[], json!({"id": "owner"})).await.expect(201);
    let body = |feed: &str, id: String| -> Value {
        match feed {
            "colls" => json!({"id": id, "partitionKey": {"paths": ["/pk"]}}),
            "permissions" => {
                json!({"id": id, "permissionMode": "Read", "resource": format!("dbs/d/colls/{id}")})
            }
            "sprocs" | "udfs" => json!({"id": id, "body": "x"}),
            "clientencryptionkeys" => json!({
                "id": id, "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256",
                "wrappedDataEncryptionKey": "AQID", "keyWrapMetadata": {"type": "t", "name": "n", "value": "v"},
            }),
            _ => json!({"id": id}),
        }
    };
    for (path, plural, count) in [
        ("/dbs", "Databases", 5),
        ("/dbs/d/colls", "DocumentCollections", 5),
        ("/dbs/d/users", "Users", 5),
        ("/dbs/d/users/owner/permissions", "Permissions", 4),
        ("/dbs/d/colls/c/sprocs", "StoredProcedures", 4),
        ("/dbs/d/colls/c/udfs", "UserDefinedFunctions", 4),
        ("/dbs/d/clientencryptionkeys", "ClientEncryptionKeys", 4),
        ("/offers", "Offers", 5),
    ] {
        let feed = path.rsplit('/').next().unwrap();
        if feed != "offers" {
            for number in 0..4 {
                account.post(path, &[], body(feed, format!("{feed}{number}"))).await.expect(201);
            }
        }
        let forward = ids(&account, path, plural, &[]).await;
        assert_eq!(forward.len(), count, "{path}: {forward:?}");
        let mut reversed = ids(&account, path, plural, &[REVERSE]).await;
        reversed.reverse();
        assert_eq!(reversed, forward, "{path}");
        let stated = ids(&account, path, plural, &[("x-ms-enumeration-direction", "Forward")]).await;
        assert_eq!(stated, forward, "{path}");
        account.get(path, &[("x-ms-enumeration-direction", "Sideways")]).await.expect(400);
    }
}
