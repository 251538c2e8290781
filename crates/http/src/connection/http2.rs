//! HTTP/2: many requests at once on one connection, which a task of its own drives.
//!
//! Requests go to `h2` directly: hyper would put a queue before it and a task beside each request. The task
//! that drives the connection belongs to the [`Http2`], and ends with it; an `Http2` lives as long as its host
//! keeps it or a request is on it.
//!
//! Each request takes a [`Place`] first. There are never more of them than the peer allows streams, so what is
//! handed to `h2` is sent and does not wait there, where nobody could tell that it never left.

mod driver;
#[cfg(test)]
mod tests;
mod upload;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Reason, RecvStream};
use http::uri::Uri;
use http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use http_body::SizeHint;
use tokio::task::AbortHandle;

use self::driver::{Keepalive, drive};
use self::upload::Upload;
use super::wire::{Progress, Stream, Wire};
use super::{Info, Unsent};
use crate::authority::Authority;
use crate::call::{Call, Failure};
use crate::clock;
use crate::deadline::{self, Alarm};
use crate::error::{Error, ErrorKind};
use crate::exchange::{Protocol, Reuse, Sent, Step};
use crate::host::Host;
use crate::request::RequestBody;
use crate::response::ResponseBody;
use crate::settings::Settings;
use crate::sharing::Sharing;

/// Streams before the peer has said how many it allows. The services this is for allow 20; those that are
/// refused were sent for nothing.
const STREAMS_AT_FIRST: usize = 16;
/// Timers kept for later requests.
const ALARMS_MAX: usize = 256;

/// One connection that speaks HTTP/2.
#[derive(Debug)]
pub(crate) struct Http2 {
    sender: SendRequest<Bytes>,
    shared: Arc<Shared>,
    wire: Arc<Wire>,
    info: Info,
    alarms: Mutex<Vec<Alarm>>,
    driver: AbortHandle,
}

/// What the requests and the driver of a connection tell each other.
#[derive(Debug)]
struct Shared {
    streams: AtomicUsize,
    streams_max: AtomicUsize,
    closed: AtomicBool,
    /// Whether the peer ever answered a request.
    proven: AtomicBool,
    /// Told when a place may have become free, on this connection or instead of it.
    sharing: Weak<Sharing>,
}

impl Http2 {
    /// Begins to speak it on a stream. `sharing` is told whenever a place may have become free.
    pub(crate) async fn begin(
        stream: Stream,
        info: Info,
        settings: &Settings,
        sharing: &Arc<Sharing>,
    ) -> Result<Arc<Self>, Failure> {
        let wire = Arc::clone(stream.wire());
        let header_bytes_max = u32::try_from(settings.header_bytes_max).unwrap_or(u32::MAX);
        let (sender, connection) = h2::client::Builder::new()
            .enable_push(false)
            .initial_max_send_streams(STREAMS_AT_FIRST)
            .initial_window_size(settings.http2.stream_window)
            .initial_connection_window_size(settings.http2.connection_window)
            .max_header_list_size(header_bytes_max)
            .handshake(stream)
            .await
            .map_err(|error| Failure::new(ErrorKind::Unreachable, Step::Connect).because(error))?;
        let shared = Arc::new(Shared {
            streams: AtomicUsize::new(0),
            streams_max: AtomicUsize::new(STREAMS_AT_FIRST),
            closed: AtomicBool::new(false),
            proven: AtomicBool::new(false),
            sharing: Arc::downgrade(sharing),
        });
        let keepalive = Keepalive {
            after: settings.http2.ping_after,
            answer: settings.http2.ping_answer,
            idle: settings.http2.idle,
        };
        let driver = tokio::spawn(drive(connection, Arc::clone(&shared), Arc::clone(&wire), keepalive));
        let driver = driver.abort_handle();
        Ok(Arc::new(Http2 { sender, shared, wire, info, alarms: Mutex::default(), driver }))
    }

    /// Whether it takes no more requests.
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::SeqCst)
    }

    /// Whether no request is on it.
    pub(crate) fn is_idle(&self) -> bool {
        self.shared.streams.load(Ordering::Acquire) == 0
    }

    /// A place for one more request, if the peer allows one.
    pub(crate) fn place(self: &Arc<Self>, reuse: Reuse) -> Option<Place> {
        let Shared { streams, streams_max, .. } = &*self.shared;
        if self.is_closed() {
            return None;
        }
        let max = streams_max.load(Ordering::SeqCst);
        let taken = streams.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| (n < max).then_some(n + 1));
        taken.is_ok().then(|| Place { http2: Arc::clone(self), alarm: None, reuse })
    }
}

/// The last one to hold the connection closes it.
impl Drop for Http2 {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Shared {
    fn allow(&self, max: usize) {
        if self.streams_max.swap(max, Ordering::SeqCst) < max {
            self.serve();
        }
    }

    /// A request failed. A peer that does not speak HTTP/2, or does not speak at all, gets no further ones;
    /// those on their way go on. `heard` says whether anything came since the request was handed over.
    fn note_failure(&self, kind: ErrorKind, heard: bool) {
        let hopeless = match kind {
            ErrorKind::Malformed => true,
            // Others may be answered while this one takes its time. Where nobody ever was, nobody will be.
            ErrorKind::TimedOut => !heard || !self.proven.load(Ordering::Relaxed),
            _ => false,
        };
        if hopeless {
            self.close();
        }
    }

    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.serve();
    }

    fn serve(&self) {
        if let Some(sharing) = self.sharing.upgrade() {
            sharing.serve();
        }
    }
}

/// A place for one request on a connection. Dropped, it is free for the next.
#[derive(Debug)]
pub(crate) struct Place {
    http2: Arc<Http2>,
    alarm: Option<Alarm>,
    reuse: Reuse,
}

impl Place {
    fn poll_until(&mut self, deadline: Option<Instant>, cx: &mut Context<'_>) -> Poll<deadline::Passed> {
        if deadline.is_none() {
            return Poll::Pending;
        }
        let http2 = &self.http2;
        let alarm = self.alarm.get_or_insert_with(|| {
            http2.alarms.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
        });
        alarm.poll_until(deadline, cx)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(alarm) = self.alarm.take() {
            let mut alarms = self.http2.alarms.lock().unwrap_or_else(PoisonError::into_inner);
            if alarms.len() < ALARMS_MAX {
                alarms.push(alarm);
            }
        }
        self.http2.shared.streams.fetch_sub(1, Ordering::SeqCst);
        self.http2.shared.serve();
    }
}

/// Sends a request and waits for status and headers.
pub(crate) async fn send(
    mut place: Place,
    request: Request<RequestBody>,
    host: &Host,
    call: &mut Call,
    settings: &Settings,
) -> Result<Response<ResponseBody>, Unsent> {
    let http2 = Arc::clone(&place.http2);
    let (handed_over, received) = (clock::now(), http2.wire.received());
    call.record.connection_ready = Some(call.offset(handed_over));
    http2.info.describe(Protocol::Http2, place.reuse, &mut call.record);

    let mut sender = http2.sender.clone();
    // Ready at once: it is the place that was waited for. What may be found here is a connection that the
    // peer has closed, or is about to.
    if let Err(error) = poll_fn(|cx| sender.poll_ready(cx)).await {
        http2.shared.close();
        return Err(Unsent { request: Some(request), failure: closed_before(error) });
    }
    let (mut parts, body) = request.into_parts();
    prepare(&mut parts, &body, host)
        .map_err(|error| Unsent::from(Failure::new(ErrorKind::Invalid, Step::Prepare).because(error)))?;
    let mut progress = Progress::begin(&http2.wire);
    let ends = body.is_over();
    let (mut answer, stream) =
        sender.send_request(Request::from_parts(parts, ()), ends).map_err(|error| {
            // It went away between the two looks, or has no numbers for streams left.
            http2.shared.close();
            Unsent::from(closed_before(error))
        })?;
    drop(sender);
    // From here on the driver may write it at any moment.
    call.record.sent = Sent::MaybeSent;
    call.report();

    let mut upload = match ends {
        true => Upload::Whole,
        false => Upload::begin(stream, body),
    };
    let mut moved_at = handed_over;
    let answered = poll_fn(|cx| {
        // A body that fails resets its stream, but a response that came before counts.
        let mut moved = false;
        let uploaded = upload.poll(cx, &mut moved);
        if moved {
            moved_at = clock::now();
        }
        if upload.is_whole() && !progress.has_ended() {
            // The flush that may be under way is not ours; the one after it is.
            progress.ended(Some(http2.wire.flushes() + 2));
        }
        match (Pin::new(&mut answer).poll(cx), uploaded) {
            (Poll::Ready(Ok(response)), _) => Poll::Ready(Ok(response)),
            (_, Poll::Ready(Err(failure))) => Poll::Ready(Err(failure)),
            (Poll::Ready(Err(error)), _) => Poll::Ready(Err(failed(error, Step::FirstByte))),
            (Poll::Pending, _) => {
                // A long upload that moves on is not late.
                let first_byte = deadline::after(moved_at, settings.first_byte);
                let deadline = deadline::earlier(call.deadline(), first_byte);
                place.poll_until(deadline, cx).map(|_| Err(Failure::timed_out(Step::FirstByte)))
            }
        }
    })
    .await;
    match answered {
        Ok(response) if response.headers().len() > settings.header_count_max => {
            call.record.sent = Sent::Sent;
            http2.shared.note_failure(ErrorKind::Malformed, true);
            let story = format!("the response has {} headers", response.headers().len());
            Err(Failure::new(ErrorKind::Malformed, Step::FirstByte).because(story).into())
        }
        Ok(response) => {
            http2.shared.proven.store(true, Ordering::Relaxed);
            let now = clock::now();
            if upload.is_whole() {
                call.record.sent = Sent::Sent;
                let flushed = http2.wire.flushed_at().clamp(handed_over, now);
                call.record.request_sent = Some(call.offset(flushed));
            }
            call.record.first_byte = Some(call.offset(now));
            Ok(receive(place, response, upload, host, call, settings))
        }
        Err(mut failure) => {
            http2.shared.note_failure(failure.kind, http2.wire.received() != received);
            call.record.sent = progress.sent(&http2.wire);
            if call.record.sent != Sent::Sent {
                failure.step = failure.step.min(Step::Send);
            }
            Err(failure.into())
        }
    }
}

/// Makes the head what HTTP/2 wants: the whole URL, no headers about the connection, the body's length.
fn prepare(
    parts: &mut http::request::Parts,
    body: &RequestBody,
    host: &Host,
) -> Result<(), http::uri::InvalidUriParts> {
    let mut uri = std::mem::take(&mut parts.uri).into_parts();
    uri.scheme = Some(host.uri_scheme.clone());
    uri.authority = Some(host.uri_authority.clone());
    parts.uri = Uri::from_parts(uri)?;
    parts.version = http::Version::HTTP_2;
    strip(&mut parts.headers);
    if let Some(length) = body.len()
        && (length > 0 || matches!(parts.method, Method::POST | Method::PUT | Method::PATCH))
        && !parts.headers.contains_key(header::CONTENT_LENGTH)
    {
        parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Ok(())
}

/// Headers that are about one HTTP/1.1 connection, which HTTP/2 forbids.
fn strip(headers: &mut HeaderMap) {
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

/// The head is there. Often all of the body is as well.
fn receive(
    place: Place,
    response: Response<RecvStream>,
    upload: Upload,
    host: &Host,
    call: &mut Call,
    settings: &Settings,
) -> Response<ResponseBody> {
    let (parts, mut stream) = response.into_parts();
    let left = announced(&parts.headers);
    let now = clock::now();
    let mut ahead = None;
    if !stream.is_end_stream()
        && let Poll::Ready(piece) = stream.poll_data(&mut Context::from_waker(Waker::noop()))
    {
        ahead = piece.map(|piece| take(&mut stream, piece));
    }
    let body = match ahead {
        None | Some(Ok(_)) if stream.is_end_stream() && !matches!(upload, Upload::Going { .. }) => {
            call.record.complete = call.record.first_byte;
            let bytes = ahead.and_then(Result::ok).unwrap_or_default();
            ResponseBody::complete(bytes, call.record)
        }
        ahead => ResponseBody::http2(Receiving {
            until: deadline::earlier(call.deadline(), deadline::after(now, settings.silence)),
            silence: settings.silence,
            left,
            target: host.authority().clone(),
            place: Some(place),
            stream,
            upload,
            ahead,
            call: *call,
        }),
    };
    call.report();
    Response::from_parts(parts, body)
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Takes a piece, and lets the peer send as much again.
fn take(stream: &mut RecvStream, piece: Result<Bytes, h2::Error>) -> Result<Bytes, h2::Error> {
    let piece = piece?;
    // Fails only for a stream that is over, which needs no room.
    let _ = stream.flow_control().release_capacity(piece.len());
    Ok(piece)
}

/// A body that is still arriving.
pub(crate) struct Receiving {
    /// Free again with the end of the body.
    place: Option<Place>,
    stream: RecvStream,
    /// What of the request is still on its way.
    upload: Upload,
    ahead: Option<Result<Bytes, h2::Error>>,
    /// How much is still to come, if that was announced.
    left: Option<u64>,
    until: Option<Instant>,
    silence: Option<Duration>,
    target: Authority,
    pub(crate) call: Call,
}

impl Receiving {
    /// The next piece. After the last one, or an error, there is nothing.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        let Some(place) = &mut self.place else { return Poll::Ready(None) };
        let mut piece = self.ahead.take();
        if piece.is_none() {
            if let Poll::Ready(Err(failure)) = self.upload.poll(cx, &mut false) {
                return self.fail(failure);
            }
            piece = match self.stream.poll_data(cx) {
                Poll::Ready(piece) => piece.map(|piece| take(&mut self.stream, piece)),
                Poll::Pending => {
                    ready!(place.poll_until(self.until, cx));
                    return self.fail(Failure::timed_out(Step::Body));
                }
            };
        }
        let now = clock::now();
        match piece {
            // A peer that never pauses must not get past the deadline.
            Some(Ok(_)) if self.call.is_late(now) => self.fail(Failure::timed_out(Step::Body)),
            Some(Ok(piece)) => {
                self.left = self.left.map(|left| left.saturating_sub(piece.len() as u64));
                self.until = deadline::earlier(self.call.deadline(), deadline::after(now, self.silence));
                if self.stream.is_end_stream() {
                    self.finish(now);
                }
                Poll::Ready(Some(Ok(piece)))
            }
            Some(Err(error)) => self.fail(failed(error, Step::Body)),
            None => {
                self.finish(now);
                Poll::Ready(None)
            }
        }
    }

    /// How much is certain to come.
    pub(crate) fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.place.is_none()
    }

    fn finish(&mut self, now: Instant) {
        self.place = None;
        self.upload = Upload::Cut;
        self.call.record.complete = Some(self.call.offset(now));
        self.call.report();
    }

    fn fail(&mut self, failure: Failure) -> Poll<Option<Result<Bytes, Error>>> {
        if let Some(place) = self.place.take() {
            // What the body's silence is due to, the keepalive finds out.
            place.http2.shared.note_failure(failure.kind, true);
        }
        Poll::Ready(Some(Err(self.call.fail(failure, &self.target))))
    }
}

/// The connection was found to be over before the request was handed to it.
fn closed_before(error: h2::Error) -> Failure {
    Failure::new(ErrorKind::Closed, Step::Send).because(error)
}

/// What h2's error means for a request that was handed over.
fn failed(error: h2::Error, step: Step) -> Failure {
    let kind = if error.is_io() {
        ErrorKind::Closed
    } else if error.is_remote() && (error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM)) {
        // Streams that a GOAWAY counts in go on, or end with the connection; this one was left out.
        ErrorKind::Refused
    } else if error.is_library() {
        ErrorKind::Malformed
    } else {
        ErrorKind::Closed
    };
    Failure::new(kind, step).because(error)
}
