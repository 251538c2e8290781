//! How many request units a database or container may spend each second.

use driver::operation::{Operation, OperationKind, Target};
use driver::{Error, ErrorKind};
use protocol::headers as names;
use protocol::throughput::{Offer, OfferContent, Throughput};
use serde::Deserialize;
use serde_json::json;

use crate::container::ContainerClient;
use crate::database::DatabaseClient;
use crate::response::Response;
use crate::serialize::{from_body, to_body};
use crate::{CosmosClient, OperationOptions, Result};

/// Adds what a new database or container is to have.
pub(crate) fn of_new(operation: Operation, throughput: Option<&Throughput>) -> Operation {
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

/// The `_rid` of a resource, which is how its offer is found.
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

impl DatabaseClient {
    /// The throughput its containers share; none if they do not.
    pub async fn throughput(&self) -> Result<Response<Option<Throughput>>> {
        read(&self.client, Target::database(self.id())).await
    }

    /// Gives its containers another throughput to share.
    pub async fn set_throughput(&self, throughput: &Throughput) -> Result<Response<()>> {
        replace(&self.client, Target::database(self.id()), throughput).await
    }
}

impl ContainerClient {
    /// Its own throughput; none if it shares the database's.
    pub async fn throughput(&self) -> Result<Response<Option<Throughput>>> {
        read(self.client(), Target::container(self.name())).await
    }

    /// Gives it another throughput.
    pub async fn set_throughput(&self, throughput: &Throughput) -> Result<Response<()>> {
        replace(self.client(), Target::container(self.name()), throughput).await
    }
}

async fn read(client: &CosmosClient, target: Target) -> Result<Response<Option<Throughput>>> {
    let (offer, answer) = offer(client, target).await?.into_parts();
    let throughput = offer.as_ref().map(Offer::throughput).transpose();
    let throughput = throughput.map_err(|error| Error::new(ErrorKind::BadResponse, error.message))?;
    Ok(Response::with_value(throughput, answer))
}

async fn replace(client: &CosmosClient, target: Target, throughput: &Throughput) -> Result<Response<()>> {
    let mut answer = None;
    // From manual to autoscale, or back, the service chooses the amount; the one that is wanted is set after.
    for _ in 0..2 {
        let Some(mut offer) = offer(client, target.clone()).await?.into_value() else {
            let message =
                "it has no throughput of its own; it shares another's, or the account is serverless";
            return Err(Error::new(ErrorKind::NotFound, message));
        };
        if let Some(answer) = answer.take()
            && offer.throughput().as_ref() == Ok(throughput)
        {
            return Response::without_body(answer);
        }
        let migration = migration(&offer, throughput);
        offer.content = OfferContent::new(throughput);
        let operation = Operation::new(OperationKind::Replace, Target::offer(&offer.system.rid));
        let operation = operation.with_body(to_body(&offer)?);
        let operation = match migration {
            Some(header) => operation.with_header(header, "true"),
            None => operation,
        };
        let done = Box::pin(client.driver.execute_operation(&operation, &OperationOptions::new())).await?;
        if migration.is_none() {
            return Response::without_body(done);
        }
        answer = Some(done);
    }
    Err(Error::new(ErrorKind::BadResponse, "the service took the change of throughput and did not make it"))
}

/// The header that asks for another kind of throughput.
fn migration(offer: &Offer, throughput: &Throughput) -> Option<&'static str> {
    match (&offer.content.offer_autopilot_settings, throughput) {
        (Some(_), Throughput::Manual(_)) => Some(names::MIGRATE_OFFER_TO_MANUAL),
        (None, Throughput::Autoscale { .. }) => Some(names::MIGRATE_OFFER_TO_AUTOPILOT),
        _ => None,
    }
}

/// The offer of a resource, if it has one of its own.
async fn offer(client: &CosmosClient, target: Target) -> Result<Response<Option<Offer>>> {
    let options = OperationOptions::new();
    let resource = Operation::new(OperationKind::Read, target);
    let resource = Box::pin(client.driver.execute_operation(&resource, &options)).await?;
    let Identity { rid } = from_body(resource.body())?;
    let query = json!({
        "query": "SELECT * FROM o WHERE o.offerResourceId = @rid",
        "parameters": [{"name": "@rid", "value": rid}],
    });
    let query = Operation::new(OperationKind::Query, Target::offers()).with_body(to_body(&query)?);
    let answer = Box::pin(client.driver.execute_operation(&query, &options)).await?;
    let offer = from_body::<Offers>(answer.body())?.offers.into_iter().next();
    Ok(Response::with_value(offer, answer))
}
