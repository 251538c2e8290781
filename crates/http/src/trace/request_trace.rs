//! The trace of one request: a small value that is copied and needs no allocation.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::time::Duration;

/// What happened to one request: when each step completed, over which connection, and whether it was sent.
///
/// Times are offsets from the start of the call. A step that did not take place has none: a reused connection needs
/// neither DNS nor a handshake.
///
/// ```
/// use perihelion_http::trace::{RequestTrace, Sent};
///
/// // Without a report it is unknown whether the request was sent.
/// assert_eq!(RequestTrace::default().sent, Sent::MaybeSent);
/// // A client that has just started a request knows that nothing was sent.
/// assert_eq!(RequestTrace::started().sent, Sent::NotSent);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestTrace {
    /// When DNS had resolved the host name.
    pub dns: Option<Duration>,
    /// When the TCP connection was open, through the proxy if there is one.
    pub connect: Option<Duration>,
    /// When the TLS handshake was complete.
    pub tls: Option<Duration>,
    /// When the request had acquired a connection, or a stream of a shared one.
    pub connection_ready: Option<Duration>,
    /// When the last byte of the request had been written to the socket.
    pub request_sent: Option<Duration>,
    /// When status and headers of the response had been received.
    pub first_byte: Option<Duration>,
    /// When the last byte of the response had been received.
    pub complete: Option<Duration>,
    /// Whether the connection was opened for this request.
    pub reuse: Option<Reuse>,
    /// The HTTP version that was used.
    pub protocol: Option<Protocol>,
    /// The local address of the connection.
    pub local: Option<SocketAddr>,
    /// The remote address of the connection: that of the proxy if there is one.
    pub remote: Option<SocketAddr>,
    /// The number of the connection.
    pub connection: Option<ConnectionId>,
    /// Whether the request was sent.
    pub sent: Sent,
    /// Whether the peer refused to process the request (`REFUSED_STREAM`, or a `GOAWAY` with a lower stream id): it can
    /// be retried although it was sent.
    pub refused: bool,
    /// The step that failed, if one did.
    pub failed_step: Option<Step>,
    /// The number of connections that the request was passed to. Two if the first was a reused one that turned out to be
    /// closed before anything was sent.
    pub attempts: u8,
}

impl RequestTrace {
    /// The trace of a request that has just started, so nothing of it was sent.
    pub const fn started() -> Self {
        RequestTrace {
            dns: None,
            connect: None,
            tls: None,
            connection_ready: None,
            request_sent: None,
            first_byte: None,
            complete: None,
            reuse: None,
            protocol: None,
            local: None,
            remote: None,
            connection: None,
            sent: Sent::NotSent,
            refused: false,
            failed_step: None,
            attempts: 0,
        }
    }

    /// Whether the request cannot have had an effect, so that even a write can be retried.
    pub const fn safe_to_repeat(&self) -> bool {
        match self.sent {
            Sent::NotSent => true,
            Sent::MaybeSent | Sent::Sent => self.refused,
        }
    }

    /// The steps that took place, in order, each with the offset at which it was complete.
    ///
    /// ```
    /// # use perihelion_http::trace::{RequestTrace, Step};
    /// # use std::time::Duration;
    /// let mut trace = RequestTrace::started();
    /// trace.dns = Some(Duration::from_millis(1));
    /// trace.connect = Some(Duration::from_millis(3));
    /// let steps: Vec<_> = trace.steps().map(|(step, _)| step).collect();
    /// assert_eq!(steps, [Step::Dns, Step::Connect]);
    /// ```
    pub fn steps(&self) -> impl Iterator<Item = (Step, Duration)> + use<> {
        [
            (Step::Dns, self.dns),
            (Step::Connect, self.connect),
            (Step::Tls, self.tls),
            (Step::Wait, self.connection_ready),
            (Step::Send, self.request_sent),
            (Step::FirstByte, self.first_byte),
            (Step::Body, self.complete),
        ]
        .into_iter()
        .filter_map(|(step, complete)| Some((step, complete?)))
    }
}

/// The trace without any report: nothing is known.
impl Default for RequestTrace {
    fn default() -> Self {
        RequestTrace { sent: Sent::MaybeSent, ..RequestTrace::started() }
    }
}

/// Whether a request was written to the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sent {
    /// No byte of it was written, and none will be: any request can be retried safely.
    NotSent,
    /// Part of it was written, or may still be written, or it is unknown.
    MaybeSent,
    /// All of it was written, as far as the connection can tell. Not a reason to retry, nor the opposite of one: a
    /// retry is decided as for [`MaybeSent`](Sent::MaybeSent).
    Sent,
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Sent::NotSent => "not sent",
            Sent::MaybeSent => "maybe sent",
            Sent::Sent => "sent",
        })
    }
}

/// Whether a connection had been used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reuse {
    /// It was opened for this request.
    New,
    /// It had served other requests before, or serves them at the same time.
    Reused,
}

impl fmt::Display for Reuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reuse::New => "new",
            Reuse::Reused => "reused",
        })
    }
}

/// An HTTP version that the client supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// HTTP/1.1: one request at a time per connection.
    Http1,
    /// HTTP/2: many requests at once per connection.
    Http2,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Http1 => "HTTP/1.1",
            Protocol::Http2 => "HTTP/2",
        })
    }
}

/// The number of a connection, unique within the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(NonZeroU64);

impl ConnectionId {
    /// Creates the id of the connection with this number.
    pub const fn new(number: NonZeroU64) -> Self {
        ConnectionId(number)
    }

    /// The number of the connection.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A step of a request, in the order in which they take place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Step {
    /// Validating the request: its URL and its headers.
    Prepare,
    /// Resolving the host name by DNS.
    Dns,
    /// Opening the TCP connection.
    Connect,
    /// Opening a tunnel through the proxy.
    Proxy,
    /// Running the TLS handshake.
    Tls,
    /// Waiting for a connection, or for a stream of a shared one.
    Wait,
    /// Sending the head and body of the request.
    Send,
    /// Waiting for the status and headers of the response.
    FirstByte,
    /// Receiving the body of the response.
    Body,
}

impl Step {
    /// What the client does in this step, as the end of a sentence: "failed while …".
    pub const fn description(self) -> &'static str {
        match self {
            Step::Prepare => "validating the request",
            Step::Dns => "resolving the host name",
            Step::Connect => "connecting",
            Step::Proxy => "connecting through the proxy",
            Step::Tls => "running the TLS handshake",
            Step::Wait => "waiting for a connection",
            Step::Send => "sending the request",
            Step::FirstByte => "waiting for the response",
            Step::Body => "receiving the body",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.description())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_that_were_not_sent_or_were_refused_are_safe_to_repeat() {
        for (sent, refused, expected) in [
            (Sent::NotSent, false, true),
            (Sent::MaybeSent, false, false),
            (Sent::Sent, false, false),
            (Sent::MaybeSent, true, true),
            (Sent::Sent, true, true),
        ] {
            let trace = RequestTrace { sent, refused, ..RequestTrace::started() };
            assert_eq!(trace.safe_to_repeat(), expected, "{sent}, refused: {refused}");
        }
    }

    #[test]
    fn steps_that_did_not_take_place_are_left_out() {
        let ms = Duration::from_millis;
        let trace =
            RequestTrace { request_sent: Some(ms(1)), first_byte: Some(ms(2)), ..RequestTrace::started() };
        let steps: Vec<_> = trace.steps().collect();
        assert_eq!(steps, [(Step::Send, ms(1)), (Step::FirstByte, ms(2))]);
    }
}
