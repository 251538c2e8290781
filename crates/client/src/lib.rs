//! A client for Azure Cosmos DB that keeps working when regions, partitions or connections fail.
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
//! // The connection string that `peri up` prints, or that of a real account.
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
//! | to | start with |
//! |---|---|
//! | connect | [`CosmosClient::from_connection_string`], [`with_key`](CosmosClient::with_key), [`from_credential`](CosmosClient::from_credential), or [`builder`](CosmosClient::builder) for options |
//! | create and list | [`create_database_if_missing`](CosmosClient::create_database_if_missing), [`create_container_if_missing`](DatabaseClient::create_container_if_missing), [`list_databases`](CosmosClient::list_databases), [`list_containers`](DatabaseClient::list_containers) |
//! | write | [`create_item`](ContainerClient::create_item), [`upsert_item`](ContainerClient::upsert_item), [`replace_item`](ContainerClient::replace_item), [`delete_item`](ContainerClient::delete_item) |
//! | patch | [`patch_item`](ContainerClient::patch_item) with a [`Patch`] |
//! | write a transaction | [`execute_batch`](ContainerClient::execute_batch) with a [`Batch`] |
//! | read | [`read_item`](ContainerClient::read_item), [`optional`](ReadItem::optional) if it may be missing; [`read_many`](ContainerClient::read_many) by keys and ids |
//! | query | [`query_items`](ContainerClient::query_items), as a stream of [pages](QueryItems::pages) or of [rows](QueryItems::stream); [metrics](QueryItems::query_metrics) of both |
//! | name the type of items once | [`typed`](ContainerClient::typed) |
//! | write very many items | [`bulk`](ContainerClient::bulk) |
//! | read changes | [`change_feed`](ContainerClient::change_feed), or in several processes [`change_feed_processor`](ContainerClient::change_feed_processor) |
//! | run scripts | [`stored_procedures`](ContainerClient::stored_procedures), [`execute_stored_procedure`](ContainerClient::execute_stored_procedure), [`triggers`](ContainerClient::triggers), [`user_defined_functions`](ContainerClient::user_defined_functions) |
//! | resolve conflicts | [`list_conflicts`](ContainerClient::list_conflicts), [`delete_conflict`](ContainerClient::delete_conflict) |
//! | scale | [`throughput`](ContainerClient::throughput), [`set_throughput`](ContainerClient::set_throughput) |
//!
//! **A call is a value until it is awaited**, so its options can be set before:
//!
//! ```no_run
//! # use std::time::Duration;
//! # use perihelion::{ContainerClient, Item, Priority, Result};
//! # use serde_json::Value;
//! # async fn run(orders: ContainerClient) -> Result<()> {
//! let Item { value: mut order, etag, .. } = orders.read_item::<Item<Value>>("ada", "o-1").await?.into_value();
//! order["paid"] = true.into();
//! orders
//!     .replace_item("ada", "o-1", &order)
//!     .if_match(etag)
//!     .timeout(Duration::from_secs(1))
//!     .priority(Priority::High)
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! Every call has `timeout`, `excluded_regions`, `hedging`, `header`, `priority`, `throughput_bucket`, and `options` for the
//! rest. Setting an option again replaces its value; `options` merges, so what it does not set stays as it was. What all
//! calls share is set once, with [`CosmosClientBuilder::operations`].
//!
//! **Clients are cheap to clone** and share their connections, caches and the state of the account's regions. Create
//! one for each account and keep it. Dropping a call cancels it.
//!
//! **Responses contain their cost.** A [`Response`] has the value, its ETag, the request charge, the session token and
//! the [`Diagnostics`]: every attempt with its region, its duration and its outcome.
//!
//! **Errors say what to do next**: to the program with their [`ErrorKind`], to a person with their message.
//!
//! ```no_run
//! # use perihelion::{ContainerClient, ErrorKind, Result};
//! # async fn run(orders: ContainerClient, order: serde_json::Value) -> Result<()> {
//! match orders.create_item("ada", &order).await {
//!     Ok(_) => {}
//!     Err(error) if error.kind() == ErrorKind::Conflict => println!("ordered before"),
//!     // The response was lost, and a repeated create could not tell its own item from another's. Read it to decide.
//!     Err(error) if error.kind() == ErrorKind::Undecided => println!("ordered, perhaps: {error}"),
//!     Err(error) => return Err(error),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | kind | what to do |
//! |---|---|
//! | `NotFound`, `Conflict`, `PreconditionFailed` | decide: the item is not there, is there already, or has changed since it was read |
//! | `Undecided` | read before trying again: a write may or may not have happened. [`repeatable`](WriteItem::repeatable) writes are retried |
//! | `Throttled` | wait for `error.retry_after()`. The client has waited as often as the deadline allowed, and returns at once if the service asks for more time than is left |
//! | `DeadlineExceeded`, `Unavailable`, `SessionUnavailable` | try again later, or allow more time: nothing was changed |
//! | `BadRequest`, `TooLarge`, `Mismatch`, `Configuration`, `Unauthenticated`, `Forbidden` | change the call, the type or the settings; the message says which |
//!
//! [`ErrorKind::is_transient`] tells the kinds that may succeed unchanged. `error.diagnostics()` has the attempts, if there were
//! any.
//!
//! # Following a call
//!
//! **Diagnostics** are part of every response and error and need no setup: `response.diagnostics().summary()` displays as
//! one line for a log, [`to_json`](Diagnostics::to_json) is a text with every attempt, its region, status, charge, times and
//! connection, and [`attempts`](Diagnostics::attempts) has the same as values: `attempt.diversion` says which region was
//! avoided, and why.
//!
//! **Logs and traces** go through `tracing`. An operation is a span (`read_item orders`, level INFO), every request of it is a
//! span within (region, status, charge, why it was sent, level DEBUG), and circuit breakers that open, regions that are left
//! and throttling are events at WARN. With a subscriber of `tracing_subscriber` that reads the environment,
//! `RUST_LOG=perihelion=debug` prints the steps of each call:
//!
//! ```text
//! DEBUG operation{otel.name=read_item orders …}:attempt{perihelion.region="West US" …}: perihelion::attempt: response received status=503 …
//! DEBUG operation{otel.name=read_item orders …}: perihelion::operation: attempt is followed by another region="West US" reason="…"
//! DEBUG operation{otel.name=read_item orders …}: perihelion::operation: operation succeeded summary=read_item in 3.10 ms, 1.00 RU: West US 503 1.20 ms → East US 200 1.60 ms
//! ```
//!
//! **Metrics** are instruments of OpenTelemetry (feature `telemetry`): give
//! `CosmosClientBuilder::meter_provider` a meter provider, and durations, request charges and returned rows are histograms,
//! retries, failovers, hedges and throttled responses counters, open circuit breakers and unavailable regions gauges. A
//! program that keeps other metrics implements [`OperationObserver`](driver::telemetry::OperationObserver) and sets it with
//! [`CosmosDriver::set_observer`].
//!
//! **Over OTLP**: `tracing-opentelemetry` and `opentelemetry-otlp` send spans and metrics to a collector. The example
//! `telemetry` is a complete program, with this crate's HTTP client below the exporter:
//! `cargo run -p perihelion --example telemetry`.
//!
//! Names are those of OpenTelemetry's conventions for Cosmos DB. `docs/telemetry.md` in the repository lists every span,
//! attribute, event and metric. Keys, tokens, item bodies, partition keys and query texts are in none of them. With nobody
//! listening, an operation pays one comparison per span.
//!
//! # When regions fail
//!
//! `docs/retries.md` in the repository has a table of what the client does on its own when a region is down, slow or
//! lagging, when a partition moves, and when requests are throttled. The settings for it are [`OperationOptions`],
//! [`DriverOptions`] and environment variables (`docs/configuration.md`).
//!
//! # Features
//!
//! | feature | what it does |
//! |---|---|
//! | `rustls-ring` (default), `rustls-aws-lc` | https with the cryptography of ring, or of aws-lc, which takes precedence; with neither only http endpoints work |
//! | `native-roots` (default), `platform-verifier` | trusts the root certificates of the system, or lets the operating system verify |
//! | `blocking` | calls without async: `blocking` |
//! | `fault-injection` | rules that make requests fail, for tests of applications: `faults` |
//! | `telemetry` | metrics as instruments of OpenTelemetry: `telemetry` |
//! | `test-util` | an account without a server, for tests of applications: `testing` |
//!
//! The https endpoint of a local account (`peri up`) is trusted without configuration: see [`local_cloud`].

#![warn(missing_docs)]

/// Compiles the example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod client_builder; // creates clients
pub mod local_cloud;
mod region_distance; // regions by their distance from one
mod runtime; // what several clients share
mod transport; // the HTTP clients of the driver

mod client; // the account
mod conflicts; // the conflicts feed
mod container;
mod database;
mod items; // operations on the items of a container
mod processor; // the change feed processor
pub mod scripts;

#[cfg(feature = "blocking")]
pub mod blocking;
#[cfg(feature = "test-util")]
pub mod testing;

mod call; // operations that are sent when they are awaited
mod call_options; // the options that every call has
mod list; // lists of databases and containers
mod pages; // pages as streams
mod response;
mod serialize; // JSON bodies
#[cfg(feature = "telemetry")]
pub mod telemetry;
mod throughput; // RU/s of databases and containers

pub use call::{Call, CompoundCall};
pub use client::CosmosClient;
pub use client_builder::CosmosClientBuilder;
pub use conflicts::{Conflict, ConflictOperation};
pub use container::ContainerClient;
pub use database::DatabaseClient;
pub use items::{
    Batch, BatchItem, BatchResponse, Bulk, BulkItem, BulkItemResponse, BulkOperation, BulkResponse,
    BulkResults, Changes, ChangesPage, FollowChanges, ItemIdentity, Page, Pages, Patch, Query, QueryItems,
    ReadItem, ReadMany, ReadManyResponse, TypedContainer, WriteItem,
};
pub use list::{List, ListPages};
pub use processor::{
    BatchContext, ChangeFeedProcessor, DeadLetter, HandlerError, Lag, LeaseStatus, ProcessorStart,
    ProcessorStatus, RangeLag, RunningProcessor, StoredProcessor,
};
pub use response::{Item, ItemResponse, Response};
pub use runtime::ClientRuntimeBuilder;

pub use driver::bulk::{BulkOptions, BulkSummary};

/// Credentials of Microsoft Entra ID: the types of `azure_core` that [`CosmosClient::from_credential`] needs.
pub mod credentials {
    pub use azure_core::credentials::{AccessToken, Secret, TokenCredential, TokenRequestOptions};
    pub use azure_core::error::{Error, ErrorKind};
    pub use azure_core::time::OffsetDateTime;
}

/// Settings of HTTP connections, for [`CosmosClientBuilder::http`] and [`CosmosClientBuilder::sharding`], and the traits
/// of other transports, for [`CosmosClientBuilder::transport`].
pub mod connections {
    pub use driver::transport::{
        HeaderList, HttpClientConfig, ProxyConfig, Transport, TransportFactory, TransportRequest,
        TransportResponse,
    };
    pub use driver::{LoadSpread, ShardingConfig};
    pub use perihelion_http::pool::PoolConfig;
    pub use perihelion_http::{Client, ClientBuilder, Proxy};

    // What a transport of another HTTP library is written with.
    pub use azure_core;
    pub use driver::operation::ResponseHeaders;
    pub use futures::future::BoxFuture;
}

/// Fault injection, for tests of applications: requests of a client fail by rules. Feature `fault-injection`.
///
/// The rules are those of the local account (`peri fault`) and of `peri chaos`, in Rust, JSON or TOML. They
/// apply to the client's connections, so they work with every account. The layers above retry, fail over and
/// report as they would in production.
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
        FaultEffect, FaultInjector, FaultRule, HumanDuration, InvalidRule, OperationKind, Probability,
        RequestFilter, ResourceKind, RuleReport, RuleState, Schedule,
    };
}

/// The parts of [`ContainerProperties`]: indexing, unique keys, conflict resolution and other policies.
pub mod policies {
    pub use protocol::container::{
        ChangeFeedPolicy, ClientEncryptionPath, ClientEncryptionPolicy, CompositeOrder, CompositePath,
        ComputedProperty, ConflictResolutionMode, ConflictResolutionPolicy, DistanceFunction, ExcludedPath,
        FullTextIndex, FullTextPath, FullTextPolicy, GeospatialConfig, GeospatialType, IncludedPath,
        IndexingMode, IndexingPolicy, LanguageCode, PartitionKeyKind, PartitionKeyPath, PartitionKeyVersion,
        SpatialIndex, UniqueKey, UniqueKeyPolicy, VectorEmbedding, VectorEmbeddingPolicy, VectorIndex,
    };
}

// Types of other crates in the signatures of this one. The derive macros of serde need a dependency on serde itself.
pub use bytes::Bytes;
pub use futures::Stream;
pub use futures::future::BoxFuture;
pub use serde::Serialize;
pub use serde::de::DeserializeOwned;

/// The driver below this client: for [`CosmosClient::driver`], and for the types of [`Diagnostics`] and [`RawResponse`].
pub use driver;

pub use driver::change_feed::{ChangeFeedMode, ChangeFeedStart};
pub use driver::diagnostics::Diagnostics;
pub use driver::options::{
    CircuitBreakerOptions, ConsistencyOptions, DriverOptions, HeaderOptions, HedgingOptions,
    HedgingThreshold, OperationOptions, Priority, ReadConsistencyStrategy, RegionOptions, RetryOptions,
    TimeoutOptions,
};
pub use driver::{
    Account, CosmosDriver, CosmosRuntime, Error, ErrorKind, Region, Response as RawResponse, Result,
};
pub use protocol::container::{ContainerProperties, PartitionKeyDefinition};
pub use protocol::database::DatabaseProperties;
pub use protocol::partition::{EpkRange as FeedRange, PartitionKey, PartitionKeyComponent};
pub use protocol::query::{IndexMetrics, IndexUse, QueryMetrics};
pub use protocol::status::{Status, SubStatus};
pub use protocol::throughput::Throughput;
