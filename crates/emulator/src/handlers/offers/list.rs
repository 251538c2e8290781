//! `GET /offers` and queries over it, which is how every SDK finds the offer of a container.

use bytes::Bytes;
use protocol::resource_id::OfferRid;

use super::text;
use crate::handlers::feed::{Feed, FeedEntry, parse_continuation};
use crate::handlers::metadata_query;
use crate::request::Call;
use crate::response::{Reply, ServiceError};
use engine::catalog::OfferEntry;

const FEED: Feed<'static> = Feed { parent: "", plural: "Offers" };

/// Lists the offers, oldest first.
pub(crate) fn list(call: &Call<'_>) -> Result<Reply, ServiceError> {
    let after: Option<OfferRid> = parse_continuation(call.headers)?;
    let snapshot = call.account.catalog.snapshot();
    let offers = snapshot.offers_after(after);
    FEED.page(
        call,
        offers.map(|entry| FeedEntry { rid: entry.offer.system.rid.clone(), json: shown(call, entry) }),
    )
}

/// Answers a query over the offers.
pub(crate) fn query(call: &Call<'_>) -> Result<Reply, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    let offers: Vec<Bytes> = snapshot.offers_after(None).map(|entry| shown(call, entry)).collect();
    metadata_query::run_query(call, FEED, offers.iter())
}

fn shown(call: &Call<'_>, entry: &OfferEntry) -> Bytes {
    text(entry, call.account.growth.is_pending(entry.rid))
}
