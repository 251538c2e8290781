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

use crate::call::{Call, StepError};
use crate::clock;
use crate::error::ErrorKind;
use crate::origin::{Origin, Scheme};
use crate::stream::{ConnectionInfo, Socket, Stream};
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
        let proxy = self.proxies.for_target(target);
        let addresses = self.resolve(proxy.map_or(target, |proxy| proxy.address()), call, step).await?;

        *step = Step::Connect;
        let tcp = tcp::connect(&addresses, &self.tcp)
            .await
            .map_err(|error| StepError::new(ErrorKind::Unreachable, Step::Connect).with_source(error))?;
        let mut socket = Socket::new(tcp);
        if let Some(proxy) = proxy {
            *step = Step::Proxy;
            proxy.tunnel(&mut socket, target).await?;
        }
        call.trace.connect = Some(call.offset(clock::now()));
        call.report();

        let info = ConnectionInfo::new(&socket);
        match target.scheme() {
            Scheme::Http => {
                let protocol = protocol.unwrap_or(Protocol::Http1);
                Ok(NewConnection { stream: Stream::Plain(socket), info, protocol })
            }
            Scheme::Https => {
                *step = Step::Tls;
                let (stream, protocol) = self.tls.handshake(target.host_name(), socket, protocol).await?;
                call.trace.tls = Some(call.offset(clock::now()));
                call.report();
                Ok(NewConnection { stream, info, protocol })
            }
        }
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
