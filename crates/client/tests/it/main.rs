//! The client against an account in three regions, over real sockets.

#![allow(
    clippy::duplicate_mod,
    reason = "each example is a program of its own, so each contains the shop module"
)]

mod bad_input;
mod blocking;
mod call_options;
mod canned_server;
mod conflicts;
mod credential;
mod examples;
mod fake_account;
mod faults;
mod feeds;
mod held_split;
mod https;
mod items;
mod options;
mod pages;
mod processor;
mod public_api;
mod read_many;
mod recording_relay;
mod recreated_containers;
mod resources;
mod runtime;
mod scripts;
mod telemetry;
mod typed;

use emulator::{Emulator, EmulatorConfig, RunningEmulator};
use perihelion::{ContainerClient, ContainerProperties, CosmosClient, PartitionKeyDefinition, Throughput};
use serde::{Deserialize, Serialize};

/// A running account, and a client of it.
struct TestAccount {
    client: CosmosClient,
    running: RunningEmulator,
}

impl TestAccount {
    async fn start() -> TestAccount {
        TestAccount::start_with(|_| {}).await
    }

    /// An account in three regions, with its configuration changed.
    async fn start_with(change: impl FnOnce(&mut EmulatorConfig)) -> TestAccount {
        let mut config = EmulatorConfig::default();
        config.regions = ["West US", "East US", "North Europe"].map(str::to_owned).to_vec().into();
        change(&mut config);
        let running = Emulator::start(config).await.expect("the emulator starts");
        let client = CosmosClient::from_connection_string(&running.connection_string()).expect("valid");
        TestAccount { client, running }
    }

    /// A container with several physical partitions, whose partition key is `/customer`.
    async fn wide_orders(&self) -> ContainerClient {
        self.client.create_database("shop").await.expect("created");
        let shop = self.client.database("shop");
        let key = PartitionKeyDefinition::hash("/customer").expect("a path");
        let orders = ContainerProperties::new("orders", key);
        shop.create_container_with(&orders, &Throughput::manual(30_000)).await.expect("created");
        shop.container("orders")
    }

    /// A container whose partition key is `/customer`.
    async fn orders(&self) -> ContainerClient {
        self.client.create_database("shop").await.expect("created");
        let shop = self.client.database("shop");
        let key = PartitionKeyDefinition::hash("/customer").expect("a path");
        shop.create_container(&ContainerProperties::new("orders", key)).await.expect("created");
        shop.container("orders")
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    id: String,
    customer: String,
    total: f64,
}

fn order(id: &str, total: f64) -> Order {
    Order { id: id.to_owned(), customer: "ada".to_owned(), total }
}

/// Sends a command to the control port of the account.
async fn control(running: &RunningEmulator, path: &str, body: serde_json::Value) {
    let client = perihelion_http::Client::builder().no_proxy().build().expect("a client");
    let url = format!("{}{}", running.control_endpoint(), path.trim_start_matches('/'));
    let request = http::Request::post(url)
        .header("content-type", "application/json")
        .body(bytes::Bytes::from(body.to_string()))
        .expect("a request");
    let response = client.send(request).await.expect("a response");
    let status = response.status();
    let bytes = response.into_body().bytes(1 << 20).await.expect("a body");
    assert!(status.is_success(), "{path}: {status} {}", String::from_utf8_lossy(&bytes));
}
