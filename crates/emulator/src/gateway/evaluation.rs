//! Requests that were interrupted on the thread of their connection, and start again in the pool.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use protocol::status::{Status, SubStatus};

use super::in_flight::InFlightRequest;
use super::{Gateway, GatewayResponse};
use crate::request::{EvaluationClass, RequestHeaders, activity_id};
use crate::response::ServiceError;

/// When a client should try again if too many requests wait.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl Gateway {
    /// Responds to a request that was interrupted on the thread of its connection. The response to a write
    /// may have to wait for the disk afterwards.
    pub(super) async fn respond_in_pool(
        self: &Arc<Self>,
        parts: Parts,
        body: Bytes,
        uptime: Duration,
        in_flight: &mut InFlightRequest,
    ) -> GatewayResponse {
        let parts = Arc::new(parts);
        for class in [EvaluationClass::Medium, EvaluationClass::Long] {
            let Some(permit) = self.evaluation_pool.acquire(class).await else {
                return self.too_many_evaluations(&parts, in_flight, uptime);
            };
            let (gateway, parts, body) = (Arc::clone(self), Arc::clone(&parts), body.clone());
            let evaluation = tokio::task::spawn_blocking(move || {
                let mut operation = super::UNKNOWN_OPERATION;
                let headers = RequestHeaders::scan(&parts.headers);
                let response = gateway.respond(&parts, &headers, body, (uptime, class), &mut operation);
                // A client that disconnects does not end the evaluation, so the thread stays taken until here.
                drop(permit);
                (response, operation)
            });
            match evaluation.await {
                Ok((response, operation)) => {
                    *in_flight.operation() = operation;
                    if let Ok(response) = response {
                        return response;
                    }
                }
                // The server turns the panic into a 500, as on its own threads.
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                // The runtime is being shut down, and no response will be sent.
                Err(_) => std::future::pending().await,
            }
        }
        unreachable!("a long evaluation is not interrupted")
    }

    /// 429: the client has to try again later.
    fn too_many_evaluations(
        &self,
        parts: &Parts,
        in_flight: &mut InFlightRequest,
        began: Duration,
    ) -> GatewayResponse {
        let message = "Too many queries that take long wait to be evaluated. Retry later.";
        let error = ServiceError {
            retry_after: Some(RETRY_AFTER),
            ..ServiceError::backend(Status::TOO_MANY_REQUESTS, message)
                .with_sub_status(SubStatus::REQUEST_RATE_TOO_LARGE)
        };
        let activity = activity_id(RequestHeaders::scan(&parts.headers).activity_id);
        let reply = error.into_reply(&String::from_utf8_lossy(activity.as_bytes()), parts.uri.path());
        self.build_response(reply, activity, in_flight.operation(), began)
    }
}
