//! What the clients of a process may share: connections, TLS sessions and the application's name.
//!
//! A [`CosmosRuntime`] is built once and given to the builder of each client
//! ([`CosmosClientBuilder::runtime`](crate::CosmosClientBuilder::runtime)). A client without one builds its own.

use std::path::PathBuf;
use std::sync::Arc;

use driver::options::EnvironmentOptions;
use driver::transport::TransportFactory;
use driver::{CosmosRuntime, Error, ErrorKind, ShardingConfig};
use perihelion_http::{BuildError, ClientBuilder};

use crate::Result;
use crate::client::CosmosClient;
#[cfg(feature = "fault-injection")]
use crate::faults::FaultInjector;
use crate::transport::HttpClients;

/// What to do if the certificate of a loopback endpoint is not trusted.
#[cfg(feature = "__tls")]
const UNTRUSTED_ON_LOOPBACK: &str = "if this is the local cloud, run the client as the user who runs `peri up` (with the same \
     PERI_HOME), or pass what `peri cert` prints to `trust_pem`";

impl CosmosClient {
    /// A builder of what several clients share: connections, TLS sessions and background threads of HTTP/2.
    ///
    /// ```
    /// use perihelion::{Account, CosmosClient};
    ///
    /// let runtime = CosmosClient::runtime().application("shop").build()?;
    /// # let account = |port| Account::from_connection_string(&format!("AccountEndpoint=http://localhost:{port}/;AccountKey=a2V5"));
    /// # let (orders_account, stock_account) = (account(8081)?, account(8082)?);
    /// let orders = CosmosClient::builder(orders_account).runtime(&runtime).build()?;
    /// let stock = CosmosClient::builder(stock_account).runtime(&runtime).preferred_regions(["East US"]).build()?;
    /// # Ok::<(), perihelion::Error>(())
    /// ```
    pub fn runtime() -> ClientRuntimeBuilder {
        ClientRuntimeBuilder::new()
    }
}

/// Builds a [`CosmosRuntime`], which several clients share. See [`CosmosClient::runtime`].
#[derive(Debug)]
#[must_use = "a builder does nothing until it builds"]
pub struct ClientRuntimeBuilder {
    http: std::result::Result<ClientBuilder, BuildError>,
    transport: Option<Arc<dyn TransportFactory>>,
    sharding: Option<ShardingConfig>,
    application: Option<String>,
    #[cfg(feature = "fault-injection")]
    faults: Option<FaultInjector>,
}

impl ClientRuntimeBuilder {
    pub(crate) fn new() -> ClientRuntimeBuilder {
        let http = perihelion_http::Client::builder();
        let http = match crate::local_cloud::authority_file() {
            Some(file) => trust_on_loopback(http, file),
            None => http,
        };
        ClientRuntimeBuilder {
            http: Ok(http),
            transport: None,
            sharding: None,
            application: None,
            #[cfg(feature = "fault-injection")]
            faults: None,
        }
    }

    /// Sets how requests are spread over HTTP/2 connections.
    pub fn sharding(mut self, sharding: ShardingConfig) -> Self {
        self.sharding = Some(sharding);
        self
    }

    /// Trusts these certificates in addition to those of the system: PEM, as `peri cert` prints it. Loopback endpoints of
    /// the local cloud need it only if another user, or another `PERI_HOME`, runs `peri up`.
    #[cfg(feature = "__tls")]
    pub fn trust_pem(mut self, pem: &[u8]) -> Self {
        self.http = self.http.and_then(|http| http.trust_pem(pem));
        self
    }

    /// Trusts the root certificates in this PEM file for hosts of the loopback interface, in place of the local cloud's
    /// [authority](crate::local_cloud::authority_file). The file is read when such a connection is opened.
    #[cfg(feature = "__tls")]
    pub fn loopback_authority(mut self, file: impl Into<PathBuf>) -> Self {
        self.http = self.http.map(|http| trust_on_loopback(http, file.into()));
        self
    }

    /// Accepts any certificate. **For emulators only**: anyone on the network path can read and change all
    /// traffic.
    #[cfg(feature = "__tls")]
    pub fn danger_accept_invalid_certificates(mut self) -> Self {
        self.http = self.http.map(ClientBuilder::danger_accept_invalid_certificates);
        self
    }

    /// Sets what this builder sets of the HTTP client: timeouts, pool, proxy, certificates. Settings that it leaves out keep
    /// the value of earlier calls, or the default of the driver.
    pub fn http(mut self, http: ClientBuilder) -> Self {
        self.http = self.http.map(|earlier| http.or(&earlier));
        self
    }

    /// Sends requests through transports of this factory in place of the HTTP client: another HTTP library, or the
    /// responses of a test. The settings of the HTTP client have no effect then.
    pub fn transport(mut self, factory: Arc<dyn TransportFactory>) -> Self {
        self.transport = Some(factory);
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

    /// Whether requests go through the HTTP client, and not through a transport of the application.
    pub(crate) fn uses_http_client(&self) -> bool {
        self.transport.is_none()
    }

    /// Builds the runtime. Sends nothing; an invalid option is an error that names it.
    pub fn build(self) -> Result<CosmosRuntime> {
        let clients: Arc<dyn TransportFactory> = match self.transport {
            Some(factory) => factory,
            None => Arc::new(self.http.and_then(HttpClients::new).map_err(|error| {
                Error::new(ErrorKind::Configuration, error.to_string()).with_source(error)
            })?),
        };
        #[cfg(feature = "fault-injection")]
        let clients = match self.faults {
            Some(faults) => Arc::new(driver::faults::FaultInjectingHttpClientFactory::new(clients, faults)),
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
        runtime.build()
    }
}

#[cfg(feature = "__tls")]
fn trust_on_loopback(http: ClientBuilder, file: PathBuf) -> ClientBuilder {
    http.trust_file_on_loopback(file, UNTRUSTED_ON_LOOPBACK)
}

#[cfg(not(feature = "__tls"))]
fn trust_on_loopback(http: ClientBuilder, _: PathBuf) -> ClientBuilder {
    http
}
