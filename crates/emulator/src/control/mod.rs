//! The control port: how is the account, and what should happen to it.
//!
//! A handler of its own on a port of its own, so that neither account traffic nor its signatures get
//! in the way. JSON in, JSON out; a refusal is `{"code","message"}`. One file per group of routes,
//! each with a table, `ROUTES`, that says what it answers; the tables are listed in [`GROUPS`], and
//! `GET /` shows them. `ask` is what a route sees of a request, `answer` what it makes, `table` finds
//! the route.

#[allow(dead_code, reason = "the groups that come next need the rest of it")]
mod answer;
#[allow(dead_code, reason = "the groups that come next need the rest of it")]
mod ask;
mod clock;
mod health;
mod index;
mod table;

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};

use crate::clock::Clock;
use crate::gateway::Account;
use crate::server::Handler;
use answer::{Answer, Problem, json};
use ask::Ask;
use table::Route;

/// Every route, group by group, in the order `GET /` shows them.
const GROUPS: &[&[Route]] = &[index::ROUTES, health::ROUTES, clock::ROUTES];

/// Answers on the control port.
#[derive(Debug)]
pub(crate) struct Control {
    /// What is looked at and changed.
    #[allow(dead_code, reason = "the groups that come next need it")]
    pub(crate) account: Arc<Account>,
    /// What time it is there.
    pub(crate) clock: Clock,
}

impl Handler for Control {
    async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        let (parts, body) = request.into_parts();
        let found = table::find(GROUPS, &parts.method, parts.uri.path());
        let answer = found.and_then(|(route, segments)| {
            let ask = Ask::new(segments, parts.uri.query(), body)?;
            (route.handle)(self, &ask)
        });
        answer.unwrap_or_else(Problem::into_response)
    }
}
