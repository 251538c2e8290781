//! Calls without `async`, over real sockets.

use std::collections::BTreeSet;

use emulator::{Emulator, EmulatorConfig};
use perihelion::blocking::{Wait, WaitEach};
use perihelion::{ContainerProperties, CosmosClient, ErrorKind, PartitionKeyDefinition};

use crate::{Order, order};

/// Runs `test` with the connection string of an account that lives on a runtime of its own thread.
fn with_account(test: impl FnOnce(&str)) {
    let server = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let running = server.block_on(Emulator::start(EmulatorConfig::default())).expect("the emulator starts");
    test(&running.connection_string());
    server.block_on(running.stop());
}

#[test]
fn a_program_without_async_creates_writes_reads_queries_and_deletes() {
    with_account(|connection_string| {
        let client = CosmosClient::from_connection_string(connection_string).expect("valid");
        client.create_database("shop").wait().expect("created");
        let shop = client.database("shop");
        let key = PartitionKeyDefinition::hash("/customer").expect("a path");
        let properties = ContainerProperties::new("orders", key);
        shop.create_container(&properties).wait().expect("created");
        shop.create_container_if_missing(&properties).wait().expect("it exists");
        let orders = shop.container("orders");
        for n in 0..25 {
            orders.create_item("ada", &order(&format!("o-{n}"), f64::from(n))).wait().expect("created");
        }
        let read = orders.read_item::<Order>("ada", "o-7").wait().expect("read");
        assert_eq!((read.value().total, read.charge() > 0.0), (7.0, true));
        assert!(orders.read_item::<Order>("ada", "o-99").optional().wait().expect("asked").is_none());
        let error = orders.create_item("ada", &order("o-1", 0.0)).wait().expect_err("it exists");
        assert_eq!(error.kind(), ErrorKind::Conflict);

        let query = orders
            .query_items::<Order>("SELECT * FROM o WHERE o.total >= 5")
            .page_size(3.try_into().expect("3"));
        let found = query.stream().wait_each().map(|row| row.map(|order| order.id));
        let found: BTreeSet<String> = found.collect::<perihelion::Result<_>>().expect("queried");
        assert_eq!(found.len(), 20);
        let mut bad = orders.query_items::<Order>("SELECT * FORM o").stream().wait_each();
        assert_eq!(bad.next().expect("an error").expect_err("no query").kind(), ErrorKind::BadRequest);
        assert!(bad.next().is_none(), "it ends after an error");

        let names: Vec<String> =
            shop.list_containers().stream().wait_each().map(|c| c.expect("listed").id).collect();
        assert_eq!(names, ["orders"]);
        let read = |n: u8| orders.read_item::<Order>("ada", &format!("o-{n}")).wait().expect("read");
        let totals: Vec<f64> = std::thread::scope(|scope| {
            let read = &read;
            let threads: Vec<_> = (0..4).map(|n| scope.spawn(move || read(n).value().total)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert_eq!(totals, [0.0, 1.0, 2.0, 3.0]);
        orders.delete_item("ada", "o-1").wait().expect("deleted");
        shop.delete().wait().expect("deleted");
    });
}

#[tokio::test]
async fn waiting_inside_a_runtime_is_refused() {
    let client = CosmosClient::with_key("http://localhost:1", "a2V5").expect("valid");
    let error = client.create_database("shop").wait().expect_err("a thread of the runtime");
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.message().contains("use `.await` instead"), "{error}");
    let mut listed = client.list_databases().stream().wait_each();
    assert_eq!(listed.next().expect("an error").expect_err("refused").kind(), ErrorKind::Configuration);
    assert!(listed.next().is_none());
}
