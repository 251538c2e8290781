//! What a client obeys, resolved once when it is built.

use std::time::Duration;

use crate::exchange::Protocol;

/// What a client obeys: no gaps left to interpret.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// How long a connection, or a place on one, may take to come by.
    pub(crate) connect: Option<Duration>,
    /// How long status and headers may take, from when the request last moved.
    pub(crate) first_byte: Option<Duration>,
    /// How long the body may stand still.
    pub(crate) silence: Option<Duration>,
    /// How long a whole call may take, body included.
    pub(crate) call: Option<Duration>,
    /// The only protocol to speak; without one ALPN decides, and plain HTTP is HTTP/1.1.
    pub(crate) protocol: Option<Protocol>,
    pub(crate) header_count_max: usize,
    pub(crate) header_bytes_max: usize,
    pub(crate) http2: Http2Settings,
}

/// What applies to HTTP/2 only.
#[derive(Clone, Debug)]
pub(crate) struct Http2Settings {
    /// Connections per host.
    pub(crate) connections_max: usize,
    /// A connection that was silent for so long is asked whether it is alive,
    pub(crate) ping_after: Duration,
    /// and has so long to answer.
    pub(crate) ping_answer: Duration,
    /// A connection without streams is closed after so long.
    pub(crate) idle: Duration,
    /// How much of one body may arrive ahead of its reader,
    pub(crate) stream_window: u32,
    /// and of all bodies on a connection. Many times the former, so that a few that are not read do not stop
    /// the others.
    pub(crate) connection_window: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            connect: Some(Duration::from_secs(10)),
            first_byte: Some(Duration::from_secs(60)),
            silence: Some(Duration::from_secs(60)),
            call: Some(Duration::from_secs(300)),
            protocol: None,
            header_count_max: 100,
            header_bytes_max: 64 * 1024,
            http2: Http2Settings::default(),
        }
    }
}

impl Default for Http2Settings {
    fn default() -> Self {
        Http2Settings {
            connections_max: 1,
            ping_after: Duration::from_secs(30),
            ping_answer: Duration::from_secs(10),
            idle: Duration::from_secs(300),
            stream_window: 2 * 1024 * 1024,
            connection_window: 32 * 1024 * 1024,
        }
    }
}
