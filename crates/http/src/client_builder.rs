//! A client's settings, chosen once.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::client::Client;
use crate::connect::Connector;
use crate::connect::dns::{Resolve, SystemResolver};
use crate::connect::proxy::{BadProxy, Proxies, Proxy};
use crate::connect::tcp::TcpSettings;
use crate::connect::tls::{Tls, Trust};
use crate::exchange::Protocol;
use crate::host::Hosts;
use crate::pool::PoolConfig;
use crate::settings::Settings;

/// Settings of a [`Client`].
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
    /// The environment names a proxy that is not understood.
    #[error(transparent)]
    Proxy(#[from] BadProxy),
    /// A certificate is not PEM.
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
            trust: Trust::SystemAnd(Vec::new()),
            proxies: ProxyChoice::Environment,
        }
    }

    /// How long a connection, or a place on a shared one, may take to come by. Ten seconds by default.
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.settings.connect = Some(time);
        self
    }

    /// How long status and headers may take once the request was sent, and how long sending it may stand still.
    /// One minute by default.
    pub fn first_byte_timeout(mut self, time: Duration) -> Self {
        self.settings.first_byte = Some(time);
        self
    }

    /// How long a body may stand still. One minute by default.
    pub fn silence_timeout(mut self, time: Duration) -> Self {
        self.settings.silence = Some(time);
        self
    }

    /// How long a whole call may take, body included. Five minutes by default; without a limit, only the other
    /// ones apply. A deadline of the scope ([`exchange::observe`](crate::exchange::observe)) counts if it is
    /// earlier.
    pub fn call_timeout(mut self, time: Option<Duration>) -> Self {
        self.settings.call = time;
        self
    }

    /// How many headers a response may have (100 by default), and how long they may be altogether (64 KiB).
    pub fn header_limits(mut self, count: usize, bytes: usize) -> Self {
        self.settings.header_count_max = count;
        self.settings.header_bytes_max = bytes;
        self
    }

    /// Speaks this protocol only: HTTP/1.1 even with those who know HTTP/2, or HTTP/2 even over plain TCP.
    /// By default ALPN decides, and plain HTTP is HTTP/1.1.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.settings.protocol = Some(protocol);
        self
    }

    /// How many HTTP/2 connections to make per host before requests wait for a place. One by default, at least
    /// one.
    pub fn http2_connections(mut self, connections: usize) -> Self {
        self.settings.http2.connections_max = connections.max(1);
        self
    }

    /// After how much silence an HTTP/2 connection is asked whether it is alive (30 seconds by default), and how
    /// long it has to answer (10 seconds).
    pub fn http2_keepalive(mut self, after: Duration, answer: Duration) -> Self {
        self.settings.http2.ping_after = after;
        self.settings.http2.ping_answer = answer;
        self
    }

    /// After how long without requests an HTTP/2 connection is closed. Five minutes by default.
    pub fn http2_idle_timeout(mut self, time: Duration) -> Self {
        self.settings.http2.idle = time;
        self
    }

    /// How connections wait to be used again: five per host for thirty seconds by default.
    pub fn pool(mut self, config: PoolConfig) -> Self {
        self.pool = config;
        self
    }

    /// Who turns names into addresses. The system by default.
    pub fn resolver(mut self, resolver: impl Resolve) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// The address to connect from.
    pub fn local_address(mut self, address: IpAddr) -> Self {
        self.tcp.local = Some(address);
        self
    }

    /// After how much silence the system asks whether the other end is there. Thirty seconds by default.
    pub fn tcp_keepalive(mut self, time: Option<Duration>) -> Self {
        self.tcp.keepalive = time;
        self
    }

    /// Trusts these certificates too, besides the system's.
    pub fn trust(mut self, certificates: impl IntoIterator<Item = CertificateDer<'static>>) -> Self {
        match &mut self.trust {
            Trust::SystemAnd(list) | Trust::Only(list) => list.extend(certificates),
            Trust::Anybody => {}
        }
        self
    }

    /// Trusts these certificates too, besides the system's: one or more, as PEM.
    pub fn trust_pem(self, pem: &[u8]) -> Result<Self, BuildError> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        match certificates {
            Ok(certificates) if !certificates.is_empty() => Ok(self.trust(certificates)),
            Ok(_) => Err(BuildError::Certificate(rustls::pki_types::pem::Error::NoItemsFound)),
            Err(error) => Err(BuildError::Certificate(error)),
        }
    }

    /// Trusts these certificates and nobody else.
    pub fn trust_only(mut self, certificates: impl IntoIterator<Item = CertificateDer<'static>>) -> Self {
        self.trust = Trust::Only(certificates.into_iter().collect());
        self
    }

    /// Takes any certificate, from anybody, for any name. **This is for emulators only**: whoever is on the way
    /// can read and change everything. A warning is logged for every client built like this.
    pub fn danger_accept_invalid_certificates(mut self) -> Self {
        self.trust = Trust::Anybody;
        self
    }

    /// Sends everything through this proxy. By default the environment says which
    /// (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`), and never for what is on this machine.
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxies = ProxyChoice::All(proxy);
        self
    }

    /// Goes through no proxy, whatever the environment says.
    pub fn no_proxy(mut self) -> Self {
        self.proxies = ProxyChoice::None;
        self
    }

    /// The client. Nothing is connected yet, and no certificate read.
    pub fn build(self) -> Result<Client, BuildError> {
        let proxies = match &self.proxies {
            ProxyChoice::Environment => Proxies::from_environment(|name| std::env::var(name).ok())?,
            ProxyChoice::None => Proxies::default(),
            ProxyChoice::All(proxy) => Proxies::all(proxy.clone()),
        };
        Ok(self.assemble(proxies))
    }

    pub(crate) fn build_leniently(self) -> Client {
        let proxies = Proxies::from_environment(|name| std::env::var(name).ok()).unwrap_or_else(|error| {
            tracing::warn!(%error, "going without a proxy");
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
