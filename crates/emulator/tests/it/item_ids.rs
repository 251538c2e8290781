//! Ids of items with characters that mean something in a path.

use bytes::Bytes;
use http::Method;
use perihelion_emulator::WELL_KNOWN_KEY;
use protocol::authorization::{AccountKey, sign};
use serde_json::{Value, json};

use crate::live::{LiveAccount, LiveResponse};

const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
const DOCS: &str = "dbs/d/colls/c/docs";

/// Sends a request for `sent`, signed for the item `signed`, over a socket.
async fn send(account: &LiveAccount, method: Method, sent: &str, signed: &str, body: &Value) -> LiveResponse {
    let date = httpdate::fmt_http_date(account.clock.wall_clock().to_system_time());
    let key = AccountKey::from_base64(WELL_KNOWN_KEY).unwrap();
    let link = format!("{DOCS}/{signed}");
    let authorization = sign(&key, method.as_str(), "docs", &link, &date);
    let headers = [("x-ms-date", date.as_str()), ("authorization", &authorization), KEY];
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    account.send_unsigned(method, &format!("/{DOCS}/{sent}"), &headers, body).await
}

#[tokio::test]
async fn ids_with_slashes_question_marks_and_hashes_are_reachable_in_every_form_that_clients_use() {
    let account = LiveAccount::with_container(1, json!({})).await;
    for (id, encoded) in [
        ("a/b", "a%2Fb"),
        ("/", "%2f"),
        ("a?b", "a%3Fb"),
        ("a#b", "a%23b"),
        ("a/b?c=d&e#f%20", "a%2Fb%3Fc%3Dd%26e%23f%2520"),
    ] {
        account.create(json!({"id": id, "pk": "a"})).await.expect(201);
        account.create(json!({"id": id, "pk": "a"})).await.expect(409);
        for signed in [id, encoded] {
            let read = send(&account, Method::GET, encoded, signed, &Value::Null).await.expect(200);
            assert_eq!(read.body["id"], id, "signed as {signed}");
        }
        let replaced = json!({"id": id, "pk": "a", "n": 1});
        send(&account, Method::PUT, encoded, id, &replaced).await.expect(200);
        send(&account, Method::DELETE, encoded, encoded, &Value::Null).await.expect(204);
        send(&account, Method::GET, encoded, id, &Value::Null).await.expect(404);
    }
}

#[tokio::test]
async fn a_question_mark_may_be_sent_as_it_is() {
    let account = LiveAccount::with_container(1, json!({})).await;
    for id in ["a?b", "a?", "a?b=c&d", "?"] {
        account.create(json!({"id": id, "pk": "a"})).await.expect(201);
        if id != "?" {
            let read = send(&account, Method::GET, id, id, &Value::Null).await.expect(200);
            assert_eq!(read.body["id"], id);
        }
        let encoded = id.replace('?', "%3F").replace('=', "%3D").replace('&', "%26");
        send(&account, Method::GET, &encoded, id, &Value::Null).await.expect(200);
    }
    // What was signed is what is addressed: the part before the question mark is another item.
    account.create(json!({"id": "a", "pk": "a"})).await.expect(201);
    send(&account, Method::GET, "a?b", "a", &Value::Null).await.expect(401);
    assert_eq!(send(&account, Method::GET, "a", "a", &Value::Null).await.expect(200).body["id"], "a");
    send(&account, Method::DELETE, "a?b", "a?b", &Value::Null).await.expect(204);
    send(&account, Method::GET, "a", "a", &Value::Null).await.expect(200);
}

#[tokio::test]
async fn a_backslash_in_an_id_and_a_space_in_a_key_path_are_refused() {
    let account = LiveAccount::with_container(1, json!({})).await;
    account.create(json!({"id": "a\\b", "pk": "a"})).await.expect(400);
    let container = |path: &str| json!({"id": "spaces", "partitionKey": {"paths": [path], "kind": "Hash"}});
    let refused = account.post("/dbs/d/colls", &[], container("/a b")).await.expect(400);
    assert!(refused.message().contains("failed near position '3'"), "{}", refused.body);
    account.post("/dbs/d/colls", &[], container(r#"/"a b""#)).await.expect(201);
}
