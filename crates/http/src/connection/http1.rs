//! HTTP/1.1: one request at a time, driven by whoever waits for its answer.
//!
//! No task drives such a connection: the call that holds it polls it, and while nobody holds it nothing
//! happens on it. That saves two changes of task per request, and it makes cancellation plain: a call that is
//! dropped drops its connection, which closes it.
//!
//! Everything hyper tells the caller, it tells from within the connection's own poll. So what waits for it is
//! polled with a waker that does nothing, right after; and what the caller's polls wake in turn is the task that
//! is running already (see `relay`).

use std::collections::VecDeque;
use std::error::Error as StdError;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response, header};
use http_body::{Body, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use super::relay::Relay;
use super::wire::{Progress, Stream, Wire};
use super::{Info, Unsent};
use crate::call::{Call, Cause, Failure};
use crate::clock;
use crate::deadline::{self, Alarm, Passed};
use crate::error::{Error, ErrorKind};
use crate::exchange::{Protocol, Reuse, Sent, Step};
use crate::host::Host;
use crate::pool::{HostPool, Lease, Origin, Pooled};
use crate::request::RequestBody;
use crate::response::ResponseBody;
use crate::settings::Settings;

/// One connection that speaks HTTP/1.1.
#[derive(Debug)]
pub(crate) struct Http1 {
    sender: http1::SendRequest<RequestBody>,
    driver: http1::Connection<TokioIo<Stream>, RequestBody>,
    over: bool,
    wire: Arc<Wire>,
    info: Info,
    alarm: Alarm,
    relay: Relay,
}

impl Pooled for Box<Http1> {
    fn is_open(&self) -> bool {
        !self.over && !self.sender.is_closed()
    }
}

impl Http1 {
    /// Begins to speak it on a stream. Sends nothing yet.
    pub(crate) async fn begin(stream: Stream, info: Info, settings: &Settings) -> hyper::Result<Box<Self>> {
        let wire = Arc::clone(stream.wire());
        let (sender, driver) = http1::Builder::new()
            .max_headers(settings.header_count_max)
            .max_header_size(settings.header_bytes_max)
            .handshake(TokioIo::new(stream))
            .await?;
        Ok(Box::new(Http1 {
            sender,
            driver,
            over: false,
            wire,
            info,
            alarm: Alarm::default(),
            relay: Relay::new(),
        }))
    }

    /// Whether a request may be sent now, as far as can be told: the peer has not closed the connection and
    /// owes nothing. Costs a system call: what the runtime has heard is old by as long as its last look, and a
    /// request sent to a peer that is gone is one whose fate nobody knows.
    pub(crate) fn is_usable(&mut self) -> bool {
        self.wire.probe();
        self.settle()
    }

    /// Lets hyper finish what it can without waiting, and says whether the connection can be used again.
    fn settle(&mut self) -> bool {
        self.drive_alone();
        !self.over && self.sender.is_ready()
    }

    /// Lets hyper do what it can without waiting.
    fn drive_alone(&mut self) {
        if !self.over {
            self.over = self.relay.poll_alone(|cx| Pin::new(&mut self.driver).poll(cx)).is_ready();
        }
    }

    /// Lets hyper do what it can, and says whether `look` finds what came of it. If not, the task of `cx` is
    /// woken when it is worth another look.
    fn drive_until<T>(&mut self, cx: &Context<'_>, mut look: impl FnMut() -> Poll<T>) -> Poll<T> {
        if self.over {
            return look();
        }
        let Http1 { driver, over, relay, .. } = self;
        relay.poll(cx, |cx| {
            // An error is told to whoever waits for a response, or is of no consequence.
            *over = *over || Pin::new(&mut *driver).poll(cx).is_ready();
            look()
        })
    }
}

/// A connection that waits for this host and is still usable.
pub(crate) fn checkout(host: &HostPool<Box<Http1>>, now: Instant) -> Option<Lease<Box<Http1>>> {
    loop {
        let mut lease = host.checkout(now)?;
        if lease.is_usable() {
            return Some(lease);
        }
        lease.reject();
    }
}

/// Sends a request and waits for status and headers.
pub(crate) async fn send(
    mut lease: Lease<Box<Http1>>,
    mut request: Request<RequestBody>,
    host: &Host,
    call: &mut Call,
    settings: &Settings,
) -> Result<Response<ResponseBody>, Unsent> {
    *request.version_mut() = http::Version::HTTP_11;
    if !request.headers().contains_key(header::HOST) {
        request.headers_mut().insert(header::HOST, host.header.clone());
    }
    let reuse = match lease.origin() {
        Origin::New => Reuse::New,
        Origin::Pooled => Reuse::Reused,
    };
    let http1 = &mut **lease;
    let handed_over = clock::now();
    call.record.connection_ready = Some(call.offset(handed_over));
    http1.info.describe(Protocol::Http1, reuse, &mut call.record);
    request.body_mut().tell_end(&http1.wire);
    let mut progress = Progress::begin(&http1.wire);
    // What was answered is there, even if the task has done its share for this turn.
    let mut answer = pin!(tokio::task::unconstrained(http1.sender.try_send_request(request)));
    let answered = poll_fn(|cx| {
        // A long upload that moves on is not late.
        let moved_at = handed_over.max(http1.wire.flushed_at());
        let first_byte = deadline::after(moved_at, settings.first_byte);
        let deadline = deadline::earlier(call.deadline(), first_byte);
        // Before the connection: one that always has something to do would leave the timer no time to ring.
        if let Poll::Ready(passed) = http1.alarm.poll_until(deadline, cx) {
            return Poll::Ready(Err(Some(passed)));
        }
        let looked = http1.drive_until(cx, || answer.as_mut().poll(&mut Context::from_waker(Waker::noop())));
        note_progress(call, &mut progress, &http1.wire);
        match looked {
            Poll::Ready(answered) => Poll::Ready(Ok(answered)),
            // What hyper does not answer although the connection is over, it never will.
            Poll::Pending if http1.over => Poll::Ready(Err(None)),
            Poll::Pending => Poll::Pending,
        }
    })
    .await;
    let step = if call.record.sent == Sent::Sent { Step::FirstByte } else { Step::Send };
    match answered {
        Ok(Ok(response)) => Ok(receive(lease, response, call, settings)),
        Ok(Err(mut error)) => {
            let request = error.take_message().filter(|_| call.record.sent == Sent::NotSent);
            Err(Unsent { request, failure: failed(error.into_error(), step) })
        }
        Err(Some(Passed)) => Err(Failure::timed_out(step).into()),
        Err(None) => Err(Failure::new(ErrorKind::Closed, step).into()),
    }
}

fn note_progress(call: &mut Call, progress: &mut Progress, wire: &Wire) {
    if call.record.sent == Sent::Sent {
        return;
    }
    progress.ended(wire.request_end());
    call.record.sent = progress.sent(wire);
    if call.record.sent == Sent::Sent {
        call.record.request_sent = Some(call.offset(wire.flushed_at()));
    }
    call.report();
}

/// The head is there. Often all of the body is as well: then the connection goes back at once.
fn receive(
    mut lease: Lease<Box<Http1>>,
    response: Response<Incoming>,
    call: &mut Call,
    settings: &Settings,
) -> Response<ResponseBody> {
    let now = clock::now();
    call.record.first_byte = Some(call.offset(now));
    let (parts, mut incoming) = response.into_parts();
    let body = match receive_now(&mut lease, &mut incoming) {
        Ok(bytes) => {
            give_back(lease, now);
            call.record.complete = Some(call.offset(now));
            ResponseBody::complete(bytes, call.record)
        }
        Err(ahead) => ResponseBody::http1(Receiving {
            until: deadline::earlier(call.deadline(), deadline::after(now, settings.silence)),
            silence: settings.silence,
            lease: Some(lease),
            incoming,
            ahead,
            call: *call,
        }),
    };
    call.report();
    Response::from_parts(parts, body)
}

/// The whole body, if it is here and in one piece; otherwise what of it was taken.
fn receive_now(http1: &mut Http1, incoming: &mut Incoming) -> Result<Bytes, VecDeque<hyper::Result<Bytes>>> {
    if incoming.is_end_stream() {
        return Ok(Bytes::new());
    }
    let first = match poll_now(http1, incoming) {
        Poll::Ready(None) => return Ok(Bytes::new()),
        Poll::Ready(Some(Ok(first))) if incoming.is_end_stream() => return Ok(first),
        Poll::Ready(Some(Ok(first))) => first,
        Poll::Ready(Some(Err(error))) => return Err(VecDeque::from([Err(error)])),
        Poll::Pending => return Err(VecDeque::new()),
    };
    // The end of a body without an announced length comes by itself.
    match poll_now(http1, incoming) {
        Poll::Ready(None) => Ok(first),
        Poll::Ready(Some(second)) => Err(VecDeque::from([Ok(first), second])),
        Poll::Pending => Err(VecDeque::from([Ok(first)])),
    }
}

/// A piece of the body that needs no waiting.
fn poll_now(http1: &mut Http1, incoming: &mut Incoming) -> Poll<Option<hyper::Result<Bytes>>> {
    let cx = &mut Context::from_waker(Waker::noop());
    let piece = poll_piece(incoming, cx);
    if piece.is_ready() {
        return piece;
    }
    // Having been asked for a piece, hyper reads one.
    http1.drive_alone();
    poll_piece(incoming, cx)
}

fn poll_piece(incoming: &mut Incoming, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Bytes>>> {
    loop {
        match ready!(Pin::new(&mut *incoming).poll_frame(cx)) {
            None => return Poll::Ready(None),
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            // Trailers are of no use to anybody here.
            Some(Ok(frame)) => {
                if let Ok(piece) = frame.into_data() {
                    return Poll::Ready(Some(Ok(piece)));
                }
            }
        }
    }
}

/// The exchange is over: the connection waits for the next one if it can, and is closed if not.
fn give_back(mut lease: Lease<Box<Http1>>, now: Instant) {
    if lease.settle() {
        lease.checkin(now);
    }
}

/// A body that is still arriving.
pub(crate) struct Receiving {
    /// Given back, or closed, with the end of the body.
    lease: Option<Lease<Box<Http1>>>,
    incoming: Incoming,
    /// Pieces that were taken from `incoming` already.
    ahead: VecDeque<hyper::Result<Bytes>>,
    until: Option<Instant>,
    silence: Option<Duration>,
    pub(crate) call: Call,
}

impl Receiving {
    /// The next piece. After the last one, or an error, there is nothing.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        let Some(lease) = &mut self.lease else { return Poll::Ready(None) };
        let http1 = &mut ***lease;
        let piece = match self.ahead.pop_front() {
            Some(piece) => Some(piece),
            None => {
                let incoming = &mut self.incoming;
                let nobody = &mut Context::from_waker(Waker::noop());
                let mut piece = poll_piece(incoming, nobody);
                if piece.is_pending() {
                    // Having been asked for a piece, hyper reads one.
                    piece = http1.drive_until(cx, || poll_piece(incoming, nobody));
                }
                match piece {
                    Poll::Ready(piece) => piece,
                    Poll::Pending if http1.over => return self.fail(ErrorKind::Closed, None),
                    Poll::Pending => {
                        ready!(http1.alarm.poll_until(self.until, cx));
                        return self.fail(ErrorKind::TimedOut, None);
                    }
                }
            }
        };
        let now = clock::now();
        match piece {
            // A peer that never pauses must not get past the deadline.
            Some(Ok(_)) if self.call.is_late(now) => self.fail(ErrorKind::TimedOut, None),
            Some(Ok(piece)) => {
                self.until = deadline::earlier(self.call.deadline(), deadline::after(now, self.silence));
                if self.ahead.is_empty() && self.incoming.is_end_stream() {
                    self.finish(now);
                }
                Poll::Ready(Some(Ok(piece)))
            }
            Some(Err(error)) => {
                let Failure { kind, cause, .. } = failed(error, Step::Body);
                self.fail(kind, cause)
            }
            None => {
                self.finish(now);
                Poll::Ready(None)
            }
        }
    }

    /// How much is certain to come.
    pub(crate) fn size_hint(&self) -> SizeHint {
        let ahead: u64 = self.ahead.iter().flatten().map(|piece| piece.len() as u64).sum();
        let rest = self.incoming.size_hint();
        let mut size = SizeHint::new();
        if let Some(upper) = rest.upper() {
            size.set_upper(upper + ahead);
        }
        size.set_lower(rest.lower() + ahead);
        size
    }

    pub(crate) fn is_over(&self) -> bool {
        self.lease.is_none()
    }

    fn finish(&mut self, now: Instant) {
        if let Some(lease) = self.lease.take() {
            give_back(lease, now);
        }
        self.call.record.complete = Some(self.call.offset(now));
        self.call.report();
    }

    fn fail(&mut self, kind: ErrorKind, cause: Option<Cause>) -> Poll<Option<Result<Bytes, Error>>> {
        let failure = Failure { kind, step: Step::Body, cause };
        let error = self.lease.take().map(|lease| self.call.fail(failure, lease.host().authority()));
        Poll::Ready(error.map(Err))
    }
}

/// What hyper's error means.
fn failed(error: hyper::Error, step: Step) -> Failure {
    let kind = if error.is_parse() || is_malformed_body(&error) {
        ErrorKind::Malformed
    } else if error.is_user() {
        ErrorKind::RequestBody
    } else {
        ErrorKind::Closed
    };
    Failure::new(kind, step).because(error)
}

/// Whether a body's own framing is broken: hyper says so with an error of the kind that decoders have.
fn is_malformed_body(error: &hyper::Error) -> bool {
    let source = StdError::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    source.is_some_and(|source| {
        matches!(source.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)
    })
}
