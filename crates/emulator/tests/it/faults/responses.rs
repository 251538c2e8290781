//! Tests of rules that respond in the service's place, and of rules that delay requests.

use perihelion_emulator::faults::{ConnectionEffect, FAULT_HEADER, FaultRule, OperationKind, RuleState};

use super::*;

#[tokio::test]
async fn a_rule_responds_like_the_service_and_names_itself() {
    let fixture = FaultFixture::start().await;
    for protocol in ClientProtocol::ALL {
        let rule =
            FaultRule::status(429, 3200).retry_after(Duration::from_millis(70)).on(OperationKind::Read);
        fixture.faults().add(rule.named("storm").times(1)).unwrap();
        let mut connection = fixture.connect(protocol).await;
        let response = connection.send(fixture.read("there")).await.unwrap();
        assert_eq!((response.status, response.header("x-ms-substatus")), (429, "3200"), "{protocol:?}");
        assert_eq!(response.header("x-ms-retry-after-ms"), "70");
        assert_eq!(response.header(FAULT_HEADER), "storm");
        assert_eq!(response.body["code"], "TooManyRequests");
        assert!(response.body["message"].as_str().unwrap().contains("ActivityId"), "{}", response.body);
        let response = connection.send(fixture.read("there")).await.unwrap();
        assert_eq!(
            (response.status, response.header(FAULT_HEADER)),
            (200, ""),
            "{protocol:?}: once was enough"
        );
    }
    let storm = fixture.faults().get("storm").unwrap();
    assert_eq!((storm.state, storm.hits), (RuleState::Ended, 1));
}

#[tokio::test]
async fn a_rule_may_have_its_own_message_and_headers() {
    let fixture = FaultFixture::start().await;
    let rule = br#"{"id":"odd","effect":{"status":449,"message":"not now","headers":{"x-ms-custom":"7"}}}"#;
    fixture.faults().add(FaultRule::from_json(rule).unwrap()).unwrap();
    let response = fixture.connect(ClientProtocol::Http1).await.send(fixture.read("there")).await.unwrap();
    assert_eq!((response.status, response.header("x-ms-custom")), (449, "7"));
    assert_eq!(response.body["code"], "RetryWith");
    assert!(response.body["message"].as_str().unwrap().contains("not now"), "{}", response.body);
}

#[tokio::test]
async fn faults_apply_before_authorization() {
    let fixture = FaultFixture::start().await;
    fixture.faults().add(FaultRule::status(503, 0)).unwrap();
    let mut request = fixture.read("there");
    request.headers_mut().remove("authorization");
    assert_eq!(fixture.connect(ClientProtocol::Http1).await.send(request).await.unwrap().status, 503);
}

#[tokio::test]
async fn a_delayed_request_is_carried_out_when_its_time_has_come() {
    let fixture = FaultFixture::start().await;
    for (n, protocol) in ClientProtocol::ALL.into_iter().enumerate() {
        let id = format!("late-{n}");
        fixture
            .faults()
            .add(FaultRule::delay(Duration::from_secs(30)).on(OperationKind::Create).times(1))
            .unwrap();
        let mut connection = fixture.connect(protocol).await;
        let request = fixture.create(&id);
        let sending = tokio::spawn(async move { connection.send(request).await.unwrap().status });
        in_time(fixture.faults().wait_for_delayed_requests(1)).await;
        assert!(!fixture.has(&id).await, "{protocol:?}: it waits");
        assert!(!sending.is_finished());
        fixture.clock.advance(Duration::from_secs(30));
        assert_eq!(in_time(sending).await.unwrap(), 201, "{protocol:?}");
        assert!(fixture.has(&id).await);
    }
}

#[tokio::test]
async fn a_request_whose_client_disconnects_during_a_delay_is_dropped() {
    let fixture = FaultFixture::start().await;
    for (n, protocol) in ClientProtocol::ALL.into_iter().enumerate() {
        let id = format!("gone-{n}");
        fixture
            .faults()
            .add(FaultRule::delay(Duration::from_secs(30)).on(OperationKind::Create).times(1))
            .unwrap();
        let mut connection = fixture.connect(protocol).await;
        let connection_task = connection.connection.abort_handle();
        let request = fixture.create(&id);
        let sending = tokio::spawn(async move { connection.begin(request).await.map(|_| ()) });
        in_time(fixture.faults().wait_for_delayed_requests(1)).await;
        sending.abort();
        connection_task.abort();
        in_time(fixture.faults().wait_for_delayed_requests(0)).await;
        fixture.clock.advance(Duration::from_secs(60));
        assert!(!fixture.has(&id).await, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_delayed_response_comes_after_the_operation() {
    let fixture = FaultFixture::start().await;
    let rule = FaultRule::delay(Duration::from_secs(30)).delaying_the_response().on(OperationKind::Create);
    fixture.faults().add(rule).unwrap();
    let mut connection = fixture.connect(ClientProtocol::Http2).await;
    let request = fixture.create("done");
    let sending = tokio::spawn(async move { connection.send(request).await.unwrap().status });
    in_time(fixture.faults().wait_for_delayed_requests(1)).await;
    assert!(fixture.has("done").await, "the answer waits, the item does not");
    fixture.clock.advance(Duration::from_secs(30));
    assert_eq!(in_time(sending).await.unwrap(), 201);
}

#[tokio::test]
async fn a_delay_combines_with_another_effect() {
    let fixture = FaultFixture::start().await;
    let wait = Duration::from_secs(9);
    let rules = [FaultRule::status(503, 0), FaultRule::connection(ConnectionEffect::CloseBefore)];
    for rule in rules {
        let responses = rule.effect.status.is_some();
        fixture.faults().add(rule.delayed_by(wait).named("slow").on(OperationKind::Read)).unwrap();
        let mut connection = fixture.connect(ClientProtocol::Http1).await;
        let request = fixture.read("there");
        let sending =
            tokio::spawn(async move { connection.send(request).await.map(|response| response.status) });
        in_time(fixture.faults().wait_for_delayed_requests(1)).await;
        fixture.clock.advance(wait);
        let response = in_time(sending).await.unwrap();
        assert_eq!(response.ok(), responses.then_some(503));
    }
}

#[tokio::test]
async fn a_rule_ends_after_its_duration() {
    let fixture = FaultFixture::start().await;
    fixture.faults().add(FaultRule::status(503, 0).named("short").lasting(Duration::from_secs(30))).unwrap();
    let mut connection = fixture.connect(ClientProtocol::Http1).await;
    assert_eq!(connection.send(fixture.read("there")).await.unwrap().status, 503);
    fixture.clock.advance(Duration::from_secs(29));
    assert_eq!(connection.send(fixture.read("there")).await.unwrap().status, 503);
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(connection.send(fixture.read("there")).await.unwrap().status, 200);
    let short = fixture.faults().get("short").unwrap();
    assert_eq!((short.state, short.hits), (RuleState::Ended, 2));
}

#[tokio::test]
async fn impossible_rules_are_rejected_and_change_nothing() {
    let fixture = FaultFixture::start().await;
    for (rule, part) in [
        (FaultRule::status(503, 0).in_region("Mars"), "Mars"),
        (FaultRule::status(503, 0).share(1.5), "share"),
        (FaultRule::status(503, 0).times(0), "count"),
        (FaultRule::status(200, 0), "200"),
        (FaultRule::default(), "effect"),
    ] {
        let error = fixture.faults().add(rule).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    assert!(fixture.faults().list().is_empty());
    assert!(fixture.has("there").await);
}
