//! Creates clients: from a connection string, a key or a credential, with options or without.

use std::sync::Arc;
use std::time::Duration;

use azure_core::credentials::TokenCredential;
use driver::ShardingConfig;
#[cfg(feature = "fault-injection")]
use driver::faults::{FaultInjectingHttpClientFactory, FaultInjector};
use driver::options::{DriverOptions, EnvironmentOptions, OperationOptions, RegionOptions, TimeoutOptions};
use driver::transport::{HttpClientConfig, TransportFactory};
use driver::{Account, CosmosRuntime, Error, ErrorKind};
use perihelion_http::pool::PoolConfig;
use perihelion_http::{BuildError, ClientBuilder};

use crate::Result;
use crate::client::CosmosClient;
use crate::transport::HttpClients;

impl CosmosClient {
    /// A client of the account of a connection string, `AccountEndpoint=…;AccountKey=…`, with default options.
    /// Nothing is sent before the first operation.
    pub fn from_connection_string(text: &str) -> Result<CosmosClient> {
        CosmosClient::builder(Account::from_connection_string(text)?).build()
    }

    /// A client of the account at `endpoint`, with an account key as the portal shows it.
    pub fn with_key(endpoint: &str, key: &str) -> Result<CosmosClient> {
        CosmosClient::builder(Account::with_key(endpoint, key)?).build()
    }

    /// A client of the account at `endpoint` that signs in with Microsoft Entra ID: with a credential of
    /// `azure_identity` or one of your own. Tokens are cached, and replaced before they expire.
    ///
    /// Tokens are requested for the account's own scope, `https://{host}/.default`, which is valid in every cloud;
    /// [`Account::with_scope`] sets another.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use perihelion::CosmosClient;
    /// use perihelion::credentials::TokenCredential;
    ///
    /// # fn connect(credential: Arc<dyn TokenCredential>) -> perihelion::Result<CosmosClient> {
    /// CosmosClient::from_credential("https://shop.documents.azure.com", credential)
    /// # }
    /// ```
    pub fn from_credential(endpoint: &str, credential: Arc<dyn TokenCredential>) -> Result<CosmosClient> {
        CosmosClient::builder(Account::with_credential(endpoint, credential)?).build()
    }

    /// A builder of a client with options.
    pub fn builder(account: Account) -> CosmosClientBuilder {
        CosmosClientBuilder::new(account)
    }
}

/// Builds a [`CosmosClient`] with options.
///
/// ```
/// use std::time::Duration;
/// use perihelion::{Account, CosmosClient};
///
/// let account = Account::from_connection_string("AccountEndpoint=http://localhost:8081/;AccountKey=a2V5")?;
/// let client = CosmosClient::builder(account)
///     .preferred_regions(["East US", "West US"])
///     .timeout(Duration::from_secs(5))
///     .build()?;
/// # Ok::<(), perihelion::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until it builds"]
pub struct CosmosClientBuilder {
    account: Account,
    http: std::result::Result<ClientBuilder, BuildError>,
    options: DriverOptions,
    sharding: Option<ShardingConfig>,
    application: Option<String>,
    #[cfg(feature = "fault-injection")]
    faults: Option<FaultInjector>,
    #[cfg(feature = "telemetry")]
    meter: Option<opentelemetry::metrics::Meter>,
}

impl CosmosClientBuilder {
    pub(crate) fn new(account: Account) -> CosmosClientBuilder {
        let config = HttpClientConfig::default();
        // The pool allows as many connections as there are requests in flight, which the driver limits.
        let pool = PoolConfig::builder()
            .max_per_host(config.pool_max_idle_per_host)
            .max_idle_time(config.pool_idle_timeout)
            .build()
            .expect("the driver's own limits are valid");
        let http = perihelion_http::Client::builder()
            .connect_timeout(config.connect_timeout)
            .tcp_keepalive(config.tcp_keepalive)
            .pool(pool);
        CosmosClientBuilder {
            account,
            http: Ok(http),
            options: DriverOptions::new(),
            sharding: None,
            application: None,
            #[cfg(feature = "fault-injection")]
            faults: None,
            #[cfg(feature = "telemetry")]
            meter: None,
        }
    }

    /// Sets the preferred regions, most preferred first. Default: the order of the account.
    pub fn preferred_regions<R: AsRef<str>>(self, regions: impl IntoIterator<Item = R>) -> Self {
        let names: Vec<R> = regions.into_iter().collect();
        let regions = RegionOptions::new().with_preferred(names.iter().map(AsRef::as_ref));
        self.operations(OperationOptions::new().with_regions(regions))
    }

    /// Sets how long an operation may take in total, including retries and attempts in other regions.
    pub fn timeout(self, time: Duration) -> Self {
        let timeouts = TimeoutOptions::new().with_end_to_end(time);
        self.operations(OperationOptions::new().with_timeouts(timeouts))
    }

    /// Sets default options of all operations. Fields that are not set here keep the value of earlier calls.
    pub fn operations(mut self, options: OperationOptions) -> Self {
        self.options.operation = options.or(&self.options.operation);
        self
    }

    /// Sets all options of the driver, and replaces those of earlier calls.
    pub fn options(mut self, options: DriverOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets how requests are spread over HTTP/2 connections.
    pub fn sharding(mut self, sharding: ShardingConfig) -> Self {
        self.sharding = Some(sharding);
        self
    }

    /// Trusts these certificates in addition to those of the system: PEM, as `peri cert` prints it.
    pub fn trust_pem(mut self, pem: &[u8]) -> Self {
        self.http = self.http.and_then(|http| http.trust_pem(pem));
        self
    }

    /// Accepts any certificate. **For emulators only**: anyone on the network path can read and change all
    /// traffic.
    pub fn danger_accept_invalid_certificates(mut self) -> Self {
        self.http = self.http.map(ClientBuilder::danger_accept_invalid_certificates);
        self
    }

    /// Sends requests with an HTTP client of these settings, and replaces the certificate settings of earlier calls.
    pub fn http(mut self, http: ClientBuilder) -> Self {
        self.http = Ok(http);
        self
    }

    /// Sets the name of the application, which is added to the user agent of every request.
    pub fn application(mut self, name: impl Into<String>) -> Self {
        self.application = Some(name.into());
        self
    }

    /// Makes requests fail as the rules of `faults` say, now and later. For tests of applications; see
    /// [`faults`](crate::faults). Feature `fault-injection`.
    #[cfg(feature = "fault-injection")]
    pub fn faults(mut self, faults: &FaultInjector) -> Self {
        self.faults = Some(faults.clone());
        self
    }

    /// Records the metrics of the client with instruments of this provider: the program's own, or
    /// `opentelemetry::global::meter_provider()`. See [`telemetry`](crate::telemetry). Feature `telemetry`.
    #[cfg(feature = "telemetry")]
    pub fn meter_provider(mut self, provider: &dyn opentelemetry::metrics::MeterProvider) -> Self {
        self.meter = Some(crate::telemetry::meter(provider));
        self
    }

    /// Builds the client. Sends nothing; an invalid option is an error that names it.
    pub fn build(self) -> Result<CosmosClient> {
        let clients = self
            .http
            .and_then(HttpClients::new)
            .map_err(|error| Error::new(ErrorKind::Configuration, error.to_string()).with_source(error))?;
        let clients: Arc<dyn TransportFactory> = Arc::new(clients);
        #[cfg(feature = "fault-injection")]
        let clients = match self.faults {
            Some(faults) => Arc::new(FaultInjectingHttpClientFactory::new(clients, faults)),
            None => clients,
        };
        let environment = EnvironmentOptions::of_process()?;
        let mut runtime = CosmosRuntime::builder(clients).with_environment(environment);
        if let Some(sharding) = self.sharding {
            runtime = runtime.with_sharding(sharding);
        }
        if let Some(application) = self.application {
            runtime = runtime.with_application(application);
        }
        let driver = runtime.build()?.driver(&self.account, self.options)?;
        #[cfg(feature = "telemetry")]
        if let Some(meter) = &self.meter {
            crate::telemetry::record_metrics(&driver, meter);
        }
        Ok(CosmosClient { driver })
    }
}
