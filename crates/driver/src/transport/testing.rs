//! A transport over scripted clients, in time that the test moves.

use std::sync::Arc;
use std::time::Duration;

use azure_core::http::Url;
use protocol::authorization::{AccountKey, EMULATOR_KEY};
use protocol::partition::{PartitionKey, PartitionKeyComponent};

use super::adaptive::AdaptiveTransport;
use super::authorization::Credential;
use super::header_list::HeaderList;
use super::outcome::TransportResult;
use super::request::{ExecutionContext, TransportRequest};
use super::{AttemptLimits, Transport};
use crate::clock::ManualTime;
use crate::operation::{ContainerName, Operation};
use crate::options::OperationSettings;
use crate::routing::{Endpoint, Region};
use crate::sharding::testing::Factory;
use crate::sharding::{EndpointShards, HttpClientConfig, HttpClientFactory, ShardingConfig};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A transport over scripted clients.
pub(crate) struct World {
    pub(crate) time: ManualTime,
    pub(crate) factory: Factory,
    pub(crate) transport: Arc<Transport>,
    pub(crate) endpoint: Endpoint,
}

impl World {
    pub(crate) fn new(factory: Factory) -> World {
        World::with_sharding(factory, ShardingConfig::default())
    }

    pub(crate) fn with_sharding(factory: Factory, sharding: ShardingConfig) -> World {
        let time = ManualTime::new();
        let clients = Arc::new(factory.clone());
        World::wrapped(factory, clients, sharding, time)
    }

    /// Over `clients`, which are those of `factory` behind something else.
    pub(crate) fn wrapped(
        factory: Factory,
        clients: Arc<dyn HttpClientFactory>,
        sharding: ShardingConfig,
        time: ManualTime,
    ) -> World {
        let client = HttpClientConfig::default();
        let adaptive = AdaptiveTransport::new(clients, client, sharding, time.clock());
        let adaptive = Arc::new(adaptive.expect("a valid configuration"));
        let url = Url::parse("https://one.example/").expect("a URL");
        let key = Credential::Key(AccountKey::from_base64(EMULATOR_KEY).expect("a key"));
        let transport = Transport::new(adaptive, key, &url, None, time.clock());
        let endpoint = Endpoint::regional(Region::new("West US"), url);
        World { time, factory, transport: Arc::new(transport), endpoint }
    }

    /// Carries an operation out, moving time on whenever nothing else can happen.
    pub(crate) async fn execute(&self, operation: &Operation, within: Duration) -> TransportResult {
        let mut attempt = std::pin::pin!(self.attempt(operation, within));
        loop {
            if let std::task::Poll::Ready(result) = futures::poll!(attempt.as_mut()) {
                return result;
            }
            tokio::task::yield_now().await;
            self.time.advance_to_next();
        }
    }

    pub(crate) async fn attempt(&self, operation: &Operation, within: Duration) -> TransportResult {
        let request = TransportRequest {
            operation,
            endpoint: &self.endpoint,
            headers: HeaderList::new(),
            context: ExecutionContext::Initial,
            deadline: self.time.clock().now() + within,
        };
        let limits = AttemptLimits::of(&OperationSettings::default(), operation.plane());
        self.transport.execute(request, &limits).await
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.with_shards(EndpointShards::in_flight)
    }

    pub(crate) fn with_shards<T>(&self, look: impl FnOnce(&EndpointShards) -> T) -> T {
        look(self.transport.adaptive().gateway(&self.endpoint).shards())
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
