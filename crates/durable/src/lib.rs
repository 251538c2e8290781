//! Durable orchestrations on Azure Cosmos DB: a provider for [duroxide](https://docs.rs/duroxide).
//!
//! An orchestration is a function whose progress is stored after every step, so that it continues where it was when its
//! process ends, on any machine. [`CosmosProvider`] stores that progress in one container: all documents of an instance
//! share a partition, and what a step does is one transaction.

mod admin;
mod cache;
mod clock;
mod container;
mod core;
mod dispatch;
mod documents;
mod enqueue;
mod error;
mod held;
mod ids;
mod key_values;
mod leases;
pub mod operator;
mod options;
mod outbox;
mod provider;
mod provider_admin;
mod queries;
pub mod replay;
mod retry;
mod sessions;
mod slots;
mod store;
mod telemetry;
mod turn;
mod work;

pub use leases::{CosmosLeaseProvider, InMemoryLeaseProvider, LeaseProvider};
pub use options::ProviderOptions;
pub use provider::CosmosProvider;
pub use slots::{SLOTS, dispatch_slot};

pub use duroxide;
pub use opentelemetry;
pub use perihelion;
