//! Stopping: what is in flight finishes, what is idle closes, and it never takes long.

use super::*;

#[tokio::test]
async fn stopping_finishes_requests_in_flight_and_closes_idle_connections() {
    let fixture = start(Limits::default());
    let port = fixture.server.port();
    let mut idle = fixture.connect().await;
    assert_eq!(idle.get("/").await.status, 200);
    let mut busy = fixture.connect().await;
    busy.send("GET /wait HTTP/1.1\r\nhost: h\r\n\r\n").await;
    fixture.probe.until_waiting(1).await;

    let stopping = tokio::spawn(fixture.server.stop());
    assert_eq!(idle.until_closed().await, b"");
    fixture.probe.gate.add_permits(1);
    assert_eq!(busy.read_response().await.text(), "waited");
    assert_eq!(busy.until_closed().await, b"");
    in_time(stopping).await.unwrap();
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err(), "the port is free again");
}

#[tokio::test]
async fn a_request_that_never_ends_does_not_keep_the_server() {
    let mut limits = Limits::default();
    limits.stop_grace = Duration::from_millis(50);
    let fixture = start(limits);
    let mut busy = fixture.connect().await;
    busy.send("GET /wait HTTP/1.1\r\nhost: h\r\n\r\n").await;
    fixture.probe.until_waiting(1).await;
    in_time(fixture.server.stop()).await;
    assert_eq!(busy.until_closed().await, b"");
}

#[tokio::test]
async fn dropping_the_server_closes_everything() {
    let fixture = start(Limits::default());
    let mut busy = fixture.connect().await;
    busy.send("GET /wait HTTP/1.1\r\nhost: h\r\n\r\n").await;
    fixture.probe.until_waiting(1).await;
    drop(fixture.server);
    assert_eq!(busy.until_closed().await, b"");
}
