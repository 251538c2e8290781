//! The servers of an account: one at the account's port and, if it has several regions, one for each of them.
//!
//! The account's endpoint belongs to no region: it leads to the write region, wherever that is. An account with
//! one region has no other endpoint, so its port opens and closes with the region.

use std::sync::Arc;

use engine::regions::{RegionId, TopologyError};
use parking_lot::Mutex;
use server::{Bind, Limits, Listeners, Server, Tls};

use crate::error::{ListenerKind, StartError};
use crate::faults::PortControl;
use crate::gateway::Gateway;
use crate::hosted::HostedAccount;
use clock::Clock;

/// The settings that the servers of all regions share.
#[derive(Debug)]
pub(crate) struct ServerSettings {
    pub(crate) bind: Bind,
    /// The port of the account; the regions use the next ones. 0 means any port for each.
    pub(crate) port: u16,
    pub(crate) limits: Limits,
    pub(crate) tls: Tls,
    pub(crate) clock: Clock,
}

/// The running servers of an account.
#[derive(Debug)]
pub(crate) struct RegionServers {
    hosted: HostedAccount,
    settings: ServerSettings,
    ports: Arc<PortControl>,
    /// The port number of the account's own endpoint.
    account_port: u16,
    /// The account's server first, then those of the regions.
    servers: Mutex<Vec<Server>>,
}

/// Why a region could not be added.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AddRegionError {
    /// The topology does not allow it.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// Its port cannot be opened.
    #[error("{0}; the region was not added")]
    Port(#[from] StartError),
}

impl RegionServers {
    /// Starts the servers of all regions, the account's own at `listeners`. Must be called inside a Tokio
    /// runtime.
    pub(crate) fn start(
        hosted: HostedAccount,
        settings: ServerSettings,
        ports: Arc<PortControl>,
        listeners: Listeners,
    ) -> Result<RegionServers, StartError> {
        let account_port = listeners.port();
        let regions = hosted.account.region_count();
        let region_listeners = match regions {
            1 => Vec::new(),
            _ => (0..regions).map(|region| settings.listen(region)).collect::<Result<_, _>>()?,
        };
        let numbers: Vec<u16> = match region_listeners.as_slice() {
            [] => vec![account_port],
            all => all.iter().map(Listeners::port).collect(),
        };
        hosted.account.set_region_ports(&numbers)?;
        let gateway = Gateway::for_account(&hosted, settings.clock.clone());
        let server = settings.serve(listeners, gateway);
        if regions == 1 {
            ports.add(RegionId(0), server.server_port());
        }
        let servers =
            RegionServers { hosted, settings, ports, account_port, servers: Mutex::new(vec![server]) };
        for (listeners, region) in region_listeners.into_iter().zip(0..) {
            servers.serve(RegionId(region), listeners);
        }
        Ok(servers)
    }

    /// The port number of the account's own endpoint.
    pub(crate) fn account_port(&self) -> u16 {
        self.account_port
    }

    /// Adds a region to the account and serves it. If it is the second one, the first gets a port of its own.
    /// Must be called inside a Tokio runtime.
    pub(crate) fn add_region(&self, name: &str) -> Result<(), AddRegionError> {
        // Held until the region is served: two calls at once would take the same port.
        let mut servers = self.servers.lock();
        let account = &self.hosted.account;
        let regions = account.region_count();
        let first = (regions == 1).then(|| self.settings.listen(0)).transpose()?;
        let listeners = self.settings.listen(regions)?;
        let region = account.extend_regions(name, listeners.port())?;
        if let Some(first) = first {
            account.set_region_ports(&[first.port()])?;
            self.ports.release(RegionId(0));
            servers.push(self.served(RegionId(0), first));
        }
        servers.push(self.served(region, listeners));
        Ok(())
    }

    /// Takes the servers, to stop them.
    pub(crate) fn take(&self) -> Vec<Server> {
        std::mem::take(&mut self.servers.lock())
    }

    fn serve(&self, region: RegionId, listeners: Listeners) {
        let server = self.served(region, listeners);
        self.servers.lock().push(server);
    }

    fn served(&self, region: RegionId, listeners: Listeners) -> Server {
        let gateway = Gateway::new(&self.hosted, region, self.settings.clock.clone());
        let server = self.settings.serve(listeners, gateway);
        self.ports.add(region, server.server_port());
        server
    }
}

impl ServerSettings {
    fn serve(&self, listeners: Listeners, gateway: Gateway) -> Server {
        Server::start(listeners, Arc::new(gateway), Some(self.tls.clone()), self.limits.clone())
    }

    /// Opens the listeners of a region: on the port after those of the regions before it, unless any will do.
    fn listen(&self, region: usize) -> Result<Listeners, StartError> {
        let port = match self.port {
            0 => Some(0),
            first => u16::try_from(region + 1).ok().and_then(|after| first.checked_add(after)),
        };
        let port = port.ok_or(StartError::NoPortLeft { first: self.port, regions: region + 1 })?;
        Listeners::open(self.bind, port).map_err(StartError::listen(ListenerKind::Account))
    }
}
