//! The settings of a client, complete: its builder starts from the defaults below.

use std::time::Duration;

use crate::trace::Protocol;

/// The timeouts, limits and protocol of a client.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// How long it may take to acquire a connection, or a stream of a shared one.
    pub(crate) connect_timeout: Option<Duration>,
    /// How long status and headers may take, counted from the last progress in sending the request.
    pub(crate) first_byte_timeout: Option<Duration>,
    /// How long the wait for the next chunk of a response body may take.
    pub(crate) read_timeout: Option<Duration>,
    /// How long a whole call may take, response body included.
    pub(crate) call_timeout: Option<Duration>,
    /// The only protocol to use; with `None` ALPN decides, and plain HTTP is HTTP/1.1.
    pub(crate) protocol: Option<Protocol>,
    /// For how long a connection takes requests; without a limit if `None`.
    pub(crate) connection_age_max: Option<Duration>,
    pub(crate) header_count_max: usize,
    pub(crate) header_bytes_max: usize,
    pub(crate) http2: Http2Settings,
}

/// The settings that apply to HTTP/2 only.
#[derive(Clone, Debug)]
pub(crate) struct Http2Settings {
    /// The highest number of HTTP/2 connections per host.
    pub(crate) connections_max: usize,
    /// A peer that sent nothing for this long is pinged; none is if this is `None`.
    pub(crate) keepalive_interval: Option<Duration>,
    /// How long the peer may take to acknowledge a ping.
    pub(crate) keepalive_timeout: Duration,
    /// A connection without streams is closed after this time.
    pub(crate) idle_timeout: Duration,
    /// The flow-control window of one stream: how many bytes of a body the peer may send before they are read.
    pub(crate) stream_window: u32,
    /// The flow-control window of a connection. Many times that of a stream, so that a few bodies that are not read do
    /// not block the others.
    pub(crate) connection_window: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            connect_timeout: Some(Duration::from_secs(10)),
            first_byte_timeout: Some(Duration::from_secs(60)),
            read_timeout: Some(Duration::from_secs(60)),
            call_timeout: Some(Duration::from_secs(300)),
            protocol: None,
            connection_age_max: Some(Duration::from_secs(600)),
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
            keepalive_interval: Some(Duration::from_secs(30)),
            keepalive_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(300),
            stream_window: 2 * 1024 * 1024,
            connection_window: 32 * 1024 * 1024,
        }
    }
}
