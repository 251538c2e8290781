//! What a client can be told besides the account: trust, connections, what to learn ahead.

use emulator::faults::{FaultRule, OperationKind as Asked};
use futures::TryStreamExt;
use perihelion::connections::ShardingConfig;
use perihelion::{Account, CosmosClient, ErrorKind};

use crate::{Lab, Order, order};

fn over_tls(lab: &Lab) -> Account {
    Account::from_connection_string(&lab.running.https_connection_string()).expect("valid")
}

#[tokio::test]
async fn a_certificate_is_trusted_by_its_authority_or_not_looked_at_or_refused() {
    let lab = Lab::start().await;
    lab.orders().await.create_item("ada", &order("1", 1.0)).await.expect("made");
    let pem = lab.running.authority_pem().await.expect("an authority");
    let builder = || CosmosClient::builder(over_tls(&lab));
    for client in
        [builder().trust_pem(pem.as_bytes()).build(), builder().danger_accept_invalid_certificates().build()]
    {
        let orders = client.expect("valid").database("shop").container("orders");
        assert_eq!(orders.read_item::<Order>("ada", "1").await.expect("read").into_value(), order("1", 1.0));
    }
    let stranger = builder().build().expect("valid").database("shop");
    let error = stranger.read().await.expect_err("nobody vouches for it");
    assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
    assert!(error.message().contains("trust the certificate"), "{error}");
    let nonsense = builder().trust_pem(b"no certificate").build();
    assert_eq!(nonsense.expect_err("no certificate").kind(), ErrorKind::Configuration);
}

#[tokio::test]
async fn connections_are_spread_as_the_client_is_told() {
    let lab = Lab::start().await;
    lab.orders().await.create_item("ada", &order("1", 1.0)).await.expect("made");
    let mut sharding = ShardingConfig::default();
    sharding.max_clients_per_endpoint = 1;
    let client = CosmosClient::builder(over_tls(&lab))
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
async fn what_was_learnt_ahead_need_not_be_asked_for() {
    let lab = Lab::start().await;
    lab.orders().await.create_item("ada", &order("1", 1.0)).await.expect("made");
    let client = CosmosClient::from_connection_string(&lab.running.connection_string()).expect("valid");
    let orders = client.database("shop").container("orders");
    client.warm_up(&[&orders]).await.expect("learnt");
    lab.running.faults().add(FaultRule::status(400, 0).on(Asked::Metadata)).expect("a rule");
    let read = orders.read_item::<Order>("ada", "1").await.expect("read");
    assert!(read.activity_id().is_some_and(|id| !id.is_empty()));
    assert_eq!(read.diagnostics().attempts().len(), 1);
    let rows: Vec<Order> = orders.query_items("SELECT * FROM c").stream().try_collect().await.expect("rows");
    assert_eq!(rows, [order("1", 1.0)]);
    let gone = client.database("shop").container("nowhere");
    client.warm_up(&[&gone]).await.expect_err("there is no such container to learn");
}
