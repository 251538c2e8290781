//! HTTP/2: many requests at once on one connection, which a task of its own drives.
//!
//! Requests go to `h2` directly: hyper would add a queue before it and a task per request. The driver task belongs to
//! the [`Http2`] and ends with it; an `Http2` lives as long as its pool keeps it or a request uses it.
//!
//! Each request takes a [`StreamPermit`] first. There are never more permits than the peer allows streams, so requests
//! wait here and not in the queue of `h2`: what was passed to `h2` cannot be taken back. A stream that is dropped or
//! reset keeps its HEADERS in that queue, and `h2` writes them before the RST_STREAM however late that is.
//!
//! So a request was not sent if it was not passed to `h2`, or if its connection was lost before the socket accepted
//! another byte ([`sent_without_response`]).

mod body;
mod driver;
pub(crate) mod pool;
#[cfg(test)]
mod tests;
mod upload;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use h2::Reason;
use h2::client::SendRequest;
use http::uri::Uri;
use http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use tokio::task::AbortHandle;

pub(crate) use self::body::Http2Body;
use self::body::receive;
use self::driver::{Keepalive, drive};
use self::pool::Http2Pool;
use self::upload::Upload;
use super::{ResponseBody, TrySendError};
use crate::call::{Call, StepError};
use crate::clock;
use crate::deadline::{self, DeadlineElapsed, DeadlineTimer};
use crate::endpoint::Endpoint;
use crate::error::ErrorKind;
use crate::request_body::RequestBody;
use crate::settings::Settings;
use crate::stream::{ConnectionInfo, IoCounters, SendProgress, Stream};
use crate::sync::ignore_poison;
use crate::trace::{Protocol, Reuse, Sent, Step};

/// Streams that are opened before the peer has sent its limit. Azure services allow 20; a stream beyond the limit
/// would be refused after it was sent.
const INITIAL_STREAMS_MAX: usize = 16;
/// Timers that a connection keeps for later requests.
const TIMERS_MAX: usize = 256;

/// One open HTTP/2 connection.
#[derive(Debug)]
pub(crate) struct Http2 {
    sender: SendRequest<Bytes>,
    shared: Arc<Shared>,
    io: Arc<IoCounters>,
    info: ConnectionInfo,
    endpoint: Arc<Endpoint>,
    timers: Mutex<Vec<DeadlineTimer>>,
    driver: AbortHandle,
}

/// The state that the requests of a connection share with its driver task.
///
/// `streams`, `streams_max` and `closed` are SeqCst because of the waiters of the pool: a thread that changes one of them
/// then reads [`Http2Pool`]'s count of waiters, and a new waiter adds itself to that count before it reads them. In one
/// total order at least one of the two sees the other, so no waiter is left behind.
#[derive(Debug)]
struct Shared {
    /// Permits, and cancelled streams.
    streams: AtomicUsize,
    streams_max: AtomicUsize,
    /// Streams that were cancelled before a response, and that `h2` may not have written yet. They count as streams
    /// until the next flush: a peer that stops reading must not fill the queue of `h2` with them.
    cancelled: AtomicUsize,
    closed: AtomicBool,
    /// Whether the peer ever responded to a request.
    responded: AtomicBool,
    /// The pool to notify when a stream becomes free, on this connection or in place of it.
    pool: Weak<Http2Pool>,
}

impl Http2 {
    /// Starts HTTP/2 on a stream. `pool` is notified whenever a stream of the connection becomes free.
    pub(crate) async fn handshake(
        stream: Stream,
        info: ConnectionInfo,
        endpoint: Arc<Endpoint>,
        settings: &Settings,
        pool: &Arc<Http2Pool>,
    ) -> Result<Arc<Self>, StepError> {
        let io = Arc::clone(stream.io());
        let header_bytes_max = u32::try_from(settings.header_bytes_max).unwrap_or(u32::MAX);
        let (sender, connection) = h2::client::Builder::new()
            .enable_push(false)
            .initial_max_send_streams(INITIAL_STREAMS_MAX)
            .initial_window_size(settings.http2.stream_window)
            .initial_connection_window_size(settings.http2.connection_window)
            .max_header_list_size(header_bytes_max)
            .handshake(stream)
            .await
            .map_err(|error| StepError::new(ErrorKind::Unreachable, Step::Connect).with_source(error))?;
        let shared = Arc::new(Shared {
            streams: AtomicUsize::new(0),
            streams_max: AtomicUsize::new(INITIAL_STREAMS_MAX),
            cancelled: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            responded: AtomicBool::new(false),
            pool: Arc::downgrade(pool),
        });
        let keepalive = Keepalive {
            interval: settings.http2.keepalive_interval,
            timeout: settings.http2.keepalive_timeout,
            idle_timeout: settings.http2.idle_timeout,
        };
        let driver = drive(connection, Arc::clone(&shared), Arc::clone(&io), keepalive, info.retire_at);
        let driver = tokio::spawn(driver);
        let driver = driver.abort_handle();
        Ok(Arc::new(Http2 { sender, shared, io, info, endpoint, timers: Mutex::default(), driver }))
    }

    /// Whether the connection takes no more requests.
    fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::SeqCst)
    }

    /// Whether no request uses the connection.
    fn is_idle(&self) -> bool {
        // Acquire: the requests that freed their streams are complete. A new one may start right after, in any case.
        self.shared.streams.load(Ordering::Acquire) == 0
    }

    /// Takes a permit for one more stream, if the peer allows one.
    pub(crate) fn try_acquire(self: &Arc<Self>, reuse: Reuse) -> Option<StreamPermit> {
        let Shared { streams, streams_max, .. } = &*self.shared;
        if self.is_closed() {
            return None;
        }
        let max = streams_max.load(Ordering::SeqCst);
        let taken = streams.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| (n < max).then_some(n + 1));
        taken.is_ok().then(|| StreamPermit {
            http2: Arc::clone(self),
            timer: None,
            reuse,
            passed_to_h2: false,
        })
    }
}

/// Closes the connection when neither the pool nor a request holds it any more.
impl Drop for Http2 {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Shared {
    fn set_streams_max(&self, max: usize) {
        if self.streams_max.swap(max, Ordering::SeqCst) < max {
            self.serve_waiters();
        }
    }

    /// Frees the streams of cancelled requests, after a flush.
    fn free_cancelled(&self) {
        // Relaxed: the common case, for which an old value only delays the release until the next flush.
        if self.cancelled.load(Ordering::Relaxed) > 0 {
            self.streams.fetch_sub(self.cancelled.swap(0, Ordering::SeqCst), Ordering::SeqCst);
            self.serve_waiters();
        }
    }

    /// Closes the connection for new requests if a failed request shows that the peer does not speak HTTP/2 or does
    /// not respond. Requests in progress continue. `received` is whether any byte arrived since the request started.
    fn close_if_unusable(&self, kind: ErrorKind, received: bool) {
        let unusable = match kind {
            ErrorKind::Malformed => true,
            // One slow response says nothing about the others. But a peer that sent nothing at all, or never
            // responded to any request, is not worth another one. Relaxed: an old value only delays that.
            ErrorKind::TimedOut => !received || !self.responded.load(Ordering::Relaxed),
            _ => false,
        };
        if unusable {
            self.close();
        }
    }

    /// Closes the connection for new requests, and takes it out of its pool. Requests in progress keep it open.
    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        if let Some(pool) = self.pool.upgrade() {
            pool.remove_closed();
        }
    }

    fn serve_waiters(&self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.serve_waiters();
        }
    }
}

/// A permit for one stream of a connection. Dropping it frees the stream for the next request.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    http2: Arc<Http2>,
    timer: Option<DeadlineTimer>,
    reuse: Reuse,
    /// Whether `h2` has the request, and has returned neither a response nor an error.
    passed_to_h2: bool,
}

impl StreamPermit {
    fn poll_until(&mut self, deadline: Option<Instant>, cx: &mut Context<'_>) -> Poll<DeadlineElapsed> {
        if deadline.is_none() {
            return Poll::Pending;
        }
        let http2 = &self.http2;
        let timer =
            self.timer.get_or_insert_with(|| ignore_poison(http2.timers.lock()).pop().unwrap_or_default());
        timer.poll_until(deadline, cx)
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        if let Some(timer) = self.timer.take() {
            let mut timers = ignore_poison(self.http2.timers.lock());
            if timers.len() < TIMERS_MAX {
                timers.push(timer);
            }
        }
        let shared = &self.http2.shared;
        if self.passed_to_h2 {
            shared.cancelled.fetch_add(1, Ordering::SeqCst);
        } else {
            shared.streams.fetch_sub(1, Ordering::SeqCst);
            shared.serve_waiters();
        }
    }
}

/// Sends a request and waits for the status and headers of its response.
pub(crate) async fn send(
    permit: StreamPermit,
    request: Request<RequestBody>,
    call: &mut Call,
    settings: &Settings,
) -> Result<Response<ResponseBody>, TrySendError> {
    let http2 = Arc::clone(&permit.http2);
    let (started, received) = (clock::now(), http2.io.received());
    call.trace.connection_ready = Some(call.offset(started));
    http2.info.write_to(Protocol::Http2, permit.reuse, &mut call.trace);

    let mut sender = http2.sender.clone();
    // Ready at once, because this clone has sent nothing yet. An error means that the peer has closed the connection or announced it.
    if let Err(error) = poll_fn(|cx| sender.poll_ready(cx)).await {
        http2.shared.close();
        return Err(TrySendError { request: Some(request), error: closed_error(error) });
    }
    let (mut parts, body) = request.into_parts();
    prepare_head(&mut parts, &body, &http2.endpoint).map_err(|error| {
        TrySendError::from(StepError::new(ErrorKind::Invalid, Step::Prepare).with_source(error))
    })?;
    let mut progress = SendProgress::start(&http2.io);
    let without_body = body.is_finished();
    let (mut response, stream) =
        sender.send_request(Request::from_parts(parts, ()), without_body).map_err(|error| {
            // The connection was closed since `poll_ready`, or has used up its stream numbers.
            http2.shared.close();
            TrySendError::from(closed_error(error))
        })?;
    drop(sender);
    // From here on the driver may write the request at any moment.
    call.trace.sent = Sent::MaybeSent;
    call.report();

    let mut upload = match without_body {
        true => Upload::Complete,
        false => Upload::start(stream, body),
    };
    // Dropped before the stream: a cancelled stream is counted before its RST_STREAM causes the flush that frees it.
    let mut permit = permit;
    permit.passed_to_h2 = true;
    let (mut progress_at, mut connection_lost) = (started, false);
    let outcome = poll_fn(|cx| {
        let mut progressed = false;
        let uploaded = upload.poll(cx, &mut progressed);
        if progressed {
            progress_at = clock::now();
        }
        if upload.is_complete() && !progress.has_end() {
            // A flush that is in progress may not contain the end of the request; the one after it does.
            progress.set_end(Some(http2.io.flushes() + 2));
        }
        // A body that fails resets its stream, but a response that arrived before takes precedence.
        match (Pin::new(&mut response).poll(cx), uploaded) {
            (Poll::Ready(Ok(response)), _) => {
                permit.passed_to_h2 = false;
                Poll::Ready(Ok(response))
            }
            (_, Poll::Ready(Err(error))) => Poll::Ready(Err(error)),
            (Poll::Ready(Err(error)), _) => {
                permit.passed_to_h2 = false;
                connection_lost = error.is_io();
                Poll::Ready(Err(step_error(error, Step::FirstByte)))
            }
            (Poll::Pending, _) => {
                // The timeout counts from the last progress of the upload, so that a long upload does not time out.
                let first_byte = deadline::after(progress_at, settings.first_byte_timeout);
                let deadline = deadline::earlier(call.deadline(), first_byte);
                permit.poll_until(deadline, cx).map(|_| Err(StepError::timed_out(Step::FirstByte)))
            }
        }
    })
    .await;
    match outcome {
        Ok(response) if response.headers().len() > settings.header_count_max => {
            if upload.is_complete() {
                call.trace.sent = Sent::Sent;
            }
            http2.shared.close_if_unusable(ErrorKind::Malformed, true);
            let message = format!("the response has {} headers", response.headers().len());
            Err(StepError::new(ErrorKind::Malformed, Step::FirstByte).with_source(message).into())
        }
        Ok(response) => {
            // Relaxed: see `close_if_unusable`.
            http2.shared.responded.store(true, Ordering::Relaxed);
            let now = clock::now();
            if upload.is_complete() {
                call.trace.sent = Sent::Sent;
                let flushed = http2.io.flushed_at().clamp(started, now);
                call.trace.request_sent = Some(call.offset(flushed));
            }
            call.trace.first_byte = Some(call.offset(now));
            Ok(receive(permit, response, upload, call, settings))
        }
        Err(mut error) => {
            http2.shared.close_if_unusable(error.kind, http2.io.received() != received);
            call.trace.sent = sent_without_response(&progress, &http2.io, connection_lost);
            if call.trace.sent != Sent::Sent {
                error.step = error.step.min(Step::Send);
            }
            Err(error.into())
        }
    }
}

/// Whether a request that was passed to `h2` has been sent, if it got no response.
///
/// On a connection that lives it may still be written at any time, whatever has been written until now. On a lost one
/// no byte is written after `stop_writes`, so one that had none by then never gets any.
fn sent_without_response(progress: &SendProgress, io: &IoCounters, connection_lost: bool) -> Sent {
    let is_final = connection_lost && io.stop_writes();
    match progress.sent(io) {
        Sent::NotSent if is_final => Sent::NotSent,
        Sent::NotSent | Sent::MaybeSent => Sent::MaybeSent,
        Sent::Sent => Sent::Sent,
    }
}

/// Changes the head of a request to what HTTP/2 requires: a complete URI, no connection headers, a content length.
fn prepare_head(
    parts: &mut http::request::Parts,
    body: &RequestBody,
    endpoint: &Endpoint,
) -> Result<(), http::uri::InvalidUriParts> {
    let mut uri = std::mem::take(&mut parts.uri).into_parts();
    uri.scheme = Some(endpoint.uri_scheme.clone());
    uri.authority = Some(endpoint.uri_authority.clone());
    parts.uri = Uri::from_parts(uri)?;
    parts.version = http::Version::HTTP_2;
    remove_connection_headers(&mut parts.headers);
    if let Some(length) = body.len()
        && (length > 0 || matches!(parts.method, Method::POST | Method::PUT | Method::PATCH))
        && !parts.headers.contains_key(header::CONTENT_LENGTH)
    {
        parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Ok(())
}

/// Removes the headers that concern one HTTP/1.1 connection, which HTTP/2 forbids (RFC 9113, section 8.2.2).
fn remove_connection_headers(headers: &mut HeaderMap) {
    for name in [
        header::HOST,
        header::CONNECTION,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::TE,
        header::HeaderName::from_static("keep-alive"),
        header::HeaderName::from_static("proxy-connection"),
    ] {
        headers.remove(name);
    }
}

/// The error of a connection that was closed before the request was passed to it.
fn closed_error(error: h2::Error) -> StepError {
    StepError::new(ErrorKind::Closed, Step::Send).with_source(error)
}

/// Translates an error of `h2` for a request that was passed to it.
fn step_error(error: h2::Error, step: Step) -> StepError {
    let kind = if error.is_io() {
        ErrorKind::Closed
    } else if error.is_remote() && (error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM)) {
        // h2 reports a GOAWAY only to streams above its last stream id, which the peer did not process.
        ErrorKind::Refused
    } else if error.is_library() {
        ErrorKind::Malformed
    } else {
        ErrorKind::Closed
    };
    StepError::new(kind, step).with_source(error)
}
