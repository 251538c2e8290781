//! `GET /offers` and queries over it, which is how every SDK finds the offer of a container.

use protocol::resource_id::OfferRid;

use crate::gateway::{Call, Reply, ServiceError};
use crate::handlers::feed::{Feed, Listed, resume};
use crate::handlers::metadata_query;

const FEED: Feed<'static> = Feed { parent: "", plural: "Offers" };

/// Lists the offers, oldest first.
pub(crate) fn list(call: &Call<'_>) -> Result<Reply, ServiceError> {
    let after: Option<OfferRid> = resume(&call.headers)?;
    let snapshot = call.account.catalog.snapshot();
    let offers = snapshot.offers_after(after);
    FEED.page(
        call,
        offers.map(|entry| Listed { rid: entry.offer.system.rid.clone(), json: entry.json.clone() }),
    )
}

/// Answers a query over the offers.
pub(crate) fn query(call: &Call<'_>) -> Result<Reply, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    metadata_query::answer(call, FEED, snapshot.offers_after(None).map(|entry| &entry.json))
}
