//! Shared code of the examples: a shop with a container of orders.

#![allow(dead_code, reason = "each example uses a part of it")]

use perihelion::{ContainerClient, ContainerProperties, CosmosClient, PartitionKeyDefinition, Result};
use serde::{Deserialize, Serialize};

/// The connection string of the account that `peri up` starts, with the well-known emulator key.
const LOCAL: &str = "AccountEndpoint=http://localhost:8081/;AccountKey=\
    C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// A client of the account in `COSMOS_CONNECTION_STRING`, or of the local account of `peri up`.
pub(crate) fn connect() -> Result<CosmosClient> {
    CosmosClient::from_connection_string(&connection_string())
}

/// The connection string in `COSMOS_CONNECTION_STRING`, or that of the local account of `peri up`.
pub(crate) fn connection_string() -> String {
    std::env::var("COSMOS_CONNECTION_STRING").unwrap_or_else(|_| LOCAL.to_owned())
}

/// An order of a customer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) id: String,
    pub(crate) customer: String,
    pub(crate) total: f64,
}

pub(crate) fn order(id: &str, customer: &str, total: f64) -> Order {
    Order { id: id.to_owned(), customer: customer.to_owned(), total }
}

/// The container of orders, which is created if it does not exist.
pub(crate) async fn orders(client: &CosmosClient) -> Result<ContainerClient> {
    client.create_database_if_missing("shop").await?;
    let shop = client.database("shop");
    let by_customer = PartitionKeyDefinition::hash("/customer")?;
    shop.create_container_if_missing(&ContainerProperties::new("orders", by_customer)).await?;
    Ok(shop.container("orders"))
}
