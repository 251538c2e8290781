//! Request bodies: whole, bounded, and never half.

use super::*;

fn small_bodies() -> Limits {
    let mut limits = Limits::default();
    limits.body_bytes_max = 100_000;
    limits
}

#[tokio::test]
async fn a_body_over_the_item_limit_is_still_read_in_full() {
    let fixture = start(Limits::default());
    let mut client = fixture.connect().await;
    let body = vec![b'x'; 2_621_440];
    assert_eq!(client.post("/length", &body).await.text(), "2621440");
    assert_eq!(client.get("/").await.status, 200, "and the connection goes on");
}

#[tokio::test]
async fn a_body_over_the_limit_gets_413_and_a_closed_connection() {
    let fixture = start(small_bodies());
    let mut exact = fixture.connect().await;
    assert_eq!(exact.post("/length", &[b'x'; 100_000]).await.text(), "100000");

    let mut announced = fixture.connect().await;
    announced.send("POST /length HTTP/1.1\r\nhost: h\r\ncontent-length: 100001\r\n\r\n").await;
    let response = announced.read_response().await;
    assert_eq!((response.status, response.header("connection")), (413, Some("close")));
    let body: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(body["code"], "RequestEntityTooLarge");
    assert_eq!(announced.until_closed().await, b"");

    let mut chunked = fixture.connect().await;
    let chunk = format!("{:x}\r\n{}\r\n", 60_000, "x".repeat(60_000));
    chunked
        .send(format!("POST /length HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n{chunk}{chunk}"))
        .await;
    assert_eq!(chunked.read_response().await.status, 413);
    assert_eq!(fixture.probe.handled(), 1, "neither of the long ones reached the handler");
}

#[tokio::test]
async fn chunked_bodies_arrive_joined() {
    let fixture = start(Limits::default());
    let mut client = fixture.connect().await;
    client.send("POST /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n").await;
    client.send("3\r\nabc\r\n").await;
    client.send("2\r\nde\r\n0\r\n\r\n").await;
    assert_eq!(client.read_response().await.text(), "abcde");
}

#[tokio::test]
async fn a_client_that_waits_for_permission_to_send_gets_it() {
    let fixture = start(Limits::default());
    let mut client = fixture.connect().await;
    client.send("POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\nexpect: 100-continue\r\n\r\n").await;
    assert_eq!(client.head().await.status, 100);
    client.send("body").await;
    assert_eq!(client.read_response().await.text(), "body");
}

#[tokio::test]
async fn a_request_that_stops_half_way_never_reaches_the_handler() {
    let fixture = start(Limits::default());
    for half in [
        "POST /echo HT",
        "POST /echo HTTP/1.1\r\nhost: h\r\n",
        "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 100\r\n\r\nonly this",
        "POST /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
    ] {
        let mut client = fixture.connect().await;
        client.send(half).await;
        client.0.get_mut().shutdown().await.unwrap();
        let said = client.until_closed().await;
        assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 400"), "{half:?} got {said:?}");
    }
    assert_eq!(fixture.connect().await.get("/").await.status, 200);
    assert_eq!(fixture.probe.handled(), 1);
}
