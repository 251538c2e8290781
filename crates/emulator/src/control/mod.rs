//! The control port: HTTP routes that show and change a running account.
//!
//! It is a handler of its own on a port of its own, without signatures; `access` decides who may use it. JSON in, JSON out; an error is
//! `{"code","message"}`. One file per group of routes, each with a table, `ROUTES`; [`ROUTE_GROUPS`] lists the
//! tables, and `GET /` shows them. `request` parses a request, `response` makes JSON and errors, `routes` finds
//! the route.

mod access;
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
use http::request::Parts;
use http::{Method, Request, Response};

use crate::faults::Faults;
use crate::request_log::RequestLog;
use ::clock::Clock;
pub(crate) use access::ControlAccess;
use engine::account::Account;
use engine::account::operations::Operations;
use engine::blocking::run_blocking;
use request::ControlRequest;
use response::{ControlError, ControlResult, json};
use routes::Route;
use server::{Handler, HandlerResponse};

/// Every route, group by group, in the order in which `GET /` shows them.
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

/// The handler of the control port.
#[derive(Debug)]
pub(crate) struct Control {
    /// The account that is shown and changed.
    pub(crate) account: Arc<Account>,
    /// The last requests, and counts of all of them.
    pub(crate) request_log: Arc<RequestLog>,
    /// The clock of the account.
    pub(crate) clock: Clock,
    /// Who may use the control port.
    pub(crate) access: ControlAccess,
    /// The host name that clients on this machine use.
    pub(crate) host: String,
    /// The faults that are injected into the account.
    pub(crate) faults: Faults,
    /// The splits and merges of partitions.
    pub(crate) operations: Operations,
}

impl Handler for Control {
    fn refuse_unread(self: &Arc<Self>, head: &Parts) -> Option<Response<Bytes>> {
        self.access.check(head).err().map(ControlError::into_response)
    }

    fn handle(self: &Arc<Self>, request: Request<Bytes>) -> HandlerResponse {
        let control = Arc::clone(self);
        HandlerResponse::Pending(Box::pin(async move { control.respond(request).await }))
    }
}

impl Control {
    async fn respond(&self, request: Request<Bytes>) -> Response<Bytes> {
        let (parts, body) = request.into_parts();
        let found = self.access.check(&parts).and_then(|()| routes::find(&parts.method, parts.uri.path()));
        let result = found.and_then(|(route, segments)| {
            let request = ControlRequest::new(segments, parts.uri.query(), body)?;
            run_blocking(|| (route.handle)(self, &request))
        });
        let result = match result {
            Ok(response) if parts.method != Method::GET => self.wait_until_durable().await.map(|()| response),
            result => result,
        };
        result.unwrap_or_else(ControlError::into_response)
    }

    /// Waits until the change is durable, as far as `--fsync` promises.
    async fn wait_until_durable(&self) -> Result<(), ControlError> {
        let Some(disk) = &self.account.disk else { return Ok(()) };
        let Some(ticket) = disk.pending_sync() else { return Ok(()) };
        disk.wait_durable(ticket).await.map_err(|error| ControlError::unavailable(error.to_string()))
    }
}
