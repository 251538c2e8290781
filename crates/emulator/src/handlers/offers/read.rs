//! `GET /offers/{offer}`.

use protocol::resource_id::OfferRid;

use super::shown;
use crate::handlers::condition;
use crate::request::Call;
use crate::response::{Reply, ServiceError};

/// Reads an offer.
pub(crate) fn read(call: &Call<'_>, rid: OfferRid) -> Result<Reply, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    let entry = snapshot.offer(rid).ok_or_else(ServiceError::not_found)?;
    if let Some(reply) = condition::not_modified(call.headers, &entry.offer.system) {
        return Ok(reply);
    }
    Ok(shown(entry, call.account.pending_offers.is_pending(rid)))
}
