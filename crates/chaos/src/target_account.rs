//! The account of a run: a new emulator in this process, or an account that runs already.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use emulator::{Emulator, EmulatorConfig, RunningEmulator, StartError};
use perihelion::{
    Account, CircuitBreakerOptions, ContainerClient, ContainerProperties, CosmosClient, DriverOptions,
    HedgingOptions, OperationOptions, PartitionKeyDefinition, TimeoutOptions,
};
use serde_json::Value;

use control_client::{ControlClient, ControlError};

use crate::duration::DurationRange;
use crate::inject::{ActiveFaults, Injector};
use crate::scenario::WriteRegions;
use crate::schedule::Schedule;

const CONTAINER: &str = "items";

/// Why a run has no account, or cannot use it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The emulator does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The database and container of the run cannot be created or deleted.
    #[error("the account is not ready: {0}")]
    Client(#[from] perihelion::Error),
    /// A request to the control port of the account failed.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The account does not have the regions or the configuration that the scenario needs.
    #[error("{0}")]
    Mismatch(String),
}

/// An account with its control port, and a container for one run.
#[derive(Debug)]
pub struct TargetAccount {
    /// The emulator of this run, which stops when it is dropped.
    _running: Option<RunningEmulator>,
    connection: String,
    control: ControlClient,
    database: String,
    regions: Vec<String>,
    /// The faults that are active now.
    active_faults: ActiveFaults,
}

/// Makes clients of a run: the one of the workload, and new ones without caches.
#[derive(Clone, Debug)]
pub(crate) struct ClientFactory {
    connection: String,
    database: String,
    regions: Vec<String>,
    options: DriverOptions,
    /// Whether the connection string is that of an endpoint with TLS.
    https: bool,
}

impl ClientFactory {
    /// A new client without caches.
    pub(crate) fn client(&self) -> perihelion::Result<CosmosClient> {
        self.client_with(self.options.clone())
    }

    /// A new client without caches that has the default deadline of the driver, for calls that have one of their own.
    pub(crate) fn client_with_default_deadline(&self) -> perihelion::Result<CosmosClient> {
        let mut options = self.options.clone();
        options.operation.timeouts.end_to_end = None;
        self.client_with(options)
    }

    fn client_with(&self, options: DriverOptions) -> perihelion::Result<CosmosClient> {
        let builder = CosmosClient::builder(Account::from_connection_string(&self.connection)?)
            .options(options)
            .preferred_regions(&self.regions);
        // The account of a run has a certificate of its own making, which is not what is tested.
        if self.https { builder.danger_accept_invalid_certificates().build() } else { builder.build() }
    }

    /// The container of the run, through this client.
    pub(crate) fn container_of(&self, client: &CosmosClient) -> ContainerClient {
        client.database(&self.database).container(CONTAINER)
    }
}

impl TargetAccount {
    /// Starts an emulator in this process, configured as the schedule needs it.
    pub async fn start(schedule: &Schedule) -> Result<TargetAccount, TargetError> {
        let mut config = EmulatorConfig::default();
        config.regions = schedule.regions.clone().into();
        config.multi_write = schedule.variant.writes == WriteRegions::All;
        config.partitions = NonZeroU32::new(schedule.partitions);
        if let Some(lag) = schedule.lag {
            config.lag =
                lag.to_string().parse().map_err(|error| TargetError::Mismatch(format!("lag: {error}")))?;
        }
        let running = Emulator::start(config).await?;
        let connection = running.connection_string();
        let control = ControlClient::new(&running.control_endpoint())?;
        TargetAccount::prepare(Some(running), &connection, control, schedule).await
    }

    /// Uses an account that runs already. It gets a database for the run, which
    /// [`clean_up`](TargetAccount::clean_up) deletes.
    pub async fn attach(
        connection: &str,
        control: ControlClient,
        schedule: &Schedule,
    ) -> Result<TargetAccount, TargetError> {
        let listed = regions(&control).await?;
        let names: Vec<&str> = listed.iter().filter_map(|region| region["name"].as_str()).collect();
        // The order of the read regions does not matter.
        let is_match = names.first().copied() == schedule.regions.first().map(String::as_str)
            && names.len() == schedule.regions.len()
            && schedule.regions.iter().all(|name| names.contains(&name.as_str()));
        if !is_match {
            return Err(TargetError::Mismatch(format!(
                "the scenario needs an account in {}, and this one is in {}; start the account with --regions, or change the scenario",
                schedule.regions.join(", "),
                names.join(", ")
            )));
        }
        let writes = write_regions_in(&listed);
        if writes != schedule.variant.writes && names.len() > 1 {
            let text = format!(
                "in this account {writes}, and the scenario needs one where {}; start it with or without --multi-write",
                schedule.variant.writes
            );
            return Err(TargetError::Mismatch(text));
        }
        TargetAccount::prepare(None, connection, control, schedule).await
    }

    /// Which regions of an account that runs already accept writes.
    pub async fn write_regions_of(control: &ControlClient) -> Result<WriteRegions, TargetError> {
        Ok(write_regions_in(&regions(control).await?))
    }

    async fn prepare(
        running: Option<RunningEmulator>,
        connection: &str,
        control: ControlClient,
        schedule: &Schedule,
    ) -> Result<TargetAccount, TargetError> {
        let account = TargetAccount {
            _running: running,
            connection: connection.to_owned(),
            control,
            database: format!("chaos-{:016x}", schedule.digest()),
            regions: schedule.regions.clone(),
            active_faults: ActiveFaults::default(),
        };
        account.control.post("/faults/seed", &serde_json::json!({"seed": schedule.seed >> 16})).await?;
        let client = account.client(&schedule.regions, Duration::from_secs(30))?;
        client.create_database(&account.database).await?;
        let database = client.database(&account.database);
        let key = PartitionKeyDefinition::hash("/pk")
            .map_err(|error| TargetError::Mismatch(format!("a partition key: {error}")))?;
        database.create_container(&ContainerProperties::new(CONTAINER, key)).await?;
        Ok(account)
    }

    /// A client that prefers these regions.
    fn client(&self, regions: &[String], deadline: Duration) -> Result<CosmosClient, TargetError> {
        let connection = Account::from_connection_string(&self.connection)?;
        Ok(CosmosClient::builder(connection).preferred_regions(regions).timeout(deadline).build()?)
    }

    /// What makes clients of the run, with the settings of its variant.
    pub(crate) fn client_factory(&self, schedule: &Schedule) -> ClientFactory {
        let mut timeouts = TimeoutOptions::new().with_end_to_end(schedule.workload.deadline);
        timeouts.attempt = schedule.attempt_timeout;
        let hedging = HedgingOptions::new().with_enabled(schedule.hedges());
        let operations = OperationOptions::new().with_timeouts(timeouts).with_hedging(hedging);
        let mut options = DriverOptions::new().with_operation(operations);
        if schedule.unlimited_windows {
            let breaker = CircuitBreakerOptions::new()
                .with_counter_reset_window(Duration::MAX)
                .with_failback_interval(Duration::MAX);
            options = options.with_circuit_breaker(breaker);
        }
        ClientFactory {
            connection: if schedule.https { with_tls(&self.connection) } else { self.connection.clone() },
            database: self.database.clone(),
            regions: self.regions.clone(),
            options,
            https: schedule.https,
        }
    }

    /// A new client without caches that prefers one region and does not hedge.
    pub(crate) fn reader_in(&self, region: &str) -> Result<ContainerClient, TargetError> {
        let connection = Account::from_connection_string(&self.connection)?;
        let hedging = HedgingOptions::new().with_enabled(false);
        let client = CosmosClient::builder(connection)
            .preferred_regions([region])
            .timeout(Duration::from_secs(30))
            .operations(OperationOptions::new().with_hedging(hedging))
            .build()?;
        Ok(self.container(&client))
    }

    /// The container of the run.
    fn container(&self, client: &CosmosClient) -> ContainerClient {
        client.database(&self.database).container(CONTAINER)
    }

    pub(crate) fn regions(&self) -> &[String] {
        &self.regions
    }

    pub(crate) fn injector(&self, schedule: &Schedule) -> Injector {
        Injector {
            active: Arc::clone(&self.active_faults),
            control: self.control.clone(),
            database: self.database.clone(),
            container: CONTAINER.to_owned(),
            write_region: schedule.regions[0].clone(),
            lag: schedule.lag.unwrap_or(DurationRange::always(Duration::ZERO)),
        }
    }

    /// The name of the database of the run.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Cleans up after a run that was interrupted: ends the active faults, then deletes the database.
    pub async fn abort(self, schedule: &Schedule) -> Result<(), TargetError> {
        // The database is deleted even if a fault could not be ended.
        let ended = self.injector(schedule).end_active(&schedule.faults).await;
        self.clean_up().await?;
        Ok(ended?)
    }

    /// Deletes the database of the run.
    pub async fn clean_up(self) -> Result<(), TargetError> {
        let client = self.client(&self.regions, Duration::from_secs(30))?;
        client.database(&self.database).delete().await?;
        Ok(())
    }
}

/// The connection string of an account for its endpoint with TLS: it serves both on one port.
fn with_tls(connection: &str) -> String {
    connection.replace("AccountEndpoint=http://", "AccountEndpoint=https://")
}

/// The regions of an account, as its control port lists them.
async fn regions(control: &ControlClient) -> Result<Vec<Value>, TargetError> {
    let mut listed = control.get("/regions").await?;
    Ok(listed["regions"].as_array_mut().map(std::mem::take).unwrap_or_default())
}

fn write_regions_in(regions: &[Value]) -> WriteRegions {
    let writers = regions.iter().filter(|region| region["writes"] == Value::Bool(true)).count();
    if writers > 1 { WriteRegions::All } else { WriteRegions::One }
}
