//! A running account and a signing client, for tests over sockets.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use perihelion_emulator::clock::{Clock, Ticks};
use perihelion_emulator::{ContainerUsage, Emulator, EmulatorConfig, RunningEmulator, WELL_KNOWN_KEY};
use protocol::authorization::{AccountKey, sign};
use serde_json::{Value, json};

/// The start time of manual clocks: 15 November 2026.
const START: Ticks = Ticks(17_947_440_000_000_000);

/// One emulator whose clock stands still until a test moves it.
pub(crate) struct LiveAccount {
    running: Arc<RunningEmulator>,
    /// The port of the region that requests are sent to.
    port: u16,
    pub(crate) clock: Clock,
}

/// The response to a request over a socket.
#[derive(Debug)]
pub(crate) struct LiveResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    /// The body as it was received, for what is not text.
    pub(crate) bytes: Bytes,
}

impl LiveResponse {
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> LiveResponse {
        assert_eq!(self.status, status, "{:?} {}", self.headers, self.body);
        self
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    pub(crate) fn sub_status(&self) -> &str {
        self.header("x-ms-substatus")
    }

    pub(crate) fn documents(&self) -> &[Value] {
        self.body["Documents"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

impl LiveAccount {
    /// An account with nothing in it.
    pub(crate) async fn start(config: EmulatorConfig) -> LiveAccount {
        let clock = config.clock.clone();
        let running = Arc::new(Emulator::start(config).await.unwrap());
        LiveAccount { port: region_port(&running, 0), running, clock }
    }

    /// Starts an account with a manual clock, configured by `change`.
    pub(crate) async fn with(change: impl FnOnce(&mut EmulatorConfig)) -> LiveAccount {
        let mut config = EmulatorConfig::default();
        config.clock = Clock::manual(START);
        change(&mut config);
        LiveAccount::start(config).await
    }

    async fn with_partitions(partitions: u32) -> LiveAccount {
        LiveAccount::with(|config| config.partitions = partitions.try_into().ok()).await
    }

    /// A database `d` with a container `c` of these properties.
    pub(crate) async fn with_container(partitions: u32, properties: Value) -> LiveAccount {
        let account = LiveAccount::with_partitions(partitions).await;
        account.create_container(properties).await;
        account
    }

    /// Adds a database `d` with a container `c` of these properties.
    pub(crate) async fn create_container(&self, properties: Value) {
        self.post("/dbs", &[], json!({"id": "d"})).await.expect(201);
        let mut body = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        body.as_object_mut().unwrap().extend(properties.as_object().unwrap().clone());
        self.post("/dbs/d/colls", &[], body).await.expect(201);
    }

    /// A client of another region of this account.
    pub(crate) fn in_region(&self, region: usize) -> LiveAccount {
        let port = region_port(&self.running, region);
        LiveAccount { running: Arc::clone(&self.running), port, clock: self.clock.clone() }
    }

    /// A client of the account's own endpoint.
    pub(crate) fn at_account(&self) -> LiveAccount {
        let port = self.running.port();
        LiveAccount { running: Arc::clone(&self.running), port, clock: self.clock.clone() }
    }

    /// Stops the account, which must have no other handle, and waits for the end.
    pub(crate) async fn stop(self) {
        Arc::into_inner(self.running).expect("one handle is left").stop().await;
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> LiveResponse {
        self.send(Method::GET, path, headers, Bytes::new()).await
    }

    pub(crate) async fn delete(&self, path: &str, headers: &[(&str, &str)]) -> LiveResponse {
        self.send(Method::DELETE, path, headers, Bytes::new()).await
    }

    pub(crate) async fn post(&self, path: &str, headers: &[(&str, &str)], body: Value) -> LiveResponse {
        self.send(Method::POST, path, headers, body.to_string().into()).await
    }

    pub(crate) async fn put(&self, path: &str, headers: &[(&str, &str)], body: Value) -> LiveResponse {
        self.send(Method::PUT, path, headers, body.to_string().into()).await
    }

    pub(crate) async fn patch(&self, path: &str, headers: &[(&str, &str)], body: Value) -> LiveResponse {
        self.send(Method::PATCH, path, headers, body.to_string().into()).await
    }

    /// Stores an item of `d/c` under its own partition key.
    pub(crate) async fn create(&self, item: Value) -> LiveResponse {
        let key = json!([item.get("pk").cloned().unwrap_or(json!({}))]).to_string();
        self.post("/dbs/d/colls/c/docs", &[("x-ms-documentdb-partitionkey", &key)], item).await
    }

    /// Runs a query over `d/c`.
    pub(crate) async fn query(&self, text: &str, headers: &[(&str, &str)]) -> LiveResponse {
        let mut all = vec![("x-ms-documentdb-isquery", "true"), ("content-type", "application/query+json")];
        all.extend_from_slice(headers);
        self.post("/dbs/d/colls/c/docs", &all, json!({"query": text})).await
    }

    /// The request units that were spent.
    pub(crate) fn usage(&self) -> Vec<ContainerUsage> {
        self.running.usage()
    }

    /// The handle of the running emulator.
    pub(crate) fn running(&self) -> &RunningEmulator {
        &self.running
    }

    /// The port it listens on.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Sends a request to the control port; an empty `body` is none.
    pub(crate) async fn control(&self, method: Method, path: &str, body: &str) -> LiveResponse {
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        let request = request.header("x-perihelion-control", "1");
        let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
        exchange(self.running.control_port(), request.body(body).unwrap()).await
    }

    /// Sends a request that is not signed, and returns the status of the response.
    pub(crate) async fn get_unsigned(port: u16, path: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::get(path).header("host", "localhost");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        exchange(port, request.body(Full::default()).unwrap()).await.status
    }

    /// Sends one signed request on a connection of its own.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> LiveResponse {
        let date = httpdate::fmt_http_date(self.clock.wall_clock().to_system_time());
        let (kind, link) = signed_resource(path);
        let key = AccountKey::from_base64(WELL_KNOWN_KEY).unwrap();
        let authorization = sign(&key, method.as_str(), kind, &link, &date);
        let mut all = vec![("x-ms-date", date.as_str()), ("authorization", &authorization)];
        all.extend_from_slice(headers);
        self.send_unsigned(method, path, &all, body).await
    }

    /// Sends exactly this, on a connection of its own.
    pub(crate) async fn send_unsigned(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> LiveResponse {
        let mut request =
            Request::builder().method(method).uri(path).header("host", format!("localhost:{}", self.port()));
        if !headers.iter().any(|(name, _)| *name == "x-ms-version") {
            request = request.header("x-ms-version", "2020-07-15");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        exchange(self.port(), request.body(Full::new(body)).unwrap()).await
    }
}

/// The port of a region, in failover order.
fn region_port(running: &RunningEmulator, region: usize) -> u16 {
    let endpoint = &running.regions()[region].endpoint;
    endpoint.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap()
}

/// Sends one request on a connection of its own. Text that is not JSON arrives as a JSON string.
async fn exchange(port: u16, request: Request<Full<Bytes>>) -> LiveResponse {
    let stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let response = sender.send_request(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let body = match serde_json::from_slice(&bytes) {
        _ if bytes.is_empty() => Value::Null,
        Ok(body) => body,
        Err(_) => Value::from(String::from_utf8_lossy(&bytes)),
    };
    LiveResponse { status: parts.status.as_u16(), headers: parts.headers, body, bytes }
}

/// The resource type and link a request is signed for.
fn signed_resource(path: &str) -> (&str, String) {
    let segments: Vec<&str> =
        path.trim_matches('/').split('/').filter(|segment| !segment.is_empty()).collect();
    match segments.len() {
        0 => ("", String::new()),
        length if length % 2 == 1 => (segments[length - 1], segments[..length - 1].join("/")),
        length => (segments[length - 2], segments.join("/")),
    }
}
