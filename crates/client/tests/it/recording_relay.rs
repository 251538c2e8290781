//! A relay between client and account that records the heads of requests.

use std::sync::{Arc, Mutex};

use perihelion::CosmosClient;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::TestAccount;

/// A port that passes everything on to an account of one region. It stops when it is dropped.
pub(crate) struct RecordingRelay {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
    accepting: JoinHandle<()>,
}

impl RecordingRelay {
    /// A relay to the account, and a client that only knows the relay.
    pub(crate) async fn start(account: &TestAccount) -> (RecordingRelay, CosmosClient) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (heads, target) = (Arc::<Mutex<Vec<String>>>::default(), account.running.port());
        let recorded = Arc::clone(&heads);
        let accepting = tokio::spawn(async move {
            let mut directions = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let account = TcpStream::connect(("127.0.0.1", target)).await.expect("the account listens");
                let (from_client, to_client) = socket.into_split();
                let (from_account, to_account) = account.into_split();
                directions.spawn(relay_requests(from_client, to_account, Arc::clone(&recorded)));
                directions.spawn(relay_responses(from_account, to_client, target, port));
            }
        });
        let string = format!("AccountEndpoint=http://127.0.0.1:{port}/;AccountKey={}", account.running.key());
        let client = CosmosClient::from_connection_string(&string).expect("valid");
        (RecordingRelay { port, heads, accepting }, client)
    }

    /// The heads of the requests since the last call, in lower case.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.heads.lock().expect("no panic"))
    }

    /// The authority under which the client knows the account.
    pub(crate) fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

impl Drop for RecordingRelay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn relay_requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, heads: Arc<Mutex<Vec<String>>>) {
    let mut received = Vec::new();
    // The bytes of the current request that are still to come.
    while let Ok(1..) = from.read_buf(&mut received).await {
        while let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&received[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.map_or(0, |length| length.trim().parse().expect("a number"));
            let whole = end + 4 + length;
            while received.len() < whole {
                if !matches!(from.read_buf(&mut received).await, Ok(1..)) {
                    return;
                }
            }
            heads.lock().expect("no panic").push(head);
            if to.write_all(&received[..whole]).await.is_err() {
                return;
            }
            received.drain(..whole);
        }
    }
}

/// Passes responses on, with the relay's port in place of the account's: both have five digits.
async fn relay_responses(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, account: u16, relay: u16) {
    let (account, relay) = (format!(":{account}/"), format!(":{relay}/"));
    assert_eq!(account.len(), relay.len(), "the length of bodies stays the same");
    let mut buffer = vec![0; 1 << 20];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let chunk = &mut buffer[..read];
        for start in 0..read.saturating_sub(account.len() - 1) {
            if chunk[start..].starts_with(account.as_bytes()) {
                chunk[start..start + relay.len()].copy_from_slice(relay.as_bytes());
            }
        }
        if to.write_all(chunk).await.is_err() {
            return;
        }
    }
}
