//! Opening connections: DNS, TCP, proxy, TLS. Each step is noted in the trace of the call; the caller limits their total
//! time.
//!
//! By hand and not with hyper-util's connectors: those report neither the time of each step nor the step that failed.

pub(crate) mod dns;
pub(crate) mod proxy;
pub(crate) mod tcp;
#[cfg(feature = "__tls")]
pub(crate) mod tls;
#[cfg(not(feature = "__tls"))]
#[path = "no_tls.rs"]
pub(crate) mod tls;

use std::net::SocketAddr;
use std::sync::Arc;

use self::proxy::TunnelTarget;
use crate::call::{Call, StepError};
use crate::clock;
use crate::error::ErrorKind;
use crate::origin::{Origin, Scheme};
use crate::stream::{BaseStream, ConnectionInfo, Socket, Stream};
use crate::trace::{Protocol, Step};

/// Opens connections, with the settings of one client.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    pub(crate) resolver: Arc<dyn dns::Resolve>,
    pub(crate) tcp: tcp::TcpSettings,
    pub(crate) tls: tls::Tls,
    pub(crate) proxies: proxy::Proxies,
}

/// An open connection, on which HTTP has not started yet.
#[derive(Debug)]
pub(crate) struct NewConnection {
    pub(crate) stream: Stream,
    pub(crate) info: ConnectionInfo,
    pub(crate) protocol: Protocol,
}

impl Connector {
    /// Connects to `target` for `protocol`, or for the protocol that ALPN chooses if it is `None`.
    ///
    /// Can be dropped at any point. `step` is the current step, for the error of a caller that gives up.
    pub(crate) async fn connect(
        &self,
        target: &Origin,
        protocol: Option<Protocol>,
        call: &mut Call,
        step: &mut Step,
    ) -> Result<NewConnection, StepError> {
        let proxy = self.proxies.for_target(target).map_err(|invalid| {
            StepError::new(ErrorKind::Invalid, Step::Proxy).with_source(invalid.clone())
        })?;
        let addresses = self.resolve(proxy.map_or(target, |proxy| proxy.address()), call, step).await?;

        *step = Step::Connect;
        let tcp = tcp::connect(&addresses, &self.tcp)
            .await
            .map_err(|error| StepError::new(ErrorKind::Unreachable, Step::Connect).with_source(error))?;
        let socket = Socket::new(tcp);
        let info = ConnectionInfo::new(&socket);
        let base = match proxy {
            Some(proxy) => self.tunnel(socket, proxy, target, call, step).await?,
            None => BaseStream::Tcp(socket),
        };
        call.trace.connect = Some(call.offset(clock::now()));
        call.report();

        match target.scheme() {
            Scheme::Http => {
                let protocol = protocol.unwrap_or(Protocol::Http1);
                Ok(NewConnection { stream: Stream::Plain(base), info, protocol })
            }
            Scheme::Https => {
                *step = Step::Tls;
                let (stream, protocol) = self.tls.handshake(target.host_name(), base, protocol).await?;
                call.trace.tls = Some(call.offset(clock::now()));
                call.report();
                Ok(NewConnection { stream, info, protocol })
            }
        }
    }

    /// Opens a tunnel to `target` through the proxy at the other end of `socket`.
    async fn tunnel(
        &self,
        socket: Socket,
        proxy: &proxy::Proxy,
        target: &Origin,
        call: &mut Call,
        step: &mut Step,
    ) -> Result<BaseStream, StepError> {
        let target = match proxy.needs_address() {
            false => TunnelTarget::Name(target),
            true => {
                let addresses = self.resolve(target, call, step).await?;
                let address = addresses.first().ok_or_else(|| {
                    StepError::new(ErrorKind::Unreachable, Step::Dns).with_source("the name has no address")
                })?;
                TunnelTarget::Address(target, *address)
            }
        };
        *step = Step::Proxy;
        let mut base = match proxy.uses_tls() {
            true => self.tls.handshake_with_proxy(proxy.address().host_name(), socket).await?,
            false => BaseStream::Tcp(socket),
        };
        proxy.tunnel(&mut base, target).await?;
        Ok(base)
    }

    async fn resolve(
        &self,
        host: &Origin,
        call: &mut Call,
        step: &mut Step,
    ) -> Result<Vec<SocketAddr>, StepError> {
        if let Some(address) = dns::literal(host.host_name(), host.port()) {
            return Ok(vec![address]);
        }
        *step = Step::Dns;
        let addresses = self
            .resolver
            .resolve(host.host_name(), host.port())
            .await
            .map_err(|error| StepError::new(ErrorKind::Unreachable, Step::Dns).with_source(error))?;
        call.trace.dns = Some(call.offset(clock::now()));
        call.report();
        Ok(dns::interleave_families(addresses))
    }
}
