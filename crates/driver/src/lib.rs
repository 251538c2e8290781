//! A driver for Azure Cosmos DB: one operation in, one response or error out, across the regions of an account.
//!
//! [`CosmosDriver::execute_operation`] is the only way to the service. It takes an [`Operation`] and [options],
//! and returns a [`Response`] (bytes, headers, diagnostics) or an [`Error`] whose kind says what the caller can do
//! next, before the deadline in any case.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use perihelion_driver::operation::ContainerName;
//! use perihelion_driver::options::{DriverOptions, OperationOptions};
//! use perihelion_driver::transport::TransportFactory;
//! use perihelion_driver::{Account, CosmosRuntime, Operation, Result};
//! use protocol::partition::PartitionKey;
//!
//! # async fn example(clients: Arc<dyn TransportFactory>) -> Result<()> {
//! // Once per process: connections and defaults. Once per account: what is known about it.
//! let runtime = CosmosRuntime::builder(clients).build()?;
//! let account = Account::from_connection_string("AccountEndpoint=https://…;AccountKey=…")?;
//! let driver = runtime.driver(&account, DriverOptions::new())?;
//!
//! // Once per container: its name. Per operation: what is wanted.
//! let orders = ContainerName::new("shop", "orders");
//! let read = Operation::read_item(&orders, PartitionKey::single("customer-1"), "order-1");
//! let response = driver.execute_operation(&read, &OperationOptions::new()).await?;
//! println!("{} RU, {}", response.charge(), response.diagnostics().summary());
//! # Ok(())
//! # }
//! ```
//!
//! # Building on it
//!
//! - Any request is an [`Operation::new`] of a kind and a [`Target`], with a
//!   [`Scope`](operation::Scope): a logical partition, an EPK range, or a physical partition.
//!   Headers that only some operations have go in with [`Operation::with_header`].
//! - Feeds are read page by page: [`Response::continuation`] is the next page's header. A request for a
//!   range that a split has divided, or for a partition that is gone, gets 410/1002;
//!   [`CosmosDriver::refresh_partitions`] then has the ranges that took its place.
//! - Everything the driver retries, and what it never does, is the table in `docs/retries.md`.
//!
//! # The path of an operation
//!
//! ```text
//!  Operation ─► pipeline ─► routing ─► gateway ─────► sharding ─────► Transport
//!                  ▲  │     region     one attempt    connection      the network
//!                  │  └► evaluate ─► Step + Effects
//!                  └──────── next attempt, another region, or the end
//! ```
//!
//! Decisions are pure functions over snapshots; the loops that send and sleep carry them out. The driver sees
//! items as bytes and knows no HTTP library, only a [`Transport`](transport::Transport), which every `HttpClient`
//! of `azure_core` can be through an adapter.

#![warn(missing_docs)]
#![cfg_attr(
    not(feature = "test-util"),
    allow(dead_code, unreachable_pub, reason = "the module `testing` exports it with the feature test-util")
)]

// 1. What is wanted, and how.
pub mod operation;
pub mod options;

// 2. Many operations as one: queries and changes over partitions, and bulks.
pub mod bulk;
pub mod change_feed;
pub mod query;

// 3. What the caller can see afterwards.
pub mod diagnostics;
mod error;
mod response;
pub mod telemetry;

// 4. The account, its driver, and what drivers of a process share.
mod account;
mod driver;
mod runtime;

// 5. The pipeline: attempts until one ends the operation.
mod hedging;
mod pipeline;

// 6. Where to send: regions, partitions and their breakers, caches, sessions.
mod cache;
mod region;
mod routing;
mod session;

// 7. One attempt at one endpoint, the choice of a connection, and the way down to the network.
mod gateway;
mod sharding;
pub mod transport;

// 8. Faults injected below sharding.
#[cfg(feature = "fault-injection")]
pub mod faults;

// 9. Time, background tasks and locks.
mod background;
mod clock;
mod sync;

pub use account::Account;
pub use background::Background;
pub use cache::{Container, PartitionRanges};
pub use clock::{Clock, Sleep};
pub use driver::{CallDeadline, CosmosDriver, WeakDriver};
pub use error::{Error, ErrorKind, Result};
pub use gateway::Credential;
pub use operation::{Access, Operation, OperationKind, Target};
pub use region::Region;
pub use response::Response;
pub use routing::{
    AccountState, Breaker, BreakerState, ContainerIdentity, Diversion, DiversionCause, Endpoint,
    EndpointKind, Gateway2, IncompleteMap, Partition, PartitionFailure, PartitionId, PartitionMap,
    PartitionRegion, PartitionState, Placement, Unavailable,
};
pub use runtime::{CosmosRuntime, CosmosRuntimeBuilder};
pub use session::{ContainerSession, SessionScope};
pub use sharding::{InvalidSharding, LoadSpread, SERVICE_STREAMS_MAX, ShardingConfig};

/// What only tests and benches use: time that they move, one attempt without a pipeline, and shards.
#[cfg(feature = "test-util")]
pub mod testing {
    pub use crate::clock::ManualTime;
    pub use crate::gateway::{AttemptLimits, GatewayClient, GatewayOutcome, GatewayRequest, GatewayResult};
    pub use crate::sharding::select::{Candidate, Selection, SelectionLimits, select};
    pub use crate::sharding::{EndpointRoute, EndpointShards, InFlight, ShardedTransport};
}
