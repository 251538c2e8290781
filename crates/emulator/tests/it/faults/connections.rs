//! Tests of rules that break connections.

use perihelion_emulator::faults::{ConnectionEffect, FaultRule, OperationKind};

use super::*;

fn once(effect: ConnectionEffect) -> FaultRule {
    FaultRule::connection(effect).on(OperationKind::Create).times(1)
}

#[tokio::test]
async fn close_before_skips_the_operation_and_close_after_carries_it_out() {
    let fixture = FaultFixture::start().await;
    for (n, protocol) in ClientProtocol::ALL.into_iter().enumerate() {
        for (effect, done) in [(ConnectionEffect::CloseBefore, false), (ConnectionEffect::CloseAfter, true)] {
            let id = format!("item-{n}-{done}");
            fixture.faults().add(once(effect)).unwrap();
            let mut connection = fixture.connect(protocol).await;
            let response = connection.send(fixture.create(&id)).await;
            assert!(response.is_err(), "{protocol:?} {effect:?}: {response:?}");
            connection.closed().await;
            assert_eq!(fixture.has(&id).await, done, "{protocol:?} {effect:?}");
        }
    }
}

#[tokio::test]
async fn all_streams_of_a_closed_http2_connection_fail() {
    let fixture = FaultFixture::start().await;
    fixture.faults().add(FaultRule::delay(Duration::from_secs(600)).on(OperationKind::Read)).unwrap();
    fixture.faults().add(once(ConnectionEffect::CloseBefore)).unwrap();
    let mut connection = fixture.connect(ClientProtocol::Http2).await;
    let Sender::Http2(other) = &connection.sender else { unreachable!("it speaks HTTP/2") };
    let mut other = other.clone();
    let mut waiting = fixture.read("there");
    waiting.headers_mut().remove("host");
    let bystander = tokio::spawn(async move { other.send_request(waiting).await.is_err() });
    in_time(fixture.faults().wait_for_delayed_requests(1)).await;
    assert!(connection.send(fixture.create("x")).await.is_err());
    assert!(in_time(bystander).await.unwrap());
    in_time(fixture.faults().wait_for_delayed_requests(0)).await;
}

#[tokio::test]
async fn a_stalled_response_stops_half_way() {
    let fixture = FaultFixture::start().await;
    for (n, protocol) in ClientProtocol::ALL.into_iter().enumerate() {
        let id = format!("stalled-{n}");
        fixture.faults().add(once(ConnectionEffect::Stall)).unwrap();
        let mut connection = fixture.connect(protocol).await;
        let response = in_time(connection.begin(fixture.create(&id))).await.unwrap();
        assert_eq!(response.status(), 201, "{protocol:?}");
        let length: usize = response.headers()["content-length"].to_str().unwrap().parse().unwrap();
        let mut body = response.into_body();
        let mut received = 0;
        while received < length / 2 {
            received += in_time(body.frame()).await.unwrap().unwrap().into_data().unwrap().len();
        }
        assert_eq!(received, length / 2, "{protocol:?}");
        let more = tokio::time::timeout(GLANCE, body.frame()).await;
        assert!(more.is_err(), "{protocol:?}: nothing follows, yet {more:?}");
        drop((body, connection));
        assert!(fixture.has(&id).await, "{protocol:?}: it was carried out");
    }
}

#[tokio::test]
async fn a_response_without_a_body_stalls_before_its_head() {
    let fixture = FaultFixture::start().await;
    fixture.faults().add(FaultRule::connection(ConnectionEffect::Stall).on(OperationKind::Delete)).unwrap();
    let mut connection = fixture.connect(ClientProtocol::Http1).await;
    let delete = fixture.request(
        Method::DELETE,
        "/dbs/d/colls/c/docs/there",
        &[("x-ms-documentdb-partitionkey", r#"["there"]"#)],
        "",
    );
    assert!(tokio::time::timeout(GLANCE, connection.begin(delete)).await.is_err());
    assert!(!fixture.has("there").await, "it was carried out");
}

#[tokio::test]
async fn a_go_away_fault_lets_requests_finish_and_closes_the_connection() {
    let fixture = FaultFixture::start().await;
    for (n, protocol) in ClientProtocol::ALL.into_iter().enumerate() {
        fixture.faults().add(once(ConnectionEffect::GoAway)).unwrap();
        let mut connection = fixture.connect(protocol).await;
        let response = connection.send(fixture.create(&format!("last-{n}"))).await.unwrap();
        assert_eq!(response.status, 201, "{protocol:?}");
        let close = if protocol.is_http2() { "" } else { "close" };
        assert_eq!(response.header("connection"), close, "{protocol:?}");
        connection.closed().await;
        assert_eq!(fixture.connect(protocol).await.send(fixture.read("there")).await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn a_rule_s_response_can_be_the_last_on_its_connection() {
    let fixture = FaultFixture::start().await;
    let rule = br#"{"effect":{"status":503,"connection":"goAway"},"count":1}"#;
    fixture.faults().add(FaultRule::from_json(rule).unwrap()).unwrap();
    let mut connection = fixture.connect(ClientProtocol::Http2).await;
    assert_eq!(connection.send(fixture.read("there")).await.unwrap().status, 503);
    connection.closed().await;
}
