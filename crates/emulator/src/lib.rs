//! A Cosmos DB account on one machine, over real sockets.
//!
//! Start with [`Emulator::start`]; tune it with [`EmulatorConfig`]. The [`Running`] handle it returns
//! knows the URLs and stops everything when it is dropped.
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

// Starting one.
pub mod config;
mod error;
mod running;

// Sockets.
pub mod server;

// HTTP to operations and back, and what each operation does.
pub mod gateway;
mod handlers;

// What the account holds, how it is asked, and what that costs.
mod catalog;
mod change_feed;
mod charge;
mod disk;
mod growth;
mod operations;
pub mod partitions;
mod query;
pub mod regions;
pub mod snapshots;
mod store;

// What goes wrong on purpose.
pub mod faults;

// Beside the account.
mod control;
mod sight;

pub use clock;

pub use charge::{PartitionUsage, RequestUnits};
pub use config::{Bind, EmulatorConfig, WELL_KNOWN_KEY};
pub use disk::{DataDir, Fsync, OpenError};
pub use error::{Door, StartError};
pub use handlers::ContainerUsage;
pub use protocol::account::ConsistencyLevel;
pub use running::{Emulator, RegionEndpoint, Running};
pub use server::{Authority, AuthorityError, AuthoritySource};
pub use sight::{REQUESTS_KEPT_DEFAULT, REQUESTS_KEPT_MAX};
