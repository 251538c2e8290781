//! Options of a client: trusted certificates, connections, warm-up.

use emulator::faults::{FaultRule, OperationKind};
use futures::TryStreamExt;
use perihelion::connections::ShardingConfig;
use perihelion::{Account, CosmosClient, ErrorKind};

use crate::{Order, TestAccount, order};

fn over_tls(account: &TestAccount) -> Account {
    Account::from_connection_string(&account.running.https_connection_string()).expect("valid")
}

#[tokio::test]
async fn a_certificate_is_trusted_by_its_authority_or_ignored_or_rejected() {
    let account = TestAccount::start().await;
    account.orders().await.create_item("ada", &order("1", 1.0)).await.expect("created");
    let pem = account.running.authority_pem().await.expect("an authority");
    let builder = || CosmosClient::builder(over_tls(&account));
    for client in
        [builder().trust_pem(pem.as_bytes()).build(), builder().danger_accept_invalid_certificates().build()]
    {
        let orders = client.expect("valid").database("shop").container("orders");
        assert_eq!(orders.read_item::<Order>("ada", "1").await.expect("read").into_value(), order("1", 1.0));
    }
    let untrusting = builder().build().expect("valid").database("shop");
    let error = untrusting.read().await.expect_err("its authority is not trusted");
    assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
    assert!(error.message().contains("trust the certificate"), "{error}");
    let nonsense = builder().trust_pem(b"no certificate").build();
    assert_eq!(nonsense.expect_err("no certificate").kind(), ErrorKind::Configuration);
}

#[tokio::test]
async fn requests_are_spread_over_connections_as_configured() {
    let account = TestAccount::start().await;
    account.orders().await.create_item("ada", &order("1", 1.0)).await.expect("created");
    let mut sharding = ShardingConfig::default();
    sharding.max_clients_per_endpoint = 1;
    let client = CosmosClient::builder(over_tls(&account))
        .danger_accept_invalid_certificates()
        .sharding(sharding)
        .build()
        .expect("valid");
    let orders = client.database("shop").container("orders");
    let read = async || orders.read_item::<Order>("ada", "1").await.expect("read");
    let first = read().await;
    let reads = futures::future::join_all((0..40).map(|_| read())).await;
    let shard = |read: &perihelion::ItemResponse<Order>| {
        read.diagnostics().attempts()[0].outcome.sent().and_then(|sent| sent.shard)
    };
    assert!(shard(&first).is_some(), "{}", first.diagnostics().summary());
    assert!(reads.iter().all(|read| shard(read) == shard(&first)), "one connection, and all go over it");
}

#[tokio::test]
async fn after_a_warm_up_the_first_operation_reads_no_metadata() {
    let account = TestAccount::start().await;
    account.orders().await.create_item("ada", &order("1", 1.0)).await.expect("created");
    let client = CosmosClient::from_connection_string(&account.running.connection_string()).expect("valid");
    let orders = client.database("shop").container("orders");
    client.warm_up(&[&orders]).await.expect("warmed up");
    account.running.faults().add(FaultRule::status(400, 0).on(OperationKind::Metadata)).expect("a rule");
    let read = orders.read_item::<Order>("ada", "1").await.expect("read");
    assert!(read.activity_id().is_some_and(|id| !id.is_empty()));
    assert_eq!(read.diagnostics().attempts().len(), 1);
    let rows: Vec<Order> = orders.query_items("SELECT * FROM c").stream().try_collect().await.expect("rows");
    assert_eq!(rows, [order("1", 1.0)]);
    let gone = client.database("shop").container("nowhere");
    client.warm_up(&[&gone]).await.expect_err("there is no such container");
}
