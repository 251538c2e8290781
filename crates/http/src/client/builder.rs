//! Builds a client from its settings.

use std::net::IpAddr;
#[cfg(feature = "__tls")]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "__tls")]
use rustls::pki_types::CertificateDer;
#[cfg(feature = "__tls")]
use rustls::pki_types::pem::PemObject;

use super::Client;
use crate::connect::Connector;
use crate::connect::dns::{Resolve, SystemResolver};
use crate::connect::proxy::{InvalidProxy, Proxies, Proxy};
use crate::connect::tcp::TcpSettings;
#[cfg(feature = "__tls")]
use crate::connect::tls::{LoopbackRoots, TrustPolicy};
use crate::connect::tls::{Tls, Trust};
use crate::host::Hosts;
use crate::pool::PoolConfig;
use crate::settings::Settings;
use crate::trace::Protocol;

/// Builds a [`Client`].
///
/// ```
/// use std::time::Duration;
/// use perihelion_http::Client;
///
/// let client = Client::builder()
///     .connect_timeout(Duration::from_secs(2))
///     .call_timeout(Some(Duration::from_secs(30)))
///     .build()?;
/// # Ok::<(), perihelion_http::BuildError>(())
/// ```
///
/// What is not set has the default that its method names, or that of another builder ([`or`](ClientBuilder::or)).
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until it builds"]
pub struct ClientBuilder {
    connect_timeout: Option<Duration>,
    first_byte_timeout: Option<Duration>,
    read_timeout: Option<Duration>,
    call_timeout: Option<Option<Duration>>,
    connection_age_max: Option<Option<Duration>>,
    protocol: Option<Protocol>,
    header_limits: Option<(usize, usize)>,
    http2_connections: Option<usize>,
    http2_keepalive: Option<(Duration, Duration)>,
    http2_idle_timeout: Option<Duration>,
    pool: PoolConfig,
    resolver: Option<Arc<dyn Resolve>>,
    tcp_keepalive: Option<Option<Duration>>,
    local_address: Option<IpAddr>,
    trust: Trust,
    proxies: Option<ProxyChoice>,
}

#[derive(Clone, Debug)]
enum ProxyChoice {
    None,
    All(Result<Proxy, InvalidProxy>),
}

/// Why a client could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A root certificate is not valid PEM.
    #[cfg(feature = "__tls")]
    #[error(
        "the certificates cannot be read: they must be PEM, between BEGIN CERTIFICATE and END CERTIFICATE"
    )]
    Certificate(#[source] rustls::pki_types::pem::Error),
}

impl ClientBuilder {
    pub(crate) fn new() -> Self {
        ClientBuilder::default()
    }

    /// Takes each setting that was not set from `defaults`. Certificates that both trust are added up, unless this
    /// builder trusts only its own, or any.
    ///
    /// ```
    /// use std::time::Duration;
    /// use perihelion_http::Client;
    ///
    /// let defaults = Client::builder().connect_timeout(Duration::from_secs(5));
    /// let client = Client::builder().no_proxy().or(&defaults).build()?;
    /// # Ok::<(), perihelion_http::BuildError>(())
    /// ```
    pub fn or(self, defaults: &ClientBuilder) -> Self {
        let default = defaults.clone();
        ClientBuilder {
            connect_timeout: self.connect_timeout.or(default.connect_timeout),
            first_byte_timeout: self.first_byte_timeout.or(default.first_byte_timeout),
            read_timeout: self.read_timeout.or(default.read_timeout),
            call_timeout: self.call_timeout.or(default.call_timeout),
            connection_age_max: self.connection_age_max.or(default.connection_age_max),
            protocol: self.protocol.or(default.protocol),
            header_limits: self.header_limits.or(default.header_limits),
            http2_connections: self.http2_connections.or(default.http2_connections),
            http2_keepalive: self.http2_keepalive.or(default.http2_keepalive),
            http2_idle_timeout: self.http2_idle_timeout.or(default.http2_idle_timeout),
            pool: self.pool.or(&default.pool),
            resolver: self.resolver.or(default.resolver),
            tcp_keepalive: self.tcp_keepalive.or(default.tcp_keepalive),
            local_address: self.local_address.or(default.local_address),
            trust: self.trust.or(default.trust),
            proxies: self.proxies.or(default.proxies),
        }
    }

    /// Sets how long it may take to acquire a connection, or a stream of a shared one. Ten seconds by default.
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.connect_timeout = Some(time);
        self
    }

    /// Sets how long status and headers may take after the request was sent, and how long sending may make no progress.
    /// One minute by default.
    pub fn first_byte_timeout(mut self, time: Duration) -> Self {
        self.first_byte_timeout = Some(time);
        self
    }

    /// Sets how long the wait for the next chunk of a response body may take. One minute by default.
    pub fn read_timeout(mut self, time: Duration) -> Self {
        self.read_timeout = Some(time);
        self
    }

    /// Sets how long a whole call may take, response body included. Five minutes by default; with `None`
    /// only the other timeouts apply. An earlier deadline of the trace scope
    /// ([`trace::observe`](crate::trace::observe)) takes precedence.
    pub fn call_timeout(mut self, time: Option<Duration>) -> Self {
        self.call_timeout = Some(time);
        self
    }

    /// Limits the number of headers of a response (100 by default), and their total size (64 KiB).
    pub fn header_limits(mut self, count: usize, bytes: usize) -> Self {
        self.header_limits = Some((count, bytes));
        self
    }

    /// Uses only this protocol: HTTP/1.1 even if the server supports HTTP/2, or HTTP/2 even over plain TCP. By default
    /// ALPN decides, and plain HTTP is HTTP/1.1.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = Some(protocol);
        self
    }

    /// Sets how many HTTP/2 connections a host may have before requests wait for a free stream. One by default, and at
    /// least one.
    pub fn http2_connections(mut self, connections: usize) -> Self {
        self.http2_connections = Some(connections.max(1));
        self
    }

    /// Pings the peer of an HTTP/2 connection after it sent nothing for `interval` (30 seconds by default), and closes
    /// the connection if it does not acknowledge the ping within `timeout` (10 seconds). Zero, for either, turns the
    /// pings off.
    pub fn http2_keepalive(mut self, interval: Duration, timeout: Duration) -> Self {
        self.http2_keepalive = Some((interval, timeout));
        self
    }

    /// Closes an HTTP/2 connection that had no requests for this long. Five minutes by default.
    pub fn http2_idle_timeout(mut self, time: Duration) -> Self {
        self.http2_idle_timeout = Some(time);
        self
    }

    /// Sets for how long a connection takes requests, so that requests follow a change of DNS however busy a connection
    /// is. Ten minutes by default, or up to a fifth less, so that connections are not all replaced at once; `None` for
    /// no limit. Requests in progress complete.
    pub fn max_connection_age(mut self, age: Option<Duration>) -> Self {
        self.connection_age_max = Some(age);
        self
    }

    /// Configures the pool of idle HTTP/1.1 connections: five per host for thirty seconds by default.
    pub fn pool(mut self, config: PoolConfig) -> Self {
        self.pool = config;
        self
    }

    /// Sets the DNS resolver. By default it is that of the system.
    pub fn resolver(mut self, resolver: impl Resolve) -> Self {
        self.resolver = Some(Arc::new(resolver));
        self
    }

    /// Sets the local address to connect from.
    pub fn local_address(mut self, address: IpAddr) -> Self {
        self.local_address = Some(address);
        self
    }

    /// Sets the idle time before TCP keepalive probes. Thirty seconds by default; `None` turns them off.
    pub fn tcp_keepalive(mut self, time: Option<Duration>) -> Self {
        self.tcp_keepalive = Some(time);
        self
    }

    /// Trusts these root certificates in addition to those of the system.
    #[cfg(feature = "__tls")]
    pub fn trust(mut self, certificates: impl IntoIterator<Item = CertificateDer<'static>>) -> Self {
        match &mut self.trust.policy {
            TrustPolicy::SystemAnd(list) | TrustPolicy::Only(list) => list.extend(certificates),
            TrustPolicy::AcceptAny => {}
        }
        self
    }

    /// Trusts these root certificates, one or more as PEM, in addition to those of the system.
    #[cfg(feature = "__tls")]
    pub fn trust_pem(self, pem: &[u8]) -> Result<Self, BuildError> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        match certificates {
            Ok(certificates) if !certificates.is_empty() => Ok(self.trust(certificates)),
            Ok(_) => Err(BuildError::Certificate(rustls::pki_types::pem::Error::NoItemsFound)),
            Err(error) => Err(BuildError::Certificate(error)),
        }
    }

    /// Trusts only these root certificates, and not those of the system.
    #[cfg(feature = "__tls")]
    pub fn trust_only(mut self, certificates: impl IntoIterator<Item = CertificateDer<'static>>) -> Self {
        self.trust.policy = TrustPolicy::Only(certificates.into_iter().collect());
        self
    }

    /// Trusts the root certificates in a PEM file for hosts of the loopback interface (`localhost`, `127.0.0.1`, `::1`),
    /// and for no others. The file is read when such a connection is opened, so it may be created later. `advice` is
    /// added to the error of a certificate that is not trusted. [`trust_only`](Self::trust_only) leaves the file out.
    #[cfg(feature = "__tls")]
    pub fn trust_file_on_loopback(mut self, file: impl Into<PathBuf>, advice: impl Into<String>) -> Self {
        self.trust.loopback = Some(LoopbackRoots { file: file.into(), advice: advice.into() });
        self
    }

    /// Accepts any certificate, for any host name. **For emulators only**: anyone between the two ends can read and
    /// change all traffic. A warning is logged for every client that is built like this.
    #[cfg(feature = "__tls")]
    pub fn danger_accept_invalid_certificates(mut self) -> Self {
        self.trust.policy = TrustPolicy::AcceptAny;
        self
    }

    /// Sends all requests through this proxy. By default the environment decides (`HTTP_PROXY`, `HTTPS_PROXY`,
    /// `ALL_PROXY`, `NO_PROXY`), and requests to the loopback interface use no proxy. A variable that is not a proxy URL
    /// is the error of the requests that would use it.
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxies = Some(ProxyChoice::All(Ok(proxy)));
        self
    }

    /// Sends all requests through the proxy at this URL, as [`Proxy::new`] reads it. A URL that is not valid is the error
    /// of every request.
    pub fn proxy_url(mut self, url: &str) -> Self {
        self.proxies = Some(ProxyChoice::All(Proxy::new(url)));
        self
    }

    /// Uses no proxy, whatever the environment says.
    pub fn no_proxy(mut self) -> Self {
        self.proxies = Some(ProxyChoice::None);
        self
    }

    /// Builds the client. This opens no connection and reads no certificate.
    pub fn build(self) -> Result<Client, BuildError> {
        Ok(self.assemble())
    }

    pub(crate) fn assemble(self) -> Client {
        let proxies = match &self.proxies {
            None => Proxies::from_environment(|name| std::env::var(name).ok()),
            Some(ProxyChoice::None) => Proxies::default(),
            Some(ProxyChoice::All(proxy)) => Proxies::all(proxy.clone()),
        };
        let settings = self.settings();
        let tcp = TcpSettings {
            keepalive: self.tcp_keepalive.unwrap_or(Some(Duration::from_secs(30))),
            local: self.local_address,
        };
        let resolver = self.resolver.unwrap_or_else(|| Arc::new(SystemResolver));
        let connector = Connector { resolver, tcp, tls: Tls::new(self.trust), proxies };
        let hosts = Hosts::new(self.pool, settings.http2.connections_max);
        Client::from_parts(settings, connector, hosts)
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        settings.connect_timeout = self.connect_timeout.or(settings.connect_timeout);
        settings.first_byte_timeout = self.first_byte_timeout.or(settings.first_byte_timeout);
        settings.read_timeout = self.read_timeout.or(settings.read_timeout);
        settings.call_timeout = self.call_timeout.unwrap_or(settings.call_timeout);
        settings.connection_age_max = self.connection_age_max.unwrap_or(settings.connection_age_max);
        settings.protocol = self.protocol;
        if let Some((count, bytes)) = self.header_limits {
            (settings.header_count_max, settings.header_bytes_max) = (count, bytes);
        }
        let http2 = &mut settings.http2;
        http2.connections_max = self.http2_connections.unwrap_or(http2.connections_max);
        http2.idle_timeout = self.http2_idle_timeout.unwrap_or(http2.idle_timeout);
        if let Some((interval, timeout)) = self.http2_keepalive {
            http2.keepalive_timeout = timeout;
            http2.keepalive_interval =
                Some(interval).filter(|interval| !interval.is_zero() && !timeout.is_zero());
        }
        settings
    }
}
