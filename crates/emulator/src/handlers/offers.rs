//! Offers, `/offers` and `/offers/{offer}`: the throughput of databases and containers.
//!
//! A replace sends the offer as read, with `content` changed. Autoscale settings in it make or keep the offer
//! autoscale; without them it is manual. Two headers request a migration between the two instead, and leave
//! the numbers to the account. The new throughput applies at once; the partitions that it needs are split
//! one after the other.

use bytes::Bytes;
use http::HeaderValue;
use protocol::container::INVALID_INPUT;
use protocol::headers as name;
use protocol::resource_id::OfferRid;
use protocol::throughput::{Offer, Throughput};

use super::feed::{Feed, FeedEntry, parse_position};
use super::{condition, metadata_query};
use crate::request::{Call, OfferVerb, OffersVerb, RequestHeaders};
use crate::response::{Reply, ServiceError};
use engine::account::auto_split;
use engine::catalog::{ListPosition, OfferEntry};
use engine::charge::throughput;

/// Handles an operation on the feed of offers.
pub(crate) fn handle_feed(call: &Call<'_>, verb: OffersVerb) -> Result<Reply, ServiceError> {
    match verb {
        OffersVerb::List => list(call),
        OffersVerb::Query => query(call),
    }
}

/// Handles an operation on one offer.
pub(crate) fn handle(call: &Call<'_>, id: &str, verb: OfferVerb) -> Result<Reply, ServiceError> {
    let rid = id.parse().map_err(|_| ServiceError::entity_not_found())?;
    match verb {
        OfferVerb::Read => read(call, rid),
        OfferVerb::Replace => replace(call, rid),
    }
}

/// The throughput that the headers of a create request ask for, if any.
pub(crate) fn requested_throughput(headers: &RequestHeaders<'_>) -> Result<Option<Throughput>, ServiceError> {
    let manual = RequestHeaders::text(headers.offer_throughput, name::OFFER_THROUGHPUT)?;
    let autoscale = RequestHeaders::text(headers.offer_autopilot_settings, name::OFFER_AUTOPILOT_SETTINGS)?;
    Ok(Throughput::from_headers(manual, autoscale)?)
}

/// The reply with an offer.
fn offer_reply(entry: &OfferEntry, pending: bool) -> Reply {
    let pending_text = HeaderValue::from_static(if pending { "true" } else { "false" });
    Reply::ok(offer_json(entry, pending))
        .version(&entry.offer.system)
        .header(name::OFFER_REPLACE_PENDING, pending_text)
        .header(name::MIN_THROUGHPUT, HeaderValue::from(throughput::minimum(&entry.throughput)))
}

/// An offer as clients read it, with a flag while its new partitions are not ready yet.
fn offer_json(entry: &OfferEntry, pending: bool) -> Bytes {
    if !pending {
        return entry.json.clone();
    }
    let mut offer = entry.offer.clone();
    offer.content.is_offer_replace_pending = Some(true);
    serde_json::to_vec(&offer).expect("an offer is strings and numbers").into()
}

const FEED: Feed<'static> = Feed { parent: "", plural: "Offers" };

/// `GET /offers`: lists the offers, oldest first.
fn list(call: &Call<'_>) -> Result<Reply, ServiceError> {
    let position: ListPosition<OfferRid> = parse_position(call.headers)?;
    let snapshot = call.account.catalog.snapshot();
    let offers = snapshot.offers_after(position);
    FEED.page(
        call,
        offers
            .map(|entry| FeedEntry { rid: entry.offer.system.rid.clone(), json: current_json(call, entry) }),
    )
}

/// `POST /offers` with a query, which is how every SDK finds the offer of a container.
fn query(call: &Call<'_>) -> Result<Reply, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    let offers: Vec<Bytes> = snapshot.offers_after(None).map(|entry| current_json(call, entry)).collect();
    metadata_query::run_query(call, FEED, offers.iter())
}

fn current_json(call: &Call<'_>, entry: &OfferEntry) -> Bytes {
    offer_json(entry, call.account.pending_offers.is_pending(entry.rid))
}

/// `GET /offers/{offer}`: reads an offer.
fn read(call: &Call<'_>, rid: OfferRid) -> Result<Reply, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    let entry = snapshot.offer(rid).ok_or_else(ServiceError::entity_not_found)?;
    if let Some(reply) = condition::not_modified(call.headers, &entry.offer.system) {
        return Ok(reply);
    }
    Ok(offer_reply(entry, call.account.pending_offers.is_pending(rid)))
}

/// The requested change between manual and autoscale throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Migration {
    None,
    ToAutoscale,
    ToManual,
}

/// `PUT /offers/{offer}`: replaces the throughput of an offer.
fn replace(call: &Call<'_>, rid: OfferRid) -> Result<Reply, ServiceError> {
    let wanted: Offer = serde_json::from_slice(&call.body)
        .map_err(|error| ServiceError::bad_request(format!("{INVALID_INPUT}. {error}")))?;
    let migration = requested_migration(call.headers)?;
    let entry = call.account.catalog.replace_offer(rid, call.now, |current| {
        condition::check_if_match(call.headers, &current.offer.system)?;
        if wanted.id.is_empty() {
            let missing =
                "The input content is invalid because the required properties - 'id; ' - are missing";
            return Err(ServiceError::bad_request(missing));
        }
        decide_throughput(current, &wanted, migration)
    })?;
    let pending = auto_split::start(call.account, rid, call.uptime);
    Ok(offer_reply(&entry, pending))
}

fn requested_migration(headers: &RequestHeaders<'_>) -> Result<Migration, ServiceError> {
    let to_autoscale =
        RequestHeaders::flag(headers.migrate_offer_to_autopilot, name::MIGRATE_OFFER_TO_AUTOPILOT)?;
    let to_manual = RequestHeaders::flag(headers.migrate_offer_to_manual, name::MIGRATE_OFFER_TO_MANUAL)?;
    match (to_autoscale, to_manual) {
        (false, false) => Ok(Migration::None),
        (true, false) => Ok(Migration::ToAutoscale),
        (false, true) => Ok(Migration::ToManual),
        (true, true) => Err(ServiceError::bad_request(
            "An offer cannot be migrated to autoscale and to manual throughput at once.",
        )),
    }
}

/// Decides the new throughput of an offer. Pure.
fn decide_throughput(
    current: &OfferEntry,
    wanted: &Offer,
    migration: Migration,
) -> Result<Throughput, ServiceError> {
    for id in [&wanted.id, &wanted.system.rid] {
        if !id.is_empty() && *id != current.offer.id {
            return Err(ServiceError::bad_request(format!(
                "The offer in the body is '{id}', the offer in the path is '{}'.",
                current.offer.id
            )));
        }
    }
    match migration {
        Migration::None => Ok(wanted.throughput()?),
        Migration::ToAutoscale => Ok(throughput::as_autoscale(&current.throughput)),
        Migration::ToManual => Ok(throughput::as_manual(&current.throughput)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clock::Ticks;
    use engine::catalog::Catalog;

    fn offer(throughput: Throughput) -> OfferEntry {
        let catalog = Catalog::new(1);
        catalog.create_database("d", Some(throughput), Ticks(0)).expect("an empty catalog");
        OfferEntry::clone(catalog.snapshot().offers_after(None).next().expect("the database's offer"))
    }

    #[test]
    fn the_body_decides_unless_a_header_requests_a_migration() {
        let manual = Throughput::Manual(1_500);
        let autoscale = |max| Throughput::Autoscale { max, increment_percent: None };
        for (current, content, migration, expected) in [
            (manual.clone(), r#"{"offerThroughput":500}"#, Migration::None, Some(Throughput::Manual(500))),
            (
                manual.clone(),
                r#"{"offerThroughput":500,"offerAutopilotSettings":{"maxThroughput":6000}}"#,
                Migration::None,
                Some(autoscale(6_000)),
            ),
            (autoscale(5_000), r#"{"offerThroughput":500}"#, Migration::None, Some(Throughput::Manual(500))),
            (manual.clone(), r#"{"offerThroughput":1500}"#, Migration::ToAutoscale, Some(autoscale(2_000))),
            (autoscale(5_000), "{}", Migration::ToAutoscale, Some(autoscale(5_000))),
            (autoscale(5_000), "{}", Migration::ToManual, Some(Throughput::Manual(5_000))),
            (manual.clone(), "{}", Migration::None, None),
            (manual, r#"{"offerThroughput":450}"#, Migration::None, None),
        ] {
            let wanted = serde_json::from_str(&format!(r#"{{"content":{content}}}"#)).unwrap();
            let decided = decide_throughput(&offer(current.clone()), &wanted, migration).ok();
            assert_eq!(decided, expected, "{current:?} {content} {migration:?}");
        }
    }

    #[test]
    fn an_offer_with_another_id_in_its_body_is_rejected() {
        let current = offer(Throughput::Manual(400));
        for body in [r#"{"_rid":"zzzz","content":{"offerThroughput":500}}"#, r#"{"id":"zzzz","content":{}}"#]
        {
            let wanted = serde_json::from_str(body).unwrap();
            let error = decide_throughput(&current, &wanted, Migration::None).expect_err(body);
            assert_eq!(error.status.0, 400);
        }
    }
}
