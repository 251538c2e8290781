//! Stored procedures, triggers and user-defined functions: what is sent, and what the local account does with them.

use std::sync::{Arc, Mutex};

use futures::TryStreamExt;
use perihelion::scripts::{StoredProcedure, Trigger, TriggerOperation, TriggerType, UserDefinedFunction};
use perihelion::testing::{FakeAccount, FakeRequest, FakeResponse};
use perihelion::{ContainerClient, ErrorKind, SubStatus};
use serde_json::{Value, json};

use crate::{TestAccount, order};

/// The requests that an account received.
#[derive(Clone, Default)]
struct Received(Arc<Mutex<Vec<FakeRequest>>>);

impl Received {
    /// The last request: method, path and body.
    fn last(&self) -> (String, String, Value) {
        let request = self.request();
        let body = if request.body.is_empty() { Value::Null } else { request.json().expect("JSON") };
        (request.method.as_str().to_owned(), request.path, body)
    }

    fn request(&self) -> FakeRequest {
        self.0.lock().expect("no panic").last().expect("a request").clone()
    }
}

/// A container whose account responds with `response`, and the requests that it received.
fn container(
    response: impl Fn(&FakeRequest) -> FakeResponse + Send + Sync + 'static,
) -> (ContainerClient, Received) {
    let received = Received::default();
    let log = received.clone();
    let account = FakeAccount::new().container("shop", "orders", "/customer").respond(move |request| {
        log.0.lock().expect("no panic").push(request.clone());
        response(request)
    });
    let client = account.client().expect("a client");
    (client.database("shop").container("orders"), received)
}

const BODY: &str = "function () { return 1; }";

fn sent(method: &str, path: &str, body: Value) -> (String, String, Value) {
    (method.to_owned(), format!("dbs/shop/colls/orders/{path}"), body)
}

#[tokio::test]
async fn definitions_of_each_kind_are_created_read_listed_replaced_and_deleted() {
    macro_rules! check {
        ($scripts:ident, $kind:literal, $feed:literal, $definition:expr, $json:expr) => {
            let (orders, received) = container(move |request| match request.method.as_str() {
                "DELETE" => FakeResponse::status(204),
                "GET" if !request.path.contains(concat!($kind, "/")) => {
                    FakeResponse::ok(&json!({"_rid": "r", $feed: [$json], "_count": 1}))
                }
                _ => FakeResponse::ok(&$json),
            });
            let (scripts, definition) = (orders.$scripts(), $definition);
            let made = scripts.create(&definition).await.expect("created");
            assert_eq!(made.into_value(), definition);
            assert_eq!(received.last(), sent("POST", $kind, $json));
            assert_eq!(received.request().header("content-type"), Some("application/json"));
            scripts.replace(&definition).if_match("e").await.expect("replaced");
            assert_eq!(received.last(), sent("PUT", concat!($kind, "/a b"), $json));
            assert_eq!(received.request().header("if-match"), Some("e"));
            assert_eq!(scripts.read("a b").await.expect("read").into_value(), definition);
            assert_eq!(received.last(), sent("GET", concat!($kind, "/a b"), Value::Null));
            let all: Vec<_> = scripts.list().stream().try_collect().await.expect("listed");
            assert_eq!(all, [definition]);
            assert_eq!(received.last(), sent("GET", $kind, Value::Null));
            scripts.delete("a b").await.expect("deleted");
            assert_eq!(received.last(), sent("DELETE", concat!($kind, "/a b"), Value::Null));
        };
    }
    let plain = || json!({"id": "a b", "body": BODY});
    check!(stored_procedures, "sprocs", "StoredProcedures", StoredProcedure::new("a b", BODY), plain());
    check!(
        user_defined_functions,
        "udfs",
        "UserDefinedFunctions",
        UserDefinedFunction::new("a b", BODY),
        plain()
    );
    let trigger = || Trigger::new("a b", BODY, TriggerType::Pre, TriggerOperation::Upsert);
    let json = || json!({"id": "a b", "body": BODY, "triggerType": "Pre", "triggerOperation": "Upsert"});
    check!(triggers, "triggers", "Triggers", trigger(), json());
}

#[test]
fn other_clients_write_the_kinds_of_triggers_in_lower_case() {
    let text =
        json!({"id": "t", "body": BODY, "triggerType": "post", "triggerOperation": "all", "_rid": "r"});
    let trigger: Trigger = serde_json::from_value(text).expect("a trigger");
    assert_eq!(trigger, Trigger::new("t", BODY, TriggerType::Post, TriggerOperation::All));
}

#[tokio::test]
async fn a_stored_procedure_is_executed_with_its_parameters_in_one_partition() {
    let (orders, received) =
        container(|request| match request.header("x-ms-documentdb-script-enable-logging") {
            Some("true") => FakeResponse::ok("done")
                .header("x-ms-documentdb-script-log-results", "The%20value%20of%20x%20is%201.%C3%BC"),
            _ => FakeResponse::ok("done"),
        });
    let done =
        orders.execute_stored_procedure::<String>("ada", "p", &("a", 1, [true])).await.expect("executed");
    assert_eq!((done.value().as_str(), done.script_log()), ("done", None));
    assert_eq!(received.last(), sent("POST", "sprocs/p", json!(["a", 1, [true]])));
    let request = received.request();
    assert_eq!(request.header("x-ms-documentdb-partitionkey"), Some(r#"["ada"]"#));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("x-ms-documentdb-script-enable-logging"), None);
    assert!(request.header("authorization").is_some_and(|text| text.contains("sig")));

    let logged =
        orders.execute_stored_procedure::<Value>("ada", "p", &()).script_logging().session_token("0:1#7");
    let logged = logged.await.expect("executed");
    assert_eq!(logged.script_log().as_deref(), Some("The value of x is 1.ü"));
    assert_eq!(received.last(), sent("POST", "sprocs/p", json!([])));
    assert_eq!(received.request().header("x-ms-session-token"), Some("0:1#7"));

    let error = orders.execute_stored_procedure::<Value>("ada", "p", "text").await.expect_err("no array");
    assert_eq!(error.kind(), ErrorKind::BadRequest);
    assert!(error.message().contains("slice or a tuple"), "{error}");
}

#[tokio::test]
async fn the_error_of_a_script_keeps_its_number() {
    let message =
        r#"Message: {"Errors":["Encountered exception while executing function. Exception = Error: no"]}"#;
    let thrown = move |_: &FakeRequest| {
        FakeResponse::status(400).sub_status(1234).body(&json!({"code": "BadRequest", "message": message}))
    };
    let (orders, received) = container(thrown);
    let error = orders.execute_stored_procedure::<Value>("ada", "p", &()).await.expect_err("it throws");
    assert_eq!((error.kind(), error.sub_status()), (ErrorKind::BadRequest, SubStatus(1234)));
    assert!(error.message().contains("Exception = Error: no"), "{error}");
    assert_eq!(received.0.lock().expect("no panic").len(), 1, "it is not executed twice");
}

#[tokio::test]
async fn a_write_names_its_triggers() {
    let (orders, received) = container(|_| FakeResponse::created());
    let item = order("o-1", 1.0);
    orders.create_item("ada", &item).pre_trigger("check").post_trigger("count").await.expect("created");
    let request = received.request();
    assert_eq!(request.header("x-ms-documentdb-pre-trigger-include"), Some("check"));
    assert_eq!(request.header("x-ms-documentdb-post-trigger-include"), Some("count"));
    orders.create_item("ada", &item).await.expect("created");
    assert_eq!(received.request().header("x-ms-documentdb-pre-trigger-include"), None);
}

#[tokio::test]
async fn the_local_account_stores_scripts_and_says_that_it_does_not_run_them() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    orders.stored_procedures().create(&StoredProcedure::new("p", BODY)).await.expect("created");
    let error = orders.execute_stored_procedure::<Value>("ada", "p", &()).await.expect_err("not supported");
    assert_eq!(error.kind(), ErrorKind::BadRequest);
    assert!(error.message().contains("Running stored procedures is not supported"), "{error}");
    let write = orders.create_item("ada", &order("o-1", 1.0)).pre_trigger("t").await;
    assert!(write.expect_err("not supported").message().contains("Running triggers is not supported"));
    let functions: Vec<UserDefinedFunction> =
        orders.user_defined_functions().list().stream().try_collect().await.expect("an empty feed");
    assert_eq!(functions, []);
    let error = orders.triggers().read("t").await.expect_err("none");
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
