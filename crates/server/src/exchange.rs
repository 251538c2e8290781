//! One HTTP exchange: reads the request body, calls the handler, and prepares its response for hyper.
//!
//! A panic of the handler becomes a 500. Large responses are compressed for clients that accept gzip, and
//! connection faults are applied.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONNECTION, CONTENT_TYPE, EXPECT};
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode, Version};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

use crate::compress::{accepts_gzip, gzip};
use crate::connection_activity::ConnectionActivity;
use crate::connection_fault::{ConnectionFault, ResponseBody, STALL_MAX};
use crate::connection_registry::ConnectionRegistry;
use crate::handler::{Encrypted, Handler, HandlerResponse};
use crate::request_body::{BodyReadError, BodyReader};

/// How long a request waits while clients leave too many responses unread.
const UNREAD_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long a closed connection may take to give up its unread responses before another one is closed.
const UNREAD_CLOSE_WAIT: Duration = Duration::from_millis(250);
/// How long a client may pause while it sends a body that is not wanted.
const DRAIN_PAUSE_MAX: Duration = Duration::from_secs(1);
/// How long a request may outlive its aborted connection.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// What the exchanges of one connection share.
pub(crate) struct Exchange<H> {
    pub(crate) handler: Arc<H>,
    pub(crate) bodies: Arc<BodyReader>,
    pub(crate) gzip_bytes_min: usize,
    pub(crate) unread_bytes_max: usize,
    /// How long the rest of a body that is not wanted may arrive.
    pub(crate) drain_time_max: Duration,
    pub(crate) encrypted: bool,
    pub(crate) activity: Arc<ConnectionActivity>,
    pub(crate) registry: Arc<ConnectionRegistry>,
}

/// The client disconnected before its exchange was complete.
#[derive(Debug, thiserror::Error)]
#[error("the client disconnected before its request was complete")]
pub(crate) struct ClientDisconnected;

/// The future of a response; complete from the start where nothing has to be waited for.
pub(crate) enum ExchangeFuture {
    /// The complete response, or none once it was returned.
    Ready(Option<Response<ResponseBody>>),
    /// The response has to wait for its request body, its handler or its compression.
    Pending(Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, ClientDisconnected>> + Send>>),
}

impl Future for ExchangeFuture {
    type Output = Result<Response<ResponseBody>, ClientDisconnected>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            ExchangeFuture::Ready(response) => {
                Poll::Ready(Ok(response.take().expect("a future is not polled after it is complete")))
            }
            ExchangeFuture::Pending(future) => future.as_mut().poll(cx),
        }
    }
}

impl<H: Handler> Exchange<H> {
    /// Starts one exchange. A request without a body whose handler waits for nothing has its response by the
    /// time this returns: there is no future to store, and its read buffer is free again.
    pub(crate) fn respond(self: &Arc<Self>, request: Request<Incoming>) -> ExchangeFuture {
        if !request.body().is_end_stream() {
            let exchange = Arc::clone(self);
            return ExchangeFuture::Pending(Box::pin(
                async move { exchange.respond_with_body(request).await },
            ));
        }
        let _in_flight = self.activity.begin_request();
        let version = request.version();
        let (parts, _) = request.into_parts();
        // Cloned, not parsed: most responses are too short to be compressed.
        let accepted = parts.headers.get(ACCEPT_ENCODING).cloned();
        match self.handle(parts, Bytes::new()) {
            HandlerResponse::Ready(response) if !self.needs_async_work(&response, accepted.as_ref()) => {
                ExchangeFuture::Ready(Some(self.complete(response)))
            }
            response => {
                let exchange = Arc::clone(self);
                ExchangeFuture::Pending(Box::pin(async move {
                    let _in_flight = exchange.activity.begin_request();
                    exchange.finish(response, accepted, version).await
                }))
            }
        }
    }

    /// Starts an exchange of an HTTP/1.1 connection, once the clients have read enough of the responses that are
    /// ready. Most of the time they have.
    pub(crate) fn respond_in_turn(self: &Arc<Self>, request: Request<Incoming>) -> ExchangeFuture {
        if self.has_room_for_responses() {
            return self.respond(request);
        }
        let exchange = Arc::clone(self);
        ExchangeFuture::Pending(Box::pin(async move { exchange.respond_with_room(request).await }))
    }

    /// Responds to a request once the clients have read enough of the responses that are ready.
    pub(crate) async fn respond_with_room(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<ResponseBody>, ClientDisconnected> {
        if !self.has_room_for_responses() {
            let _in_flight = self.activity.begin_request();
            if tokio::time::timeout(UNREAD_WAIT_MAX, self.close_unread()).await.is_err() {
                let response = error_response(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "ServiceUnavailable",
                    "clients leave too many responses unread",
                );
                return Ok(self.complete(response));
            }
        }
        self.respond(request).await
    }

    fn has_room_for_responses(&self) -> bool {
        self.activity.unread.total().bytes() < self.unread_bytes_max
    }

    /// Closes connections, those with the oldest unread responses first, until there is room for more.
    async fn close_unread(&self) {
        let total = self.activity.unread.total();
        loop {
            // One at a time: each connection that is closed may be enough.
            let _turn = self.registry.unread_turn.lock().await;
            let bytes = total.bytes();
            if bytes < self.unread_bytes_max {
                return;
            }
            self.registry.close_oldest_unread();
            // Nothing was given up in time: the next one is closed too.
            let _late = tokio::time::timeout(UNREAD_CLOSE_WAIT, total.wait_for_decrease(bytes)).await;
        }
    }

    /// A response as hyper sends it. What the client does not read is counted.
    fn complete(&self, response: Response<Bytes>) -> Response<ResponseBody> {
        response.map(|body| ResponseBody::complete(self.activity.unread.count(body)))
    }

    async fn respond_with_body(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<ResponseBody>, ClientDisconnected> {
        let _in_flight = self.activity.begin_request();
        let version = request.version();
        let (parts, mut unread) = request.into_parts();
        let mut refusal = None;
        let is_refused = || {
            refusal = self.refuse_unread(&parts);
            refusal.is_some()
        };
        let body = match self.bodies.read(&mut unread, is_refused).await {
            Ok(body) => body,
            Err(BodyReadError::Disconnected) => return Err(ClientDisconnected),
            Err(error) => {
                let mut response = refusal.unwrap_or_else(|| body_error_response(error));
                if version < Version::HTTP_2 {
                    // The rest of the body is not read, so no further request can be parsed on this connection.
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                    self.drain(&parts, unread);
                }
                return Ok(self.complete(response));
            }
        };
        let accepted = parts.headers.get(ACCEPT_ENCODING).cloned();
        let response = self.handle(parts, body);
        self.finish(response, accepted, version).await
    }

    /// Does what is left after the handler call: waits for its response, compresses it, applies a fault.
    async fn finish(
        &self,
        response: HandlerResponse,
        accepted: Option<HeaderValue>,
        version: Version,
    ) -> Result<Response<ResponseBody>, ClientDisconnected> {
        let mut response = match response {
            HandlerResponse::Ready(response) => response,
            HandlerResponse::Pending(future) => catch_panic(future).await,
        };
        if let Some(fault) = response.extensions_mut().remove::<ConnectionFault>() {
            return self.apply_connection_fault(fault, response, version).await;
        }
        if self.should_compress(&response, accepted.as_ref()) {
            response = gzip(response).await;
        }
        Ok(self.complete(response))
    }

    /// Reads the rest of a body that is not wanted and drops it, while the response is sent. Most clients read their
    /// response after they have sent everything, and lose it when the connection closes before.
    fn drain(&self, parts: &Parts, mut body: Incoming) {
        // Who waits for permission to send the body sends none of it.
        if parts.headers.contains_key(EXPECT) {
            return;
        }
        let draining = async move {
            while let Ok(Some(Ok(_))) = tokio::time::timeout(DRAIN_PAUSE_MAX, body.frame()).await {}
        };
        // Ends with the connection at the latest.
        tokio::spawn(tokio::time::timeout(self.drain_time_max, draining));
    }

    /// The handler's response to a request whose body it does not want to read. A panic in it becomes a 500.
    fn refuse_unread(&self, parts: &Parts) -> Option<Response<Bytes>> {
        catch_unwind(AssertUnwindSafe(|| self.handler.refuse_unread(parts)))
            .unwrap_or_else(|_| Some(panic_response()))
    }

    fn needs_async_work(&self, response: &Response<Bytes>, accepted: Option<&HeaderValue>) -> bool {
        response.extensions().get::<ConnectionFault>().is_some() || self.should_compress(response, accepted)
    }

    fn should_compress(&self, response: &Response<Bytes>, accepted: Option<&HeaderValue>) -> bool {
        response.body().len() >= self.gzip_bytes_min && accepted.is_some_and(accepts_gzip)
    }

    /// Makes the connection fail as the handler asked.
    async fn apply_connection_fault(
        &self,
        fault: ConnectionFault,
        mut response: Response<Bytes>,
        version: Version,
    ) -> Result<Response<ResponseBody>, ClientDisconnected> {
        match fault {
            ConnectionFault::Close => {
                self.activity.abort();
                // The aborted connection drops this future; the sleep only keeps it from completing first.
                tokio::time::sleep(CLOSE_WAIT).await;
                Err(ClientDisconnected)
            }
            ConnectionFault::Stall if response.body().is_empty() => {
                tokio::time::sleep(STALL_MAX).await;
                self.activity.abort();
                Err(ClientDisconnected)
            }
            ConnectionFault::Stall => Ok(response.map(|body| ResponseBody::stalled(&body))),
            ConnectionFault::GoAway => {
                self.activity.drain();
                if version < Version::HTTP_2 {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok(self.complete(response))
            }
        }
    }

    /// Calls the handler. A panic in it becomes a 500 and affects no other request.
    fn handle(&self, mut parts: Parts, body: Bytes) -> HandlerResponse {
        if self.encrypted {
            parts.extensions.insert(Encrypted);
        }
        let request = Request::from_parts(parts, body);
        catch_unwind(AssertUnwindSafe(|| self.handler.handle(request)))
            .unwrap_or_else(|_| HandlerResponse::Ready(panic_response()))
    }
}

/// Waits for a handler's response. A panic in its future becomes a 500.
async fn catch_panic(mut future: Pin<Box<dyn Future<Output = Response<Bytes>> + Send>>) -> Response<Bytes> {
    poll_fn(move |cx| {
        catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)))
            .unwrap_or_else(|_| Poll::Ready(panic_response()))
    })
    .await
}

fn panic_response() -> Response<Bytes> {
    tracing::error!("a handler panicked; the response is 500");
    error_response(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError", "an internal error occurred")
}

fn body_error_response(error: BodyReadError) -> Response<Bytes> {
    match error {
        BodyReadError::TooLarge => error_response(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            "Request size is too large",
        ),
        BodyReadError::TimedOut | BodyReadError::Disconnected | BodyReadError::Refused => error_response(
            StatusCode::REQUEST_TIMEOUT,
            "RequestTimeout",
            "the request body did not arrive in time",
        ),
    }
}

/// An error of this layer, as the JSON object that clients parse.
fn error_response(status: StatusCode, code: &str, message: &str) -> Response<Bytes> {
    let body = serde_json::json!({ "code": code, "message": message }).to_string();
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
