//! A client of the control port: the HTTP port on which a running account accepts commands about itself (regions,
//! faults, partitions, snapshots, clock, request log).
//!
//! A request is a method, a path and perhaps a JSON body; the response is JSON. A [`ControlError`] says what went wrong
//! and what to do next.
//!
//! ```no_run
//! use perihelion_control_client::{ControlClient, escape};
//!
//! # async fn run() -> Result<(), perihelion_control_client::ControlError> {
//! let control = ControlClient::new("http://localhost:1234")?;
//! let path = format!("/regions/{}/down", escape("East US"));
//! let regions = control.post(&path, &serde_json::json!({"for": "30s"})).await?;
//! println!("{regions}");
//! # Ok(())
//! # }
//! ```

mod client;
mod error;
mod escape;
mod url;

pub use client::ControlClient;
pub use error::{ControlError, ControlErrorKind};
pub use escape::escape;
