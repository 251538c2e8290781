//! A transport over scripted clients, in time that the test moves.

use crate::transport::{HttpClientConfig, TransportFactory};
use std::sync::Arc;
use std::time::Duration;

use azure_core::http::Url;
use protocol::authorization::{AccountKey, EMULATOR_KEY};
use protocol::partition::{PartitionKey, PartitionKeyComponent};

use super::{AttemptLimits, Credential, GatewayClient, GatewayRequest, GatewayResult};
use crate::clock::ManualTime;
use crate::diagnostics::ExecutionContext;
use crate::operation::{ContainerName, Operation};
use crate::options::OperationSettings;
use crate::routing::{Endpoint, Region};
use crate::sharding::ShardedTransport;
use crate::sharding::testing::Factory;
use crate::sharding::{EndpointShards, ShardingConfig};
use crate::transport::HeaderList;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A transport over scripted clients.
pub(crate) struct Fixture {
    pub(crate) time: ManualTime,
    pub(crate) factory: Factory,
    pub(crate) gateway: Arc<GatewayClient>,
    pub(crate) endpoint: Endpoint,
}

impl Fixture {
    pub(crate) fn new(factory: Factory) -> Fixture {
        Fixture::with_sharding(factory, ShardingConfig::default())
    }

    pub(crate) fn with_sharding(factory: Factory, sharding: ShardingConfig) -> Fixture {
        let time = ManualTime::new();
        let clients = Arc::new(factory.clone());
        Fixture::wrapped(factory, clients, sharding, time)
    }

    /// Over `clients`, which are those of `factory` behind something else.
    pub(crate) fn wrapped(
        factory: Factory,
        clients: Arc<dyn TransportFactory>,
        sharding: ShardingConfig,
        time: ManualTime,
    ) -> Fixture {
        let client = HttpClientConfig::default();
        let connections = ShardedTransport::new(clients, client, sharding, time.clock());
        let connections = Arc::new(connections.expect("a valid configuration"));
        let url = Url::parse("https://one.example/").expect("a URL");
        let key = Credential::Key(AccountKey::from_base64(EMULATOR_KEY).expect("a key"));
        let gateway = GatewayClient::new(connections, key, &url, None, time.clock());
        let endpoint = Endpoint::regional(Region::new("West US"), url);
        Fixture { time, factory, gateway: Arc::new(gateway), endpoint }
    }

    /// Carries an operation out, moving time on whenever nothing else can happen.
    pub(crate) async fn execute(&self, operation: &Operation, within: Duration) -> GatewayResult {
        let mut attempt = std::pin::pin!(self.attempt(operation, within));
        loop {
            if let std::task::Poll::Ready(result) = futures::poll!(attempt.as_mut()) {
                return result;
            }
            tokio::task::yield_now().await;
            self.time.advance_to_next();
        }
    }

    pub(crate) async fn attempt(&self, operation: &Operation, within: Duration) -> GatewayResult {
        let request = GatewayRequest {
            operation,
            endpoint: &self.endpoint,
            headers: HeaderList::new(),
            context: ExecutionContext::Initial,
            deadline: self.time.clock().now() + within,
            progress: None,
        };
        let limits = AttemptLimits::of(&OperationSettings::default(), operation.plane());
        self.gateway.execute(request, &limits).await
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.with_shards(EndpointShards::in_flight)
    }

    pub(crate) fn with_shards<T>(&self, look: impl FnOnce(&EndpointShards) -> T) -> T {
        look(self.gateway.connections().route(&self.endpoint).shards())
    }
}

pub(crate) fn read() -> Operation {
    Operation::read_item(&ContainerName::new("d", "c"), key(), "1")
}

pub(crate) fn create() -> Operation {
    Operation::create_item(&ContainerName::new("d", "c"), key(), r#"{"id":"1"}"#)
}

fn key() -> PartitionKey {
    PartitionKey::from(vec![PartitionKeyComponent::from("k")])
}
