//! One request and its answer: read the body, ask the handler, survive it, compress if wanted.

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
use crate::conduct::{Conduct, Outgoing, STALL_MAX};
use crate::handler::{Encrypted, Handler, Handling};
use crate::request_body::{BodyReader, BodyRefusal};
use crate::watch::Watch;

/// How long a request may outlive its connection after that was cut.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

/// What every request of one connection needs.
pub(crate) struct Exchange<H> {
    pub(crate) handler: Arc<H>,
    pub(crate) bodies: Arc<BodyReader>,
    pub(crate) gzip_bytes_min: usize,
    pub(crate) encrypted: bool,
    pub(crate) watch: Arc<Watch>,
}

/// The client went away before its request was complete.
#[derive(Debug, thiserror::Error)]
#[error("the client went away before its request was complete")]
pub(crate) struct ClientGone;

/// An answer, or the wait for one.
pub(crate) enum Answering {
    /// There is nothing to wait for. None once it was handed over.
    Now(Option<Response<Outgoing>>),
    /// Something has to happen first.
    Later(Pin<Box<dyn Future<Output = Result<Response<Outgoing>, ClientGone>> + Send>>),
}

impl Future for Answering {
    type Output = Result<Response<Outgoing>, ClientGone>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Answering::Now(answer) => {
                Poll::Ready(Ok(answer.take().expect("an answer is asked for until it is there")))
            }
            Answering::Later(answer) => answer.as_mut().poll(cx),
        }
    }
}

impl<H: Handler> Exchange<H> {
    /// Answers one request. One without a body whose handler has nothing to wait for is answered by
    /// the time this returns: no future to keep, and what it was read into is free again.
    pub(crate) fn answer(self: &Arc<Self>, request: Request<Incoming>) -> Answering {
        if !request.body().is_end_stream() {
            let exchange = Arc::clone(self);
            return Answering::Later(Box::pin(async move { exchange.answer_with_body(request).await }));
        }
        let _in_flight = self.watch.begin_request();
        let version = request.version();
        let (parts, _) = request.into_parts();
        // Kept, not read: most answers are too short for it to matter.
        let accepted = parts.headers.get(ACCEPT_ENCODING).cloned();
        match self.handle(parts, Bytes::new()) {
            Handling::Now(response) if !self.has_more_to_do(&response, accepted.as_ref()) => {
                Answering::Now(Some(response.map(Outgoing::whole)))
            }
            handling => {
                let exchange = Arc::clone(self);
                Answering::Later(Box::pin(async move {
                    let _in_flight = exchange.watch.begin_request();
                    exchange.finish(handling, accepted, version).await
                }))
            }
        }
    }

    async fn answer_with_body(&self, request: Request<Incoming>) -> Result<Response<Outgoing>, ClientGone> {
        let _in_flight = self.watch.begin_request();
        let version = request.version();
        let (parts, body) = request.into_parts();
        let body = match self.bodies.read(body).await {
            Ok(body) => body,
            Err(BodyRefusal::Gone) => return Err(ClientGone),
            Err(refusal) => return Ok(refused(refusal, version).map(Outgoing::whole)),
        };
        let accepted = parts.headers.get(ACCEPT_ENCODING).cloned();
        let handling = self.handle(parts, body);
        self.finish(handling, accepted, version).await
    }

    /// What is left to do once the handler was asked: wait for its answer, compress it, spoil it.
    async fn finish(
        &self,
        handling: Handling,
        accepted: Option<HeaderValue>,
        version: Version,
    ) -> Result<Response<Outgoing>, ClientGone> {
        let mut response = match handling {
            Handling::Now(response) => response,
            Handling::Later(waiting) => survive(waiting).await,
        };
        if let Some(conduct) = response.extensions_mut().remove::<Conduct>() {
            return self.misbehave(conduct, response, version).await;
        }
        if self.is_to_compress(&response, accepted.as_ref()) {
            response = gzip(response).await;
        }
        Ok(response.map(Outgoing::whole))
    }

    fn has_more_to_do(&self, response: &Response<Bytes>, accepted: Option<&HeaderValue>) -> bool {
        response.extensions().get::<Conduct>().is_some() || self.is_to_compress(response, accepted)
    }

    fn is_to_compress(&self, response: &Response<Bytes>, accepted: Option<&HeaderValue>) -> bool {
        response.body().len() >= self.gzip_bytes_min && accepted.is_some_and(accepts_gzip)
    }

    /// Carries out what the handler asked for beyond its answer.
    async fn misbehave(
        &self,
        conduct: Conduct,
        mut response: Response<Bytes>,
        version: Version,
    ) -> Result<Response<Outgoing>, ClientGone> {
        match conduct {
            Conduct::Close => {
                self.watch.cut();
                // The connection takes this future along when it goes, which is at once.
                tokio::time::sleep(CLOSE_PATIENCE).await;
                Err(ClientGone)
            }
            Conduct::Stall if response.body().is_empty() => {
                tokio::time::sleep(STALL_MAX).await;
                self.watch.cut();
                Err(ClientGone)
            }
            Conduct::Stall => Ok(response.map(|body| Outgoing::half(&body))),
            Conduct::GoAway => {
                self.watch.retire();
                if version < Version::HTTP_2 {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok(response.map(Outgoing::whole))
            }
        }
    }

    /// Asks the handler; a panic in it is an answer too, and costs nobody else theirs.
    fn handle(&self, mut parts: Parts, body: Bytes) -> Handling {
        if self.encrypted {
            parts.extensions.insert(Encrypted);
        }
        let request = Request::from_parts(parts, body);
        catch_unwind(AssertUnwindSafe(|| self.handler.handle(request)))
            .unwrap_or_else(|_| Handling::Now(panicked()))
    }
}

/// The answer that is waited for, or the one in its place if it panics.
async fn survive(mut waiting: Pin<Box<dyn Future<Output = Response<Bytes>> + Send>>) -> Response<Bytes> {
    poll_fn(move |cx| {
        catch_unwind(AssertUnwindSafe(|| waiting.as_mut().poll(cx)))
            .unwrap_or_else(|_| Poll::Ready(panicked()))
    })
    .await
}

fn panicked() -> Response<Bytes> {
    tracing::error!("a handler panicked; the request was answered with 500");
    problem(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError", "an internal error occurred")
}

fn refused(refusal: BodyRefusal, version: Version) -> Response<Bytes> {
    let mut response = match refusal {
        BodyRefusal::TooLarge => {
            problem(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", "Request size is too large")
        }
        BodyRefusal::TooSlow | BodyRefusal::Gone => {
            problem(StatusCode::REQUEST_TIMEOUT, "RequestTimeout", "the request body did not arrive in time")
        }
    };
    if version < Version::HTTP_2 {
        // The rest of the body is still on its way; nothing after it could be understood.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// An answer this layer gives by itself, in the shape clients parse.
fn problem(status: StatusCode, code: &str, message: &str) -> Response<Bytes> {
    let body = serde_json::json!({ "code": code, "message": message }).to_string();
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
