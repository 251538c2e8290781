//! The account it happens to: one of its own, or one that runs already.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use emulator::{Emulator, EmulatorConfig, Running, StartError};
use perihelion::{
    Account, ContainerClient, ContainerProperties, CosmosClient, HedgingOptions, OperationOptions,
    PartitionKeyDefinition,
};
use serde_json::Value;

use crate::control::{ControlError, ControlPort};
use crate::inject::{Injector, Open};
use crate::scenario::{Drawn, Writes};
use crate::schedule::Schedule;

const CONTAINER: &str = "items";

/// Why there is no account to try it on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// It does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It does not do what is needed before it begins.
    #[error("the account is not ready: {0}")]
    Client(#[from] perihelion::Error),
    /// Its control port does not do what it should.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// It is not what the scenario is about.
    #[error("{0}")]
    Unfit(String),
}

/// An account, its control port, and a container for one run.
#[derive(Debug)]
pub struct World {
    /// Held so that it runs as long as this.
    _running: Option<Running>,
    connection: String,
    control: ControlPort,
    database: String,
    regions: Vec<String>,
    /// The faults in force.
    open: Open,
}

impl World {
    /// An account of its own, as the schedule wants it, in this process and over real sockets.
    pub async fn start(schedule: &Schedule) -> Result<World, WorldError> {
        let mut config = EmulatorConfig::default();
        config.regions.clone_from(&schedule.regions);
        config.multi_write = schedule.writes == Writes::All;
        config.partitions = NonZeroU32::new(schedule.partitions);
        if let Some(lag) = schedule.lag {
            config.lag =
                lag.to_string().parse().map_err(|error| WorldError::Unfit(format!("lag: {error}")))?;
        }
        let running = Emulator::start(config).await?;
        let (connection, control) = (running.connection_string(), running.control_endpoint());
        World::prepare(Some(running), &connection, &control, schedule).await
    }

    /// An account that runs already. It gets a database for the run, which is deleted by [`finish`](World::finish).
    pub async fn attach(connection: &str, control: &str, schedule: &Schedule) -> Result<World, WorldError> {
        let listed = regions(control).await?;
        let names: Vec<&str> = listed.iter().filter_map(|region| region["name"].as_str()).collect();
        // The order of those that only read is of no matter.
        let is_it = names.first().copied() == schedule.regions.first().map(String::as_str)
            && names.len() == schedule.regions.len()
            && schedule.regions.iter().all(|name| names.contains(&name.as_str()));
        if !is_it {
            return Err(WorldError::Unfit(format!(
                "the scenario is about an account in {}, and this one is in {}; start it with --regions, or change the scenario",
                schedule.regions.join(", "),
                names.join(", ")
            )));
        }
        let writes = writes_in(&listed);
        if writes != schedule.writes && names.len() > 1 {
            let text = format!(
                "this is an account where {writes}, and the scenario is for one where {}",
                schedule.writes
            );
            return Err(WorldError::Unfit(text));
        }
        World::prepare(None, connection, control, schedule).await
    }

    /// Where an account that runs already takes writes.
    pub async fn writes_of(control: &str) -> Result<Writes, WorldError> {
        Ok(writes_in(&regions(control).await?))
    }

    async fn prepare(
        running: Option<Running>,
        connection: &str,
        control: &str,
        schedule: &Schedule,
    ) -> Result<World, WorldError> {
        let world = World {
            _running: running,
            connection: connection.to_owned(),
            control: ControlPort::new(control)?,
            database: format!("chaos-{:016x}", schedule.digest()),
            regions: schedule.regions.clone(),
            open: Open::default(),
        };
        world.control.post("/faults/seed", &serde_json::json!({"seed": schedule.seed >> 16})).await?;
        let client = world.client(&schedule.regions, Duration::from_secs(30))?;
        client.create_database(&world.database).await?;
        let database = client.database(&world.database);
        let key = PartitionKeyDefinition::hash("/pk")
            .map_err(|error| WorldError::Unfit(format!("a partition key: {error}")))?;
        database.create_container(&ContainerProperties::new(CONTAINER, key)).await?;
        Ok(world)
    }

    /// A client that prefers these regions.
    pub(crate) fn client(&self, regions: &[String], deadline: Duration) -> Result<CosmosClient, WorldError> {
        let account = Account::from_connection_string(&self.connection)?;
        Ok(CosmosClient::builder(account).preferred_regions(regions).timeout(deadline).build()?)
    }

    /// A client that knows nothing yet, asks one region first and never two at once.
    pub(crate) fn reader_in(&self, region: &str) -> Result<ContainerClient, WorldError> {
        let account = Account::from_connection_string(&self.connection)?;
        let hedging = HedgingOptions::new().with_enabled(false);
        let client = CosmosClient::builder(account)
            .preferred_regions([region])
            .timeout(Duration::from_secs(30))
            .operations(OperationOptions::new().with_hedging(hedging))
            .build()?;
        Ok(self.container(&client))
    }

    /// The container of the run.
    pub(crate) fn container(&self, client: &CosmosClient) -> ContainerClient {
        client.database(&self.database).container(CONTAINER)
    }

    pub(crate) fn regions(&self) -> &[String] {
        &self.regions
    }

    pub(crate) fn injector(&self, schedule: &Schedule) -> Injector {
        Injector {
            open: Arc::clone(&self.open),
            control: self.control.clone(),
            database: self.database.clone(),
            container: CONTAINER.to_owned(),
            writer: schedule.regions[0].clone(),
            lag: schedule.lag.unwrap_or(Drawn::always(Duration::ZERO)),
        }
    }

    /// The database of the run.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Leaves nothing of a run behind that was cut short: ends the faults in force, then does the same as
    /// [`finish`](World::finish).
    pub async fn abandon(self, schedule: &Schedule) -> Result<(), WorldError> {
        // With a region down that nobody could bring back, the database may be deleted all the same.
        let ended = self.injector(schedule).end_all(&schedule.faults).await;
        self.finish().await?;
        Ok(ended?)
    }

    /// Leaves nothing of the run behind.
    pub async fn finish(self) -> Result<(), WorldError> {
        let client = self.client(&self.regions, Duration::from_secs(30))?;
        client.database(&self.database).delete().await?;
        Ok(())
    }
}

/// The regions of an account, as its control port shows them.
async fn regions(control: &str) -> Result<Vec<Value>, WorldError> {
    let mut listed = ControlPort::new(control)?.get("/regions").await?;
    Ok(listed["regions"].as_array_mut().map(std::mem::take).unwrap_or_default())
}

fn writes_in(regions: &[Value]) -> Writes {
    let writers = regions.iter().filter(|region| region["writes"] == Value::Bool(true)).count();
    if writers > 1 { Writes::All } else { Writes::One }
}
