//! A server on the loopback interface that runs a script of actions per connection, and logs what it received.
//!
//! It has a thread and a runtime of its own, so that a test can count the tasks of the client on its runtime.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio_rustls::TlsAcceptor;

/// Longer than any test takes, on any machine: a wait that lasts so long would never end.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// One action of the server on a connection.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Reads one request, with its body.
    Read,
    /// Reads this many bytes.
    ReadBytes(usize),
    /// Reads HTTP/2 frames up to and including the next HEADERS.
    ReadHeaders,
    /// Writes these bytes at once.
    Write(Vec<u8>),
    /// Writes these bytes one by one.
    Trickle(Vec<u8>),
    /// Writes these bytes again and again, until the client closes the connection.
    Forever(Vec<u8>),
    /// Does nothing until the client closes the connection.
    Wait,
    /// Closes the connection with a TCP reset.
    Reset,
}

pub(crate) fn write(text: &str) -> Action {
    Action::Write(text.as_bytes().to_vec())
}

/// A valid response with a body of two bytes, after which the connection can be reused.
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Responds correctly to this many requests, and then does nothing more.
pub(crate) fn respond(requests: usize) -> Vec<Action> {
    let mut script = Vec::new();
    for _ in 0..requests {
        script.extend([Action::Read, write(OK)]);
    }
    script.push(Action::Wait);
    script
}

/// When and how a connection is cut off in the middle of its script.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CutOff {
    /// After the server has sent this many bytes, those of TLS included.
    pub(crate) after: usize,
    /// With a TCP reset, or with a normal close.
    pub(crate) reset: bool,
}

/// The script of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    pub(crate) actions: Vec<Action>,
    pub(crate) cut: Option<CutOff>,
}

impl From<Vec<Action>> for Script {
    fn from(actions: Vec<Action>) -> Script {
        Script { actions, cut: None }
    }
}

/// What the server has received so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerLog {
    /// The number of accepted connections.
    pub(crate) accepted: usize,
    /// The number of accepted connections that have ended.
    pub(crate) ended: usize,
    /// The heads of all requests, each with the number of its connection.
    pub(crate) requests: Vec<(usize, String)>,
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    scheme: &'static str,
    log: watch::Receiver<ServerLog>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    /// Starts a server without TLS. `script` returns the script for the n-th connection, from 0.
    pub(crate) fn plain(script: impl Fn(usize) -> Script + Send + 'static) -> Server {
        Server::scripted(None, script)
    }

    /// Starts a server with TLS. `script` returns the script for the n-th connection, from 0.
    pub(crate) fn tls(tls: TlsAcceptor, script: impl Fn(usize) -> Script + Send + 'static) -> Server {
        Server::scripted(Some(tls), script)
    }

    fn scripted(tls: Option<TlsAcceptor>, script: impl Fn(usize) -> Script + Send + 'static) -> Server {
        let scheme = if tls.is_some() { "https" } else { "http" };
        Server::start(scheme, move |number, stream, log| {
            let (script, tls) = (script(number), tls.clone());
            async move { run_script(number, stream, tls, script, &log).await }
        })
    }

    /// Starts a server that calls `serve` for each connection.
    pub(crate) fn start<F>(
        scheme: &'static str,
        serve: impl Fn(usize, TcpStream, watch::Sender<ServerLog>) -> F + Send + 'static,
    ) -> Server
    where
        F: Future<Output = ()> + 'static,
    {
        let (log_sender, log) = watch::channel(ServerLog::default());
        let (stop, stopped) = oneshot::channel();
        let (ready, listening) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime can be had");
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, async move {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
                ready.send(listener.local_addr().expect("it has one")).expect("the test waits");
                tokio::select! {
                    _ = stopped => {}
                    () = accept(listener, log_sender, serve) => {}
                }
            });
        });
        let address = listening.recv().expect("the server starts");
        Server { address, scheme, log, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:port` and the path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// A URL of the server with a host name in place of its address.
    pub(crate) fn url_by_name(&self, name: &str, path: &str) -> String {
        format!("{}://{name}:{}{path}", self.scheme, self.address.port())
    }

    pub(crate) fn log(&self) -> ServerLog {
        self.log.borrow().clone()
    }

    /// Waits until the log of the server satisfies `condition`.
    pub(crate) async fn until(&self, what: &str, condition: impl FnMut(&ServerLog) -> bool) -> ServerLog {
        let mut log = self.log.clone();
        let waited = tokio::time::timeout(TEST_TIMEOUT, log.wait_for(condition)).await;
        let Ok(Ok(found)) = waited else { panic!("{what}: never, {:?}", self.log()) };
        found.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(Err(panic)) = self.thread.take().map(|thread| thread.join())
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

async fn accept<F>(
    listener: TcpListener,
    log: watch::Sender<ServerLog>,
    serve: impl Fn(usize, TcpStream, watch::Sender<ServerLog>) -> F,
) where
    F: Future<Output = ()> + 'static,
{
    loop {
        let (stream, _) = listener.accept().await.expect("loopback accepts");
        stream.set_nodelay(true).expect("the option is supported");
        let number = log.borrow().accepted;
        log.send_modify(|entry| entry.accepted += 1);
        let served = serve(number, stream, log.clone());
        let log = log.clone();
        tokio::task::spawn_local(async move {
            served.await;
            log.send_modify(|entry| entry.ended += 1);
        });
    }
}

/// Runs a script on one connection. It ends early if the client closes the connection.
async fn run_script(
    number: usize,
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    script: Script,
    log: &watch::Sender<ServerLog>,
) {
    // A second handle of the same socket, to set its linger option before the last handle is closed.
    let control = socket2::SockRef::from(&stream).try_clone().expect("a socket handle can be cloned");
    let resets = script.cut.is_some_and(|cut| cut.reset);
    let left = script.cut.map_or(usize::MAX, |cut| cut.after);
    let stream = TruncatedStream { stream, left };
    let ending = match tls {
        None => run_actions(number, stream, script.actions, log).await,
        Some(tls) => match tls.accept(stream).await {
            Ok(stream) => run_actions(number, stream, script.actions, log).await,
            Err(_) if resets => Ending::Reset,
            Err(_) => Ending::Close,
        },
    };
    if resets || matches!(ending, Ending::Reset) {
        control.set_linger(Some(Duration::ZERO)).expect("the option is supported");
    }
}

enum Ending {
    Close,
    Reset,
}

async fn run_actions(
    number: usize,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    actions: Vec<Action>,
    log: &watch::Sender<ServerLog>,
) -> Ending {
    for act in actions {
        let done = match act {
            Action::Read => match read_request(&mut stream).await {
                Some(head) => {
                    log.send_modify(|entry| entry.requests.push((number, head)));
                    true
                }
                None => false,
            },
            Action::ReadBytes(count) => stream.read_exact(&mut vec![0; count]).await.is_ok(),
            Action::ReadHeaders => match read_headers(&mut stream).await {
                Some(()) => {
                    log.send_modify(|entry| entry.requests.push((number, "HEADERS".to_owned())));
                    true
                }
                None => false,
            },
            Action::Write(bytes) => written(stream.write_all(&bytes).await, &mut stream).await,
            Action::Trickle(bytes) => {
                let mut open = true;
                for byte in bytes {
                    open = open && written(stream.write_all(&[byte]).await, &mut stream).await;
                    // Lets the client look before the next one.
                    tokio::task::yield_now().await;
                }
                open
            }
            Action::Forever(bytes) => {
                while written(stream.write_all(&bytes).await, &mut stream).await {}
                false
            }
            Action::Wait => {
                while stream.read(&mut [0; 1024]).await.is_ok_and(|count| count > 0) {}
                false
            }
            Action::Reset => return Ending::Reset,
        };
        if !done {
            break;
        }
    }
    Ending::Close
}

async fn written(result: std::io::Result<()>, stream: &mut (impl AsyncWrite + Unpin)) -> bool {
    result.is_ok() && stream.flush().await.is_ok()
}

/// Reads one request, and returns its head. Its body is read and dropped.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).expect("our requests are text");
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().expect("a number"))
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some(head)
}

async fn read_headers(stream: &mut (impl AsyncRead + Unpin)) -> Option<()> {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        stream.read_exact(&mut vec![0; length]).await.ok()?;
        if head[3] == 1 {
            return Some(());
        }
    }
}

/// A stream that fails after this many bytes were written.
struct TruncatedStream {
    stream: TcpStream,
    left: usize,
}

impl AsyncRead for TruncatedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for TruncatedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let allowed = bytes.len().min(self.left);
        if allowed == 0 && !bytes.is_empty() {
            return Poll::Ready(Err(std::io::ErrorKind::BrokenPipe.into()));
        }
        let written = std::task::ready!(Pin::new(&mut self.stream).poll_write(cx, &bytes[..allowed]))?;
        self.left -= written;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
