//! A parsed request: the operation, its headers, and who sent it.

mod activity;
mod authorize;
mod authorized_items;
pub(crate) mod consistency;
mod evaluation;
mod headers;
pub(crate) mod http_date;
mod label;
mod operation;
mod origin;
mod resource_token;
mod rights;
mod route;
mod sas_token;

use std::sync::Arc;
use std::time::Duration;

use crate::advertised_hosts::AdvertisedHosts;
use bytes::Bytes;
use clock::Ticks;
use engine::account::Account;
use engine::regions::ReadContext;
use http::request::Parts;
use protocol::account::ConsistencyLevel;

pub(crate) use activity::activity_id;
pub(crate) use authorize::{Principal, authorize};
pub(crate) use authorized_items::AuthorizedItems;
pub(crate) use evaluation::EvaluationClass;
pub(crate) use headers::{AS_OF, RequestHeaders, invalid_value};
pub(crate) use operation::{
    ClientEncryptionKeyIds, ConflictVerb, ContainerIds, DatabaseVerb, FeedVerb, ItemOperation, OfferVerb,
    OffersVerb, Operation, ParentResource, ResourceVerb, ScriptVerb, Unsupported, UnsupportedVerb, UserIds,
    WriteTarget,
};
pub(crate) use origin::Origin;
pub(crate) use resource_token::{Grant, PermissionTarget};
pub(crate) use rights::RequestLine;
pub(crate) use route::{resource_path, route};

/// One authorized and routed request, ready to be handled.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    /// The account that the request was sent to.
    pub(crate) account: &'a Arc<Account>,
    /// What clients are told to connect to.
    pub(crate) advertised_hosts: &'a AdvertisedHosts,
    /// The region and staleness that reads of this request have.
    pub(crate) read_context: ReadContext,
    /// The consistency level of the request, or else of the account.
    pub(crate) level: ConsistencyLevel,
    /// The sender and its rights.
    pub(crate) principal: Principal,
    /// The HTTP request without its body.
    pub(crate) parts: &'a Parts,
    /// The headers, by field.
    pub(crate) headers: &'a RequestHeaders<'a>,
    /// The body, read in full.
    pub(crate) body: Bytes,
    /// When the request arrived, in account time.
    pub(crate) now: Ticks,
    /// When the request arrived, by uptime.
    pub(crate) uptime: Duration,
    /// How much the request may evaluate where it runs.
    pub(crate) evaluation: EvaluationClass,
}

impl<'a> Call<'a> {
    /// How the client reached the account.
    pub(crate) fn origin(&self) -> Origin<'a> {
        Origin::of(self.parts, self.headers)
    }
}
