//! HTTP ↔ operations: authorize → route → handle → reply.
//!
//! In: a request whose body has been read. Out: a response; a refusal is a response too. Nothing
//! here knows sockets, and nothing here knows what an operation does: the first is `server`'s, the
//! second `handlers`'.

mod account;
mod activity;
mod authorize;
mod consistency;
mod error;
mod figures;
mod headers;
mod origin;
mod reply;
mod resource_token;
mod route;

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use protocol::resource_path::ResourcePath;

pub use account::{Account, AccountSettings, Region};
pub(crate) use authorize::Principal;
pub(crate) use error::ServiceError;
pub(crate) use headers::{RequestHeaders, invalid_value};
pub(crate) use origin::Origin;
pub(crate) use reply::{Reply, ServedBy, TOKEN_VERSION};
pub(crate) use resource_token::Grant;
pub(crate) use route::{
    ConflictVerb, ContainerIds, DatabaseVerb, FeedVerb, ItemOperation, OfferVerb, OffersVerb, Operation,
    Parent, ResourceVerb, Unsupported, UnsupportedVerb, UserIds,
};

use crate::clock::{Clock, Stopwatch, Ticks};
use crate::handlers;
use crate::server::Handler;
use activity::activity_id;
use reply::Stamp;

/// Answers every request to one region of an account.
#[derive(Debug)]
pub struct Gateway {
    account: Arc<Account>,
    clock: Clock,
    stamp: Stamp,
}

/// One request, understood far enough to be handled.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    /// The account it was sent to.
    pub(crate) account: &'a Account,
    /// Who sent it.
    pub(crate) principal: Principal,
    /// How the client reached the account.
    pub(crate) origin: Origin<'a>,
    /// What it says besides its path.
    pub(crate) headers: RequestHeaders<'a>,
    /// What it carries.
    pub(crate) body: Bytes,
    /// When it arrived.
    pub(crate) now: Ticks,
}

impl Gateway {
    /// A gateway to `account` that lives by `clock`.
    pub fn new(account: Arc<Account>, clock: Clock) -> Gateway {
        let stamp = Stamp::new(clock.now().to_system_time());
        Gateway { account, clock, stamp }
    }

    /// Nothing a request needs is ever waited for, so this is a plain function: a chain of futures
    /// would carry every state of every operation along, and move it, in each answer.
    fn answer(&self, request: Request<Bytes>) -> Response<Bytes> {
        let watch = Stopwatch::start();
        let (parts, body) = request.into_parts();
        let headers = RequestHeaders::scan(&parts.headers);
        let activity = activity_id(headers.activity_id);
        let reply = match self.respond(&parts, headers, body) {
            Ok(reply) => reply,
            Err(refusal) => {
                let shown = String::from_utf8_lossy(activity.as_bytes());
                refusal.into_reply(&shown, parts.uri.path())
            }
        };
        self.stamp.finish(reply, activity, watch.elapsed())
    }

    fn respond(
        &self,
        parts: &Parts,
        headers: RequestHeaders<'_>,
        body: Bytes,
    ) -> Result<Reply, ServiceError> {
        let account = &*self.account;
        let now = self.clock.now();
        let path = ResourcePath::parse(parts.uri.path()).map_err(|_| ServiceError::not_found())?;
        let principal = authorize::authorize(&account.key, &parts.method, &path, &headers, now)?;
        let operation = route::route(&parts.method, &path, &headers)?;
        // One client asks for its level on the account read as well, where it means nothing.
        if operation != Operation::ReadAccount {
            consistency::check(&headers, account.consistency)?;
        }
        let origin = Origin::of(parts, &headers);
        let call = Call { account, principal, origin, headers, body, now };
        handlers::handle(call, operation)
    }
}

impl Handler for Gateway {
    async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        self.answer(request)
    }
}
