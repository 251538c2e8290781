//! The first thing a new user does: a client, a container, the point operations, a query.

use std::sync::Arc;

use azure_core::credentials::Secret;
use azure_data_cosmos::{
    AccountEndpoint, AccountReference, CosmosClient, FeedScope, Query, RoutingStrategy,
    models::ContainerProperties,
};
use futures::TryStreamExt;
use serde::{Deserialize, Serialize};

use crate::harness::{Account, Outcome};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Order {
    id: String,
    customer: String,
    total: f64,
}

pub async fn quickstart(account: Arc<Account>) -> Outcome {
    let endpoint: AccountEndpoint = account.endpoint.parse()?;
    let reference = AccountReference::with_authentication_key(endpoint, Secret::from(account.key.clone()));
    let client =
        CosmosClient::builder().build(reference, RoutingStrategy::ProximityTo("East US".into())).await?;

    client.create_database("samples", None).await?;
    let database = client.database_client("samples");
    database.create_container(ContainerProperties::new("orders", "/customer".into()), None).await?;
    let orders = database.container_client("orders", None).await?;

    let order = Order { id: "o-100".into(), customer: "contoso".into(), total: 42.5 };
    orders.create_item(order.customer.clone(), &order.id, &order, None).await?;

    let mut found: Order = orders.read_item("contoso", "o-100", None).await?.into_model()?;
    assert_eq!(found, order);
    found.total = 99.99;
    orders.replace_item("contoso", "o-100", &found, None).await?;

    let query = Query::from("SELECT * FROM c WHERE c.total > @min").with_parameter("@min", 50)?;
    let mut stream = orders.query_items::<Order>(query, FeedScope::partition("contoso"), None).await?;
    let mut totals = Vec::new();
    while let Some(order) = stream.try_next().await? {
        totals.push(order.total);
    }
    assert_eq!(totals, [99.99]);

    orders.delete_item("contoso", "o-100", None).await?;
    database.delete(None).await?;
    Ok(())
}
