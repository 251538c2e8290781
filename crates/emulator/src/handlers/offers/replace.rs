//! `PUT /offers/{offer}`: another throughput.
//!
//! The body is the offer as read, with `content` changed. Autoscale settings in it make or keep the
//! offer autoscale; without them it is manual. Two headers ask for a change of kind instead, and
//! leave the numbers to the account. The new throughput applies at once; partitions that it takes
//! besides come one after the other (`growth`).

use protocol::container::INVALID_INPUT;
use protocol::headers as name;
use protocol::resource_id::OfferRid;
use protocol::throughput::{Offer, Throughput};

use super::shown;
use crate::handlers::condition;
use crate::request::{Call, RequestHeaders};
use crate::response::{Reply, ServiceError};
use engine::account::growth;
use engine::catalog::OfferEntry;
use engine::charge::throughput;

/// How the kind of an offer is to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Migration {
    None,
    ToAutoscale,
    ToManual,
}

/// Replaces an offer.
pub(crate) fn replace(call: &Call<'_>, rid: OfferRid) -> Result<Reply, ServiceError> {
    let wanted: Offer = serde_json::from_slice(&call.body)
        .map_err(|error| ServiceError::bad_request(format!("{INVALID_INPUT}. {error}")))?;
    let migration = migration(call.headers)?;
    let entry = call.account.catalog.replace_offer(rid, call.now, |current| {
        condition::check_if_match(call.headers, &current.offer.system)?;
        decide(current, &wanted, migration)
    })?;
    let pending = growth::begin(call.account, rid, call.uptime);
    Ok(shown(&entry, pending))
}

fn migration(headers: &RequestHeaders<'_>) -> Result<Migration, ServiceError> {
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

/// What the offer becomes. Pure.
fn decide(current: &OfferEntry, wanted: &Offer, migration: Migration) -> Result<Throughput, ServiceError> {
    for named in [&wanted.id, &wanted.system.rid] {
        if !named.is_empty() && *named != current.offer.id {
            return Err(ServiceError::bad_request(format!(
                "The offer in the body is '{named}', the offer in the path is '{}'.",
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
    fn the_body_decides_unless_a_migration_is_asked_for() {
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
            let decided = decide(&offer(current.clone()), &wanted, migration).ok();
            assert_eq!(decided, expected, "{current:?} {content} {migration:?}");
        }
    }

    #[test]
    fn an_offer_cannot_take_another_one_s_place() {
        let current = offer(Throughput::Manual(400));
        for body in [r#"{"_rid":"zzzz","content":{"offerThroughput":500}}"#, r#"{"id":"zzzz","content":{}}"#]
        {
            let wanted = serde_json::from_str(body).unwrap();
            let error = decide(&current, &wanted, Migration::None).expect_err(body);
            assert_eq!(error.status.0, 400);
        }
    }
}
