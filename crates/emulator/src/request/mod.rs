//! A request as the account understands it: who asks for what, with which headers.

mod activity;
mod authorize;
pub(crate) mod consistency;
mod headers;
mod label;
mod operation;
mod origin;
mod resource_token;
mod route;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clock::Ticks;
use engine::account::Account;
use engine::regions::ReadContext;
use http::request::Parts;
use protocol::account::ConsistencyLevel;

pub(crate) use activity::activity_id;
pub(crate) use authorize::{Principal, authorize};
pub(crate) use headers::{AS_OF, RequestHeaders, invalid_value};
pub(crate) use operation::{
    ConflictVerb, ContainerIds, DatabaseVerb, FeedVerb, ItemOperation, OfferVerb, OffersVerb, Operation,
    Parent, ResourceVerb, Unsupported, UnsupportedVerb, UserIds, Written,
};
pub(crate) use origin::Origin;
pub(crate) use resource_token::Grant;
pub(crate) use route::route;

/// One request, understood far enough to be handled.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    /// The account it was sent to.
    pub(crate) account: &'a Arc<Account>,
    /// What it may see of it.
    pub(crate) vantage: ReadContext,
    /// The consistency it asks for, or is given.
    pub(crate) level: ConsistencyLevel,
    /// Who sent it.
    pub(crate) principal: Principal,
    /// The request itself: what it says beyond its path and headers.
    pub(crate) parts: &'a Parts,
    /// What it says besides its path.
    pub(crate) headers: &'a RequestHeaders<'a>,
    /// What it carries.
    pub(crate) body: Bytes,
    /// When it arrived.
    pub(crate) now: Ticks,
    /// The same, by the clock that never goes back.
    pub(crate) uptime: Duration,
}

impl<'a> Call<'a> {
    /// How the client reached the account.
    pub(crate) fn origin(&self) -> Origin<'a> {
        Origin::of(self.parts, self.headers)
    }
}
