//! What goes wrong on purpose goes wrong as in the service. Each probe has an account of its own:
//! faults are everybody's.

use std::time::Duration;

use perihelion_emulator::faults::{ConnectionEffect, DownMode, FaultRule, OperationKind};
use serde_json::json;

use super::super::live::LiveAccount;
use super::fixture::{CompatibilityFixture, DOCS, KEY};
use super::{Probes, supported};

pub(super) fn probes() -> Probes {
    vec![
        ("fault-status", supported!(fault_status)),
        ("fault-delay", supported!(fault_delay)),
        ("fault-connection", supported!(fault_connection)),
        ("region-down", supported!(region_down)),
        ("region-drain", supported!(region_drain)),
        ("region-storm", supported!(region_storm)),
    ]
}

async fn account() -> LiveAccount {
    let account = LiveAccount::with_container(1, json!({})).await;
    account.create(json!({"id": "1", "pk": "a"})).await.expect(201);
    account
}

async fn fault_status(_: &CompatibilityFixture) {
    let account = account().await;
    let rule = FaultRule::status(410, 1002).on(OperationKind::Read).times(1).named("gone");
    account.running().faults().add(rule).unwrap();
    let path = format!("{DOCS}/1");
    let response = account.get(&path, &[KEY]).await.expect(410);
    assert_eq!((response.sub_status(), response.header("x-ms-perihelion-fault")), ("1002", "gone"));
    account.get(&path, &[KEY]).await.expect(200);
}

async fn fault_delay(_: &CompatibilityFixture) {
    let account = account().await;
    account.running().faults().add(FaultRule::delay(Duration::from_secs(5)).on(OperationKind::Read)).unwrap();
    let path = format!("{DOCS}/1");
    let moved = async {
        account.running().faults().wait_for_delayed_requests(1).await;
        account.advance(5);
    };
    let (response, ()) = tokio::join!(account.get(&path, &[KEY]), moved);
    response.expect(200);
}

async fn fault_connection(_: &CompatibilityFixture) {
    let account = account().await;
    let rule = FaultRule::connection(ConnectionEffect::GoAway).on(OperationKind::Read);
    account.running().faults().add(rule).unwrap();
    let response = account.get(&format!("{DOCS}/1"), &[KEY]).await.expect(200);
    assert_eq!(response.header("connection"), "close");
}

async fn region_down(_: &CompatibilityFixture) {
    let account = account().await;
    let region = account.running().region("South Central US").unwrap();
    region.down(DownMode::Unavailable).unwrap();
    account.get("/", &[]).await.expect(503);
    region.down(DownMode::Refused).unwrap();
    let rejected = tokio::net::TcpStream::connect(("127.0.0.1", account.port())).await.unwrap_err();
    assert_eq!(rejected.kind(), std::io::ErrorKind::ConnectionRefused);
    region.up().unwrap();
    account.get("/", &[]).await.expect(200);
}

async fn region_drain(_: &CompatibilityFixture) {
    let account = account().await;
    account.running().region("southcentralus").unwrap().drain().unwrap();
    let response = account.get("/", &[]).await.expect(403);
    assert_eq!(response.sub_status(), "1008");
    assert_eq!(response.body["readableLocations"], json!([]));
}

async fn region_storm(_: &CompatibilityFixture) {
    let account = account().await;
    account.running().region("southcentralus").unwrap().storm().unwrap();
    let response = account.get(&format!("{DOCS}/1"), &[KEY]).await.expect(429);
    assert_eq!((response.sub_status(), response.header("x-ms-retry-after-ms")), ("3200", "100"));
}
