//! Requests as a web page of another origin can send them, to the account and to its control port.

use perihelion_emulator::RunningEmulator;
use protocol::authorization::{AccountKey, EMULATOR_KEY, sign};

use super::http2::{END_STREAM, HEADERS, PREFACE, SETTINGS, frame, get_from};
use super::*;

async fn start_emulator(change: impl FnOnce(&mut EmulatorConfig)) -> RunningEmulator {
    let mut config = EmulatorConfig::default();
    change(&mut config);
    Emulator::start(config).await.expect("the emulator starts")
}

async fn connect(port: u16) -> Client<TcpStream> {
    Client::new(in_time(TcpStream::connect(("127.0.0.1", port))).await.expect("connects"))
}

/// Sends one request without a body and returns the response.
async fn send(port: u16, line: &str, headers: &[(&str, &str)]) -> RawResponse {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let mut client = connect(port).await;
    client.send(format!("{line}\r\n{headers}content-length: 0\r\n\r\n")).await;
    client.read_response().await
}

/// The headers of a signed `GET /`.
fn signed() -> [(&'static str, String); 2] {
    let date = httpdate::fmt_http_date(perihelion_emulator::clock::Clock::system().now().to_system_time());
    let key = AccountKey::from_base64(EMULATOR_KEY).unwrap();
    [("authorization", sign(&key, "GET", "", "", &date)), ("x-ms-date", date)]
}

#[tokio::test]
async fn a_page_whose_name_was_rebound_to_this_machine_is_refused() {
    let running = start_emulator(|_| {}).await;
    let signed = signed();
    let signed = signed.each_ref().map(|(name, value)| (*name, value.as_str()));
    for (line, host, expected) in [
        ("GET / HTTP/1.1", "localhost", 200),
        ("GET / HTTP/1.1", "127.0.0.1:8081", 200),
        ("GET / HTTP/1.1", "evil.example", 403),
        ("GET / HTTP/1.1", "evil.example:8081", 403),
        ("GET / HTTP/1.1", "localhost.evil.example", 403),
        ("GET http://evil.example/ HTTP/1.1", "localhost", 403),
        ("GET http://localhost/ HTTP/1.1", "evil.example", 403),
        ("GET http://localhost/ HTTP/1.1", "localhost", 200),
    ] {
        let headers = [&[("host", host)][..], &signed].concat();
        let account = send(running.port(), line, &headers).await;
        assert_eq!(account.status, expected, "{line} {host}: {}", account.text());
        let control = send(running.control_port(), line, &[("host", host)]).await;
        assert_eq!(control.status, expected, "{line} {host}: {}", control.text());
        assert!(expected == 200 || control.text().contains("host"), "{}", control.text());
    }
    assert_eq!(send(running.control_port(), "GET /health HTTP/1.0", &[]).await.status, 200, "without a host");
}

#[tokio::test]
async fn the_authority_of_an_http2_request_is_its_host() {
    let running = start_emulator(|_| {}).await;
    for (authority, expected) in [("localhost:1", "ready"), ("evil.example", "Forbidden")] {
        let mut client = connect(running.control_port()).await;
        let request = get_from(1, authority, "/health");
        client.send([PREFACE, &frame(SETTINGS, 0, 0, &[]), &request].concat()).await;
        client.frame_of(HEADERS, 0).await;
        let body = client.frame_of(super::http2::DATA, END_STREAM).await.payload;
        let body = String::from_utf8(body).unwrap();
        assert!(body.contains(expected), "{authority}: {body}");
    }
}

#[tokio::test]
async fn a_page_of_another_origin_changes_nothing() {
    let running = start_emulator(|_| {}).await;
    let control = running.control_port();
    let host = ("host", "localhost:1234");
    // What a page can send without asking first: a form, or a POST of plain text.
    for headers in [
        &[host][..],
        &[host, ("content-type", "text/plain")],
        &[host, ("content-type", "application/x-www-form-urlencoded"), ("origin", "http://evil.example")],
        &[host, ("content-type", "text/plain"), ("origin", "null")],
        &[host, ("content-type", "application/json"), ("origin", "http://localhost:3000")],
        &[host, ("x-perihelion-control", "1"), ("origin", "https://evil.example")],
    ] {
        for line in
            ["POST /snapshots/stolen HTTP/1.1", "DELETE /faults HTTP/1.1", "POST /clock/freeze HTTP/1.1"]
        {
            let response = send(control, line, headers).await;
            assert_eq!(response.status, 403, "{line} {headers:?}: {}", response.text());
            assert_eq!(response.header("access-control-allow-origin"), None);
        }
        // The page asks whether it may: it may not.
        let preflight = [headers, &[("access-control-request-method", "POST")]].concat();
        let response = send(control, "OPTIONS /snapshots/stolen HTTP/1.1", &preflight).await;
        assert!([403, 405].contains(&response.status), "{}", response.status);
        assert_eq!(response.header("access-control-allow-origin"), None);
    }
    let snapshots = send(control, "GET /snapshots HTTP/1.1", &[host]).await;
    assert!(!snapshots.text().contains("stolen"), "{}", snapshots.text());
    let unasked = send(control, "POST /snapshots/mine HTTP/1.1", &[host]).await;
    assert!(unasked.text().contains("curl -H 'x-perihelion-control: 1'"), "{}", unasked.text());
    let asked = send(control, "POST /snapshots/mine HTTP/1.1", &[host, ("x-perihelion-control", "1")]).await;
    assert_eq!(asked.status, 200, "{}", asked.text());

    let signed = signed();
    let signed = signed.each_ref().map(|(name, value)| (*name, value.as_str()));
    for origin in ["http://evil.example", "null", "http://localhost:3000"] {
        let headers = [&[host, ("origin", origin)][..], &signed].concat();
        assert_eq!(send(running.port(), "GET / HTTP/1.1", &headers).await.status, 403, "{origin}");
    }
}

#[tokio::test]
async fn an_allowed_host_name_is_served_and_reflected() {
    let running = start_emulator(|config| config.allowed_hosts = vec!["cosmos.test".to_owned()]).await;
    let signed = signed();
    let signed = signed.each_ref().map(|(name, value)| (*name, value.as_str()));
    let headers = [&[("host", "cosmos.test:9")][..], &signed].concat();
    let response = send(running.port(), "GET / HTTP/1.1", &headers).await;
    assert!(
        response.status == 200 && response.text().contains("http://cosmos.test:9/"),
        "{}",
        response.text()
    );
    let control = send(running.control_port(), "GET /health HTTP/1.1", &[("host", "cosmos.test")]).await;
    assert_eq!(control.status, 200);
}

#[tokio::test]
async fn a_control_port_with_a_token_shows_only_health_and_metrics_without_it() {
    let running = start_emulator(|config| config.control_token = Some("secret".to_owned())).await;
    let (control, host) = (running.control_port(), ("host", "localhost"));
    for (line, token, expected) in [
        ("GET /health HTTP/1.1", None, 200),
        ("GET /health/ready HTTP/1.1", None, 200),
        ("GET /metrics HTTP/1.1", None, 200),
        ("GET /requests HTTP/1.1", None, 401),
        ("GET /requests HTTP/1.1", Some("1"), 401),
        ("POST /snapshots/mine HTTP/1.1", Some("wrong"), 401),
        ("POST /snapshots/mine HTTP/1.1", Some("secret"), 200),
        ("GET /requests HTTP/1.1", Some("secret"), 200),
    ] {
        let token = token.map(|token| ("x-perihelion-control", token));
        let headers: Vec<(&str, &str)> = [host].into_iter().chain(token).collect();
        assert_eq!(send(control, line, &headers).await.status, expected, "{line} {token:?}");
    }
}
