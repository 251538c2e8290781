//! An account in three regions, and drivers that speak to it.

use perihelion_driver::transport::{HttpClientConfig, Transport, TransportFactory};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use emulator::{Emulator, EmulatorConfig, RunningEmulator};
use perihelion_driver::Response;
use perihelion_driver::operation::{ContainerName, Operation, OperationKind, Scope, Target};
use perihelion_driver::options::{
    DriverOptions, HedgingOptions, OperationOptions, RegionOptions, TimeoutOptions,
};
use perihelion_driver::{Account, CosmosDriver, CosmosRuntime, Error};
use protocol::partition::PartitionKey;
use serde_json::{Value, json};

pub(crate) const WEST: &str = "West US";
pub(crate) const EAST: &str = "East US";
pub(crate) const NORTH: &str = "North Europe";

/// The deadline of operations in these tests, unless they say otherwise: nothing takes as long on a good day.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// Makes clients of the product's own.
#[derive(Debug)]
pub(crate) struct Clients;

impl TransportFactory for Clients {
    fn create(&self, config: &HttpClientConfig) -> Arc<dyn Transport> {
        let client = perihelion_http::Client::builder()
            .connect_timeout(config.connect_timeout)
            .no_proxy()
            .build()
            .expect("a client of defaults");
        Arc::new(client)
    }
}

/// A running account with the container `d/c`, partitioned by `/pk`.
pub(crate) struct TestAccount {
    pub(crate) running: RunningEmulator,
    pub(crate) container: ContainerName,
}

impl TestAccount {
    /// Three regions, of which the first writes.
    pub(crate) async fn start() -> TestAccount {
        TestAccount::start_with(|_| {}).await
    }

    /// Three regions, all of which write.
    pub(crate) async fn start_multi_write() -> TestAccount {
        TestAccount::start_with(|config| config.multi_write = true).await
    }

    /// Three regions, with a changed configuration.
    pub(crate) async fn start_with(change: impl FnOnce(&mut EmulatorConfig)) -> TestAccount {
        let mut config = EmulatorConfig::default();
        config.regions = [WEST, EAST, NORTH].map(str::to_owned).to_vec();
        config.partitions = NonZeroU32::new(4);
        change(&mut config);
        let running = Emulator::start(config).await.expect("the emulator starts");
        let test_account = TestAccount { running, container: ContainerName::new("d", "c") };
        let driver = test_account.driver();
        test_account.create(&driver, Target::databases(), json!({"id": "d"})).await;
        // ORDER BY over several properties needs an index that has exactly them.
        let composite = |first: &str, second: &str, order: &str| json!([{"path": first}, {"path": second, "order": order}]);
        let container = json!({
            "id": "c",
            "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
            "indexingPolicy": {"compositeIndexes": [
                composite("/k", "/id", "ascending"),
                composite("/n", "/id", "ascending"),
                composite("/n", "/id", "descending"),
                composite("/g", "/id", "ascending"),
                composite("/g", "/id", "descending"),
            ]},
        });
        test_account.create(&driver, Target::containers("d"), container).await;
        test_account
    }

    async fn create(&self, driver: &CosmosDriver, target: Target, body: Value) {
        let operation = Operation::new(OperationKind::Create, target).with_body(body.to_string());
        run(driver, &operation).await.expect("it is made");
    }

    /// A driver that prefers the regions in the account's order.
    pub(crate) fn driver(&self) -> CosmosDriver {
        self.driver_with(DriverOptions::new())
    }

    /// A driver that prefers these regions.
    pub(crate) fn driver_preferring(&self, regions: &[&str]) -> CosmosDriver {
        let regions = RegionOptions::new().with_preferred(regions.iter().copied());
        self.driver_with(DriverOptions::new().with_operation(OperationOptions::new().with_regions(regions)))
    }

    /// A driver with options of its own.
    pub(crate) fn driver_with(&self, options: DriverOptions) -> CosmosDriver {
        self.driver_of(&self.account(), options)
    }

    /// The account as its connection string names it: by the endpoint of its first region.
    pub(crate) fn account(&self) -> Account {
        Account::from_connection_string(&self.running.connection_string()).expect("valid")
    }

    /// A driver for this account, said in another way.
    pub(crate) fn driver_of(&self, account: &Account, options: DriverOptions) -> CosmosDriver {
        let runtime = CosmosRuntime::builder(Arc::new(Clients)).build().expect("valid");
        runtime.driver(account, options).expect("valid")
    }

    /// A driver with another account key.
    pub(crate) fn driver_with_key(&self, key: &str) -> CosmosDriver {
        let runtime = CosmosRuntime::builder(Arc::new(Clients)).build().expect("valid");
        let account = Account::with_key(&self.running.endpoint(), key).expect("valid");
        runtime.driver(&account, DriverOptions::new()).expect("valid")
    }

    /// Reads an item whose key is its id.
    pub(crate) fn read(&self, id: &str) -> Operation {
        Operation::read_item(&self.container, PartitionKey::single(id), id)
    }

    /// Makes an item whose key is its id.
    pub(crate) fn create_item(&self, id: &str) -> Operation {
        Operation::create_item(&self.container, PartitionKey::single(id), item(id, 1))
    }

    /// Writes an item whose key is its id.
    pub(crate) fn upsert(&self, id: &str, value: u64) -> Operation {
        Operation::upsert_item(&self.container, PartitionKey::single(id), item(id, value))
    }

    /// All items of one logical partition, by a query.
    pub(crate) fn query(&self, id: &str, text: &str) -> Operation {
        Operation::new(OperationKind::Query, Target::items(&self.container))
            .with_scope(Scope::Key(PartitionKey::single(id)))
            .with_body(json!({"query": text}).to_string())
    }

    /// Sends a request to the control port and returns the response.
    pub(crate) async fn control(&self, method: http::Method, path: &str, body: Value) -> Value {
        let client = perihelion_http::Client::builder().no_proxy().build().expect("a client");
        let url = format!("{}{}", self.running.control_endpoint(), path.trim_start_matches('/'));
        let request = http::Request::builder()
            .method(method)
            .uri(url)
            .header("content-type", "application/json")
            .body(bytes::Bytes::from(body.to_string()))
            .expect("a request");
        let response = client.send(request).await.expect("a response");
        let status = response.status();
        let bytes = response.into_body().bytes(1 << 20).await.expect("a body");
        assert!(status.is_success(), "{path}: {status} {}", String::from_utf8_lossy(&bytes));
        serde_json::from_slice(&bytes).unwrap_or(Value::Null)
    }
}

/// An item whose key is its id.
pub(crate) fn item(id: &str, value: u64) -> String {
    json!({"id": id, "pk": id, "value": value}).to_string()
}

/// Options of a driver without hedging, so that a test sees failover alone.
pub(crate) fn without_hedging() -> DriverOptions {
    let hedging = HedgingOptions::new().with_enabled(false);
    DriverOptions::new().with_operation(OperationOptions::new().with_hedging(hedging))
}

/// Options with a deadline.
pub(crate) fn within(deadline: Duration) -> OperationOptions {
    OperationOptions::new().with_timeouts(TimeoutOptions::new().with_end_to_end(deadline))
}

/// Carries out an operation within the usual deadline.
pub(crate) async fn run(driver: &CosmosDriver, operation: &Operation) -> Result<Response, Error> {
    driver.execute_operation(operation, &within(DEADLINE)).await
}

/// The body of a response.
pub(crate) fn body(response: &Response) -> Value {
    serde_json::from_slice(response.body()).expect("JSON")
}

/// Where each attempt of an operation went, in order.
pub(crate) fn regions(response: &Response) -> Vec<String> {
    response
        .diagnostics()
        .attempts()
        .iter()
        .map(|attempt| attempt.endpoint.region().as_str().to_owned())
        .collect()
}
