//! Where transports come from: the trait that makes one per shard, and what each is made with.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use azure_core::http::Url;

use super::Transport;
use crate::routing::Endpoint;

/// Makes transports, each with connections of its own.
///
/// Called for every shard, mostly in the background but also by a request that finds all shards full, so it
/// must be quick: what transports have in common, such as a TLS configuration with its roots, is made once and
/// shared between them.
pub trait TransportFactory: Send + Sync + fmt::Debug {
    /// Makes a transport with connections of its own.
    fn create(&self, config: &HttpClientConfig) -> Arc<dyn Transport>;

    /// Called, with the feature `fault-injection`, with the endpoint that the next requests may go to: a
    /// transport sees URLs, and only here is it known which region is behind one.
    fn endpoint_in_use(&self, endpoint: &Endpoint) {
        let _ = endpoint;
    }
}

/// What every HTTP client is made with, unless its factory has settings of its own that take precedence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpClientConfig {
    /// To look up the name, connect and agree on TLS. 5 s by default.
    pub connect_timeout: Duration,
    /// For one request, from the wait for a connection to the end of the response. An earlier deadline of the caller
    /// ends it first. 65 s by default.
    pub request_timeout: Duration,
    /// Idle HTTP/1.1 connections kept per host, at least one. 1000 by default: with HTTP/1.1 there is one per request in
    /// flight, and making them anew costs more than keeping them.
    pub pool_max_idle_per_host: usize,
    /// How long an idle connection is kept. 30 s by default.
    pub pool_idle_timeout: Duration,
    /// Time between probes of a silent connection, so that one that died is found before a request uses it.
    /// 30 s by default, `None` for never.
    pub tcp_keepalive: Option<Duration>,
    /// The proxy that connections go through. By default the variables of the environment decide (`HTTPS_PROXY`,
    /// `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`).
    pub proxy: Option<ProxyConfig>,
    /// The local address to connect from; the system chooses by default.
    pub local_address: Option<IpAddr>,
}

impl Default for HttpClientConfig {
    fn default() -> HttpClientConfig {
        HttpClientConfig {
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(65),
            pool_max_idle_per_host: 1000,
            pool_idle_timeout: Duration::from_secs(30),
            tcp_keepalive: Some(Duration::from_secs(30)),
            proxy: None,
            local_address: None,
        }
    }
}

/// A proxy that connections are tunnelled through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyConfig {
    /// The address of the proxy: `http://host:port`, `https://host:port`, `socks5://host:port` or
    /// `socks5h://host:port`, with `user:password@` before the host if it needs them.
    pub url: Url,
}
