//! Tests of many simultaneous connections.

use super::*;

#[tokio::test]
async fn hundreds_of_idle_connections_do_not_disturb_a_client() {
    let fixture = start(Limits::default());
    let mut client = fixture.connect().await;
    let mut idle = Vec::new();
    for n in 0..400 {
        idle.push(fixture.connect().await);
        if n % 50 == 0 {
            assert_eq!(client.get("/").await.status, 200, "with {n} idle connections");
        }
    }
    assert_eq!(fixture.connect().await.get("/").await.status, 200, "a newcomer is served too");
    assert_eq!(idle[399].get("/").await.status, 200, "and so is one that was idle");
}

#[tokio::test]
async fn a_full_server_evicts_silent_connections_and_keeps_busy_ones() {
    let mut limits = Limits::default();
    limits.connections_max = 20;
    limits.silent_when_full = Duration::from_millis(50);
    let fixture = start(limits);
    let mut busy = fixture.connect().await;
    busy.send("GET /wait HTTP/1.1\r\nhost: h\r\n\r\n").await;
    fixture.probe.until_waiting(1).await;
    let mut known = fixture.connect().await;
    assert_eq!(known.get("/").await.status, 200);

    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(fixture.connect().await);
    }
    assert_eq!(fixture.connect().await.get("/").await.status, 200, "a newcomer waits its turn");
    assert_eq!(silent[0].until_closed().await, b"", "the first silent one had to go");

    assert_eq!(known.get("/").await.status, 200, "one that has been served is not thrown out");
    fixture.probe.gate.add_permits(1);
    assert_eq!(busy.read_response().await.text(), "waited");
}

#[tokio::test]
async fn new_connections_wait_while_all_others_are_busy() {
    let mut limits = Limits::default();
    limits.connections_max = 2;
    let fixture = start(limits);
    let mut busy = Vec::new();
    for waiting in 1..=2 {
        let mut client = fixture.connect().await;
        client.send("GET /wait HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n").await;
        fixture.probe.until_waiting(waiting).await;
        busy.push(client);
    }
    let mut newcomer = fixture.connect().await;
    newcomer.send("GET / HTTP/1.1\r\nhost: h\r\n\r\n").await;
    assert_eq!(fixture.probe.handled(), 2);
    fixture.probe.gate.add_permits(1);
    assert_eq!(newcomer.read_response().await.status, 200);
    fixture.probe.gate.add_permits(1);
    for mut client in busy {
        assert_eq!(client.read_response().await.text(), "waited");
    }
}
