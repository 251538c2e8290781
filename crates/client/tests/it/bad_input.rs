//! Mistakes of a caller: each becomes a typed error that says what to do, within the deadline.

use std::time::Duration;

use emulator::clock::Clock;
use emulator::{Emulator, EmulatorConfig};
use perihelion::{
    Account, ChangeFeedStart, ContainerProperties, CosmosClient, Error, ErrorKind, PartitionKeyDefinition,
    Result, Throughput,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::canned_server::{CannedServer, response};
use crate::{Order, TestAccount, order};

const KEY: &str = "c2VjcmV0";

/// Checks the kind, and that the whole message, with its advice, contains these parts.
#[track_caller]
fn check(error: &Error, kind: ErrorKind, parts: &[&str]) {
    assert_eq!(error.kind(), kind, "{error}");
    let shown = error.to_string();
    for part in parts {
        assert!(shown.contains(part), "`{part}` is missing: {shown}");
    }
}

/// Runs an operation that must fail, at the latest two seconds after its deadline.
pub(crate) async fn fails<T>(operation: impl Future<Output = Result<T>>, within: Duration) -> Error {
    #[expect(clippy::disallowed_methods, reason = "measures how long the call took")]
    let begun = Instant::now();
    let Err(error) = operation.await else { panic!("it did not fail") };
    let (took, most) = (begun.elapsed(), within + Duration::from_secs(2));
    assert!(took < most, "took {took:?}: {error}");
    error
}

const SOON: Duration = Duration::from_secs(3);

fn client_of(endpoint: &str) -> CosmosClient {
    let account = Account::with_key(endpoint, KEY).expect("an account");
    CosmosClient::builder(account).timeout(SOON).build().expect("a client")
}

#[test]
fn an_invalid_connection_string_says_what_is_wrong() {
    for (text, parts) in [
        ("", "no AccountEndpoint"),
        ("https://a.documents.azure.com", "no AccountEndpoint"),
        ("AccountEndpoint=https://a.documents.azure.com/", "no AccountKey"),
        ("AccountEndpoint=a.documents.azure.com;AccountKey=a2V5", "not a URL"),
        ("AccountEndpoint=https://a.documents.azure.com/;AccountKey=my secret", "not base64"),
        ("AccountEndpoint=https://a.documents.azure.com/;AccountKey=", "not base64"),
    ] {
        let error = CosmosClient::from_connection_string(text).expect_err(text);
        check(&error, ErrorKind::Configuration, &[parts]);
        assert!(!error.to_string().contains("my secret"), "keys are never shown");
    }
}

#[tokio::test]
async fn a_wrong_key_and_a_missing_permission_are_different_errors() {
    let account = TestAccount::start().await;
    let client =
        CosmosClient::with_key(&account.client.endpoint(), KEY).expect("a key, if not the right one");
    let error = fails(client.database("shop").read().into_future(), SOON).await;
    check(&error, ErrorKind::Unauthenticated, &["wrong key", "check the key"]);
    assert_eq!(error.status().map(|status| status.0), Some(401));
}

#[tokio::test]
async fn an_endpoint_without_a_listener_is_named() {
    let endpoint = {
        let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        format!("http://{}/", closed.local_addr().expect("an address"))
    };
    let client = client_of(&endpoint);
    let error = fails(client.database("shop").read().into_future(), SOON).await;
    let host = endpoint.trim_start_matches("http://").trim_end_matches('/');
    check(&error, ErrorKind::Unavailable, &[host]);
}

#[tokio::test]
async fn a_server_that_is_no_account_and_one_that_is_down_are_different_errors() {
    let page = || response("200 OK", "content-type: text/html\r\n", "<html>Welcome to nginx!</html>");
    for (reply, kind) in [
        (page(), ErrorKind::BadResponse),
        (response("200 OK", "", "{}"), ErrorKind::BadResponse),
        (response("404 Not Found", "", "404 page not found"), ErrorKind::BadResponse),
        (response("302 Found", "location: /login\r\n", ""), ErrorKind::BadResponse),
        (b"SSH-2.0-OpenSSH_9.6\r\n".to_vec(), ErrorKind::BadResponse),
    ] {
        let server = CannedServer::start(move |_, _| reply.clone()).await;
        let error = fails(client_of(server.endpoint()).database("shop").read().into_future(), SOON).await;
        check(&error, kind, &["an account of Cosmos DB"]);
    }
}

#[tokio::test]
async fn an_untrusted_certificate_is_named() {
    let account = TestAccount::start().await;
    let client = CosmosClient::with_key(&account.running.https_endpoint(), KEY).expect("a client");
    let error = fails(client.database("shop").read().into_future(), SOON).await;
    check(
        &error,
        ErrorKind::Configuration,
        &["certificate is not trusted", "trust the certificate", "use http"],
    );
}

/// The response to `GET /` of an account at `base`, with properties that no client knows.
fn unknown_account(base: &str) -> Vec<u8> {
    let region = json!({"name": "West US", "databaseAccountEndpoint": base, "altitude": 3});
    let body = json!({
        "_self": "", "id": "strange", "_rid": "strange.documents.azure.com", "flavour": {"new": true},
        "writableLocations": [region], "readableLocations": [region],
        "userConsistencyPolicy": {"defaultConsistencyLevel": "Quantum"},
        "enableMultipleWriteLocations": false,
    });
    response("200 OK", "", &body.to_string())
}

#[tokio::test]
async fn responses_with_unknown_properties_are_read() {
    for (reply, kind) in [
        (response("200 OK", "x-ms-unheard-of: 1\r\n", r#"{"id":"shop","_new":[1]}"#), None),
        (response("299 Fine", "", r#"{"id":"shop"}"#), None),
        (
            response("400 Bad Request", "x-ms-substatus: 987654\r\n", r#"{"code":"New","message":"new"}"#),
            Some(ErrorKind::BadRequest),
        ),
        (response("499 Odd", "x-ms-substatus: many\r\n", ""), Some(ErrorKind::BadRequest)),
        (response("200 OK", "", r#"{"id":7}"#), Some(ErrorKind::Mismatch)),
        (response("200 OK", "", r#"{"id":"sh"#), Some(ErrorKind::BadResponse)),
    ] {
        let server = CannedServer::start(move |line, base| {
            if line.starts_with("GET / ") { unknown_account(base) } else { reply.clone() }
        })
        .await;
        let read = client_of(server.endpoint()).database("shop").read().await;
        match (read, kind) {
            (Ok(read), None) => assert_eq!(read.value().id, "shop"),
            (Err(error), Some(kind)) => check(&error, kind, &[]),
            (read, kind) => panic!("{read:?} where {kind:?} is expected"),
        }
    }
}

#[tokio::test]
async fn a_wrong_content_length_does_not_delay_the_deadline() {
    let short = b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n{\"id\":\"shop\"}".to_vec();
    let long = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n{\"id\":\"shop\"}".to_vec();
    let odd = b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n{}".to_vec();
    let chunks = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}".to_vec();
    // How many attempts fit before the deadline depends on the machine.
    let may_be = [ErrorKind::DeadlineExceeded, ErrorKind::Unavailable, ErrorKind::BadResponse];
    for (reply, kinds) in
        [(short, &may_be[..]), (long, &[ErrorKind::BadResponse]), (odd, &may_be[..]), (chunks, &may_be[..])]
    {
        let server = CannedServer::start(move |line, base| {
            if line.starts_with("GET / ") { unknown_account(base) } else { reply.clone() }
        })
        .await;
        let error = fails(client_of(server.endpoint()).database("shop").read().into_future(), SOON).await;
        check(&error, error.kind(), &[]);
        assert!(kinds.contains(&error.kind()), "{error}");
    }
}

#[tokio::test]
async fn a_clock_difference_and_a_missing_permission_are_different_errors() {
    let mut config = EmulatorConfig::default();
    let (now, hour) = (Clock::system().now(), Duration::from_secs(3600));
    config.clock = Clock::manual(now.plus(hour));
    let running = Emulator::start(config).await.expect("the emulator starts");
    let client = CosmosClient::from_connection_string(&running.connection_string()).expect("a client");
    let error = fails(client.database("shop").read().into_future(), SOON).await;
    check(&error, ErrorKind::Unauthenticated, &["the clock of this machine is wrong"]);
}

#[tokio::test]
async fn invalid_names_are_named_in_the_error() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    for (item, parts) in [
        (json!({"customer": "ada"}), "id"),
        (json!({"id": "", "customer": "ada"}), "id"),
        (json!({"id": 7, "customer": "ada"}), "id"),
        (json!({"id": "a\\b", "customer": "ada"}), "a\\b"),
        (json!(["not", "an", "object"]), "object"),
    ] {
        let error = fails(orders.create_item("ada", &item).into_future(), SOON).await;
        check(&error, ErrorKind::BadRequest, &[parts]);
    }
    // Ids that would make the path of another resource: nothing is sent.
    for id in ["", ".", ".."] {
        let error = fails(orders.delete_item("ada", id).into_future(), SOON).await;
        check(&error, ErrorKind::BadRequest, &["an id of `dbs/shop/colls/orders/docs/"]);
        let error = fails(account.client.database(id).delete().into_future(), SOON).await;
        check(&error, ErrorKind::BadRequest, &["an id of `dbs/"]);
        let error = fails(account.client.database("shop").container(id).delete().into_future(), SOON).await;
        check(&error, ErrorKind::BadRequest, &["an id of `dbs/shop/colls/"]);
        let rows =
            account.client.database("shop").container(id).query_items::<Value>("SELECT * FROM c").pages();
        check(&fails(rows, SOON).await, ErrorKind::BadRequest, &["an id of `dbs/shop/colls/"]);
    }
    for id in ["", "a/b", "a#b"] {
        let error = fails(account.client.create_database(id).into_future(), SOON).await;
        check(&error, ErrorKind::BadRequest, &["name"]);
    }
    for id in ["a/b", "a b", "ä?#%"] {
        let error = fails(orders.delete_item("ada", id).into_future(), SOON).await;
        check(&error, ErrorKind::NotFound, &[id]);
    }
    orders.read().await.expect("nothing was deleted");
}

#[tokio::test]
async fn a_partition_key_that_differs_from_the_items_is_an_error() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    let error = fails(orders.create_item("bob", &order("1", 1.0)).into_future(), SOON).await;
    check(&error, ErrorKind::BadRequest, &["artition key"]);
    assert_eq!(error.sub_status().0, 1001);
    let error = fails(orders.create_item(("ada", "lovelace"), &order("1", 1.0)).into_future(), SOON).await;
    check(&error, ErrorKind::BadRequest, &["artition key"]);
    let error = fails(orders.read_item::<Order>(("ada", "lovelace"), "1").into_future(), SOON).await;
    check(&error, ErrorKind::BadRequest, &["artition key"]);
}

#[tokio::test]
async fn an_item_that_is_too_large_is_an_error_with_the_limit() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    let item = json!({"id": "1", "customer": "ada", "note": "x".repeat(3 << 20)});
    let error = fails(orders.create_item("ada", &item).into_future(), SOON).await;
    check(&error, ErrorKind::TooLarge, &["large", "make it smaller"]);
    assert_eq!(error.status().map(|status| status.0), Some(413));
}

#[tokio::test]
async fn an_invalid_query_says_where_the_error_is() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    for (text, parts) in [
        ("SELECT * FORM c", "FORM"),
        ("SELECT * FROM c WHERE c.total >", "end"),
        ("SELECT NOSUCH(c.id) FROM c", "NOSUCH"),
        ("SELECT * FROM c WHERE c.id = @id", "@id"),
    ] {
        let error =
            fails(async { orders.query_items::<Value>(text).pages().await?.next_page().await }, SOON).await;
        check(&error, ErrorKind::BadRequest, &[parts, "change the request"]);
    }
}

#[tokio::test]
async fn a_continuation_of_another_query_is_an_error() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    for n in 0..5 {
        orders.create_item("ada", &order(&n.to_string(), f64::from(n))).await.expect("created");
    }
    let two = std::num::NonZeroU32::new(2).expect("not zero");
    let mut pages =
        orders.query_items::<Order>("SELECT * FROM c").page_size(two).pages().await.expect("planned");
    pages.next_page().await.expect("a page");
    let query = pages.continuation().expect("there is more");
    let feed = orders.change_feed::<Order>().from(ChangeFeedStart::Beginning).start().await.expect("started");
    let feed = feed.continuation();
    for (text, continuation) in [
        // The continuation of another query, of a change feed, of nothing, and an empty one.
        ("SELECT * FROM c ORDER BY c.total", query.as_str()),
        ("SELECT * FROM c", feed.as_str()),
        ("SELECT * FROM c", "page 2"),
        ("SELECT * FROM c", ""),
    ] {
        let pages = orders.query_items::<Order>(text).continuation(continuation).pages();
        let error = fails(async { pages.await?.next_page().await }, SOON).await;
        check(&error, ErrorKind::BadRequest, &["continuation"]);
    }
    let other = account.client.database("shop");
    let key = PartitionKeyDefinition::hash("/customer").expect("a path");
    other.create_container(&ContainerProperties::new("other", key)).await.expect("created");
    for (container, continuation) in [("other", feed.as_str()), ("orders", query.as_str()), ("orders", "7")] {
        let feed = other.container(container).change_feed::<Order>().continuation(continuation).start();
        let error = fails(async { feed.await?.next_page().await }, SOON).await;
        check(&error, ErrorKind::BadRequest, &["continuation"]);
    }
}

#[tokio::test]
async fn a_foreign_session_token_ends_within_the_deadline() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    orders.create_item("ada", &order("1", 1.0)).await.expect("created");
    for (token, kinds) in [
        ("0:-1#999999", [ErrorKind::SessionUnavailable, ErrorKind::DeadlineExceeded]),
        ("nonsense", [ErrorKind::BadRequest, ErrorKind::BadRequest]),
    ] {
        let timeouts = perihelion::TimeoutOptions::new().with_end_to_end(SOON);
        let options = perihelion::OperationOptions::new().with_timeouts(timeouts);
        let read = orders.read_item::<Order>("ada", "1").session_token(token).options(options);
        let error = fails(read.into_future(), SOON).await;
        check(&error, error.kind(), &[]);
        assert!(kinds.contains(&error.kind()), "{error}");
    }
}

#[tokio::test]
async fn a_value_that_does_not_fit_is_named_with_its_property() {
    #[derive(Debug, serde::Deserialize)]
    struct Priced {
        #[expect(dead_code, reason = "only read by serde")]
        total: u8,
    }
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    orders.create_item("ada", &order("1", 999.5)).await.expect("created");
    let read = orders.read_item::<Priced>("ada", "1").await.expect_err("too much");
    check(&read, ErrorKind::Mismatch, &["Priced", "`total`", "999.5", "change the type"]);
    let row =
        orders.query_items::<Priced>("SELECT * FROM c").pages().await.expect("planned").next_page().await;
    check(&row.expect_err("too much"), ErrorKind::Mismatch, &["`total`"]);
}

#[tokio::test]
async fn an_invalid_throughput_is_an_error_with_the_limits() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    for throughput in [Throughput::manual(1), Throughput::manual(450), Throughput::autoscale(10)] {
        let error = fails(orders.set_throughput(&throughput).into_future(), SOON).await;
        check(&error, ErrorKind::BadRequest, &["throughput"]);
    }
}
