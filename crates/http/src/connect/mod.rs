//! New connections: resolve, connect, ask a proxy, agree on TLS. Each step is noted in the call's record, and
//! the time they may take together is the caller's to limit.

pub(crate) mod dns;
pub(crate) mod proxy;
pub(crate) mod tcp;
pub(crate) mod tls;

use std::net::SocketAddr;
use std::sync::Arc;

use crate::authority::{Authority, Scheme};
use crate::call::{Call, Failure};
use crate::clock;
use crate::connection::{Info, Socket, Stream};
use crate::error::ErrorKind;
use crate::exchange::{Protocol, Step};

/// What makes connections.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    pub(crate) resolver: Arc<dyn dns::Resolve>,
    pub(crate) tcp: tcp::TcpSettings,
    pub(crate) tls: tls::Tls,
    pub(crate) proxies: proxy::Proxies,
}

/// A connection on which nothing has been said yet.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) stream: Stream,
    pub(crate) info: Info,
    pub(crate) protocol: Protocol,
}

/// How far a connection has come: for the story, if the time is up before it is there.
pub(crate) type Progressed<'a> = &'a mut Step;

impl Connector {
    /// Connects to `target` to speak `protocol`, or what the two ends agree on.
    ///
    /// Dropped at any point, it leaves nothing behind. `step` is always the one it is at.
    pub(crate) async fn connect(
        &self,
        target: &Authority,
        protocol: Option<Protocol>,
        call: &mut Call,
        step: Progressed<'_>,
    ) -> Result<Connected, Failure> {
        let proxy = self.proxies.for_target(target);
        let addresses = self.resolve(proxy.map_or(target, |proxy| proxy.address()), call, step).await?;

        *step = Step::Connect;
        let tcp = tcp::connect(&addresses, &self.tcp)
            .await
            .map_err(|error| Failure::new(ErrorKind::Unreachable, Step::Connect).because(error))?;
        let mut socket = Socket::new(tcp);
        if let Some(proxy) = proxy {
            *step = Step::Proxy;
            proxy.tunnel(&mut socket, target).await?;
        }
        call.record.connect = Some(call.offset(clock::now()));
        call.report();

        let info = Info::new(&socket);
        match target.scheme() {
            Scheme::Http => {
                let protocol = protocol.unwrap_or(Protocol::Http1);
                Ok(Connected { stream: Stream::Plain(socket), info, protocol })
            }
            Scheme::Https => {
                *step = Step::Tls;
                let (stream, protocol) = self.tls.handshake(target.host_name(), socket, protocol).await?;
                call.record.tls = Some(call.offset(clock::now()));
                call.report();
                Ok(Connected { stream, info, protocol })
            }
        }
    }

    async fn resolve(
        &self,
        host: &Authority,
        call: &mut Call,
        step: Progressed<'_>,
    ) -> Result<Vec<SocketAddr>, Failure> {
        if let Some(address) = dns::literal(host.host_name(), host.port()) {
            return Ok(vec![address]);
        }
        *step = Step::Dns;
        let addresses = self
            .resolver
            .resolve(host.host_name(), host.port())
            .await
            .map_err(|error| Failure::new(ErrorKind::Unreachable, Step::Dns).because(error))?;
        call.record.dns = Some(call.offset(clock::now()));
        call.report();
        Ok(dns::in_turns(addresses))
    }
}
