//! The limits of one server: connections, sizes and timeouts.

use std::time::Duration;

/// Limits of one server. The defaults are generous for real clients and protect against floods.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Connections open at once; further ones wait in the kernel's queue until one closes.
    pub connections_max: usize,
    /// Streams open at once on one HTTP/2 connection; the service allows 20.
    pub streams_max: u32,
    /// Bytes of request head: request line and headers together.
    pub head_bytes_max: usize,
    /// Bytes of request body that are read at all. A handler checks the 2 MB limit of an item later: its
    /// error response needs the whole body to have been read.
    pub body_bytes_max: usize,
    /// Bytes of large request bodies that have arrived, of all connections together; one more body may be read
    /// beyond it.
    pub body_bytes_in_memory_max: usize,
    /// Bytes of responses that HTTP/2 clients have not read, of all connections together; beyond it, the connection
    /// with the oldest of them is closed.
    pub unread_bytes_max: usize,
    /// From the first byte of a request head to its last, and from connecting to the first request.
    pub head_timeout: Duration,
    /// From the end of a request head to the end of its body.
    pub body_timeout: Duration,
    /// How long a client may leave the bytes of a response unread.
    pub write_timeout: Duration,
    /// How long a connection may stay open without a request.
    pub idle_timeout: Duration,
    /// When the server is full, how long a connection may stay that has sent no request yet.
    pub silent_when_full: Duration,
    /// When the server is full, how long a connection may stay idle between requests.
    pub idle_when_full: Duration,
    /// How long requests in flight may take to finish once the server stops.
    pub stop_grace: Duration,
    /// Responses at least this long are compressed for clients that accept gzip.
    ///
    /// Python's and Rust's SDKs always accept it. On one machine compressing never beats copying: it costs
    /// about 10 µs per KB, as much as a whole point read of 1 KB. So the threshold lies above items and
    /// ordinary pages: compression pays only over a network, and there only for large responses.
    pub gzip_bytes_min: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections_max: 4_096,
            streams_max: 20,
            head_bytes_max: 64 * 1024,
            body_bytes_max: 16 * 1024 * 1024,
            body_bytes_in_memory_max: 256 * 1024 * 1024,
            unread_bytes_max: 128 * 1024 * 1024,
            head_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(600),
            silent_when_full: Duration::from_secs(1),
            idle_when_full: Duration::from_secs(30),
            stop_grace: Duration::from_millis(300),
            gzip_bytes_min: 64 * 1024,
        }
    }
}

impl Limits {
    /// How often timeouts are checked: a quarter of the shortest one, at least once a second.
    pub(super) fn sweep_interval(&self) -> Duration {
        let shortest = self.head_timeout.min(self.write_timeout).min(self.idle_timeout);
        let shortest = shortest.min(self.silent_when_full).min(self.idle_when_full);
        (shortest / 4).clamp(Duration::from_millis(5), Duration::from_secs(1))
    }
}
