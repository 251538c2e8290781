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
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it builds"]
pub struct ClientBuilder {
    settings: Settings,
    pool: PoolConfig,
    resolver: Arc<dyn Resolve>,
    tcp: TcpSettings,
    trust: Trust,
    proxies: ProxyChoice,
}

#[derive(Clone, Debug)]
enum ProxyChoice {
    Environment,
    None,
    All(Proxy),
}

/// Why a client could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A proxy variable of the environment is not a valid proxy URL.
    #[error(transparent)]
    Proxy(#[from] InvalidProxy),
    /// A root certificate is not valid PEM.
    #[cfg(feature = "__tls")]
    #[error(
        "the certificates cannot be read: they must be PEM, between BEGIN CERTIFICATE and END CERTIFICATE"
    )]
    Certificate(#[source] rustls::pki_types::pem::Error),
}

impl ClientBuilder {
    pub(crate) fn new() -> Self {
        ClientBuilder {
            settings: Settings::default(),
            pool: PoolConfig::default(),
            resolver: Arc::new(SystemResolver),
            tcp: TcpSettings { keepalive: Some(Duration::from_secs(30)), local: None },
            trust: Trust::default(),
            proxies: ProxyChoice::Environment,
        }
    }

    /// Sets how long it may take to acquire a connection, or a stream of a shared one. Ten seconds by default.
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.settings.connect_timeout = Some(time);
        self
    }

    /// Sets how long status and headers may take after the request was sent, and how long sending may make no progress.
    /// One minute by default.
    pub fn first_byte_timeout(mut self, time: Duration) -> Self {
        self.settings.first_byte_timeout = Some(time);
        self
    }

    /// Sets how long the wait for the next chunk of a response body may take. One minute by default.
    pub fn read_timeout(mut self, time: Duration) -> Self {
        self.settings.read_timeout = Some(time);
        self
    }

    /// Sets how long a whole call may take, response body included. Five minutes by default; with `None`
    /// only the other timeouts apply. An earlier deadline of the trace scope
    /// ([`trace::observe`](crate::trace::observe)) takes precedence.
    pub fn call_timeout(mut self, time: Option<Duration>) -> Self {
        self.settings.call_timeout = time;
        self
    }

    /// Limits the number of headers of a response (100 by default), and their total size (64 KiB).
    pub fn header_limits(mut self, count: usize, bytes: usize) -> Self {
        self.settings.header_count_max = count;
        self.settings.header_bytes_max = bytes;
        self
    }

    /// Uses only this protocol: HTTP/1.1 even if the server supports HTTP/2, or HTTP/2 even over plain TCP. By default
    /// ALPN decides, and plain HTTP is HTTP/1.1.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.settings.protocol = Some(protocol);
        self
    }

    /// Sets how many HTTP/2 connections a host may have before requests wait for a free stream. One by default, and at
    /// least one.
    pub fn http2_connections(mut self, connections: usize) -> Self {
        self.settings.http2.connections_max = connections.max(1);
        self
    }

    /// Pings the peer of an HTTP/2 connection after it sent nothing for `interval` (30 seconds by default), and closes
    /// the connection if it does not acknowledge the ping within `timeout` (10 seconds).
    pub fn http2_keepalive(mut self, interval: Duration, timeout: Duration) -> Self {
        self.settings.http2.keepalive_interval = interval;
        self.settings.http2.keepalive_timeout = timeout;
        self
    }

    /// Closes an HTTP/2 connection that had no requests for this long. Five minutes by default.
    pub fn http2_idle_timeout(mut self, time: Duration) -> Self {
        self.settings.http2.idle_timeout = time;
        self
    }

    /// Configures the pool of idle HTTP/1.1 connections: five per host for thirty seconds by default.
    pub fn pool(mut self, config: PoolConfig) -> Self {
        self.pool = config;
        self
    }

    /// Sets the DNS resolver. By default it is that of the system.
    pub fn resolver(mut self, resolver: impl Resolve) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Sets the local address to connect from.
    pub fn local_address(mut self, address: IpAddr) -> Self {
        self.tcp.local = Some(address);
        self
    }

    /// Sets the idle time before TCP keepalive probes. Thirty seconds by default; `None` turns them off.
    pub fn tcp_keepalive(mut self, time: Option<Duration>) -> Self {
        self.tcp.keepalive = time;
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
    /// `ALL_PROXY`, `NO_PROXY`), and requests to the loopback interface use no proxy.
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxies = ProxyChoice::All(proxy);
        self
    }

    /// Uses no proxy, whatever the environment says.
    pub fn no_proxy(mut self) -> Self {
        self.proxies = ProxyChoice::None;
        self
    }

    /// Builds the client. This opens no connection and reads no certificate.
    pub fn build(self) -> Result<Client, BuildError> {
        let proxies = match &self.proxies {
            ProxyChoice::Environment => Proxies::from_environment(|name| std::env::var(name).ok())?,
            ProxyChoice::None => Proxies::default(),
            ProxyChoice::All(proxy) => Proxies::all(proxy.clone()),
        };
        Ok(self.assemble(proxies))
    }

    pub(crate) fn build_ignoring_invalid_proxies(self) -> Client {
        let proxies = Proxies::from_environment(|name| std::env::var(name).ok()).unwrap_or_else(|error| {
            tracing::warn!(%error, "the proxy settings of the environment are invalid: no proxy is used");
            Proxies::default()
        });
        self.assemble(proxies)
    }

    fn assemble(self, proxies: Proxies) -> Client {
        let connector =
            Connector { resolver: self.resolver, tcp: self.tcp, tls: Tls::new(self.trust), proxies };
        let hosts = Hosts::new(self.pool, self.settings.http2.connections_max);
        Client::from_parts(self.settings, connector, hosts)
    }
}
