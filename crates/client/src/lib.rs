//! A client for Azure Cosmos DB whose operations outlive regions, partitions and connections.
//!
//! ```no_run
//! use perihelion::{CosmosClient, Result};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Order {
//!     id: String,
//!     customer: String,
//!     total: f64,
//! }
//!
//! # async fn run() -> Result<()> {
//! // What `peri up` prints, or the connection string of a real account.
//! let client = CosmosClient::from_connection_string("AccountEndpoint=http://localhost:8081/;AccountKey=…")?;
//! let orders = client.database("shop").container("orders");
//!
//! let order = Order { id: "o-1".into(), customer: "ada".into(), total: 12.5 };
//! orders.create_item("ada", &order).await?;
//!
//! let read = orders.read_item::<Order>("ada", "o-1").await?;
//! println!("{} costs {} and was read for {} RU", read.value().id, read.value().total, read.charge());
//! # Ok(())
//! # }
//! ```
//!
//! A call is a value until it is awaited, so options go in between:
//! `orders.replace_item("ada", "o-1", &order).if_match(etag).await?`. Clients are cheap to clone and share
//! their connections, caches and what they know of the account's regions.
//!
//! Errors say what to do next: see [`ErrorKind`].

#![warn(missing_docs)]

mod client;
mod client_builder;
mod transport; // gives the driver its HTTP clients

mod container;
mod database;
mod items; // one file per operation on items
mod processor; // every change through a handler, shared among instances
mod throughput;

mod call; // an operation until it is awaited
mod list; // what an account or a database has
mod response;
mod serialize; // the only place that knows serde

pub use call::Call;
pub use client::CosmosClient;
pub use client_builder::CosmosClientBuilder;
pub use container::ContainerClient;
pub use database::DatabaseClient;
pub use items::{
    Batch, BatchItem, BatchResponse, Bulk, BulkAnswer, BulkItem, BulkOperation, BulkResponse, BulkResults,
    Changes, ChangesPage, FollowChanges, Page, Pages, Patch, Query, QueryItems, ReadItem, WriteItem,
};
pub use list::{List, ListPages};
pub use processor::{
    BatchContext, ChangeFeedProcessor, DeadLetter, HandlerError, Lag, LeaseStatus, ProcessorStart,
    ProcessorStatus, RangeLag, RunningProcessor,
};
pub use response::{Item, ItemResponse, Response};

pub use driver::bulk::{BulkOptions, BulkSummary};

/// Signing in with Microsoft Entra ID, as every Azure crate does it.
pub mod credentials {
    pub use azure_core::credentials::{AccessToken, Secret, TokenCredential, TokenRequestOptions};
    pub use azure_core::error::{Error, ErrorKind};
    pub use azure_core::time::OffsetDateTime;
}

/// What [`ContainerProperties`] are made of.
pub mod policies {
    pub use protocol::container::{
        ChangeFeedPolicy, CompositeOrder, CompositePath, ComputedProperty, ConflictResolutionMode,
        ConflictResolutionPolicy, DistanceFunction, ExcludedPath, FullTextIndex, FullTextPath,
        FullTextPolicy, GeospatialConfig, GeospatialType, IncludedPath, IndexingMode, IndexingPolicy,
        PartitionKeyKind, PartitionKeyPath, PartitionKeyVersion, SpatialIndex, UniqueKey, UniqueKeyPolicy,
        VectorEmbedding, VectorEmbeddingPolicy, VectorIndex,
    };
}

pub use driver::change_feed::{ChangeFeedMode, ChangeFeedStart};
pub use driver::diagnostics::Diagnostics;
pub use driver::options::{
    CircuitBreakerOptions, ConsistencyOptions, DriverOptions, HedgingOptions, HedgingThreshold,
    OperationOptions, ReadConsistencyStrategy, RegionOptions, RetryOptions, TimeoutOptions,
};
pub use driver::{Account, Error, ErrorKind, Result};
pub use protocol::container::{ContainerProperties, PartitionKeyDefinition};
pub use protocol::database::DatabaseProperties;
pub use protocol::partition::{EpkRange as FeedRange, PartitionKey, PartitionKeyComponent};
pub use protocol::status::{Status, SubStatus};
pub use protocol::throughput::Throughput;
