//! Creates clients: from a connection string, a key or a credential, with options or without.

#[cfg(feature = "__tls")]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use azure_core::credentials::TokenCredential;
use driver::options::{DriverOptions, OperationOptions, RegionOptions, TimeoutOptions};
use driver::transport::TransportFactory;
use driver::{Account, CosmosRuntime, Error, ErrorKind, ShardingConfig};
use perihelion_http::ClientBuilder;

use crate::Result;
use crate::client::CosmosClient;
#[cfg(feature = "fault-injection")]
use crate::faults::FaultInjector;
use crate::region_distance::regions_by_distance;
use crate::runtime::ClientRuntimeBuilder;

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
    options: DriverOptions,
    /// The application's own region, from which the preferred regions follow.
    region: Option<String>,
    /// The settings of the client's own runtime.
    own: ClientRuntimeBuilder,
    /// The first method that changed a setting of the own runtime.
    changed: Option<&'static str>,
    shared: Option<CosmosRuntime>,
    #[cfg(feature = "telemetry")]
    meter: Option<opentelemetry::metrics::Meter>,
}

impl CosmosClientBuilder {
    pub(crate) fn new(account: Account) -> CosmosClientBuilder {
        CosmosClientBuilder {
            account,
            options: DriverOptions::new(),
            region: None,
            own: ClientRuntimeBuilder::new(),
            changed: None,
            shared: None,
            #[cfg(feature = "telemetry")]
            meter: None,
        }
    }

    /// Sets the preferred regions, most preferred first. Default: the order of the account.
    pub fn preferred_regions<R: AsRef<str>>(mut self, regions: impl IntoIterator<Item = R>) -> Self {
        self.region = None;
        let names: Vec<R> = regions.into_iter().collect();
        let regions = RegionOptions::new().with_preferred(names.iter().map(AsRef::as_ref));
        self.operations(OperationOptions::new().with_regions(regions))
    }

    /// Sets the region that the application runs in, such as `West Europe`. The preferred regions are then all regions of
    /// Azure by their distance from it, so that the nearest ones of the account are used, whichever it has.
    pub fn region(mut self, name: impl Into<String>) -> Self {
        self.region = Some(name.into());
        self
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

    /// Shares the connections of this runtime with its other clients. Settings of connections belong to the runtime then:
    /// see [`CosmosClient::runtime`].
    pub fn runtime(mut self, runtime: &CosmosRuntime) -> Self {
        self.shared = Some(runtime.clone());
        self
    }

    /// Sets how requests are spread over HTTP/2 connections.
    pub fn sharding(self, sharding: ShardingConfig) -> Self {
        self.change("sharding", |own| own.sharding(sharding))
    }

    /// Trusts these certificates in addition to those of the system: PEM, as `peri cert` prints it. Loopback endpoints of
    /// the local cloud need it only if another user, or another `PERI_HOME`, runs `peri up`.
    #[cfg(feature = "__tls")]
    pub fn trust_pem(self, pem: &[u8]) -> Self {
        self.change("trust_pem", |own| own.trust_pem(pem))
    }

    /// Trusts the root certificates in this PEM file for hosts of the loopback interface, in place of the local cloud's
    /// [authority](crate::local_cloud::authority_file). The file is read when such a connection is opened.
    #[cfg(feature = "__tls")]
    pub fn loopback_authority(self, file: impl Into<PathBuf>) -> Self {
        self.change("loopback_authority", |own| own.loopback_authority(file))
    }

    /// Accepts any certificate. **For emulators only**: anyone on the network path can read and change all
    /// traffic.
    #[cfg(feature = "__tls")]
    pub fn danger_accept_invalid_certificates(self) -> Self {
        let name = "danger_accept_invalid_certificates";
        self.change(name, ClientRuntimeBuilder::danger_accept_invalid_certificates)
    }

    /// Sets what this builder sets of the HTTP client: timeouts, pool, proxy, certificates. Settings that it leaves out keep
    /// the value of earlier calls, or the default of the driver.
    ///
    /// ```
    /// use perihelion::{Account, CosmosClient};
    /// use perihelion::connections::{Client, Proxy};
    ///
    /// # let account = Account::from_connection_string("AccountEndpoint=http://localhost:8081/;AccountKey=a2V5")?;
    /// let proxy = Proxy::new("socks5h://proxy.example:1080").expect("it is a proxy URL");
    /// let client = CosmosClient::builder(account).http(Client::builder().proxy(proxy)).build()?;
    /// # Ok::<(), perihelion::Error>(())
    /// ```
    pub fn http(self, http: ClientBuilder) -> Self {
        self.change("http", |own| own.http(http))
    }

    /// Sends requests through transports of this factory in place of the HTTP client: another HTTP library, or the
    /// responses of a test, for which `testing` (feature `test-util`) has one. The settings of the HTTP client have no
    /// effect then.
    pub fn transport(self, factory: Arc<dyn TransportFactory>) -> Self {
        self.change("transport", |own| own.transport(factory))
    }

    /// Sets the name of the application, which is added to the user agent of every request.
    pub fn application(self, name: impl Into<String>) -> Self {
        self.change("application", |own| own.application(name))
    }

    /// Makes requests fail as the rules of `faults` say, now and later. For tests of applications; see
    /// [`faults`](crate::faults). Feature `fault-injection`.
    #[cfg(feature = "fault-injection")]
    pub fn faults(self, faults: &FaultInjector) -> Self {
        self.change("faults", |own| own.faults(faults))
    }

    fn change(
        mut self,
        name: &'static str,
        change: impl FnOnce(ClientRuntimeBuilder) -> ClientRuntimeBuilder,
    ) -> Self {
        self.own = change(self.own);
        self.changed = self.changed.or(Some(name));
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
        let mut options = self.options;
        if let Some(region) = &self.region {
            let regions = regions_by_distance(region).ok_or_else(|| unknown_region(region))?;
            options.operation.regions.preferred = RegionOptions::new().with_preferred(regions).preferred;
        }
        if self.shared.is_none() && self.own.uses_http_client() {
            check_tls(self.account.endpoint().scheme(), cfg!(feature = "__tls"))?;
        }
        let runtime = match (self.shared, self.changed) {
            (Some(runtime), None) => runtime,
            (None, _) => self.own.build()?,
            (Some(_), Some(name)) => {
                let message = format!(
                    "`{name}` is a setting of connections, which this client shares: set it where the runtime is built"
                );
                return Err(Error::new(ErrorKind::Configuration, message));
            }
        };
        let driver = runtime.driver(&self.account, options)?;
        #[cfg(feature = "telemetry")]
        if let Some(meter) = &self.meter {
            crate::telemetry::record_metrics(&driver, meter);
        }
        Ok(CosmosClient { driver })
    }
}

/// An https endpoint needs a build with TLS.
fn check_tls(scheme: &str, has_tls: bool) -> Result<()> {
    if scheme != "https" || has_tls {
        return Ok(());
    }
    let message = "this build has no TLS: enable the feature `rustls-ring` or `rustls-aws-lc` of perihelion, or use an http \
                   endpoint";
    Err(Error::new(ErrorKind::Configuration, message))
}

fn unknown_region(name: &str) -> Error {
    let message = format!(
        "`{name}` is not a region of Azure such as `West Europe`; for regions of other names use `preferred_regions`"
    );
    Error::new(ErrorKind::Configuration, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_https_endpoint_needs_tls() {
        for (scheme, has_tls, valid) in
            [("https", true, true), ("http", true, true), ("http", false, true), ("https", false, false)]
        {
            let checked = check_tls(scheme, has_tls);
            assert_eq!(checked.is_ok(), valid, "{scheme} {has_tls}");
            assert!(checked.err().is_none_or(|error| error.message().contains("`rustls-ring`")));
        }
    }
}
