//! Starting an emulator, and the handle to a running one.

use std::sync::Arc;

use crate::advertised_hosts::AdvertisedHosts;
use crate::config::EmulatorConfig;
use crate::control::{Control, ControlAccess};
use crate::error::{ListenerKind, StartError};
use crate::faults::{FaultError, Faults, PortControlTask, RegionControl};
use crate::hosted::HostedAccount;
use crate::region_servers::{RegionServers, ServerSettings};
use engine::account::operations::Operations;
use engine::account::{self, Account, AccountSettings, ContainerUsage, auto_split};
use engine::disk::{CloseOnDrop, DataDir};
use engine::regions::{Region, RegionId, Topology};
use server::{Listeners, Server, Tls, TlsError};

/// Starts emulators: local accounts with real sockets.
#[derive(Clone, Copy, Debug)]
pub struct Emulator;

impl Emulator {
    /// Opens the ports and starts to serve. Requests succeed as soon as this returns.
    ///
    /// Must be called inside a Tokio runtime; the servers live on it until the handle is dropped.
    pub async fn start(config: EmulatorConfig) -> Result<RunningEmulator, StartError> {
        let (key, access) = (config.account_key()?, config.access_control()?);
        // Before the directory is opened: a port that is taken is reported at once.
        let account_listeners =
            Listeners::open(config.bind, config.port).map_err(StartError::listen(ListenerKind::Account))?;
        let control_listeners = Listeners::open(config.bind, config.control_port)
            .map_err(StartError::listen(ListenerKind::Control))?;
        let regions = config.regions.names().into_iter().map(|name| Region::new(name, 0)).collect();
        let seed = uuid::Uuid::new_v4().as_fields().0;
        let settings = AccountSettings {
            key,
            topology: Topology::new(regions, config.multi_write, config.consistency, config.lag)?
                .with_partition_failover(config.partition_failover),
            region_source: config.regions.source(),
            partitions: config.partitions,
            partition_bytes_max: config.partition_bytes_max,
            request_units: config.request_units,
            seed,
        };
        let account = match config.data.clone() {
            None => Account::new(settings),
            Some(data) => open_account(settings, data).await?,
        };
        // Closes the directory if a region's port cannot be opened.
        let disk_guard = CloseOnDrop(account.disk.clone());
        let advertised_hosts = config.advertised_hosts(&account.name);
        let control_access =
            ControlAccess { host_names: access.host_names.clone(), token: config.control_token.clone() };
        let hosted = HostedAccount::new(account, seed.into())
            .with_access(access)
            .with_advertised_hosts(advertised_hosts);
        let account = Arc::clone(&hosted.account);
        make_indexes(&account);
        auto_split::resume(&account, config.clock.uptime());
        hosted.request_log.set_capacity(config.request_log_capacity);
        let names: Vec<String> =
            account.regions.current().regions().map(|(_, region)| region.name.clone()).collect();
        let certificate_names = hosted.advertised_hosts.certificate_names(&names);
        let tls = Tls::new(config.authority.clone(), config.bind.primary(), config.clock.clone())
            .with_names(certificate_names);
        tls.prepare();
        hosted.account.events.set_clock(config.clock.clone());
        let ports = hosted.port_control(&config.clock);
        let settings = ServerSettings {
            bind: config.bind,
            port: config.port,
            limits: config.limits.clone(),
            tls: tls.clone(),
            clock: config.clock.clone(),
        };
        let servers = RegionServers::start(hosted.clone(), settings, Arc::clone(&ports), account_listeners)?;
        let servers = Arc::new(servers);
        let port_control_task = PortControlTask::start(Arc::clone(&ports));
        let faults = hosted.faults(ports, config.clock.clone());
        let control = Control {
            account: Arc::clone(&account),
            request_log: Arc::clone(&hosted.request_log),
            clock: config.clock.clone(),
            access: control_access,
            advertised_hosts: Arc::clone(&hosted.advertised_hosts),
            servers: Arc::clone(&servers),
            faults: faults.clone(),
            operations: Operations::new(Arc::clone(&account), config.clock.clone()),
        };
        let limits = config.limits.clone();
        let control = Server::start(control_listeners, Arc::new(control), Some(tls.clone()), limits);
        Ok(RunningEmulator {
            disk_guard,
            config,
            account,
            advertised_hosts: Arc::clone(&hosted.advertised_hosts),
            servers: OwnedServers(servers),
            control,
            tls,
            faults,
            _port_control_task: port_control_task,
        })
    }
}

/// A running emulator. Dropping it closes everything at once.
#[derive(Debug)]
pub struct RunningEmulator {
    disk_guard: CloseOnDrop,
    config: EmulatorConfig,
    account: Arc<Account>,
    advertised_hosts: Arc<AdvertisedHosts>,
    servers: OwnedServers,
    control: Server,
    tls: Tls,
    faults: Faults,
    _port_control_task: PortControlTask,
}

/// The servers of a running emulator, which close with it even if a request to the control port still runs.
#[derive(Debug)]
struct OwnedServers(Arc<RegionServers>);

impl Drop for OwnedServers {
    fn drop(&mut self) {
        drop(self.0.take());
    }
}

/// The endpoints of one region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionEndpoint {
    /// The display name, such as `West US`.
    pub name: String,
    /// The URL over plain HTTP.
    pub endpoint: String,
    /// The URL over TLS.
    pub https_endpoint: String,
    /// Whether items can be written there.
    pub writes: bool,
}

impl RunningEmulator {
    /// The account endpoint over plain HTTP: it needs no trusted certificate, and every official SDK accepts
    /// it for a local host. The port also speaks TLS, see [`https_endpoint`](RunningEmulator::https_endpoint).
    pub fn endpoint(&self) -> String {
        self.account_url("http")
    }

    /// The account endpoint over TLS.
    pub fn https_endpoint(&self) -> String {
        self.account_url("https")
    }

    /// The URL of the control port.
    pub fn control_endpoint(&self) -> String {
        format!("http://{}:{}/", self.config.bind.host(), self.control.port())
    }

    /// The connection string of the account, with its plain HTTP endpoint.
    pub fn connection_string(&self) -> String {
        connection_string(&self.endpoint(), self.key())
    }

    /// The connection string of the account, with its TLS endpoint.
    pub fn https_connection_string(&self) -> String {
        connection_string(&self.https_endpoint(), self.key())
    }

    /// The account key, in base64.
    pub fn key(&self) -> &str {
        &self.config.key
    }

    /// The port of the account's own endpoint, which belongs to no region if there are several.
    pub fn port(&self) -> u16 {
        self.servers.0.account_port()
    }

    /// The number of the control port.
    pub fn control_port(&self) -> u16 {
        self.control.port()
    }

    /// The token that requests to the control port need, if there is one.
    pub fn control_token(&self) -> Option<&str> {
        self.config.control_token.as_deref()
    }

    /// The regions in failover order: where clients find each of them, and whether it writes.
    pub fn regions(&self) -> Vec<RegionEndpoint> {
        let topology = self.account.regions.current();
        let endpoint = |id: &RegionId| {
            let region = topology.region(*id);
            RegionEndpoint {
                name: region.name.clone(),
                endpoint: self.advertised_hosts.region_url("http", &region.name, region.port),
                https_endpoint: self.advertised_hosts.region_url("https", &region.name, region.port),
                writes: topology.takes_item_writes(*id),
            }
        };
        topology.failover_order().iter().map(endpoint).collect()
    }

    /// The host names of the account: what clients are told to connect to.
    pub fn advertised_hosts(&self) -> &AdvertisedHosts {
        &self.advertised_hosts
    }

    /// The request units that were spent, by container, partition and region.
    pub fn usage(&self) -> Vec<ContainerUsage> {
        account::usage(&self.account, self.config.clock.uptime())
    }

    /// The faults that are injected into this account.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// The fault control of one region: take it down, slow it, drain it, throttle it, fail over to it, or
    /// bring it up again.
    pub fn region(&self, name: &str) -> Result<RegionControl, FaultError> {
        self.faults.region(name)
    }

    /// The directory that the account is stored in; `None` when it is in memory only.
    pub fn data_dir(&self) -> Option<&DataDir> {
        self.config.data.as_ref()
    }

    /// The certificate https clients have to trust, as PEM.
    pub async fn authority_pem(&self) -> Result<Arc<str>, TlsError> {
        self.tls.authority_pem().await
    }

    /// Lets requests in flight finish within a short grace period, then closes everything.
    pub async fn stop(self) {
        let mut stopping = tokio::task::JoinSet::new();
        for server in self.servers.0.take().into_iter().chain([self.control]) {
            stopping.spawn(server.stop());
        }
        stopping.join_all().await;
        // Dropping the guard writes everything to disk, which may take a while. If that task panics, the
        // journal still holds what was acknowledged, so the error is dropped.
        let disk_guard = self.disk_guard;
        let _ = tokio::task::spawn_blocking(move || drop(disk_guard)).await;
    }

    fn account_url(&self, scheme: &str) -> String {
        self.advertised_hosts.account_url(scheme, self.port())
    }
}

/// Opens the account that is stored in a directory, on a blocking thread because that may take a while.
async fn open_account(settings: AccountSettings, data: DataDir) -> Result<Account, StartError> {
    let opening = tokio::task::spawn_blocking(move || Account::open(settings, &data));
    match opening.await {
        Ok(opened) => Ok(opened?),
        Err(stopped) => std::panic::resume_unwind(stopped.into_panic()),
    }
}

/// Builds the indexes of the items that were loaded, while requests that need no index are served already.
/// Ends with the account.
fn make_indexes(account: &Arc<Account>) {
    if account.disk.is_some() {
        let account = Arc::clone(account);
        tokio::task::spawn_blocking(move || account.make_indexes());
    }
}

fn connection_string(endpoint: &str, key: &str) -> String {
    format!("AccountEndpoint={endpoint};AccountKey={key};")
}
