//! A driver over TLS, and what its diagnostics say about connections.

use perihelion_driver::transport::{
    AzureCoreAdapter, HttpClientConfig, Transport, TransportFactory, TransportRequest, TransportResponse,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use azure_core::http::Url;
use futures::FutureExt;
use futures::future::BoxFuture;
use perihelion_driver::Endpoint;
use perihelion_driver::Response;
use perihelion_driver::operation::Operation;
use perihelion_driver::options::{DriverOptions, HedgingOptions, OperationOptions};
use perihelion_driver::{Account, CosmosDriver, CosmosRuntime, Error};
use perihelion_http::Client;
use perihelion_http::trace::RequestTrace;

use crate::test_account::{TestAccount, within};

/// Longer than anything here takes, on the slowest machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Clients with one TLS configuration, each with connections of its own, that connect ahead and count it. To the
/// driver they are any `HttpClient` of `azure_core`.
#[derive(Debug)]
struct Clients {
    template: Client,
    connected: Arc<AtomicUsize>,
}

/// A client behind the adapter for `azure_core`, whose early connections are counted.
#[derive(Debug)]
struct CountedConnects {
    adapter: AzureCoreAdapter,
    client: Client,
    connected: Arc<AtomicUsize>,
}

impl TransportFactory for Clients {
    fn create(&self, _: &HttpClientConfig) -> Arc<dyn Transport> {
        let client = self.template.with_separate_pool();
        let adapter = AzureCoreAdapter::new(Arc::new(client.clone()));
        Arc::new(CountedConnects { adapter, client, connected: Arc::clone(&self.connected) })
    }
}

impl Transport for CountedConnects {
    fn send<'a>(
        &'a self,
        request: &'a TransportRequest<'a>,
    ) -> BoxFuture<'a, azure_core::Result<TransportResponse>> {
        self.adapter.send(request)
    }

    fn connect<'a>(&'a self, endpoint: &'a Url) -> BoxFuture<'a, azure_core::Result<()>> {
        async move {
            let uri = endpoint.as_str().parse().expect("an endpoint's URL");
            self.client.connect(&uri).await?;
            self.connected.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        .boxed()
    }
}

/// A driver over TLS, in a runtime of its own.
pub(crate) struct Secure {
    runtime: CosmosRuntime,
    pub(crate) driver: CosmosDriver,
    pub(crate) connected: Arc<AtomicUsize>,
}

impl Secure {
    pub(crate) async fn new(test_account: &TestAccount) -> Secure {
        let authority = test_account.running.authority_pem().await.expect("a certificate authority");
        let template = Client::builder().no_proxy().trust_pem(authority.as_bytes()).expect("PEM").build();
        let connected = Arc::default();
        let clients = Clients { template: template.expect("a client"), connected: Arc::clone(&connected) };
        let runtime = CosmosRuntime::builder(Arc::new(clients)).build().expect("valid");
        let account = Account::from_connection_string(&test_account.running.https_connection_string());
        let options = DriverOptions::new().with_operation(no_hedging());
        let driver = runtime.driver(&account.expect("valid"), options).expect("valid");
        Secure { runtime, driver, connected }
    }

    /// Shards of the endpoint that reads go to.
    pub(crate) fn shards(&self, response: &Response) -> usize {
        self.runtime.connections().route(endpoint(response)).shards().count()
    }
}

pub(crate) fn no_hedging() -> OperationOptions {
    OperationOptions::new().with_hedging(HedgingOptions::new().with_enabled(false))
}

pub(crate) async fn read(driver: &CosmosDriver, operation: &Operation) -> Result<Response, Error> {
    driver.execute_operation(operation, &within(LONG)).await
}

pub(crate) fn endpoint(response: &Response) -> &Endpoint {
    &response.diagnostics().attempts().last().expect("one attempt at least").endpoint
}

/// What happened on the connection that brought the response.
pub(crate) fn exchange(response: &Response) -> RequestTrace {
    let attempt = response.diagnostics().attempts().last().expect("one attempt at least");
    attempt.outcome.sent().expect("a response").exchange
}

pub(crate) fn shard(response: &Response) -> Option<u64> {
    let attempt = response.diagnostics().attempts().last().expect("one attempt at least");
    attempt.outcome.sent().expect("a response").shard
}
