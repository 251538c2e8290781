//! Requests to a server with canned responses.

use perihelion_control_client::{ControlClient, ControlError, ControlErrorKind};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// A server that responds to one request with these bytes and then closes the connection; returns its URL and a task
/// that ends with the head and body of the request.
async fn serve_once(response: String) -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let request = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut request = Vec::new();
        let mut buffer = [0; 1024];
        // The tests send bodies of JSON objects and arrays or none, so the end is easily recognised.
        while !request.ends_with(b"}") && !request.ends_with(b"\r\n\r\n") {
            let count = stream.read(&mut buffer).await.expect("bytes");
            assert_ne!(count, 0, "the client closed the connection");
            request.extend_from_slice(&buffer[..count]);
        }
        stream.write_all(response.as_bytes()).await.expect("the client reads");
        String::from_utf8(request).expect("text")
    });
    (url, request)
}

fn response(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}")
}

async fn get(response: String) -> Result<Value, ControlError> {
    let (url, _request) = serve_once(response).await;
    ControlClient::new(&url).expect("a valid URL").get("/regions").await
}

#[tokio::test]
async fn a_request_has_its_method_path_and_body_and_returns_json() {
    let (url, request) = serve_once(response("200 OK", "", r#"{"regions":[]}"#)).await;
    let control = ControlClient::new(&url).expect("a valid URL");
    let found = control.post("/regions/East%20US/down", &json!({"for": "30s"})).await;
    assert_eq!(found, Ok(json!({"regions": []})));
    let request = request.await.expect("a request");
    assert!(request.starts_with("POST /regions/East%20US/down HTTP/1.1\r\n"), "{request}");
    assert!(request.to_lowercase().contains("content-type: application/json\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\n{\"for\":\"30s\"}"), "{request}");

    let (url, request) = serve_once(response("200 OK", "", r#"{"removed":2}"#)).await;
    let control = ControlClient::new(&url).expect("a valid URL");
    assert_eq!(control.delete("/faults").await, Ok(json!({"removed": 2})));
    assert!(request.await.expect("a request").starts_with("DELETE /faults HTTP/1.1\r\n"));
}

#[tokio::test]
async fn a_rejected_request_has_the_message_of_the_control_port() {
    let body = r#"{"code":"NotFound","message":"there is no region 'Mars'"}"#;
    let error = get(response("404 Not Found", "", body)).await.expect_err("404");
    assert_eq!((error.kind(), error.message()), (ControlErrorKind::Rejected, "there is no region 'Mars'"));
    assert_eq!(error.hint(), None);
}

#[tokio::test]
async fn a_server_that_is_no_control_port_is_recognised() {
    for (name, response) in [
        ("an account", response("401 Unauthorized", "x-ms-activity-id: a\r\n", r#"{"message":"no"}"#)),
        ("a web page", response("200 OK", "", "<html></html>")),
        ("JSON of another form", response("500 Oh", "", "{}")),
    ] {
        let error = get(response).await.expect_err(name);
        assert_eq!(error.kind(), ControlErrorKind::NotAControlPort, "{name}: {error}");
        assert!(error.to_string().contains("by default 1234"), "{name}: {error}");
    }
}

#[tokio::test]
async fn a_response_that_breaks_off_leaves_the_outcome_open() {
    let error = get("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{".to_owned()).await.expect_err("cut off");
    assert_eq!(error.kind(), ControlErrorKind::NoResponse, "{error}");
    assert!(error.to_string().contains("peri status"), "{error}");
}

#[tokio::test]
async fn a_port_without_a_listener_is_unreachable_and_the_hint_says_how_to_start_one() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let error = ControlClient::new(&url).expect("a valid URL").get("/").await.expect_err("no listener");
    assert_eq!(error.kind(), ControlErrorKind::Unreachable, "{error}");
    assert_eq!(error.url(), url);
    assert!(error.to_string().contains("peri up"), "{error}");
}

#[test]
fn an_invalid_url_or_path_is_an_error_before_anything_is_sent() {
    let error = ControlClient::new("https://localhost:1234").expect_err("https");
    assert_eq!(error.kind(), ControlErrorKind::InvalidUrl);
    assert!(error.to_string().contains("http://localhost:1234"), "{error}");
}
