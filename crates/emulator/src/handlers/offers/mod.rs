//! `/offers` and `/offers/{offer}`: throughput.

mod list;
mod read;
mod replace;

use bytes::Bytes;
use http::HeaderValue;
use protocol::headers as name;

use crate::request::{Call, OfferVerb, OffersVerb};
use crate::response::{Reply, ServiceError};
use engine::catalog::OfferEntry;
use engine::charge::throughput;

/// Anything asked of the account's offers.
pub(crate) fn feed(call: &Call<'_>, verb: OffersVerb) -> Result<Reply, ServiceError> {
    match verb {
        OffersVerb::List => list::list(call),
        OffersVerb::Query => list::query(call),
    }
}

/// Anything asked of one offer.
pub(crate) fn one(call: &Call<'_>, id: &str, verb: OfferVerb) -> Result<Reply, ServiceError> {
    let rid = id.parse().map_err(|_| ServiceError::not_found())?;
    match verb {
        OfferVerb::Read => read::read(call, rid),
        OfferVerb::Replace => replace::replace(call, rid),
    }
}

/// The answer that shows an offer.
fn shown(entry: &OfferEntry, pending: bool) -> Reply {
    let word = HeaderValue::from_static(if pending { "true" } else { "false" });
    Reply::ok(text(entry, pending))
        .version(&entry.offer.system)
        .header(name::OFFER_REPLACE_PENDING, word)
        .header(name::MIN_THROUGHPUT, HeaderValue::from(throughput::minimum(&entry.throughput)))
}

/// An offer as clients read it: one that is not yet carried out says so.
fn text(entry: &OfferEntry, pending: bool) -> Bytes {
    if !pending {
        return entry.json.clone();
    }
    let mut offer = entry.offer.clone();
    offer.content.is_offer_replace_pending = Some(true);
    serde_json::to_vec(&offer).expect("an offer is strings and numbers").into()
}
