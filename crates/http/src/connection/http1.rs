//! HTTP/1.1: one request at a time, on a connection that the calling task polls.
//!
//! No task drives such a connection: the call that uses it polls it, and an idle one in the pool is not polled at
//! all. That saves two task switches per request, and makes cancellation simple: a call that is dropped drops its
//! connection, which closes it.
//!
//! hyper reports everything from within the connection's own poll. So its futures are polled with a no-op waker right
//! after the connection, and wake-ups during a poll do not reach the task, which is running anyway (see `waker`).

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

use super::waker::ConnectionWaker;
use super::{ResponseBody, TrySendError};
use crate::call::{Call, StepError};
use crate::clock;
use crate::deadline::{self, DeadlineElapsed, DeadlineTimer};
use crate::endpoint::Endpoint;
use crate::error::{BoxError, Error, ErrorKind};
use crate::pool::{HostPool, Lease, Poolable};
use crate::request_body::RequestBody;
use crate::settings::Settings;
use crate::stream::{ConnectionInfo, IoCounters, SendProgress, Stream};
use crate::trace::{Protocol, Reuse, Sent, Step};

/// One open HTTP/1.1 connection.
#[derive(Debug)]
pub(crate) struct Http1 {
    sender: http1::SendRequest<RequestBody>,
    connection: http1::Connection<TokioIo<Stream>, RequestBody>,
    closed: bool,
    io: Arc<IoCounters>,
    info: ConnectionInfo,
    endpoint: Arc<Endpoint>,
    timer: DeadlineTimer,
    waker: ConnectionWaker,
}

impl Poolable for Box<Http1> {
    fn is_open(&self) -> bool {
        !self.closed && !self.sender.is_closed()
    }
}

impl Http1 {
    /// Starts HTTP/1.1 on a stream. Nothing is sent before the first request.
    pub(crate) async fn handshake(
        stream: Stream,
        info: ConnectionInfo,
        endpoint: Arc<Endpoint>,
        settings: &Settings,
    ) -> hyper::Result<Box<Self>> {
        let io = Arc::clone(stream.io());
        let (sender, connection) = http1::Builder::new()
            .max_headers(settings.header_count_max)
            .max_header_size(settings.header_bytes_max)
            .handshake(TokioIo::new(stream))
            .await?;
        Ok(Box::new(Http1 {
            sender,
            connection,
            closed: false,
            io,
            info,
            endpoint,
            timer: DeadlineTimer::default(),
            waker: ConnectionWaker::new(),
        }))
    }

    /// Checks that the peer has neither closed the connection nor sent bytes that no request asked for.
    ///
    /// Costs a system call, because the runtime only knows what it found at its last poll of the socket. A request on
    /// a connection that the peer has closed could not be retried safely.
    fn probe(&mut self) -> bool {
        self.io.probe();
        self.is_reusable()
    }

    /// Lets hyper finish what it can without waiting, and returns whether the connection can take a request.
    fn is_reusable(&mut self) -> bool {
        self.poll_without_task();
        !self.closed && self.sender.is_ready()
    }

    /// Lets hyper do what it can without waiting.
    fn poll_without_task(&mut self) {
        if !self.closed {
            // An error of the connection closes it. The sender, or the body in progress, reports it to the caller.
            self.closed =
                self.waker.poll_without_task(|cx| Pin::new(&mut self.connection).poll(cx)).is_ready();
        }
    }

    /// Polls the connection and then `ready`, which looks for the result. While that is pending, the task of `cx` is
    /// woken when the connection has to be polled again.
    fn poll_connection<T>(&mut self, cx: &Context<'_>, mut ready: impl FnMut() -> Poll<T>) -> Poll<T> {
        if self.closed {
            return ready();
        }
        let Http1 { connection, closed, waker, .. } = self;
        waker.poll(cx, |cx| {
            // hyper passes an error to the request in progress; without one it concerns no caller.
            *closed = *closed || Pin::new(&mut *connection).poll(cx).is_ready();
            ready()
        })
    }
}

/// Takes the newest idle connection of a host that is still usable.
pub(crate) fn checkout(host: &HostPool<Box<Http1>>, now: Instant) -> Option<Lease<Box<Http1>>> {
    loop {
        let mut lease = host.checkout(now)?;
        if lease.probe() {
            return Some(lease);
        }
        lease.reject();
    }
}

/// Sends a request and waits for the status and headers of its response.
pub(crate) async fn send(
    mut lease: Lease<Box<Http1>>,
    mut request: Request<RequestBody>,
    call: &mut Call,
    settings: &Settings,
) -> Result<Response<ResponseBody>, TrySendError> {
    let reuse = if lease.is_reused() { Reuse::Reused } else { Reuse::New };
    let http1 = &mut **lease;
    *request.version_mut() = http::Version::HTTP_11;
    if !request.headers().contains_key(header::HOST) {
        request.headers_mut().insert(header::HOST, http1.endpoint.host_header.clone());
    }
    let started = clock::now();
    call.trace.connection_ready = Some(call.offset(started));
    http1.info.write_to(Protocol::Http1, reuse, &mut call.trace);
    request.body_mut().report_end_to(&http1.io);
    let mut progress = SendProgress::start(&http1.io);
    // Unconstrained: a response that has arrived is taken even if the task has used up its cooperative budget.
    let mut response = pin!(tokio::task::unconstrained(http1.sender.try_send_request(request)));
    let outcome = poll_fn(|cx| {
        // The timeout counts from the last progress of the upload, so that a long upload does not time out.
        let progress_at = started.max(http1.io.flushed_at());
        let first_byte = deadline::after(progress_at, settings.first_byte_timeout);
        let deadline = deadline::earlier(call.deadline(), first_byte);
        // The timer comes first: a connection that always has something to do would use up the task's budget.
        if let Poll::Ready(elapsed) = http1.timer.poll_until(deadline, cx) {
            return Poll::Ready(Err(Some(elapsed)));
        }
        let polled =
            http1.poll_connection(cx, || response.as_mut().poll(&mut Context::from_waker(Waker::noop())));
        update_sent(call, &mut progress, &http1.io);
        match polled {
            Poll::Ready(response) => Poll::Ready(Ok(response)),
            // Once the connection is closed, hyper never completes the response.
            Poll::Pending if http1.closed => Poll::Ready(Err(None)),
            Poll::Pending => Poll::Pending,
        }
    })
    .await;
    let step = if call.trace.sent == Sent::Sent { Step::FirstByte } else { Step::Send };
    match outcome {
        Ok(Ok(response)) => Ok(receive(lease, response, call, settings)),
        Ok(Err(mut error)) => {
            let request = error.take_message().filter(|_| call.trace.sent == Sent::NotSent);
            Err(TrySendError { request, error: step_error(error.into_error(), step) })
        }
        Err(Some(DeadlineElapsed)) => Err(StepError::timed_out(step).into()),
        Err(None) => Err(StepError::new(ErrorKind::Closed, step).into()),
    }
}

/// Updates the trace with how much of the request has been sent.
fn update_sent(call: &mut Call, progress: &mut SendProgress, io: &IoCounters) {
    if call.trace.sent == Sent::Sent {
        return;
    }
    progress.set_end(io.request_end_flush());
    call.trace.sent = progress.sent(io);
    if call.trace.sent == Sent::Sent {
        call.trace.request_sent = Some(call.offset(io.flushed_at()));
    }
    call.report();
}

/// Makes the response from its head. If all of the body has arrived as well, the connection returns to the pool now.
fn receive(
    mut lease: Lease<Box<Http1>>,
    response: Response<Incoming>,
    call: &mut Call,
    settings: &Settings,
) -> Response<ResponseBody> {
    let now = clock::now();
    call.trace.first_byte = Some(call.offset(now));
    let (parts, mut incoming) = response.into_parts();
    let body = match take_available_body(&mut lease, &mut incoming) {
        Ok(bytes) => {
            check_in(lease, now);
            call.trace.complete = Some(call.offset(now));
            ResponseBody::complete(bytes, call.trace)
        }
        Err(buffered) => ResponseBody::http1(Http1Body {
            deadline: deadline::earlier(call.deadline(), deadline::after(now, settings.read_timeout)),
            read_timeout: settings.read_timeout,
            lease: Some(lease),
            incoming,
            buffered,
            call: *call,
        }),
    };
    call.report();
    Response::from_parts(parts, body)
}

/// Takes the whole body if it has arrived in one chunk; otherwise returns the chunks that were taken as the error.
fn take_available_body(
    http1: &mut Http1,
    incoming: &mut Incoming,
) -> Result<Bytes, VecDeque<hyper::Result<Bytes>>> {
    if incoming.is_end_stream() {
        return Ok(Bytes::new());
    }
    let first = match poll_available_chunk(http1, incoming) {
        Poll::Ready(None) => return Ok(Bytes::new()),
        Poll::Ready(Some(Ok(first))) if incoming.is_end_stream() => return Ok(first),
        Poll::Ready(Some(Ok(first))) => first,
        Poll::Ready(Some(Err(error))) => return Err(VecDeque::from([Err(error)])),
        Poll::Pending => return Err(VecDeque::new()),
    };
    // A body without a content length needs a second poll to find its end.
    match poll_available_chunk(http1, incoming) {
        Poll::Ready(None) => Ok(first),
        Poll::Ready(Some(second)) => Err(VecDeque::from([Ok(first), second])),
        Poll::Pending => Err(VecDeque::from([Ok(first)])),
    }
}

/// Polls for a chunk that has arrived already.
fn poll_available_chunk(http1: &mut Http1, incoming: &mut Incoming) -> Poll<Option<hyper::Result<Bytes>>> {
    let cx = &mut Context::from_waker(Waker::noop());
    let chunk = poll_data(incoming, cx);
    if chunk.is_ready() {
        return chunk;
    }
    // hyper reads a chunk only after it was asked for one, so the connection is polled in between.
    http1.poll_without_task();
    poll_data(incoming, cx)
}

/// Polls for the next chunk of data, and skips trailers.
fn poll_data(incoming: &mut Incoming, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Bytes>>> {
    // Ends: each frame is either returned or the trailers, which come last and once.
    loop {
        match ready!(Pin::new(&mut *incoming).poll_frame(cx)) {
            None => return Poll::Ready(None),
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            Some(Ok(frame)) => {
                if let Ok(chunk) = frame.into_data() {
                    return Poll::Ready(Some(Ok(chunk)));
                }
            }
        }
    }
}

/// Returns the connection of a complete response to the pool, or closes it if it cannot be reused or is too old.
fn check_in(mut lease: Lease<Box<Http1>>, now: Instant) {
    if !lease.info.is_retired(now) && lease.is_reusable() {
        lease.checkin(now);
    }
}

/// The body of a response that is still being received.
pub(crate) struct Http1Body {
    /// The connection, until the body ends.
    lease: Option<Lease<Box<Http1>>>,
    incoming: Incoming,
    /// Chunks that were taken from `incoming` already.
    buffered: VecDeque<hyper::Result<Bytes>>,
    deadline: Option<Instant>,
    read_timeout: Option<Duration>,
    pub(crate) call: Call,
}

impl Http1Body {
    /// Polls for the next chunk; `None` after the last one or an error.
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        let Some(lease) = &mut self.lease else { return Poll::Ready(None) };
        let http1 = &mut ***lease;
        let chunk = match self.buffered.pop_front() {
            Some(chunk) => Some(chunk),
            None => {
                let incoming = &mut self.incoming;
                let noop = &mut Context::from_waker(Waker::noop());
                let mut chunk = poll_data(incoming, noop);
                if chunk.is_pending() {
                    // hyper reads a chunk only after it was asked for one.
                    chunk = http1.poll_connection(cx, || poll_data(incoming, noop));
                }
                match chunk {
                    Poll::Ready(chunk) => chunk,
                    Poll::Pending if http1.closed => return self.fail(ErrorKind::Closed, None),
                    Poll::Pending => {
                        ready!(http1.timer.poll_until(self.deadline, cx));
                        return self.fail(ErrorKind::TimedOut, None);
                    }
                }
            }
        };
        let now = clock::now();
        match chunk {
            // A peer that never pauses must not get past the deadline.
            Some(Ok(_)) if self.call.is_expired(now) => self.fail(ErrorKind::TimedOut, None),
            Some(Ok(chunk)) => {
                self.deadline =
                    deadline::earlier(self.call.deadline(), deadline::after(now, self.read_timeout));
                if self.buffered.is_empty() && self.incoming.is_end_stream() {
                    self.finish(now);
                }
                Poll::Ready(Some(Ok(chunk)))
            }
            Some(Err(error)) => {
                let StepError { kind, source, .. } = step_error(error, Step::Body);
                self.fail(kind, source)
            }
            None => {
                self.finish(now);
                Poll::Ready(None)
            }
        }
    }

    /// Bounds on the number of bytes that are still to be read.
    pub(crate) fn size_hint(&self) -> SizeHint {
        let buffered: u64 = self.buffered.iter().flatten().map(|chunk| chunk.len() as u64).sum();
        let rest = self.incoming.size_hint();
        let mut size = SizeHint::new();
        if let Some(upper) = rest.upper() {
            size.set_upper(upper + buffered);
        }
        size.set_lower(rest.lower() + buffered);
        size
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.lease.is_none()
    }

    fn finish(&mut self, now: Instant) {
        if let Some(lease) = self.lease.take() {
            check_in(lease, now);
        }
        self.call.trace.complete = Some(self.call.offset(now));
        self.call.report();
    }

    fn fail(&mut self, kind: ErrorKind, source: Option<BoxError>) -> Poll<Option<Result<Bytes, Error>>> {
        let error = StepError { kind, step: Step::Body, source };
        let error = self.lease.take().map(|lease| self.call.fail(error, lease.host().origin()));
        Poll::Ready(error.map(Err))
    }
}

/// Translates an error of hyper.
fn step_error(error: hyper::Error, step: Step) -> StepError {
    let kind = if error.is_parse() || is_malformed_body(&error) {
        ErrorKind::Malformed
    } else if error.is_user() {
        ErrorKind::RequestBody
    } else {
        ErrorKind::Closed
    };
    StepError::new(kind, step).with_source(error)
}

/// Whether the framing of a body is invalid. hyper has no method for it: its decoders return such `io::Error`s.
fn is_malformed_body(error: &hyper::Error) -> bool {
    let source = StdError::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    source.is_some_and(|source| {
        matches!(source.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)
    })
}
