//! One operation in, one answer out, whatever the regions are doing.
//!
//! `CosmosDriver::execute_operation` is the only way to the service. It takes an [`Operation`] (what is
//! wanted) and options, and gives a [`Response`] (bytes, headers, diagnostics) or a typed error.
//!
//! ```text
//!  Operation ─► pipeline ─► routing ─► transport ─► sharding ─► HttpClient
//!                  ▲  │        where      one attempt   which connection
//!                  │  └► evaluate ─► Step + Effects
//!                  └──────── next attempt, another region, or the end
//! ```
//!
//! Decisions are pure functions over snapshots; the loops that send and sleep carry them out. The
//! driver sees items as bytes and knows the `HttpClient` trait of `azure_core`, no HTTP library.

#![warn(missing_docs)]

// 1. What is wanted, and how.
pub mod operation;
pub mod options;

// 2. The loop over regions, and the race of two of them.
mod hedging;
mod pipeline;

// 3. Where to send.
pub mod routing;
pub mod session;

// 4. One attempt at one endpoint.
pub mod transport;

// 5. Which connection.
pub mod sharding;

// What is known about the account and its containers.
pub mod cache;

// What the caller can see afterwards.
pub mod diagnostics;
mod error;

// What goes wrong on purpose.
#[cfg(feature = "fault-injection")]
pub mod faults;

// Time and tasks.
pub mod background;
pub mod clock;

// Many operations as one: queries and changes over partitions.
pub mod change_feed;
pub mod query;

// The front door.
mod account;
mod driver;
mod runtime;

pub use account::Account;
pub use driver::CosmosDriver;
pub use error::{Error, ErrorKind, Result};
pub use operation::{Operation, OperationKind, Response, Target};
pub use runtime::{CosmosRuntime, CosmosRuntimeBuilder};
