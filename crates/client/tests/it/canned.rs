//! A server that says what it is told to, over real sockets.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Answers every request with what a function makes of its first line; gone when it is dropped.
pub(crate) struct Canned {
    endpoint: String,
    accepting: JoinHandle<()>,
}

impl Canned {
    /// `answer` gets the request line and the endpoint, and gives the bytes to send; nothing closes the connection.
    pub(crate) async fn start(answer: impl Fn(&str, &str) -> Vec<u8> + Send + Sync + 'static) -> Canned {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let endpoint = format!("http://{}/", listener.local_addr().expect("an address"));
        let (answer, base) = (Arc::new(answer), endpoint.clone());
        let accepting = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let (answer, base) = (Arc::clone(&answer), base.clone());
                connections.spawn(async move {
                    // A client that goes away is none of our business.
                    let _ended = serve(socket, |line| answer(line, &base)).await;
                });
            }
        });
        Canned { endpoint, accepting }
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }
}

impl Drop for Canned {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// An answer as HTTP/1.1 has it.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len()).into_bytes()
}

async fn serve(mut socket: TcpStream, answer: impl Fn(&str) -> Vec<u8>) -> std::io::Result<()> {
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
        received.drain(..whole);
        let answer = answer(text.lines().next().unwrap_or_default());
        if answer.is_empty() {
            return Ok(());
        }
        socket.write_all(&answer).await?;
    }
}
