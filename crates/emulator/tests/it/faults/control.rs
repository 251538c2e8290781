//! Tests of fault injection through the control port.

use super::*;

/// Sends a request to the control port.
async fn send_control(fixture: &FaultFixture, method: Method, path: &str, body: &str) -> (u16, Value) {
    let port = fixture.running.control_port();
    let mut connection = in_time(fixture.try_connect(port, ClientProtocol::Http1)).await.unwrap();
    let request = Request::builder()
        .method(method)
        .uri(format!("http://localhost{path}"))
        .header("host", "localhost")
        .header("x-perihelion-control", "1")
        .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
        .unwrap();
    let response = connection.send(request).await.unwrap();
    (response.status, response.body)
}

#[tokio::test]
async fn rules_are_added_listed_and_removed() {
    let fixture = FaultFixture::start().await;
    let rule = r#"{"id":"storm","match":{"operations":["read"]},"for":"30s","effect":{"status":429}}"#;
    let (status, added) = send_control(&fixture, Method::POST, "/faults", rule).await;
    assert_eq!((status, &added["state"], &added["endsIn"]), (200, &json!("active"), &json!("30s")));
    assert_eq!(
        fixture.connect(ClientProtocol::Http1).await.send(fixture.read("there")).await.unwrap().status,
        429
    );
    let (_, listed) = send_control(&fixture, Method::GET, "/faults", "").await;
    assert_eq!((&listed["rules"][0]["id"], &listed["rules"][0]["struck"]), (&json!("storm"), &json!(1)));
    assert!(listed["seed"].is_u64());
    assert_eq!(send_control(&fixture, Method::POST, "/faults/seed", r#"{"seed":7}"#).await.1["seed"], 7);
    assert_eq!(
        send_control(&fixture, Method::GET, "/faults/storm", "").await.1["struck"],
        0,
        "chance starts anew"
    );
    assert_eq!(send_control(&fixture, Method::DELETE, "/faults/storm", "").await.0, 200);
    assert_eq!(send_control(&fixture, Method::DELETE, "/faults/storm", "").await.0, 404);
    assert!(fixture.has("there").await);
    send_control(&fixture, Method::POST, "/faults", rule).await;
    assert_eq!(send_control(&fixture, Method::DELETE, "/faults", "").await, (200, json!({"removed": 1})));
}

#[tokio::test]
async fn regions_are_switched_by_name() {
    let fixture = FaultFixture::start().await;
    let cases = [
        ("/regions/East%20US/down", r#"{"as":"unavailable","for":"30s"}"#, "unavailable", Some(503)),
        ("/regions/eastus/drain", "{}", "draining", Some(403)),
        ("/regions/eastus/storm", r#"{"retryAfter":"5ms","share":1.0}"#, "storm", Some(429)),
        ("/regions/eastus/slow", r#"{"by":{"from":"0s","to":"0s"}}"#, "slow", Some(200)),
        ("/regions/eastus/down", "", "refused", None),
        ("/regions/eastus/up", "", "up", Some(200)),
    ];
    for (path, body, condition, responded) in cases {
        let (status, regions) = send_control(&fixture, Method::POST, path, body).await;
        assert_eq!((status, &regions["regions"][1]["condition"]), (200, &json!(condition)), "{regions}");
        let response = match fixture.try_connect(fixture.port(1), ClientProtocol::Http1).await {
            Ok(mut connection) => Some(connection.send(fixture.account()).await.unwrap().status),
            Err(_) => None,
        };
        assert_eq!(response, responded, "{path}");
    }
    let (_, regions) = send_control(&fixture, Method::POST, "/regions/eastus/failover", "").await;
    assert_eq!(regions["regions"][0]["name"], "East US");
    assert_eq!(send_control(&fixture, Method::GET, "/regions", "").await.1, regions);
}

#[tokio::test]
async fn invalid_requests_are_rejected_with_a_reason() {
    let fixture = FaultFixture::start().await;
    let cases = [
        (Method::POST, "/faults", r#"{"effect":{}}"#, 400, "effect is missing"),
        (Method::POST, "/faults", r#"{"effect":{"status":503},"colour":1}"#, 400, "colour"),
        (Method::POST, "/faults", r#"{"effect":{"status":503},"share":2}"#, 400, "share"),
        (Method::POST, "/faults", r#"{"effect":{"status":503},"match":{"regions":["Mars"]}}"#, 400, "Mars"),
        (Method::POST, "/faults", "nonsense", 400, "body"),
        (Method::GET, "/faults/none", "", 404, "none"),
        (Method::POST, "/faults/seed", "{}", 400, "seed"),
        (Method::POST, "/regions/Mars/down", "", 404, "East US"),
        (Method::POST, "/regions/eastus/down", r#"{"as":"sleeping"}"#, 400, "sleeping"),
        (Method::POST, "/regions/eastus/down", r#"{"for":"0s"}"#, 400, "no time"),
        (Method::POST, "/regions/eastus/slow", "{}", 400, "by"),
        (Method::POST, "/regions/eastus/slow", r#"{"by":"1h"}"#, 400, "too long"),
        (Method::POST, "/regions/eastus/storm", r#"{"share":0}"#, 400, "share"),
        (Method::POST, "/regions/eastus/explode", "", 404, "route"),
    ];
    for (method, path, body, expected, part) in cases {
        let (status, problem) = send_control(&fixture, method, path, body).await;
        let message = problem["message"].as_str().unwrap_or_default();
        assert!(status == expected && message.contains(part), "{path} {body}: {status} {message}");
    }
    assert!(fixture.faults().list().is_empty());
}
