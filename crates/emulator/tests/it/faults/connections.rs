//! Rules that break the connection instead of answering.

use perihelion_emulator::faults::{ConnectionEffect, FaultRule, OperationKind};

use super::*;

fn once(effect: ConnectionEffect) -> FaultRule {
    FaultRule::connection(effect).on(OperationKind::Create).times(1)
}

#[tokio::test]
async fn a_connection_closed_before_leaves_nothing_done_and_one_closed_after_leaves_it_done() {
    let lab = Lab::start().await;
    for (n, spoken) in Spoken::ALL.into_iter().enumerate() {
        for (effect, done) in [(ConnectionEffect::CloseBefore, false), (ConnectionEffect::CloseAfter, true)] {
            let id = format!("item-{n}-{done}");
            lab.faults().add(once(effect)).unwrap();
            let mut link = lab.link(spoken).await;
            let answer = link.send(lab.create(&id)).await;
            assert!(answer.is_err(), "{spoken:?} {effect:?}: {answer:?}");
            link.closed().await;
            assert_eq!(lab.has(&id).await, done, "{spoken:?} {effect:?}");
        }
    }
}

#[tokio::test]
async fn everyone_on_a_closed_http2_connection_is_cut_off() {
    let lab = Lab::start().await;
    lab.faults().add(FaultRule::delay(Duration::from_secs(600)).on(OperationKind::Read)).unwrap();
    lab.faults().add(once(ConnectionEffect::CloseBefore)).unwrap();
    let mut link = lab.link(Spoken::Http2).await;
    let Sender::Http2(other) = &link.sender else { unreachable!("it speaks HTTP/2") };
    let mut other = other.clone();
    let mut waiting = lab.read("there");
    waiting.headers_mut().remove("host");
    let bystander = tokio::spawn(async move { other.send_request(waiting).await.is_err() });
    in_time(lab.faults().wait_for_delayed_requests(1)).await;
    assert!(link.send(lab.create("x")).await.is_err());
    assert!(in_time(bystander).await.unwrap());
    in_time(lab.faults().wait_for_delayed_requests(0)).await;
}

#[tokio::test]
async fn a_stalled_answer_stops_half_way() {
    let lab = Lab::start().await;
    for (n, spoken) in Spoken::ALL.into_iter().enumerate() {
        let id = format!("stalled-{n}");
        lab.faults().add(once(ConnectionEffect::Stall)).unwrap();
        let mut link = lab.link(spoken).await;
        let response = in_time(link.begin(lab.create(&id))).await.unwrap();
        assert_eq!(response.status(), 201, "{spoken:?}");
        let length: usize = response.headers()["content-length"].to_str().unwrap().parse().unwrap();
        let mut body = response.into_body();
        let mut received = 0;
        while received < length / 2 {
            received += in_time(body.frame()).await.unwrap().unwrap().into_data().unwrap().len();
        }
        assert_eq!(received, length / 2, "{spoken:?}");
        let more = tokio::time::timeout(GLANCE, body.frame()).await;
        assert!(more.is_err(), "{spoken:?}: nothing follows, yet {more:?}");
        drop((body, link));
        assert!(lab.has(&id).await, "{spoken:?}: it was carried out");
    }
}

#[tokio::test]
async fn an_answer_without_a_body_stalls_before_it_begins() {
    let lab = Lab::start().await;
    lab.faults().add(FaultRule::connection(ConnectionEffect::Stall).on(OperationKind::Delete)).unwrap();
    let mut link = lab.link(Spoken::Http1).await;
    let delete = lab.request(
        Method::DELETE,
        "/dbs/d/colls/c/docs/there",
        &[("x-ms-documentdb-partitionkey", r#"["there"]"#)],
        "",
    );
    assert!(tokio::time::timeout(GLANCE, link.begin(delete)).await.is_err());
    assert!(!lab.has("there").await, "it was carried out");
}

#[tokio::test]
async fn a_connection_told_to_go_away_finishes_what_it_has_and_closes() {
    let lab = Lab::start().await;
    for (n, spoken) in Spoken::ALL.into_iter().enumerate() {
        lab.faults().add(once(ConnectionEffect::GoAway)).unwrap();
        let mut link = lab.link(spoken).await;
        let answer = link.send(lab.create(&format!("last-{n}"))).await.unwrap();
        assert_eq!(answer.status, 201, "{spoken:?}");
        let close = if spoken.is_http2() { "" } else { "close" };
        assert_eq!(answer.header("connection"), close, "{spoken:?}");
        link.closed().await;
        assert_eq!(lab.link(spoken).await.send(lab.read("there")).await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn an_answer_of_a_rule_can_be_the_last_on_its_connection() {
    let lab = Lab::start().await;
    let rule = br#"{"effect":{"status":503,"connection":"goAway"},"count":1}"#;
    lab.faults().add(FaultRule::from_json(rule).unwrap()).unwrap();
    let mut link = lab.link(Spoken::Http2).await;
    assert_eq!(link.send(lab.read("there")).await.unwrap().status, 503);
    link.closed().await;
}
