//! Attempts over scripted clients, in time that the test moves.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};

use azure_core::error::ErrorKind;
use protocol::authorization::{AccountKey, EMULATOR_KEY};
use protocol::status::Status;

use super::testing::{Fixture, SECOND, create, read};
use super::*;
use crate::sharding::ShardingConfig;
use crate::sharding::testing::{Factory, Reply};

/// Sends the replies one after another; the last one stays.
fn in_sequence(replies: Vec<Reply>) -> Factory {
    let next = AtomicU32::new(0);
    Factory::new(move |_, _| {
        let turn = next.fetch_add(1, Ordering::Relaxed) as usize;
        replies[turn.min(replies.len() - 1)].clone()
    })
}

fn throttled(sub_status: u32, hint: u64) -> Reply {
    let headers = vec![("x-ms-substatus", sub_status.to_string()), ("x-ms-retry-after-ms", hint.to_string())];
    Reply::Respond(429, headers, "{}")
}

/// A header of a request as a client of `azure_core` gets it.
fn header<'a>(request: &'a azure_core::http::Request, name: &'static str) -> &'a str {
    request.headers().get_str(&name.into()).expect(name)
}

#[tokio::test]
async fn a_response_comes_back_with_its_record() {
    let headers = vec![("x-ms-request-charge", "2.5".to_owned()), ("x-ms-substatus", "0".to_owned())];
    let fixture = Fixture::new(in_sequence(vec![Reply::Respond(200, headers, r#"{"id":"1"}"#)]));
    let result = fixture.execute(&read(), SECOND).await;
    let GatewayOutcome::Success(response) = &result.outcome else { panic!("{result:?}") };
    assert_eq!((response.status, &response.body[..]), (Status::OK, &br#"{"id":"1"}"#[..]));
    let record = result.last.expect("one request");
    assert_eq!((record.charge, record.sent, record.shard), (2.5, Sent::Sent, Some(0)));
    assert!(result.earlier.is_empty());
}

#[tokio::test]
async fn a_request_carries_the_common_headers_a_date_and_a_signature_that_fits() {
    let fixture = Fixture::new(Factory::default());
    fixture.execute(&create(), SECOND).await;
    let (_, sent) = fixture.factory.requests().remove(0);
    let of = |name| header(&sent, name);
    let key = AccountKey::from_base64(EMULATOR_KEY).expect("a key");
    let expected = protocol::authorization::sign(&key, "post", "docs", "dbs/d/colls/c", of("x-ms-date"));
    assert_eq!(of("authorization"), expected);
    assert_eq!(of("content-type"), "application/json");
    assert_eq!(of("x-ms-version"), "2020-07-15");
    assert_eq!(sent.url().path(), "/dbs/d/colls/c/docs");
    assert_eq!(of("x-ms-activity-id").len(), 36);
}

#[tokio::test]
async fn outcomes_have_names() {
    for (status, is_success) in [
        (200, true),
        (201, true),
        (204, true),
        (304, true),
        (401, false),
        (404, false),
        (412, false),
        (503, false),
    ] {
        let fixture = Fixture::new(in_sequence(vec![Reply::Respond(status, vec![], "")]));
        let result = fixture.execute(&read(), SECOND).await;
        assert_eq!(matches!(result.outcome, GatewayOutcome::Success(_)), is_success, "{status}");
        assert_eq!(fixture.factory.requests().len(), 1, "{status} is for the operation to decide");
    }
}

#[tokio::test]
async fn throttling_waits_as_long_as_the_service_asks_and_signs_anew() {
    let fixture = Fixture::new(in_sequence(vec![throttled(3200, 1500), throttled(3200, 10), Reply::ok()]));
    let result = fixture.execute(&create(), 60 * SECOND).await;
    assert!(matches!(result.outcome, GatewayOutcome::Success(_)));
    assert_eq!(result.earlier.len(), 2);
    let waited = fixture.time.elapsed();
    assert!(waited >= Duration::from_millis(1510) && waited < Duration::from_millis(1700), "{waited:?}");
    assert!(result.earlier[1].waited >= Duration::from_millis(1500), "the record says so");
    let dates: HashSet<String> = fixture
        .factory
        .requests()
        .iter()
        .map(|(_, request)| header(request, "x-ms-date").to_owned())
        .collect();
    assert_eq!(dates.len(), 2, "a second passed, so the date is another one");
}

#[tokio::test]
async fn throttling_ends_after_nine_repeats_or_thirty_seconds() {
    for (hint, requests) in [(1, 10), (20_000, 2), (40_000, 1)] {
        let fixture = Fixture::new(in_sequence(vec![throttled(3200, hint)]));
        let result = fixture.execute(&read(), 300 * SECOND).await;
        let GatewayOutcome::ServiceError(response) = &result.outcome else { panic!("{result:?}") };
        assert_eq!(response.status, Status::TOO_MANY_REQUESTS);
        assert_eq!(fixture.factory.requests().len(), requests, "a hint of {hint} ms");
        assert!(fixture.time.elapsed() <= 30 * SECOND);
    }
}

#[tokio::test]
async fn a_machine_out_of_resources_is_for_another_region() {
    let fixture = Fixture::new(in_sequence(vec![throttled(3092, 10)]));
    let result = fixture.execute(&read(), 60 * SECOND).await;
    assert!(matches!(result.outcome, GatewayOutcome::ServiceError(_)));
    assert_eq!(fixture.factory.requests().len(), 1);
}

#[tokio::test]
async fn a_broken_connection_is_tried_again_over_another_shard() {
    let fixture = Fixture::new(Factory::new(|client, _| match client {
        0 => Reply::Fail(Sent::MaybeSent),
        _ => Reply::ok(),
    }));
    let result = fixture.execute(&read(), SECOND).await;
    assert!(matches!(result.outcome, GatewayOutcome::Success(_)));
    assert_ne!(result.earlier[0].shard, result.last.expect("one").shard);
}

#[tokio::test]
async fn a_write_that_may_have_been_received_is_never_sent_twice() {
    // What the client knows, whether the operation may be repeated, and how often it is then sent.
    let cases = [
        (Reply::Fail(Sent::NotSent), create(), 3, Sent::NotSent),
        (Reply::Fail(Sent::MaybeSent), create(), 1, Sent::MaybeSent),
        (Reply::Fail(Sent::Sent), create(), 1, Sent::Sent),
        (Reply::Fail(Sent::Sent), create().repeatable(), 3, Sent::Sent),
        (Reply::Fail(Sent::MaybeSent), read(), 3, Sent::MaybeSent),
        (Reply::FailSilently(ErrorKind::Io), create(), 1, Sent::MaybeSent),
        (Reply::FailSilently(ErrorKind::Connection), create(), 2, Sent::NotSent),
    ];
    for (reply, operation, requests, expected) in cases {
        let fixture = Fixture::new(in_sequence(vec![reply.clone()]));
        let result = fixture.execute(&operation, SECOND).await;
        let GatewayOutcome::NoResponse { sent, .. } = result.outcome else { panic!("{reply:?}: {result:?}") };
        assert_eq!((fixture.factory.requests().len(), sent), (requests, expected), "{reply:?}");
        assert_eq!(result.earlier.len() + 1, requests, "every request is on record");
    }
}

#[tokio::test]
async fn what_was_once_maybe_sent_stays_so() {
    let fixture = Fixture::new(in_sequence(vec![Reply::Fail(Sent::Sent), Reply::Fail(Sent::NotSent)]));
    let result = fixture.execute(&read(), SECOND).await;
    assert!(matches!(result.outcome, GatewayOutcome::NoResponse { sent: Sent::Sent, .. }), "{result:?}");
}

#[tokio::test]
async fn a_throttled_write_that_was_then_not_sent_was_not_sent() {
    for (last, expected) in [(Sent::NotSent, Sent::NotSent), (Sent::MaybeSent, Sent::MaybeSent)] {
        let fixture = Fixture::new(in_sequence(vec![throttled(3200, 10), Reply::Fail(last)]));
        let result = fixture.execute(&create(), SECOND).await;
        let GatewayOutcome::NoResponse { sent, .. } = result.outcome else { panic!("{result:?}") };
        assert_eq!(sent, expected, "429 says that the first request was not executed");
        assert_eq!(result.earlier[0].sent, Sent::Sent, "the record still says that it was sent");
    }
    // The deadline passes while the throttled request waits for its turn, or while there is no token.
    let fixture = Fixture::new(in_sequence(vec![throttled(3200, 10), Reply::Never]));
    let result = fixture.execute(&create(), SECOND).await;
    assert!(matches!(result.outcome, GatewayOutcome::DeadlineExceeded { sent: Sent::Sent }), "{result:?}");
}

#[tokio::test]
async fn nothing_goes_on_beyond_the_deadline() {
    let never = Fixture::new(in_sequence(vec![Reply::Never]));
    let result = never.execute(&create(), 3 * SECOND).await;
    assert!(matches!(result.outcome, GatewayOutcome::DeadlineExceeded { sent: Sent::Sent }), "{result:?}");
    assert_eq!(never.time.elapsed(), 3 * SECOND);
    assert_eq!(never.in_flight(), 0);

    let result = never.execute(&create(), Duration::ZERO).await;
    assert!(matches!(result.outcome, GatewayOutcome::DeadlineExceeded { sent: Sent::NotSent }));
    assert!(result.last.is_none(), "nothing was sent");
    assert_eq!(never.factory.requests().len(), 1);
}

#[tokio::test]
async fn a_read_that_times_out_is_retried_in_another_region() {
    let attempt = OperationSettings::default().timeouts.attempt;
    let fixture =
        Fixture::new(Factory::new(|client, _| if client == 0 { Reply::Never } else { Reply::ok() }));
    let result = fixture.execute(&read(), 60 * SECOND).await;
    assert!(matches!(result.outcome, GatewayOutcome::Success(_)), "{result:?}");
    assert_eq!(fixture.time.elapsed(), attempt);

    let fixture = Fixture::new(in_sequence(vec![Reply::Never]));
    let result = fixture.execute(&create(), 60 * SECOND).await;
    let GatewayOutcome::NoResponse { error, sent } = result.outcome else { panic!("{result:?}") };
    assert_eq!((fixture.factory.requests().len(), sent), (1, Sent::Sent));
    assert!(error.to_string().contains("one.example:443"), "{error}");
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_no_count_behind() {
    let fixture = Fixture::new(in_sequence(vec![Reply::Never]));
    let operation = read();
    {
        let mut calls: Vec<_> = (0..40).map(|_| Box::pin(fixture.attempt(&operation, SECOND))).collect();
        for call in &mut calls {
            assert!(futures::poll!(call.as_mut()).is_pending());
        }
        assert_eq!(fixture.in_flight(), 40);
        calls.truncate(10);
        assert_eq!(fixture.in_flight(), 10);
    }
    assert_eq!(fixture.in_flight(), 0);
    assert!(fixture.time.sleepers() <= 1, "the background task's, and no other");
}

#[tokio::test]
async fn a_busy_process_does_not_blame_its_connections() {
    let sharding = ShardingConfig { min_clients_per_endpoint: 2, ..ShardingConfig::default() };
    let fixture = Fixture::with_sharding(
        Factory::new(|client, _| if client == 0 { Reply::Fail(Sent::Sent) } else { Reply::ok() }),
        sharding,
    );
    for _ in 0..5 {
        fixture.execute(&read(), SECOND).await;
    }
    fixture.time.advance(3 * SECOND);
    fixture.execute(&read(), SECOND).await;
    let adaptive = fixture.gateway.connections();
    adaptive.sweep(Some(0.95)).await;
    assert_eq!(fixture.factory.created(), 2, "at 95 % of the processors nothing is evicted");
    adaptive.sweep(Some(0.5)).await;
    assert_eq!(fixture.factory.created(), 3, "with processors to spare the failing one is replaced");
}

#[tokio::test]
async fn an_http1_gateway_gets_one_client_and_no_shards() {
    use perihelion_http::trace::Protocol;
    let fixture = Fixture::new(Factory::default().speaking(Some(Protocol::Http1)));
    let first = fixture.execute(&read(), SECOND).await;
    assert_eq!(first.last.expect("one").shard, Some(0), "nothing was known yet");
    for _ in 0..50 {
        let next = fixture.execute(&read(), SECOND).await;
        assert_eq!(next.last.expect("one").shard, None);
    }
    assert_eq!(fixture.factory.created(), 1);
}
