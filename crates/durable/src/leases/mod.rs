//! Leases: dispatchers share the slots out among themselves, in one process or in several.

mod in_memory;
mod lease_provider;
mod lease_table;
mod stored;

pub use in_memory::InMemoryLeaseProvider;
pub use lease_provider::LeaseProvider;
pub use stored::CosmosLeaseProvider;
