//! Starting an emulator, and the handle to a running one.

use std::sync::Arc;

use crate::config::EmulatorConfig;
use crate::control::{Control, ControlAccess};
use crate::error::{ListenerKind, StartError};
use crate::faults::{FaultError, Faults, PortControl, PortControlTask, RegionControl};
use crate::gateway::Gateway;
use crate::hosted::HostedAccount;
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
        // All listeners first: a port that is taken is reported before anything is served.
        let region_listeners = open_listeners(&config)?;
        let control_listeners = Listeners::open(config.bind, config.control_port)
            .map_err(StartError::listen(ListenerKind::Control))?;
        let tls = Tls::new(config.authority.clone(), config.bind.primary(), config.clock.clone());
        tls.prepare();
        let limits = || config.limits.clone();
        let named = config.regions.iter().zip(&region_listeners);
        let regions = named.map(|(name, listeners)| Region::new(name, listeners.port())).collect();
        let seed = uuid::Uuid::new_v4().as_fields().0;
        let settings = AccountSettings {
            key,
            topology: Topology::new(regions, config.multi_write, config.consistency, config.lag)?
                .with_partition_failover(config.partition_failover),
            partitions: config.partitions,
            partition_bytes_max: config.partition_bytes_max,
            request_units: config.request_units,
            seed,
        };
        let account = match config.data.clone() {
            None => Account::new(settings),
            Some(data) => open_account(settings, data).await?,
        };
        let control_access =
            ControlAccess { host_names: access.host_names.clone(), token: config.control_token.clone() };
        let hosted = HostedAccount::new(account, seed.into()).with_access(access);
        let account = Arc::clone(&hosted.account);
        make_indexes(&account);
        auto_split::resume(&account, config.clock.uptime());
        hosted.request_log.set_capacity(config.request_log_capacity);
        let serve = |(listeners, region)| {
            let gateway = Gateway::new(&hosted, RegionId(region), config.clock.clone());
            Server::start(listeners, Arc::new(gateway), Some(tls.clone()), limits())
        };
        let regions: Vec<Server> = region_listeners.into_iter().zip(0..).map(serve).collect();
        let ports = regions.iter().map(Server::server_port).collect();
        let ports = PortControl::new(Arc::clone(&hosted.account_faults), config.clock.clone(), ports);
        let ports = Arc::new(ports);
        let port_control_task = PortControlTask::start(Arc::clone(&ports));
        let faults = hosted.faults(ports, config.clock.clone());
        let control = Control {
            account: Arc::clone(&account),
            request_log: Arc::clone(&hosted.request_log),
            clock: config.clock.clone(),
            access: control_access,
            host: config.bind.host(),
            faults: faults.clone(),
            operations: Operations::new(Arc::clone(&account), config.clock.clone()),
        };
        let control = Server::start(control_listeners, Arc::new(control), Some(tls.clone()), limits());
        Ok(RunningEmulator {
            disk_guard: CloseOnDrop(account.disk.clone()),
            config,
            account,
            regions,
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
    regions: Vec<Server>,
    control: Server,
    tls: Tls,
    faults: Faults,
    _port_control_task: PortControlTask,
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

    /// The port of the account: that of its first region.
    pub fn port(&self) -> u16 {
        self.regions[0].port()
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
                endpoint: self.url("http", region.port),
                https_endpoint: self.url("https", region.port),
                writes: topology.takes_item_writes(*id),
            }
        };
        topology.failover_order().iter().map(endpoint).collect()
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
        for server in self.regions.into_iter().chain([self.control]) {
            stopping.spawn(server.stop());
        }
        stopping.join_all().await;
        // Dropping the guard writes everything to disk, which may take a while. If that task panics, the
        // journal still holds what was acknowledged, so the error is dropped.
        let disk_guard = self.disk_guard;
        let _ = tokio::task::spawn_blocking(move || drop(disk_guard)).await;
    }

    fn account_url(&self, scheme: &str) -> String {
        self.url(scheme, self.port())
    }

    fn url(&self, scheme: &str, port: u16) -> String {
        format!("{scheme}://{}:{port}/", self.config.bind.host())
    }
}

/// Opens the listeners of each region, on consecutive ports unless any port will do.
fn open_listeners(config: &EmulatorConfig) -> Result<Vec<Listeners>, StartError> {
    let numbers = (0..config.regions.len()).map(|at| match config.port {
        0 => Some(0),
        first => u16::try_from(at).ok().and_then(|at| first.checked_add(at)),
    });
    numbers
        .map(|port| match port {
            Some(port) => {
                Listeners::open(config.bind, port).map_err(StartError::listen(ListenerKind::Account))
            }
            None => Err(StartError::NoPortLeft { first: config.port, regions: config.regions.len() }),
        })
        .collect()
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
