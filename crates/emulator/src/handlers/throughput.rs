//! The throughput that the headers of a create request ask for.

use protocol::headers as name;
use protocol::throughput::Throughput;

use crate::request::RequestHeaders;
use crate::response::ServiceError;

/// What the headers of a create ask for, if anything.
pub(crate) fn requested(headers: &RequestHeaders<'_>) -> Result<Option<Throughput>, ServiceError> {
    let manual = RequestHeaders::text(headers.offer_throughput, name::OFFER_THROUGHPUT)?;
    let autoscale = RequestHeaders::text(headers.offer_autopilot_settings, name::OFFER_AUTOPILOT_SETTINGS)?;
    Ok(Throughput::from_headers(manual, autoscale)?)
}
