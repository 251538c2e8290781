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
async fn a_client_that_sends_all_of_a_body_over_the_limit_before_it_reads_gets_413() {
    let fixture = start(small_bodies());
    // Far more than the buffers of the sockets hold.
    let body = vec![b'x'; 30_000_000];
    for framing in ["content-length: 30000000", "transfer-encoding: chunked"] {
        let mut client = fixture.connect().await;
        client.send(format!("POST /length HTTP/1.1\r\nhost: h\r\n{framing}\r\n\r\n")).await;
        if framing.starts_with("transfer") {
            client.send(format!("{:x}\r\n", body.len())).await;
        }
        client.send(&body).await;
        let response = client.read_response().await;
        assert_eq!((response.status, response.header("connection")), (413, Some("close")), "{framing}");
    }
    assert_eq!(fixture.probe.handled(), 0);
}

#[tokio::test]
async fn bodies_that_are_only_announced_stop_nobody() {
    let fixture = start(Limits::default());
    let mut announced = Vec::new();
    for _ in 0..40 {
        let mut client = fixture.connect().await;
        client.send("POST /length HTTP/1.1\r\nhost: h\r\ncontent-length: 16777216\r\n\r\nsome").await;
        announced.push(client);
    }
    let mut client = fixture.connect().await;
    assert_eq!(client.post("/length", &vec![b'x'; 2_000_000]).await.text(), "2000000");
    let mut last = announced.pop().unwrap();
    last.send(vec![b'x'; 16_777_212]).await;
    assert_eq!(last.read_response().await.text(), "16777216", "and an announced one may still come");
}

#[tokio::test]
async fn bodies_that_stop_half_way_leave_memory_for_others() {
    let mut limits = Limits::default();
    limits.body_bytes_in_memory_max = 4 * 1024 * 1024;
    let fixture = start(limits);
    let mut halves = Vec::new();
    for _ in 0..8 {
        let mut client = fixture.connect().await;
        client.send("POST /length HTTP/1.1\r\nhost: h\r\ncontent-length: 16777216\r\n\r\n").await;
        // As much as they get in: the server stops reading when the memory is used up.
        let _ = tokio::time::timeout(Duration::from_millis(100), client.0.write_all(&[b'x'; 400_000])).await;
        halves.push(client);
    }
    let mut client = fixture.connect().await;
    assert_eq!(client.post("/length", &vec![b'x'; 2_000_000]).await.text(), "2000000");
}

#[tokio::test]
async fn a_long_body_of_an_unknown_sender_is_answered_before_it_arrives() {
    let running = Emulator::start(EmulatorConfig::default()).await.expect("the emulator starts");
    let connect = async |port: u16| {
        Client::new(in_time(TcpStream::connect(("127.0.0.1", port))).await.expect("connects"))
    };
    for (port, path, expected) in [
        (running.port(), "/dbs", 401),
        (running.control_port(), "/snapshots/a", 403),
        (running.port(), "/no", 404),
    ] {
        let mut client = connect(port).await;
        let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 16000000\r\n\r\n");
        client.send(head).await;
        let response = client.read_response().await;
        assert_eq!(response.status, expected, "{path}: {}", response.text());
    }
    // The usual client sends everything first, and reads then.
    let mut client = connect(running.port()).await;
    let body = "x".repeat(15_000_000);
    let response = client.post("/dbs", body.as_bytes()).await;
    assert_eq!((response.status, response.header("connection")), (401, Some("close")));
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
