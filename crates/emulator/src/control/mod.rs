//! The control port: how is the account, and what should happen to it.
//!
//! A handler of its own on a port of its own, so that neither account traffic nor its signatures get
//! in the way. JSON in, JSON out; a refusal is `{"code","message"}`. One file per group of routes,
//! each with a table, `ROUTES`, that says what it answers; the tables are listed in [`GROUPS`], and
//! `GET /` shows them. `ask` is what a route sees of a request, `answer` what it makes, `table` finds
//! the route.

mod answer;
mod ask;
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
mod regions;
mod requests;
mod snapshots;
mod switches;
mod table;
mod topology;

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::faults::Faults;
use crate::sight::Sight;
use ::clock::Clock;
use answer::{Answer, Problem, json};
use ask::Ask;
use engine::account::Account;
use engine::account::operations::Operations;
use server::{Handler, Handling};
use table::Route;

/// Every route, group by group, in the order `GET /` shows them.
const GROUPS: &[&[Route]] = &[
    index::ROUTES,
    health::ROUTES,
    host::ROUTES,
    topology::ROUTES,
    regions::ROUTES,
    switches::ROUTES,
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
    pub(crate) sight: Arc<Sight>,
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
    fn handle(self: &Arc<Self>, request: Request<Bytes>) -> Handling {
        let control = Arc::clone(self);
        Handling::Later(Box::pin(async move { control.answer(request).await }))
    }
}

impl Control {
    async fn answer(&self, request: Request<Bytes>) -> Response<Bytes> {
        let (parts, body) = request.into_parts();
        let found = table::find(GROUPS, &parts.method, parts.uri.path());
        let answer = found.and_then(|(route, segments)| {
            let ask = Ask::new(segments, parts.uri.query(), body)?;
            off_the_reactor(|| (route.handle)(self, &ask))
        });
        let answer = match answer {
            Ok(answer) if parts.method != Method::GET => self.kept().await.map(|()| answer),
            answer => answer,
        };
        answer.unwrap_or_else(Problem::into_response)
    }

    /// Waits until what was just done is as safe as `--fsync` promises.
    async fn kept(&self) -> Result<(), Problem> {
        let Some(disk) = &self.account.disk else { return Ok(()) };
        let Some(ticket) = disk.pending_sync() else { return Ok(()) };
        disk.wait_durable(ticket).await.map_err(|error| Problem::unavailable(error.to_string()))
    }
}

/// Some routes take their time (a split copies what it splits); connections of this thread need not wait.
fn off_the_reactor<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
