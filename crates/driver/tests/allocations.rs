//! What the way of a request allocates: counted, because it is paid by every request.
//!
//! A binary of its own: the count is of the whole process.

use perihelion_driver::Credential;
use perihelion_driver::diagnostics::ExecutionContext;
use perihelion_driver::testing::ShardedTransport;
use perihelion_driver::testing::{AttemptLimits, GatewayClient, GatewayOutcome, GatewayRequest};
use perihelion_driver::transport::{
    HeaderList, HttpClientConfig, Transport, TransportFactory, TransportRequest, TransportResponse,
};
use std::alloc::System;
use std::sync::Arc;
use std::time::Duration;

use azure_core::http::Url;
use bytes::Bytes;
use futures::future::BoxFuture;
use perihelion_driver::Clock;
use perihelion_driver::ShardingConfig;
use perihelion_driver::operation::{ContainerName, Operation, Plane, ResponseHeaders};
use perihelion_driver::options::OperationSettings;
use perihelion_driver::{Endpoint, Region};
use protocol::authorization::{AccountKey, EMULATOR_KEY};
use protocol::partition::PartitionKey;
use protocol::status::Status;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// A transport that responds from memory.
#[derive(Debug)]
struct Memory;

#[derive(Debug)]
struct Memories;

impl TransportFactory for Memories {
    fn create(&self, _: &HttpClientConfig) -> Arc<dyn Transport> {
        Arc::new(Memory)
    }
}

impl Transport for Memory {
    fn send<'a>(
        &'a self,
        _: &'a TransportRequest<'a>,
    ) -> BoxFuture<'a, azure_core::Result<TransportResponse>> {
        Box::pin(async {
            Ok(TransportResponse::new(Status::OK, ResponseHeaders::default(), Bytes::from_static(b"{}")))
        })
    }
}

fn allocations() -> usize {
    let stats = COUNTED.stats();
    stats.allocations + stats.reallocations
}

#[tokio::test]
async fn choosing_a_shard_allocates_nothing_and_a_request_a_handful() {
    let (client, sharding, clock) =
        (HttpClientConfig::default(), ShardingConfig::default(), Clock::machine());
    let connections = ShardedTransport::new(Arc::new(Memories), client, sharding, clock.clone());
    let url = Url::parse("https://one.example/").expect("a URL");
    let key = Credential::Key(AccountKey::from_base64(EMULATOR_KEY).expect("a key"));
    let gateway = GatewayClient::new(Arc::new(connections.expect("valid")), key, &url, None, clock.clone());
    let endpoint = Endpoint::regional(Region::new("West US"), url);
    let operation = Operation::read_item(&ContainerName::new("d", "c"), PartitionKey::single("k"), "1");
    let limits = AttemptLimits::of(&OperationSettings::default(), Plane::Data);
    let mut least = usize::MAX;
    for _ in 0..20 {
        let request = GatewayRequest {
            operation: &operation,
            endpoint: &endpoint,
            headers: HeaderList::new(),
            context: ExecutionContext::Initial,
            deadline: clock.now() + Duration::from_secs(60),
            progress: None,
        };
        let before = allocations();
        let result = gateway.execute(request, &limits).await;
        // The first makes what stays, and a new second a new date: neither is what most requests pay.
        least = least.min(allocations() - before);
        assert!(matches!(result.outcome, GatewayOutcome::Success(_)), "{result:?}");
    }
    // The signature, its base64, and the client's own future.
    assert!(least <= 3, "{least} allocations");

    let route = gateway.connections().route(&endpoint);
    let now = Duration::from_secs(1);
    let rounds = (0..5).map(|_| {
        let before = allocations();
        for _ in 0..1000 {
            route.shards().acquire(None, now).succeeded(now);
        }
        allocations() - before
    });
    assert_eq!(rounds.min(), Some(0), "what the test's own harness allocates is in some of them at most");
}
