//! The control port: how is the account, and what should happen to it.
//!
//! A handler of its own on a port of its own, so that neither account traffic nor its signatures get
//! in the way. JSON in, JSON out; a refusal is `{"code","message"}`. One file per group of routes,
//! each with a table, `ROUTES`, that says what it answers; the tables are listed in [`ROUTE_GROUPS`], and
//! `GET /` shows them. `ask` is what a route sees of a request, `answer` what it makes, `table` finds
//! the route.

mod clock;
mod exposition;
mod faults;
mod health;
mod host;
mod index;
mod lifecycle;
mod metrics;
mod operations;
mod partitions;
mod region_faults;
mod regions;
mod request;
mod requests;
mod response;
mod routes;
mod snapshots;
mod topology;

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response};

use crate::blocking::run_blocking;
use crate::faults::Faults;
use crate::request_log::RequestLog;
use ::clock::Clock;
use engine::account::Account;
use engine::account::operations::Operations;
use request::ControlRequest;
use response::{ControlError, ControlResult, json};
use routes::Route;
use server::{Handler, HandlerResponse};

/// Every route, group by group, in the order `GET /` shows them.
const ROUTE_GROUPS: &[&[Route]] = &[
    index::ROUTES,
    health::ROUTES,
    host::ROUTES,
    topology::ROUTES,
    regions::ROUTES,
    region_faults::ROUTES,
    lifecycle::ROUTES,
    faults::ROUTES,
    partitions::ROUTES,
    operations::ROUTES,
    snapshots::ROUTES,
    clock::ROUTES,
    requests::ROUTES,
    metrics::ROUTES,
];

/// Answers on the control port.
#[derive(Debug)]
pub(crate) struct Control {
    /// What is looked at and changed.
    pub(crate) account: Arc<Account>,
    /// The last requests, and counts of all of them.
    pub(crate) request_log: Arc<RequestLog>,
    /// What time it is there.
    pub(crate) clock: Clock,
    /// What a client on this machine calls this machine.
    pub(crate) host: String,
    /// What goes wrong there on purpose.
    pub(crate) faults: Faults,
    /// Its splits and merges.
    pub(crate) operations: Operations,
}

impl Handler for Control {
    fn handle(self: &Arc<Self>, request: Request<Bytes>) -> HandlerResponse {
        let control = Arc::clone(self);
        HandlerResponse::Pending(Box::pin(async move { control.respond(request).await }))
    }
}

impl Control {
    async fn respond(&self, request: Request<Bytes>) -> Response<Bytes> {
        let (parts, body) = request.into_parts();
        let found = routes::find(ROUTE_GROUPS, &parts.method, parts.uri.path());
        let answer = found.and_then(|(route, segments)| {
            let ask = ControlRequest::new(segments, parts.uri.query(), body)?;
            run_blocking(|| (route.handle)(self, &ask))
        });
        let answer = match answer {
            Ok(answer) if parts.method != Method::GET => self.wait_until_durable().await.map(|()| answer),
            answer => answer,
        };
        answer.unwrap_or_else(ControlError::into_response)
    }

    /// Waits until what was just done is as safe as `--fsync` promises.
    async fn wait_until_durable(&self) -> Result<(), ControlError> {
        let Some(disk) = &self.account.disk else { return Ok(()) };
        let Some(ticket) = disk.ticket() else { return Ok(()) };
        disk.kept(ticket).await.map_err(|error| ControlError::unavailable(error.to_string()))
    }
}
