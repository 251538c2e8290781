//! Routes in general: what exists, what does not, and bodies nobody can read.

use http::Method;

use super::account;

#[tokio::test]
async fn the_first_page_and_the_404_say_what_there_is() {
    let account = account().await;
    let index = account.ask("/").await.expect(200);
    let routes = index.body["routes"].as_array().unwrap();
    assert!(routes.iter().any(|route| route["route"] == "POST /clock/advance"), "{}", index.body);
    let missing = account.ask("/clocks").await.expect(404);
    assert_eq!(missing.body["code"], "NotFound");
    assert!(missing.message().contains("GET /clock, "), "{}", missing.message());
}

#[tokio::test]
async fn a_method_that_is_not_there_is_refused_with_those_that_are() {
    let account = account().await;
    for (method, path, allow) in [
        (Method::POST, "/health/ready", "GET, HEAD"),
        (Method::DELETE, "/clock", "GET, HEAD"),
        (Method::GET, "/clock/freeze", "POST"),
    ] {
        let answer = account.control(method.clone(), path, "").await.expect(405);
        assert_eq!(answer.header("allow"), allow, "{method} {path}");
    }
}

#[tokio::test]
async fn bodies_nobody_can_read_are_refused_and_change_nothing() {
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
        let answer = account.control(Method::POST, path, body).await.expect(400);
        assert_eq!(answer.body["code"], "BadRequest", "{path} {body}");
        assert!(!answer.message().is_empty());
    }
    let answer = account.ask("/clock?verbose=1").await.expect(400);
    assert!(answer.message().contains("'verbose'"), "{}", answer.message());
    let clock = account.ask("/clock").await.expect(200).body;
    assert_eq!((&clock["frozen"], clock["aheadSeconds"].as_f64()), (&false.into(), Some(0.0)), "{clock}");
}
