//! HTTP/1.1, well formed and otherwise.

use std::io::Read as _;

use super::*;

#[tokio::test]
async fn a_connection_is_reused_unless_a_header_closes_it() {
    let fixture = start(Limits::default());
    let mut client = fixture.connect().await;
    for _ in 0..3 {
        assert_eq!(client.get("/").await.text(), "ok");
    }
    client.send("GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
    assert_eq!(client.read_response().await.status, 200);
    assert_eq!(client.until_closed().await, b"");

    let mut old = fixture.connect().await;
    old.send("GET / HTTP/1.0\r\n\r\n").await;
    assert_eq!(old.read_response().await.status, 200);
    assert_eq!(old.until_closed().await, b"");
}

#[tokio::test]
async fn pipelined_requests_get_their_responses_in_order() {
    let fixture = start(Limits::default());
    let mut client = fixture.connect().await;
    let request = |body: &str| {
        format!("POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    };
    client.send(["first", "second", "third"].map(request).concat()).await;
    for expected in ["first", "second", "third"] {
        assert_eq!(client.read_response().await.text(), expected);
    }
}

#[tokio::test]
async fn a_request_may_arrive_in_any_number_of_pieces() {
    let fixture = start(Limits::default());
    let mut client = fixture.connect().await;
    for byte in b"POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\nhello" {
        client.send([*byte]).await;
    }
    assert_eq!(client.read_response().await.text(), "hello");
}

#[tokio::test]
async fn head_responds_with_the_length_and_without_the_body() {
    let fixture = start(Limits::default());
    let mut client = fixture.connect().await;
    client.send("HEAD / HTTP/1.1\r\nhost: h\r\n\r\n").await;
    let response = client.head().await;
    assert_eq!((response.status, response.header("content-length")), (200, Some("2")));
    assert_eq!(client.get("/").await.text(), "ok", "nothing of a body was left on the wire");
}

#[tokio::test]
async fn garbage_gets_400_or_a_closed_connection_and_others_are_served() {
    let fixture = start(Limits::default());
    let mut bystander = fixture.connect().await;
    let garbage: [&[u8]; 5] = [
        b"\0\x01\x02\xff\xfe\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: many\r\n\r\n",
    ];
    for bytes in garbage {
        let mut client = fixture.connect().await;
        client.send(bytes).await;
        let said = client.until_closed().await;
        assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 400"), "{bytes:?} got {said:?}");
        assert_eq!(bystander.get("/").await.status, 200);
    }
    assert_eq!(fixture.probe.handled(), garbage.len(), "only the bystander reached the handler");
}

#[tokio::test]
async fn tls_against_a_plain_server_is_rejected() {
    let fixture = start(Limits::default());
    let mut client = fixture.connect().await;
    client.send(b"\x16\x03\x01\x00\x05hello\r\n\r\n").await;
    assert!(client.until_closed().await.starts_with(b"HTTP/1.1 400"));
}

#[tokio::test]
async fn heads_up_to_64_kb_are_read_and_longer_ones_get_431() {
    let fixture = start(Limits::default());
    let with_header =
        |bytes: usize| format!("GET / HTTP/1.1\r\nhost: h\r\nx-long: {}\r\n\r\n", "v".repeat(bytes));
    let mut client = fixture.connect().await;
    client.send(with_header(60 * 1024)).await;
    assert_eq!(client.read_response().await.status, 200);

    for bytes in [66 * 1024, 300 * 1024] {
        let mut client = fixture.connect().await;
        // The server may close while the rest is still being sent.
        let _ = client.try_send(with_header(bytes)).await;
        let said = client.until_closed().await;
        assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 431"), "{bytes} bytes got {said:?}");
    }

    let mut client = fixture.connect().await;
    let many: String = (0..200).map(|n| format!("x-{n}: v\r\n")).collect();
    client.send(format!("GET / HTTP/1.1\r\n{many}\r\n")).await;
    assert!(client.until_closed().await.starts_with(b"HTTP/1.1 431"));
}

#[tokio::test]
async fn long_responses_are_compressed_only_for_clients_that_accept_gzip() {
    let fixture = start(Limits::default());
    let mut client = fixture.connect().await;
    let cases = [
        ("/big/200000", "gzip, deflate", true),
        ("/big/2000000", "gzip,deflate", true),
        ("/big/200000", "identity", false),
        ("/big/200000", "gzip;q=0", false),
        ("/big/1024", "gzip, deflate", false),
    ];
    for (path, accepted, compressed) in cases {
        client.send(format!("GET {path} HTTP/1.1\r\nhost: h\r\naccept-encoding: {accepted}\r\n\r\n")).await;
        let response = client.read_response().await;
        assert_eq!(response.header("content-encoding"), compressed.then_some("gzip"), "{path} {accepted}");
        let mut plain = response.body;
        if compressed {
            let bytes = std::mem::take(&mut plain);
            flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap();
        }
        assert_eq!(plain, client.get(path).await.body, "{path} {accepted}");
    }
}

#[tokio::test]
async fn unread_responses_of_many_connections_have_one_bound() {
    let mut limits = Limits::default();
    limits.unread_bytes_max = 20_000_000;
    let fixture = start(limits);
    let mut attackers = Vec::new();
    // 24 connections that read nothing of eight million bytes each: 192 MB, where 20 MB are allowed.
    for _ in 0..24 {
        let mut client = fixture.connect().await;
        client.send("GET /big/8000000 HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
        // Its response is ready before the next one asks.
        assert_eq!(client.head().await.status, 200);
        attackers.push(client);
    }
    // A client that reads gets its responses.
    let mut client = fixture.connect().await;
    for _ in 0..3 {
        assert_eq!(client.get("/big/100000").await.text().len(), 100_000);
    }
    let mut cut = 0;
    for attacker in &mut attackers {
        // What is left of a response whose connection was closed is shorter than the response.
        let rest = tokio::time::timeout(Duration::from_millis(500), attacker.until_closed()).await;
        cut += usize::from(rest.is_ok_and(|rest| rest.len() < 7_000_000));
    }
    assert!(cut >= 20, "{cut} of 24 connections were closed");
}
