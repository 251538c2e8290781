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
use http::header::{ACCEPT_ENCODING, CONNECTION, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode, Version};
use hyper::body::{Body as _, Incoming};

use crate::compress::{accepts_gzip, gzip};
use crate::connection_activity::ConnectionActivity;
use crate::connection_fault::{ConnectionFault, ResponseBody, STALL_MAX};
use crate::handler::{Encrypted, Handler, HandlerResponse};
use crate::request_body::{BodyReadError, BodyReader};

/// How long a request may outlive its aborted connection.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// What the exchanges of one connection share.
pub(crate) struct Exchange<H> {
    pub(crate) handler: Arc<H>,
    pub(crate) bodies: Arc<BodyReader>,
    pub(crate) gzip_bytes_min: usize,
    pub(crate) encrypted: bool,
    pub(crate) activity: Arc<ConnectionActivity>,
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
                ExchangeFuture::Ready(Some(response.map(ResponseBody::complete)))
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

    async fn respond_with_body(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<ResponseBody>, ClientDisconnected> {
        let _in_flight = self.activity.begin_request();
        let version = request.version();
        let (parts, body) = request.into_parts();
        let body = match self.bodies.read(body).await {
            Ok(body) => body,
            Err(BodyReadError::Disconnected) => return Err(ClientDisconnected),
            Err(error) => return Ok(body_error_response(error, version).map(ResponseBody::complete)),
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
        Ok(response.map(ResponseBody::complete))
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
                Ok(response.map(ResponseBody::complete))
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

fn body_error_response(error: BodyReadError, version: Version) -> Response<Bytes> {
    let mut response = match error {
        BodyReadError::TooLarge => error_response(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            "Request size is too large",
        ),
        BodyReadError::TimedOut | BodyReadError::Disconnected => error_response(
            StatusCode::REQUEST_TIMEOUT,
            "RequestTimeout",
            "the request body did not arrive in time",
        ),
    };
    if version < Version::HTTP_2 {
        // The rest of the body is unread, so no further request can be parsed on this connection.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// An error of this layer, as the JSON object that clients parse.
fn error_response(status: StatusCode, code: &str, message: &str) -> Response<Bytes> {
    let body = serde_json::json!({ "code": code, "message": message }).to_string();
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
