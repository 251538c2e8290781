//! One request and its answer: read the body, ask the handler, survive it, compress if wanted.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode, Version};
use hyper::body::Incoming;

use super::compress::{accepts_gzip, gzip};
use super::conduct::{Conduct, Outgoing, STALL_MAX};
use super::request_body::{BodyReader, BodyRefusal};
use super::watch::Watch;
use super::{Encrypted, Handler};

/// How long a request may outlive its connection after that was cut.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

/// What every request of one connection needs.
pub(super) struct Exchange<H> {
    pub(super) handler: Arc<H>,
    pub(super) bodies: Arc<BodyReader>,
    pub(super) gzip_bytes_min: usize,
    pub(super) encrypted: bool,
    pub(super) watch: Arc<Watch>,
}

/// The client went away before its request was complete.
#[derive(Debug, thiserror::Error)]
#[error("the client went away before its request was complete")]
pub(super) struct ClientGone;

impl<H: Handler> Exchange<H> {
    /// Answers one request.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Result<Response<Outgoing>, ClientGone> {
        let _in_flight = self.watch.begin_request();
        let version = request.version();
        let (mut parts, body) = request.into_parts();
        let body = match self.bodies.read(body).await {
            Ok(body) => body,
            Err(BodyRefusal::Gone) => return Err(ClientGone),
            Err(refusal) => return Ok(refused(refusal, version).map(Outgoing::whole)),
        };
        if self.encrypted {
            parts.extensions.insert(Encrypted);
        }
        // Kept, not read: most answers are too short for it to matter.
        let accepted = parts.headers.get(ACCEPT_ENCODING).cloned();
        let mut response = self.handle(Request::from_parts(parts, body)).await;
        if let Some(conduct) = response.extensions_mut().remove::<Conduct>() {
            return Box::pin(self.misbehave(conduct, response, version)).await;
        }
        if response.body().len() >= self.gzip_bytes_min && accepted.is_some_and(|value| accepts_gzip(&value))
        {
            response = gzip(response).await;
        }
        Ok(response.map(Outgoing::whole))
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
    async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        let caught = match catch_unwind(AssertUnwindSafe(|| self.handler.handle(request))) {
            Ok(handling) => {
                let mut handling = pin!(handling);
                poll_fn(move |cx| match catch_unwind(AssertUnwindSafe(|| handling.as_mut().poll(cx))) {
                    Ok(Poll::Pending) => Poll::Pending,
                    Ok(Poll::Ready(response)) => Poll::Ready(Some(response)),
                    Err(_) => Poll::Ready(None),
                })
                .await
            }
            Err(_) => None,
        };
        caught.unwrap_or_else(|| {
            tracing::error!("a handler panicked; the request was answered with 500");
            problem(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError", "an internal error occurred")
        })
    }
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
