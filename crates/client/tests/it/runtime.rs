//! What clients share, and where they send requests: a runtime for several clients, and regions by distance.

use perihelion::{
    Account, ConsistencyOptions, CosmosClient, ErrorKind, OperationOptions, ReadConsistencyStrategy,
};

use crate::{Order, TestAccount, order};

fn account_of(account: &TestAccount) -> Account {
    Account::from_connection_string(&account.running.connection_string()).expect("valid")
}

#[tokio::test]
async fn clients_of_one_runtime_share_its_connections() {
    let account = TestAccount::start().await;
    account.client.create_database("shop").await.expect("created");
    let runtime = CosmosClient::runtime().application("shared").build().expect("valid");
    let mut connections = Vec::new();
    for _ in 0..2 {
        let client = CosmosClient::builder(account_of(&account)).runtime(&runtime).build().expect("valid");
        let read = client.database("shop").read().await.expect("read");
        let sent = read.diagnostics().attempts().last().and_then(|attempt| attempt.outcome.sent().cloned());
        connections.push(sent.expect("it was sent").exchange.connection.expect("a connection"));
    }
    assert_eq!(connections[0], connections[1]);
    let own = CosmosClient::builder(account_of(&account)).build().expect("valid");
    let read = own.database("shop").read().await.expect("read");
    let sent = read.diagnostics().attempts().last().and_then(|attempt| attempt.outcome.sent().cloned());
    assert_ne!(sent.expect("it was sent").exchange.connection, Some(connections[0]));
}

#[tokio::test]
async fn a_setting_of_connections_belongs_to_the_runtime_that_is_shared() {
    let account = Account::with_key("http://localhost:1", "a2V5").expect("valid");
    let runtime = CosmosClient::runtime().build().expect("valid");
    let error =
        CosmosClient::builder(account).application("mine").runtime(&runtime).build().expect_err("two owners");
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.message().contains("`application` is a setting of connections"), "{error}");
}

#[tokio::test]
async fn reads_go_to_the_region_nearest_to_the_application() {
    let account = TestAccount::start().await;
    account.orders().await.create_item("ada", &order("1", 1.0)).await.expect("created");
    let any = ConsistencyOptions::new().with_read_strategy(ReadConsistencyStrategy::Eventual);
    for (region, nearest) in [
        ("UK South", "North Europe"),
        ("germanywestcentral", "North Europe"),
        ("Canada East", "East US"),
        ("West US 2", "West US"),
        ("Japan East", "West US"),
    ] {
        let client = CosmosClient::builder(account_of(&account)).region(region).build().expect("valid");
        let orders = client.database("shop").container("orders");
        let read = orders.read_item::<Order>("ada", "1");
        let read = read.options(OperationOptions::new().with_consistency(any.clone())).await.expect("read");
        let attempt = read.diagnostics().attempts().last().expect("an attempt");
        assert_eq!(attempt.endpoint.region().as_str(), nearest, "from {region}");
    }
    let unknown = CosmosClient::builder(account_of(&account)).region("Mars North").build();
    let error = unknown.expect_err("no such region");
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(
        error.message().contains("`Mars North`") && error.message().contains("`preferred_regions`"),
        "{error}"
    );
}
