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

// In the order a request meets them.
mod catalog;
mod change_feed;
mod charge;
pub mod clock;
pub mod config;
mod control;
mod error;
pub mod gateway;
mod handlers;
mod query;
mod running;
pub mod server;
mod store;

pub use config::{Bind, EmulatorConfig, WELL_KNOWN_KEY};
pub use error::{Door, StartError};
pub use running::{Emulator, Running};
pub use server::{Authority, AuthorityError, AuthoritySource};
