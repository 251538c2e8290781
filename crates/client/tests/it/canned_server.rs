//! A server with canned responses, over real sockets.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A server that computes every response from the request line; it stops when it is dropped.
pub(crate) struct CannedServer {
    endpoint: String,
    accepting: JoinHandle<()>,
}

impl CannedServer {
    /// `respond` gets the request line and the endpoint, and returns the bytes to send; none closes the connection.
    pub(crate) async fn start(
        respond: impl Fn(&str, &str) -> Vec<u8> + Send + Sync + 'static,
    ) -> CannedServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let base = format!("http://{}/", listener.local_addr().expect("an address"));
        CannedServer::serve(listener, move |line, _| respond(line, &base))
    }

    /// `respond` gets the request line and the body, and returns the bytes to send; none closes the connection.
    pub(crate) async fn start_with_bodies(
        respond: impl Fn(&str, &[u8]) -> Vec<u8> + Send + Sync + 'static,
    ) -> CannedServer {
        CannedServer::serve(TcpListener::bind("127.0.0.1:0").await.expect("a port"), respond)
    }

    fn serve(
        listener: TcpListener,
        respond: impl Fn(&str, &[u8]) -> Vec<u8> + Send + Sync + 'static,
    ) -> CannedServer {
        let endpoint = format!("http://{}/", listener.local_addr().expect("an address"));
        let respond = Arc::new(respond);
        let accepting = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let respond = Arc::clone(&respond);
                connections.spawn(async move {
                    // An error means that the client closed the connection, which tests do on purpose.
                    let _closed = serve(socket, &*respond).await;
                });
            }
        });
        CannedServer { endpoint, accepting }
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }
}

impl Drop for CannedServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// A response in HTTP/1.1.
pub(crate) fn response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len()).into_bytes()
}

async fn serve(
    mut socket: TcpStream,
    respond: &(impl Fn(&str, &[u8]) -> Vec<u8> + Sync),
) -> std::io::Result<()> {
    let mut received = Vec::new();
    loop {
        let head = loop {
            if let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            if socket.read_buf(&mut received).await? == 0 {
                return Ok(());
            }
        };
        let text = String::from_utf8_lossy(&received[..head]).into_owned();
        let length = text.to_ascii_lowercase().lines().find_map(|line| {
            line.strip_prefix("content-length:").and_then(|length| length.trim().parse::<usize>().ok())
        });
        let whole = head + length.unwrap_or(0);
        while received.len() < whole {
            if socket.read_buf(&mut received).await? == 0 {
                return Ok(());
            }
        }
        let response = respond(text.lines().next().unwrap_or_default(), &received[head..whole]);
        received.drain(..whole);
        if response.is_empty() {
            return Ok(());
        }
        socket.write_all(&response).await?;
    }
}
