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
//! # A tour
//!
//! | to | begin with |
//! |---|---|
//! | connect | [`CosmosClient::from_connection_string`], [`with_key`](CosmosClient::with_key), [`from_credential`](CosmosClient::from_credential), or [`builder`](CosmosClient::builder) for options |
//! | make and list | [`create_database_if_missing`](CosmosClient::create_database_if_missing), [`create_container_if_missing`](DatabaseClient::create_container_if_missing), [`list_databases`](CosmosClient::list_databases), [`list_containers`](DatabaseClient::list_containers) |
//! | store | [`create_item`](ContainerClient::create_item), [`upsert_item`](ContainerClient::upsert_item), [`replace_item`](ContainerClient::replace_item), [`delete_item`](ContainerClient::delete_item) |
//! | change a part | [`patch_item`](ContainerClient::patch_item) with a [`Patch`] |
//! | change several at once | [`execute_batch`](ContainerClient::execute_batch) with a [`Batch`] |
//! | read | [`read_item`](ContainerClient::read_item), [`optional`](ReadItem::optional) if it may be missing |
//! | ask | [`query_items`](ContainerClient::query_items), as [pages](QueryItems::pages) or a [stream](QueryItems::stream) |
//! | store very many | [`bulk`](ContainerClient::bulk) |
//! | follow | [`change_feed`](ContainerClient::change_feed), or in several processes [`change_feed_processor`](ContainerClient::change_feed_processor) |
//! | pay | [`throughput`](ContainerClient::throughput), [`set_throughput`](ContainerClient::set_throughput) |
//!
//! **A call is a value until it is awaited**, so options go in between:
//!
//! ```no_run
//! # use std::time::Duration;
//! # use perihelion::{ContainerClient, Item, OperationOptions, Result, TimeoutOptions};
//! # use serde_json::Value;
//! # async fn run(orders: ContainerClient) -> Result<()> {
//! let Item { value: mut order, etag, .. } = orders.read_item::<Item<Value>>("ada", "o-1").await?.into_value();
//! order["paid"] = true.into();
//! let quick = TimeoutOptions::new().with_end_to_end(Duration::from_secs(1));
//! orders
//!     .replace_item("ada", "o-1", &order)
//!     .if_match(etag)
//!     .options(OperationOptions::new().with_timeouts(quick))
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! **Clients are cheap to clone** and share their connections, caches and what they know of the account's regions.
//! Make one for each account and keep it. Dropping a call cancels it and leaves nothing behind.
//!
//! **Answers say what they cost.** A [`Response`] has the value, its etag, the charge, the session token and the
//! [`Diagnostics`]: every attempt, where it went, how long it took and what was done about it.
//!
//! **Errors say what to do next**: their [`ErrorKind`] to the program, their text to whoever reads it.
//!
//! ```no_run
//! # use perihelion::{ContainerClient, ErrorKind, Result};
//! # async fn run(orders: ContainerClient, order: serde_json::Value) -> Result<()> {
//! match orders.create_item("ada", &order).await {
//!     Ok(_) => {}
//!     Err(error) if error.kind() == ErrorKind::Conflict => println!("ordered before"),
//!     // No answer came: a create that is sent again would not know its own item. Read, then decide.
//!     Err(error) if error.kind() == ErrorKind::Undecided => println!("ordered, perhaps: {error}"),
//!     Err(error) => return Err(error),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! What the client does on its own about regions that are down, slow or behind, partitions that move and requests that
//! are throttled is a table in the repository, `docs/retries.md`; the settings for it are [`OperationOptions`] and
//! [`DriverOptions`], or environment variables (`docs/configuration.md`).

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
    BatchContext, ChangeFeedProcessor, DeadLetter, HandlerError, KeptProcessor, Lag, LeaseStatus,
    ProcessorStart, ProcessorStatus, RangeLag, RunningProcessor,
};
pub use response::{Item, ItemResponse, Response};

pub use driver::bulk::{BulkOptions, BulkSummary};

/// Signing in with Microsoft Entra ID, as every Azure crate does it.
pub mod credentials {
    pub use azure_core::credentials::{AccessToken, Secret, TokenCredential, TokenRequestOptions};
    pub use azure_core::error::{Error, ErrorKind};
    pub use azure_core::time::OffsetDateTime;
}

/// What connections are made with and how requests are spread over them: for [`CosmosClientBuilder::http`] and
/// [`CosmosClientBuilder::sharding`].
pub mod connections {
    pub use driver::sharding::{LoadSpread, ShardingConfig};
    pub use perihelion_http::{Client, ClientBuilder};
}

/// Fault injection, for tests of applications: requests of a client fail by rules. Feature `fault-injection`.
///
/// Rules are the same as those of the local account (`peri fault`) and of `peri chaos`, in Rust, JSON or TOML. They
/// apply to connections of the client, so they work with every account; above them the client retries, fails over
/// and reports as it would in production.
///
/// ```
/// use perihelion::faults::{ConnectionEffect, FaultInjector, FaultRule, OperationKind};
/// use perihelion::{Account, CosmosClient};
///
/// let faults = FaultInjector::new(42);
/// let account = Account::from_connection_string("AccountEndpoint=http://localhost:8081/;AccountKey=a2V5")?;
/// let client = CosmosClient::builder(account).faults(&faults).build()?;
///
/// // Three creates in ten are carried out, and their responses lost.
/// let lost = FaultRule::connection(ConnectionEffect::CloseAfter).on(OperationKind::Create).share(0.3);
/// faults.add(lost.named("lost"))?;
/// // … use the client …
/// println!("{:?} creates were lost", faults.hits("lost"));
/// faults.clear();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "fault-injection")]
pub mod faults {
    pub use driver::faults::{
        ConnectionEffect, Delay, DelayPercentiles, DelayRange, Delayed, DistributionShape, FAULT_HEADER,
        FaultEffect, FaultInjector, FaultRule, InvalidRule, OperationKind, Probability, RequestFilter,
        ResourceKind, RuleReport, RuleState, Schedule, Span,
    };
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
