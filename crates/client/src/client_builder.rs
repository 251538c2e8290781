//! A client's options, chosen once.

use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "fault-injection")]
use driver::faults::{FaultInjectingHttpClientFactory, FaultInjector};
use driver::options::{DriverOptions, EnvironmentOptions, OperationOptions, RegionOptions, TimeoutOptions};
use driver::sharding::{HttpClientConfig, HttpClientFactory, ShardingConfig};
use driver::{Account, CosmosRuntime, Error, ErrorKind};
use perihelion_http::pool::PoolConfig;
use perihelion_http::{BuildError, ClientBuilder};

use crate::Result;
use crate::client::CosmosClient;
use crate::transport::Clients;

/// Options of a [`CosmosClient`].
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
}

impl CosmosClientBuilder {
    pub(crate) fn new(account: Account) -> CosmosClientBuilder {
        let config = HttpClientConfig::default();
        // As many as there are requests in flight: the driver decides how many that may be.
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
        }
    }

    /// Prefers these regions, first one first; otherwise the account's own order.
    pub fn preferred_regions<R: AsRef<str>>(self, regions: impl IntoIterator<Item = R>) -> Self {
        let names: Vec<R> = regions.into_iter().collect();
        let regions = RegionOptions::new().with_preferred(names.iter().map(AsRef::as_ref));
        self.operations(OperationOptions::new().with_regions(regions))
    }

    /// How long an operation may take in all, retries and other regions included.
    pub fn timeout(self, time: Duration) -> Self {
        let timeouts = TimeoutOptions::new().with_end_to_end(time);
        self.operations(OperationOptions::new().with_timeouts(timeouts))
    }

    /// What operations get that say nothing of their own; what was said before remains where this is silent.
    pub fn operations(mut self, options: OperationOptions) -> Self {
        self.options.operation = options.or(&self.options.operation);
        self
    }

    /// Everything the driver can be told; replaces what was said before.
    pub fn options(mut self, options: DriverOptions) -> Self {
        self.options = options;
        self
    }

    /// How HTTP/2 connections are spread.
    pub fn sharding(mut self, sharding: ShardingConfig) -> Self {
        self.sharding = Some(sharding);
        self
    }

    /// Trusts these certificates too, as PEM: what `peri cert` prints.
    pub fn trust_pem(mut self, pem: &[u8]) -> Self {
        self.http = self.http.and_then(|http| http.trust_pem(pem));
        self
    }

    /// Takes any certificate. **For emulators only**: whoever is on the way can read and change everything.
    pub fn danger_accept_invalid_certificates(mut self) -> Self {
        self.http = self.http.map(ClientBuilder::danger_accept_invalid_certificates);
        self
    }

    /// Speaks HTTP through a client of these settings; replaces what was said about certificates.
    pub fn http(mut self, http: ClientBuilder) -> Self {
        self.http = Ok(http);
        self
    }

    /// The application's name, added to the user agent of every request.
    pub fn application(mut self, name: impl Into<String>) -> Self {
        self.application = Some(name.into());
        self
    }

    /// Makes requests fail as the rules of `faults` say, now and later: for tests of applications, see
    /// [`faults`](crate::faults). Feature `fault-injection`.
    #[cfg(feature = "fault-injection")]
    pub fn faults(mut self, faults: &FaultInjector) -> Self {
        self.faults = Some(faults.clone());
        self
    }

    /// The client. Nothing is sent yet; an option that cannot be obeyed is an error that names it.
    pub fn build(self) -> Result<CosmosClient> {
        let clients = self
            .http
            .and_then(Clients::new)
            .map_err(|error| Error::new(ErrorKind::Configuration, error.to_string()).with_source(error))?;
        let clients: Arc<dyn HttpClientFactory> = Arc::new(clients);
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
        Ok(CosmosClient { driver })
    }
}
