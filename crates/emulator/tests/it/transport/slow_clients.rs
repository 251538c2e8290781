//! Tests of stalled clients: they are disconnected, and no other client notices.

use super::*;

fn short(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

const SHORT: Duration = Duration::from_millis(100);

#[tokio::test]
async fn silent_and_incomplete_requests_end_with_the_head_timeout() {
    let fixture = start(short(|limits| limits.head_timeout = SHORT));
    for said in ["", "P", "GET / HTTP/1.1\r\nhost: h\r\n"] {
        let mut client = fixture.connect().await;
        client.send(said).await;
        assert_eq!(client.until_closed().await, b"", "after {said:?}");
    }
    // The second request of a connection is no different from its first.
    let mut client = fixture.connect().await;
    assert_eq!(client.get("/").await.status, 200);
    client.send("GET / HT").await;
    assert_eq!(client.until_closed().await, b"");
}

#[tokio::test]
async fn a_trickle_does_not_extend_the_head_timeout() {
    let fixture = start(short(|limits| limits.head_timeout = SHORT));
    let mut client = fixture.connect().await;
    client.send("GET / HTTP/1.1\r\nx-trickle: ").await;
    let mut bytes_sent = 0;
    while bytes_sent < 10_000 && client.try_send("v").await.is_ok() {
        bytes_sent += 1;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(bytes_sent < 10_000, "the server kept listening");
}

#[tokio::test]
async fn a_body_that_does_not_arrive_gets_408() {
    let fixture = start(short(|limits| limits.body_timeout = SHORT));
    let mut client = fixture.connect().await;
    client.send("POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 10\r\n\r\nhalf").await;
    let response = client.read_response().await;
    assert_eq!((response.status, response.header("connection")), (408, Some("close")));
    client.until_closed().await;
    assert_eq!(fixture.probe.handled(), 0);
}

#[tokio::test]
async fn a_client_that_does_not_read_its_response_is_disconnected() {
    let fixture = start(short(|limits| {
        limits.write_timeout = SHORT;
        limits.connections_max = 1;
    }));
    let mut stuck = fixture.connect().await;
    stuck.send("GET /big/67108864 HTTP/1.1\r\nhost: h\r\n\r\n").await;
    assert_eq!(stuck.head().await.status, 200);
    // There is one place, so this answer can only come once the stuck client has lost it.
    assert_eq!(fixture.connect().await.get("/").await.status, 200);
    assert!(stuck.until_closed().await.len() < 67_108_864);
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let fixture = start(short(|limits| limits.idle_timeout = SHORT));
    let mut client = fixture.connect().await;
    assert_eq!(client.get("/").await.status, 200);
    assert_eq!(client.until_closed().await, b"");
}

#[tokio::test]
async fn a_request_that_takes_longer_than_every_timeout_still_gets_its_response() {
    let fixture = start(short(|limits| {
        limits.head_timeout = SHORT;
        limits.idle_timeout = SHORT;
        limits.write_timeout = SHORT;
    }));
    let mut client = fixture.connect().await;
    client.send("GET /wait HTTP/1.1\r\nhost: h\r\n\r\n").await;
    fixture.probe.until_waiting(1).await;
    // A second connection that is idle from the start outlives no timeout; when it is closed, the
    // first has been waiting for at least as long.
    fixture.connect().await.until_closed().await;
    fixture.probe.gate.add_permits(1);
    assert_eq!(client.read_response().await.text(), "waited");
}
