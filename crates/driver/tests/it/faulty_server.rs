//! A server between a driver and an account of one region, which responds to some of the requests itself,
//! or changes the account's responses.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use perihelion_driver::options::DriverOptions;
use perihelion_driver::{Account, CosmosDriver, CosmosRuntime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::test_account::{Clients, TestAccount, WEST};

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestTarget {
    Account,
    Container,
    Ranges,
    Items,
}

impl RequestTarget {
    fn of(path: &str) -> Option<RequestTarget> {
        let path = path.split('?').next().unwrap_or(path).trim_matches('/');
        let segments: Vec<&str> = path.split('/').collect();
        match segments[..] {
            [""] => Some(RequestTarget::Account),
            ["dbs", _, "colls", _] => Some(RequestTarget::Container),
            ["dbs", _, "colls", _, "pkranges"] => Some(RequestTarget::Ranges),
            ["dbs", _, "colls", _, "docs", ..] => Some(RequestTarget::Items),
            _ => None,
        }
    }
}

/// Changes a response: its head, and its body.
type ResponseChange = Arc<dyn Fn(&mut String, &mut Vec<u8>) + Send + Sync>;

/// What is said instead of the truth.
#[derive(Clone)]
pub(crate) enum FaultyResponse {
    /// These bytes, and the end of the connection.
    Bytes(Vec<u8>),
    /// These bytes, then so many of nothing in particular, and the end of the connection.
    TooLong(Vec<u8>, usize),
    /// These bytes, and then silence.
    Stalls(Vec<u8>),
    /// What the account says, changed.
    Modified(ResponseChange),
}

impl FaultyResponse {
    /// What the account says, changed: its head and its body.
    pub(crate) fn modified(
        change: impl Fn(&mut String, &mut Vec<u8>) + Send + Sync + 'static,
    ) -> FaultyResponse {
        FaultyResponse::Modified(Arc::new(change))
    }

    /// The JSON that the account says, changed, with a true length.
    pub(crate) fn modified_json(
        change: impl Fn(&mut serde_json::Value) + Send + Sync + 'static,
    ) -> FaultyResponse {
        FaultyResponse::modified(move |head, body| {
            // That nothing has changed is said without a body.
            let Ok(mut value) = serde_json::from_slice(body) else { return };
            change(&mut value);
            let length = format!("content-length: {}", body.len());
            *body = value.to_string().into_bytes();
            *head = head.replace(&length, &format!("content-length: {}", body.len()));
        })
    }

    /// A response of 200 with this body and a true length.
    pub(crate) fn body(body: impl AsRef<[u8]>) -> FaultyResponse {
        FaultyResponse::response("200 OK", "", body)
    }

    /// A response with this status, these headers (each ending a line) and this body.
    pub(crate) fn response(status: &str, headers: &str, body: impl AsRef<[u8]>) -> FaultyResponse {
        let body = body.as_ref();
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
        FaultyResponse::Bytes([head.as_bytes(), body].concat())
    }
}

/// What is lied about, and how.
type Script = Arc<Mutex<Option<(RequestTarget, FaultyResponse)>>>;

/// An account of one region behind a server with injected faults. Ends when dropped.
pub(crate) struct FaultyServer {
    pub(crate) test_account: TestAccount,
    address: SocketAddr,
    script: Script,
    stalls: Arc<Notify>,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for FaultyServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl FaultyServer {
    pub(crate) async fn start() -> FaultyServer {
        let test_account =
            TestAccount::start_with(|config| config.regions = vec![WEST.to_owned()].into()).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let script = Script::default();
        let account = SocketAddr::from(([127, 0, 0, 1], test_account.running.port()));
        let stalls = Arc::new(Notify::new());
        let serving = tokio::spawn(serve(listener, account, Arc::clone(&script), Arc::clone(&stalls)));
        FaultyServer { test_account, address, script, stalls, serving }
    }

    /// Lies from now on.
    pub(crate) fn inject(&self, about: RequestTarget, fault: FaultyResponse) {
        *self.script.lock().expect("no panic while locked") = Some((about, fault));
    }

    /// Tells the truth from now on.
    pub(crate) fn clear_fault(&self) {
        *self.script.lock().expect("no panic while locked") = None;
    }

    /// Ends when a request waits for a response that does not come.
    pub(crate) async fn stalled(&self) {
        self.stalls.notified().await;
    }

    /// A driver that knows only this server.
    pub(crate) fn driver(&self, options: DriverOptions) -> CosmosDriver {
        let runtime = CosmosRuntime::builder(Arc::new(Clients)).build().expect("valid");
        let endpoint = format!("http://{}/", self.address);
        let account = Account::with_key(&endpoint, self.test_account.running.key()).expect("valid");
        runtime.driver(&account, options).expect("valid")
    }
}

async fn serve(listener: TcpListener, account: SocketAddr, script: Script, stalls: Arc<Notify>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve_connection(stream, account, Arc::clone(&script), Arc::clone(&stalls)));
        while connections.try_join_next().is_some() {}
    }
}

/// One request, one response. What a peer does to its end of the connection is its affair.
async fn serve_connection(
    mut stream: TcpStream,
    account: SocketAddr,
    script: Script,
    stalls: Arc<Notify>,
) -> std::io::Result<()> {
    let Some((head, body)) = message(&mut stream).await? else { return Ok(()) };
    let path = head.split(' ').nth(1).unwrap_or_default();
    let fault = script.lock().expect("no panic while locked").clone();
    let fault = fault.filter(|(about, _)| RequestTarget::of(path) == Some(*about)).map(|(_, fault)| fault);
    match fault {
        Some(FaultyResponse::Bytes(bytes)) => stream.write_all(&bytes).await?,
        Some(FaultyResponse::TooLong(bytes, more)) => {
            stream.write_all(&bytes).await?;
            let chunk = vec![b' '; 1 << 20];
            for _ in 0..more.div_ceil(chunk.len()) {
                stream.write_all(&chunk).await?;
            }
        }
        Some(FaultyResponse::Stalls(bytes)) => {
            stream.write_all(&bytes).await?;
            stalls.notify_one();
            // Until the peer has had enough.
            let _ = stream.read(&mut [0; 1]).await?;
            return Ok(());
        }
        Some(FaultyResponse::Modified(change)) => {
            let (mut head, mut body) = forward(account, &head, &body).await?;
            change(&mut head, &mut body);
            stream.write_all(&[head.as_bytes(), &body].concat()).await?;
        }
        None => {
            let (head, body) = forward(account, &head, &body).await?;
            stream.write_all(&[head.as_bytes(), &body].concat()).await?;
        }
    }
    stream.shutdown().await
}

/// What the account says.
async fn forward(account: SocketAddr, head: &str, body: &[u8]) -> std::io::Result<(String, Vec<u8>)> {
    let mut stream = TcpStream::connect(account).await?;
    let last = head.replacen("\r\n", "\r\nconnection: close\r\n", 1);
    stream.write_all(&[last.as_bytes(), body].concat()).await?;
    let response = message(&mut stream).await?;
    response.ok_or_else(|| std::io::Error::other("the account did not respond"))
}

/// A head and the body that its length speaks of.
async fn message(stream: &mut TcpStream) -> std::io::Result<Option<(String, Vec<u8>)>> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let mut body = bytes.split_off(end);
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    while body.len() < length.unwrap_or(0) {
        if stream.read_buf(&mut body).await? == 0 {
            break;
        }
    }
    Ok(Some((head, body)))
}
