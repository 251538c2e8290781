//! Tests of the control port's routing and of invalid bodies.

use http::Method;

use super::account;

#[tokio::test]
async fn the_index_and_the_404_list_the_routes() {
    let account = account().await;
    let index = account.control_get("/").await.expect(200);
    let routes = index.body["routes"].as_array().unwrap();
    assert!(routes.iter().any(|route| route["route"] == "POST /clock/advance"), "{}", index.body);
    let missing = account.control_get("/clocks").await.expect(404);
    assert_eq!(missing.body["code"], "NotFound");
    assert!(missing.message().contains("GET /clock, "), "{}", missing.message());
}

#[tokio::test]
async fn an_unsupported_method_gets_405_with_the_allowed_methods() {
    let account = account().await;
    for (method, path, allow) in [
        (Method::POST, "/health/ready", "GET, HEAD"),
        (Method::DELETE, "/clock", "GET, HEAD"),
        (Method::GET, "/clock/freeze", "POST"),
    ] {
        let response = account.control(method.clone(), path, "").await.expect(405);
        assert_eq!(response.header("allow"), allow, "{method} {path}");
    }
}

#[tokio::test]
async fn invalid_bodies_are_rejected_and_change_nothing() {
    let account = account().await;
    let cases = [
        ("/clock/advance", ""),
        ("/clock/advance", "{"),
        ("/clock/advance", r#"{"by":"soon"}"#),
        ("/clock/advance", r#"{"by":5}"#),
        ("/clock/advance", r#"{"by":"5s","unless":"later"}"#),
        ("/clock/advance", r#"{"by":"400000d"}"#),
        ("/clock/freeze", r#"{"at":"noon"}"#),
        ("/clock/set", r#"{"to":"1960-01-01"}"#),
        ("/clock/set", r#"{"to":"noon"}"#),
    ];
    for (path, body) in cases {
        let response = account.control(Method::POST, path, body).await.expect(400);
        assert_eq!(response.body["code"], "BadRequest", "{path} {body}");
        assert!(!response.message().is_empty());
    }
    let response = account.control_get("/clock?verbose=1").await.expect(400);
    assert!(response.message().contains("'verbose'"), "{}", response.message());
    let clock = account.control_get("/clock").await.expect(200).body;
    assert_eq!((&clock["frozen"], clock["aheadSeconds"].as_f64()), (&false.into(), Some(0.0)), "{clock}");
}
