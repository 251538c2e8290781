//! What the examples share: a shop, with its orders by customer.

#![allow(dead_code, reason = "each example takes what it needs")]

use perihelion::{ContainerClient, ContainerProperties, CosmosClient, PartitionKeyDefinition, Result};
use serde::{Deserialize, Serialize};

/// What `peri up` starts. The key is that of every emulator of Cosmos DB.
const LOCAL: &str = "AccountEndpoint=http://localhost:8081/;AccountKey=\
    C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// The account of `PERI_CONNECTION_STRING`, a real one if you like, or the one of `peri up`.
pub(crate) fn connect() -> Result<CosmosClient> {
    match std::env::var("PERI_CONNECTION_STRING") {
        Ok(text) => CosmosClient::from_connection_string(&text),
        Err(_) => CosmosClient::from_connection_string(LOCAL),
    }
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

/// A container of orders, made if it is not there.
pub(crate) async fn orders(client: &CosmosClient) -> Result<ContainerClient> {
    client.create_database_if_missing("shop").await?;
    let shop = client.database("shop");
    let by_customer = PartitionKeyDefinition::hash("/customer")?;
    shop.create_container_if_missing(&ContainerProperties::new("orders", by_customer)).await?;
    Ok(shop.container("orders"))
}
