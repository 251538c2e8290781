//! An emulator as a library: start it, use its URLs, stop it.

use perihelion_emulator::{Bind, Emulator, EmulatorConfig, StartError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The first line of what `port` responses to `GET path`.
async fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("somebody listens");
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost:{port}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn several_emulators_run_side_by_side_with_their_own_endpoints() {
    let first = Emulator::start(EmulatorConfig::default()).await.unwrap();
    let second = Emulator::start(EmulatorConfig::default()).await.unwrap();
    for running in [&first, &second] {
        let port = running.port();
        assert_eq!(running.endpoint(), format!("http://localhost:{port}/"));
        assert_eq!(running.https_endpoint(), format!("https://localhost:{port}/"));
        let expected = format!("AccountEndpoint=http://localhost:{port}/;AccountKey={};", running.key());
        assert_eq!(running.connection_string(), expected);
        assert_eq!(get(port, "/").await, "HTTP/1.1 401 Unauthorized");
        assert_eq!(get(running.control_port(), "/health/ready").await, "HTTP/1.1 200 OK");
        assert!(running.authority_pem().await.unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
    }
    assert_ne!(first.port(), second.port());
    first.stop().await;
    assert_eq!(get(second.port(), "/").await, "HTTP/1.1 401 Unauthorized", "the other goes on");
}

#[tokio::test]
async fn an_emulator_stops_on_stop_and_on_drop() {
    for drop_it in [false, true] {
        let running = Emulator::start(EmulatorConfig::default()).await.unwrap();
        let port = running.port();
        let mut open = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        if drop_it {
            drop(running);
        } else {
            running.stop().await;
        }
        let mut rest = Vec::new();
        let _ = open.read_to_end(&mut rest).await;
        assert_eq!(rest, b"", "an open connection is closed");
        // The listener closes with its task, and a drop only requests the task to end, so this polls.
        while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let running = Emulator::start(EmulatorConfig::default()).await.unwrap();
    let with = |change: &dyn Fn(&mut EmulatorConfig)| {
        let mut config = EmulatorConfig::default();
        change(&mut config);
        Emulator::start(config)
    };
    let port = running.port();
    let error = with(&|config| config.port = port).await.unwrap_err();
    assert!(matches!(error, StartError::PortInUse { address, .. } if address.port() == port), "{error}");
    let error = with(&|config| config.key = "not base64!".to_owned()).await.unwrap_err();
    assert!(matches!(error, StartError::InvalidKey { .. }), "{error}");
    let error = with(&|config| config.bind = Bind::Address([203, 0, 113, 1].into())).await.unwrap_err();
    assert!(matches!(error, StartError::CannotListen { .. }), "{error}");
}
