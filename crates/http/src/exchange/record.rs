//! The record itself: small, copied freely, made without allocating.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::time::Duration;

/// What happened to one request.
///
/// Times are offsets from the moment the client took the request, and tell when a step was over. A step that
/// did not take place has none: a reused connection needs neither name nor handshake.
///
/// ```
/// use perihelion_http::exchange::{Exchange, Sent};
///
/// // Nobody reported anything: whether the request left is not known, so it may have.
/// assert_eq!(Exchange::default().sent, Sent::MaybeSent);
/// // A client that has begun knows that nothing left yet.
/// assert_eq!(Exchange::begun().sent, Sent::NotSent);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exchange {
    /// The name was resolved.
    pub dns: Option<Duration>,
    /// The TCP connection stood, through a proxy if there is one.
    pub connect: Option<Duration>,
    /// TLS was agreed on.
    pub tls: Option<Duration>,
    /// A connection, or a place on one, was there for this request.
    pub connection_ready: Option<Duration>,
    /// The last byte of the request was handed to the socket.
    pub request_sent: Option<Duration>,
    /// Status and headers of the response were there.
    pub first_byte: Option<Duration>,
    /// The last byte of the response was there.
    pub complete: Option<Duration>,
    /// Whether the connection was made for this request.
    pub reuse: Option<Reuse>,
    /// What was spoken.
    pub protocol: Option<Protocol>,
    /// This end of the connection.
    pub local: Option<SocketAddr>,
    /// The other end: of the proxy if there is one.
    pub remote: Option<SocketAddr>,
    /// Which connection it was.
    pub connection: Option<ConnectionId>,
    /// Whether the request left.
    pub sent: Sent,
    /// The peer said that it did not look at the request (`REFUSED_STREAM`, or a `GOAWAY` that leaves it
    /// out): it may be repeated although it left.
    pub refused: bool,
    /// The step that failed, if one did.
    pub failed: Option<Step>,
    /// How often the request was handed to a connection. Two when the first, a reused one, turned out to be
    /// closed before anything had left.
    pub attempts: u8,
}

impl Exchange {
    /// The record at the start of a request, of which nothing has left yet.
    pub const fn begun() -> Self {
        Exchange {
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
            failed: None,
            attempts: 0,
        }
    }

    /// Whether the request cannot have had an effect, so that even a write may simply be repeated.
    pub const fn safe_to_repeat(&self) -> bool {
        match self.sent {
            Sent::NotSent => true,
            Sent::MaybeSent | Sent::Sent => self.refused,
        }
    }

    /// The steps that took place, in order, each with the offset at which it was over.
    ///
    /// ```
    /// # use perihelion_http::exchange::{Exchange, Step};
    /// # use std::time::Duration;
    /// let mut record = Exchange::begun();
    /// record.dns = Some(Duration::from_millis(1));
    /// record.connect = Some(Duration::from_millis(3));
    /// let steps: Vec<_> = record.steps().map(|(step, _)| step).collect();
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
        .filter_map(|(step, over)| Some((step, over?)))
    }
}

/// Nothing is known: no client reported.
impl Default for Exchange {
    fn default() -> Self {
        Exchange { sent: Sent::MaybeSent, ..Exchange::begun() }
    }
}

/// Whether a request left the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sent {
    /// Not one byte of it was handed to the socket: repeating it is safe, whatever it does.
    NotSent,
    /// Part of it was, or nobody can tell.
    MaybeSent,
    /// All of it was.
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
    /// Made for this request.
    New,
    /// It had carried other requests, or was carrying them.
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

/// A protocol the client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// One request at a time per connection.
    Http1,
    /// Many at once.
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

/// A connection's number, never used twice in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(NonZeroU64);

impl ConnectionId {
    /// The connection with this number.
    pub const fn new(number: NonZeroU64) -> Self {
        ConnectionId(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A step of an exchange, in the order in which they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Step {
    /// Reading the request: its address, its headers.
    Prepare,
    /// Resolving the name.
    Dns,
    /// Connecting a socket.
    Connect,
    /// Asking a proxy for the way.
    Proxy,
    /// Agreeing on TLS.
    Tls,
    /// Waiting for a connection, or for a place on one.
    Wait,
    /// Sending the request.
    Send,
    /// Waiting for status and headers.
    FirstByte,
    /// Receiving the body.
    Body,
}

impl Step {
    /// What the client is doing in this step, to end a sentence with.
    pub const fn doing(self) -> &'static str {
        match self {
            Step::Prepare => "reading the request",
            Step::Dns => "resolving the name",
            Step::Connect => "connecting",
            Step::Proxy => "asking the proxy",
            Step::Tls => "agreeing on TLS",
            Step::Wait => "waiting for a connection",
            Step::Send => "sending the request",
            Step::FirstByte => "waiting for the response",
            Step::Body => "receiving the body",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.doing())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_did_not_leave_or_was_refused_may_be_repeated() {
        for (sent, refused, expected) in [
            (Sent::NotSent, false, true),
            (Sent::MaybeSent, false, false),
            (Sent::Sent, false, false),
            (Sent::MaybeSent, true, true),
            (Sent::Sent, true, true),
        ] {
            let record = Exchange { sent, refused, ..Exchange::begun() };
            assert_eq!(record.safe_to_repeat(), expected, "{sent}, refused: {refused}");
        }
    }

    #[test]
    fn steps_that_did_not_take_place_are_left_out() {
        let ms = Duration::from_millis;
        let record = Exchange { request_sent: Some(ms(1)), first_byte: Some(ms(2)), ..Exchange::begun() };
        let steps: Vec<_> = record.steps().collect();
        assert_eq!(steps, [(Step::Send, ms(1)), (Step::FirstByte, ms(2))]);
    }
}
