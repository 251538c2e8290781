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

// HTTP to operations and back, and what each operation does.
pub mod gateway;
mod handlers;
mod hosted;
mod request;
mod response;

// What goes wrong on purpose.
pub mod faults;

// For those who operate it.
mod control;
mod sight;

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
pub use running::{Emulator, RegionEndpoint, Running};
pub use server;
pub use server::{Authority, AuthorityError, AuthoritySource, Bind};
pub use sight::{REQUESTS_KEPT_DEFAULT, REQUESTS_KEPT_MAX};
