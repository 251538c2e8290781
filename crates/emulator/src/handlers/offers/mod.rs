//! `/offers` and `/offers/{offer}`: throughput.

mod list;
mod read;
mod replace;

use http::HeaderValue;
use protocol::headers as name;

use crate::catalog::OfferEntry;
use crate::gateway::{Call, OfferVerb, OffersVerb, Reply, ServiceError};
use crate::handlers::throughput;

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

/// The answer that shows an offer. A change is in force before it is answered, so none is pending.
fn shown(entry: &OfferEntry) -> Reply {
    Reply::ok(entry.json.clone())
        .version(&entry.offer.system)
        .header(name::OFFER_REPLACE_PENDING, HeaderValue::from_static("false"))
        .header(name::MIN_THROUGHPUT, HeaderValue::from(throughput::floor(&entry.throughput)))
}
