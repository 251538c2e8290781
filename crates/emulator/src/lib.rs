//! The emulator: a local Cosmos DB account over real sockets.
//!
//! Start it with [`Emulator::start`] and an [`EmulatorConfig`]. The [`RunningEmulator`] that this returns has
//! the URLs and stops everything when it is dropped.
//!
//! ```no_run
//! # async fn example() -> Result<(), perihelion_emulator::StartError> {
//! use perihelion_emulator::{Emulator, EmulatorConfig};
//!
//! let running = Emulator::start(EmulatorConfig::default()).await?;
//! println!("{}", running.connection_string());
//! running.stop().await;
//! # Ok(())
//! # }
//! ```

// Who may reach an account.
pub mod access;

// Starting an emulator.
pub mod config;
mod error;
mod running;

// From HTTP requests to operations and back, and what each operation does.
mod evaluation_pool;
pub mod gateway;
mod handlers;
mod hosted;
mod request;
mod response;

// Fault injection.
pub mod faults;

// Operating a running account.
mod control;
mod request_log;

pub use clock;
pub use config::{EmulatorConfig, WELL_KNOWN_KEY};
pub use engine;
pub use engine::account::ContainerUsage;
pub use engine::charge::{PartitionUsage, RequestUnitMode};
pub use engine::disk::{DataDir, Fsync, OpenError};
pub use engine::regions;
pub use error::{ListenerKind, StartError};
pub use hosted::HostedAccount;
pub use protocol::account::ConsistencyLevel;
pub use request_log::{REQUEST_LOG_CAPACITY_DEFAULT, REQUEST_LOG_CAPACITY_MAX};
pub use running::{Emulator, RegionEndpoint, RunningEmulator};
pub use server;
pub use server::{Authority, AuthorityError, AuthoritySource, Bind};
