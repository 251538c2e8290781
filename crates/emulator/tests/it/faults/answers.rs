//! Rules that answer in the service's place, and rules that make requests wait.

use perihelion_emulator::faults::{ConnectionEffect, FAULT_HEADER, FaultRule, OperationKind, RuleState};

use super::*;

#[tokio::test]
async fn a_rule_answers_as_the_service_would_and_says_that_it_did() {
    let lab = Lab::start().await;
    for spoken in Spoken::ALL {
        let rule =
            FaultRule::status(429, 3200).retry_after(Duration::from_millis(70)).on(OperationKind::Read);
        lab.faults().add(rule.named("storm").times(1)).unwrap();
        let mut link = lab.link(spoken).await;
        let answer = link.send(lab.read("there")).await.unwrap();
        assert_eq!((answer.status, answer.header("x-ms-substatus")), (429, "3200"), "{spoken:?}");
        assert_eq!(answer.header("x-ms-retry-after-ms"), "70");
        assert_eq!(answer.header(FAULT_HEADER), "storm");
        assert_eq!(answer.body["code"], "TooManyRequests");
        assert!(answer.body["message"].as_str().unwrap().contains("ActivityId"), "{}", answer.body);
        let answer = link.send(lab.read("there")).await.unwrap();
        assert_eq!((answer.status, answer.header(FAULT_HEADER)), (200, ""), "{spoken:?}: once was enough");
    }
    let storm = lab.faults().get("storm").unwrap();
    assert_eq!((storm.state, storm.hits), (RuleState::Ended, 1));
}

#[tokio::test]
async fn a_rule_may_have_its_own_words_and_headers() {
    let lab = Lab::start().await;
    let rule = br#"{"id":"odd","effect":{"status":449,"message":"not now","headers":{"x-ms-custom":"7"}}}"#;
    lab.faults().add(FaultRule::from_json(rule).unwrap()).unwrap();
    let answer = lab.link(Spoken::Http1).await.send(lab.read("there")).await.unwrap();
    assert_eq!((answer.status, answer.header("x-ms-custom")), (449, "7"));
    assert_eq!(answer.body["code"], "RetryWith");
    assert!(answer.body["message"].as_str().unwrap().contains("not now"), "{}", answer.body);
}

#[tokio::test]
async fn an_unsigned_request_meets_the_fault_and_not_the_guard() {
    let lab = Lab::start().await;
    lab.faults().add(FaultRule::status(503, 0)).unwrap();
    let mut request = lab.read("there");
    request.headers_mut().remove("authorization");
    assert_eq!(lab.link(Spoken::Http1).await.send(request).await.unwrap().status, 503);
}

#[tokio::test]
async fn a_delayed_request_is_carried_out_when_its_time_has_come() {
    let lab = Lab::start().await;
    for (n, spoken) in Spoken::ALL.into_iter().enumerate() {
        let id = format!("late-{n}");
        lab.faults()
            .add(FaultRule::delay(Duration::from_secs(30)).on(OperationKind::Create).times(1))
            .unwrap();
        let mut link = lab.link(spoken).await;
        let request = lab.create(&id);
        let sending = tokio::spawn(async move { link.send(request).await.unwrap().status });
        in_time(lab.faults().wait_for_delayed_requests(1)).await;
        assert!(!lab.has(&id).await, "{spoken:?}: it waits");
        assert!(!sending.is_finished());
        lab.clock.advance(Duration::from_secs(30));
        assert_eq!(in_time(sending).await.unwrap(), 201, "{spoken:?}");
        assert!(lab.has(&id).await);
    }
}

#[tokio::test]
async fn a_client_that_leaves_while_its_request_waits_leaves_nothing_behind() {
    let lab = Lab::start().await;
    for (n, spoken) in Spoken::ALL.into_iter().enumerate() {
        let id = format!("gone-{n}");
        lab.faults()
            .add(FaultRule::delay(Duration::from_secs(30)).on(OperationKind::Create).times(1))
            .unwrap();
        let mut link = lab.link(spoken).await;
        let connection = link.connection.abort_handle();
        let request = lab.create(&id);
        let sending = tokio::spawn(async move { link.begin(request).await.map(|_| ()) });
        in_time(lab.faults().wait_for_delayed_requests(1)).await;
        sending.abort();
        connection.abort();
        in_time(lab.faults().wait_for_delayed_requests(0)).await;
        lab.clock.advance(Duration::from_secs(60));
        assert!(!lab.has(&id).await, "{spoken:?}");
    }
}

#[tokio::test]
async fn a_delayed_answer_comes_after_the_fact() {
    let lab = Lab::start().await;
    let rule = FaultRule::delay(Duration::from_secs(30)).delaying_the_response().on(OperationKind::Create);
    lab.faults().add(rule).unwrap();
    let mut link = lab.link(Spoken::Http2).await;
    let request = lab.create("done");
    let sending = tokio::spawn(async move { link.send(request).await.unwrap().status });
    in_time(lab.faults().wait_for_delayed_requests(1)).await;
    assert!(lab.has("done").await, "the answer waits, the item does not");
    lab.clock.advance(Duration::from_secs(30));
    assert_eq!(in_time(sending).await.unwrap(), 201);
}

#[tokio::test]
async fn a_delay_goes_with_whatever_follows_it() {
    let lab = Lab::start().await;
    let wait = Duration::from_secs(9);
    let rules = [FaultRule::status(503, 0), FaultRule::connection(ConnectionEffect::CloseBefore)];
    for rule in rules {
        let answers = rule.effect.status.is_some();
        lab.faults().add(rule.delayed_by(wait).named("slow").on(OperationKind::Read)).unwrap();
        let mut link = lab.link(Spoken::Http1).await;
        let request = lab.read("there");
        let sending = tokio::spawn(async move { link.send(request).await.map(|answer| answer.status) });
        in_time(lab.faults().wait_for_delayed_requests(1)).await;
        lab.clock.advance(wait);
        let answer = in_time(sending).await.unwrap();
        assert_eq!(answer.ok(), answers.then_some(503));
    }
}

#[tokio::test]
async fn a_rule_lasts_as_long_as_it_says() {
    let lab = Lab::start().await;
    lab.faults().add(FaultRule::status(503, 0).named("short").lasting(Duration::from_secs(30))).unwrap();
    let mut link = lab.link(Spoken::Http1).await;
    assert_eq!(link.send(lab.read("there")).await.unwrap().status, 503);
    lab.clock.advance(Duration::from_secs(29));
    assert_eq!(link.send(lab.read("there")).await.unwrap().status, 503);
    lab.clock.advance(Duration::from_secs(1));
    assert_eq!(link.send(lab.read("there")).await.unwrap().status, 200);
    let short = lab.faults().get("short").unwrap();
    assert_eq!((short.state, short.hits), (RuleState::Ended, 2));
}

#[tokio::test]
async fn impossible_rules_are_refused_and_change_nothing() {
    let lab = Lab::start().await;
    for (rule, part) in [
        (FaultRule::status(503, 0).in_region("Mars"), "Mars"),
        (FaultRule::status(503, 0).share(1.5), "share"),
        (FaultRule::status(503, 0).times(0), "count"),
        (FaultRule::status(200, 0), "200"),
        (FaultRule::default(), "effect"),
    ] {
        let error = lab.faults().add(rule).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    assert!(lab.faults().list().is_empty());
    assert!(lab.has("there").await);
}
