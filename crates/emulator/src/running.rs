//! Starting an emulator, and the handle to one that runs.

use std::sync::Arc;

use crate::config::EmulatorConfig;
use crate::control::Control;
use crate::disk::{ClosesOnDrop, DataDir};
use crate::error::{Door, StartError};
use crate::faults::{FaultError, Faults, PortControl, PortControlTask, RegionControl};
use crate::gateway::{Account, AccountSettings, Gateway};
use crate::growth;
use crate::handlers::{self, ContainerUsage};
use crate::operations::Operations;
use crate::regions::{Region, RegionId, Topology};
use crate::server::{Listeners, Server, Tls, TlsError};

/// Where an account on this machine begins.
#[derive(Clone, Copy, Debug)]
pub struct Emulator;

impl Emulator {
    /// Opens the ports and starts answering. When this returns, requests are answered.
    ///
    /// Must be called inside a Tokio runtime; the servers live on it until the handle is dropped.
    pub async fn start(config: EmulatorConfig) -> Result<Running, StartError> {
        let key = config.account_key()?;
        // All doors first: a port that is taken is reported before anything is served.
        let doors = open_regions(&config)?;
        let control = Listeners::open(config.bind, config.control_port, Door::Control)?;
        let tls = Tls::new(config.authority.clone(), config.bind.primary(), config.clock.clone());
        tls.prepare();
        let limits = || config.limits.clone();
        let named = config.regions.iter().zip(&doors);
        let regions = named.map(|(name, door)| Region::new(name, door.port())).collect();
        let settings = AccountSettings {
            key,
            topology: Topology::new(regions, config.multi_write, config.consistency, config.lag)?
                .with_partition_failover(config.partition_failover),
            partitions: config.partitions,
            partition_bytes_max: config.partition_bytes_max,
            request_units: config.request_units,
            seed: uuid::Uuid::new_v4().as_fields().0,
        };
        let account = Arc::new(match config.data.clone() {
            None => Account::new(settings),
            Some(data) => open_account(settings, data).await?,
        });
        make_indexes(&account);
        growth::resume(&account, config.clock.uptime());
        account.sight.keep(config.requests_kept);
        let serve = |(door, region)| {
            let gateway = Gateway::new(Arc::clone(&account), RegionId(region), config.clock.clone());
            Server::start(door, Arc::new(gateway), Some(tls.clone()), limits())
        };
        let regions: Vec<Server> = doors.into_iter().zip(0..).map(serve).collect();
        let entrances = regions.iter().map(Server::entrance).collect();
        let ports = PortControl::new(Arc::clone(&account.faults), config.clock.clone(), entrances);
        let ports = Arc::new(ports);
        let port_task = PortControlTask::start(Arc::clone(&ports));
        let faults = Faults::new(Arc::clone(&account), ports, config.clock.clone());
        let controls = Control {
            account: Arc::clone(&account),
            clock: config.clock.clone(),
            host: config.bind.host(),
            faults: faults.clone(),
            operations: Operations::new(Arc::clone(&account), config.clock.clone()),
        };
        let control = Server::start(control, Arc::new(controls), Some(tls.clone()), limits());
        let kept = ClosesOnDrop(account.disk.clone());
        Ok(Running { kept, config, account, regions, control, tls, faults, _port_task: port_task })
    }
}

/// A running emulator. Dropping it closes everything at once.
#[derive(Debug)]
pub struct Running {
    kept: ClosesOnDrop,
    config: EmulatorConfig,
    account: Arc<Account>,
    regions: Vec<Server>,
    control: Server,
    tls: Tls,
    faults: Faults,
    _port_task: PortControlTask,
}

/// Where a region is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionEndpoint {
    /// The display name.
    pub name: String,
    /// Over plain HTTP.
    pub endpoint: String,
    /// Over TLS.
    pub https_endpoint: String,
    /// Whether items can be written there.
    pub writes: bool,
}

impl Running {
    /// Where clients find the account, over plain HTTP: it needs no certificate to be trusted, and
    /// every official SDK accepts it for a local host. The same port speaks TLS too, see
    /// [`https_endpoint`](Running::https_endpoint).
    pub fn endpoint(&self) -> String {
        self.account_url("http")
    }

    /// Where clients find the account, over TLS.
    pub fn https_endpoint(&self) -> String {
        self.account_url("https")
    }

    /// Where health and control are.
    pub fn control_endpoint(&self) -> String {
        format!("http://{}:{}/", self.config.bind.host(), self.control.port())
    }

    /// What most SDKs take instead of an endpoint and a key.
    pub fn connection_string(&self) -> String {
        connection_string(&self.endpoint(), self.key())
    }

    /// The same, over TLS.
    pub fn https_connection_string(&self) -> String {
        connection_string(&self.https_endpoint(), self.key())
    }

    /// The account key.
    pub fn key(&self) -> &str {
        &self.config.key
    }

    /// The port of the account: that of its first region.
    pub fn port(&self) -> u16 {
        self.regions[0].port()
    }

    /// The port of health and control.
    pub fn control_port(&self) -> u16 {
        self.control.port()
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
        handlers::usage(&self.account, self.config.clock.uptime())
    }

    /// What goes wrong on purpose.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// One region, to be taken down, slowed, drained, throttled, failed over to, or brought up again.
    pub fn region(&self, name: &str) -> Result<RegionControl, FaultError> {
        self.faults.region(name)
    }

    /// Where the account is kept; `None` when it is in memory only.
    pub fn data_dir(&self) -> Option<&DataDir> {
        self.config.data.as_ref()
    }

    /// The certificate https clients have to trust, as PEM.
    pub async fn authority_pem(&self) -> Result<Arc<str>, TlsError> {
        self.tls.authority_pem().await
    }

    /// Lets requests in flight finish, for a moment, then closes everything.
    pub async fn stop(self) {
        let mut stopping = tokio::task::JoinSet::new();
        for server in self.regions.into_iter().chain([self.control]) {
            stopping.spawn(server.stop());
        }
        stopping.join_all().await;
        // Brings everything to the disk, which may take a moment.
        let kept = self.kept;
        let _ = tokio::task::spawn_blocking(move || drop(kept)).await;
    }

    fn account_url(&self, scheme: &str) -> String {
        self.url(scheme, self.port())
    }

    fn url(&self, scheme: &str, port: u16) -> String {
        format!("{scheme}://{}:{port}/", self.config.bind.host())
    }
}

/// One listener for each region, on ports that follow each other unless any will do.
fn open_regions(config: &EmulatorConfig) -> Result<Vec<Listeners>, StartError> {
    let ports = (0..config.regions.len()).map(|at| match config.port {
        0 => Some(0),
        first => u16::try_from(at).ok().and_then(|at| first.checked_add(at)),
    });
    ports
        .map(|port| match port {
            Some(port) => Listeners::open(config.bind, port, Door::Account),
            None => Err(StartError::NoPortLeft { first: config.port, regions: config.regions.len() }),
        })
        .collect()
}

/// Reads the account that is kept in a directory, on a thread where that may take its time.
async fn open_account(settings: AccountSettings, data: DataDir) -> Result<Account, StartError> {
    let opening = tokio::task::spawn_blocking(move || Account::open(settings, &data));
    match opening.await {
        Ok(opened) => Ok(opened?),
        Err(stopped) => std::panic::resume_unwind(stopped.into_panic()),
    }
}

/// Makes the indexes of what was read, while requests that need none are answered already. Ends with
/// the account.
fn make_indexes(account: &Arc<Account>) {
    if account.disk.is_some() {
        let account = Arc::clone(account);
        tokio::task::spawn_blocking(move || account.make_indexes());
    }
}

fn connection_string(endpoint: &str, key: &str) -> String {
    format!("AccountEndpoint={endpoint};AccountKey={key};")
}
