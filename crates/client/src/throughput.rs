//! Reads and replaces the throughput (RU/s) of a database or container, which the service stores as an offer.

use driver::operation::{Operation, OperationKind, Target};
use driver::{CallDeadline, CosmosDriver, Error, ErrorKind};
use protocol::headers as names;
use protocol::throughput::{Offer, OfferContent, Throughput};
use serde::Deserialize;
use serde_json::json;

use crate::Result;
use crate::call::CompoundCall;
use crate::response::Response;
use crate::serialize::{from_body, to_body};

/// Adds the throughput of a new database or container to the operation that creates it.
pub(crate) fn with_throughput(operation: Operation, throughput: Option<&Throughput>) -> Operation {
    match throughput {
        None => operation,
        Some(Throughput::Manual(units)) => operation.with_header(names::OFFER_THROUGHPUT, units.to_string()),
        Some(autoscale @ Throughput::Autoscale { .. }) => {
            let settings = OfferContent::new(autoscale).offer_autopilot_settings;
            let text = serde_json::to_string(&settings).expect("numbers and switches have a JSON form");
            operation.with_header(names::OFFER_AUTOPILOT_SETTINGS, text)
        }
    }
}

/// The `_rid` of a resource, by which its offer is found.
#[derive(Deserialize)]
struct Identity {
    #[serde(rename = "_rid")]
    rid: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Offers {
    offers: Vec<Offer>,
}

/// A call that reads the throughput of a database or container; none if it has no throughput of its own.
pub(crate) fn read_throughput(
    driver: &CosmosDriver,
    target: Target,
) -> CompoundCall<Response<Option<Throughput>>> {
    let offers = driver.clone();
    CompoundCall::new(driver, async move |deadline| {
        let (offer, response) = read_offer(&offers, target, &deadline).await?.into_parts();
        let throughput = offer.as_ref().map(Offer::throughput).transpose();
        let throughput = throughput.map_err(|error| Error::new(ErrorKind::BadResponse, error.message))?;
        Ok(Response::with_value(throughput, response))
    })
}

/// A call that replaces the throughput of a database or container, also from manual to autoscale or back.
pub(crate) fn replace_throughput(
    driver: &CosmosDriver,
    target: Target,
    throughput: &Throughput,
) -> CompoundCall<Response<()>> {
    let (offers, throughput) = (driver.clone(), throughput.clone());
    CompoundCall::new(driver, async move |deadline| {
        if let Some(response) = replace_offer(&offers, &target, &throughput, &deadline).await? {
            return Response::without_body(response);
        }
        // A change between manual and autoscale lets the service choose the amount; a second request then sets it.
        match replace_offer(&offers, &target, &throughput, &deadline).await {
            Ok(Some(response)) => Response::without_body(response),
            Ok(None) => {
                let message = "the service accepted the new throughput and did not apply it";
                Err(Error::new(ErrorKind::BadResponse, message))
            }
            // These kinds say that nothing was changed, which is true of the second request only.
            Err(error) if matches!(error.kind(), ErrorKind::DeadlineExceeded | ErrorKind::Unavailable) => {
                let what = error.message();
                let message =
                    format!("the kind of throughput was changed, and its amount perhaps not: {what}");
                Err(error.with_kind(ErrorKind::Undecided).with_message(message))
            }
            Err(error) => Err(error),
        }
    })
}

/// Replaces an offer, unless it is as wanted already; none if it changed between manual and autoscale, with an amount that
/// the service chose.
async fn replace_offer(
    driver: &CosmosDriver,
    target: &Target,
    throughput: &Throughput,
    deadline: &CallDeadline,
) -> Result<Option<driver::Response>> {
    let (offer, response) = read_offer(driver, target.clone(), deadline).await?.into_parts();
    let Some(mut offer) = offer else {
        let message =
            "it has no throughput of its own: it shares its database's, or the account is serverless";
        return Err(Error::new(ErrorKind::NotFound, message));
    };
    if offer.throughput().as_ref() == Ok(throughput) {
        return Ok(Some(response));
    }
    let migration = migration_header(&offer, throughput);
    offer.content = OfferContent::new(throughput);
    let mut operation =
        Operation::new(OperationKind::Replace, Target::offer(&offer.system.rid)).with_body(to_body(&offer)?);
    if let Some(header) = migration {
        operation = operation.with_header(header, "true");
    }
    let replaced = Box::pin(driver.execute_operation(&operation, &deadline.options()?)).await?;
    Ok(migration.is_none().then_some(replaced))
}

/// The header that changes an offer between manual and autoscale throughput, if that is needed.
fn migration_header(offer: &Offer, throughput: &Throughput) -> Option<&'static str> {
    match (&offer.content.offer_autopilot_settings, throughput) {
        (Some(_), Throughput::Manual(_)) => Some(names::MIGRATE_OFFER_TO_MANUAL),
        (None, Throughput::Autoscale { .. }) => Some(names::MIGRATE_OFFER_TO_AUTOPILOT),
        _ => None,
    }
}

/// Reads the offer of a database or container; none if it has no offer of its own.
async fn read_offer(
    driver: &CosmosDriver,
    target: Target,
    deadline: &CallDeadline,
) -> Result<Response<Option<Offer>>> {
    let resource = Operation::new(OperationKind::Read, target);
    let resource = Box::pin(driver.execute_operation(&resource, &deadline.options()?)).await?;
    let Identity { rid } = from_body(resource.body())?;
    let query = json!({
        "query": "SELECT * FROM o WHERE o.offerResourceId = @rid",
        "parameters": [{"name": "@rid", "value": rid}],
    });
    let query = Operation::new(OperationKind::Query, Target::offers()).with_body(to_body(&query)?);
    let response = Box::pin(driver.execute_operation(&query, &deadline.options()?)).await?;
    let offer = from_body::<Offers>(response.body())?.offers.into_iter().next();
    Ok(Response::with_value(offer, response))
}
