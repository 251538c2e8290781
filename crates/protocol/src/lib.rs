//! The Cosmos DB REST protocol as data types: what a client and a server must agree on.
//!
//! Everything here is a type or a pure function. Nothing sends, waits, reads a clock or draws a
//! random number. Nothing depends on SQL: JSON values that another crate interprets are passed on
//! as text. Each module is tested against values and messages recorded from the service.
//!
//! # The parts of a request
//!
//! | part | module | content |
//! |---|---|---|
//! | resource | [`resource_path`] | `dbs/a/colls/b/docs/c`, segment by segment, ids decoded |
//! | authentication | [`authorization`] | tokens and signatures, in the variants of all clients |
//! | headers | [`headers`] | the name of every header |
//! | partition | [`partition`] | partition key → effective partition key → range |
//! | consistency | [`session_token`], [`lsn`] | how far a session has progressed |
//! | body | [`binary_json`], [`hybrid_row`], [`batch`], [`patch`], [`query`] | encodings and request bodies |
//! | response | [`status`], [`resource`] | status codes, error bodies, system properties |
//!
//! The resources are in [`account`], [`database`], [`container`], [`partition_range`],
//! [`throughput`], [`user`] and [`client_encryption_key`], each with its body; [`resource_id`] has their `_rid`s.
//!
//! # An example
//!
//! ```
//! use protocol::container::PartitionKeyDefinition;
//! use protocol::partition::{PartitionKey, PartitionKeyHeader, effective_key, even_split};
//! # use perihelion_protocol as protocol;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let definition = PartitionKeyDefinition::hash("/pk")?;
//! let PartitionKeyHeader::Key(key) = PartitionKey::parse_header(r#"["redmond"]"#)? else {
//!     panic!("one component is a key");
//! };
//! let epk = effective_key(&definition, &key);
//! assert_eq!(epk.to_hex(), "22E342F38A486A088463DFF7838A5963");
//!
//! // Of two partitions, the second one owns it.
//! let ranges = even_split(&definition, 2);
//! assert!(ranges[1].contains(&epk));
//! # Ok(())
//! # }
//! ```
//!
//! # Cost
//!
//! Paths, headers, tokens and keys are parsed on every request, so they borrow from the request and
//! allocate only for what must outlive it; each documents how its cost grows. Definitions are parsed
//! when a container is created and may be slower.

pub mod account; // regions, write mode, consistency
pub mod authorization; // string to sign, HMAC, tokens
pub mod batch; // batch requests and their results
pub mod binary_json; // Cosmos binary JSON
pub mod client_encryption_key; // client encryption key bodies
pub mod container; // container definition and its validation
pub mod database; // database bodies
pub mod headers; // header names
pub mod hybrid_row; // records and rows of the .NET SDK
pub mod lsn; // log sequence number
pub mod murmur_hash; // the hash of partition keys and of values
pub mod partition; // partition keys, hashes, EPK ranges
pub mod partition_range; // partition key ranges (physical partitions)
pub mod patch; // patch requests
pub mod query; // query text, parameters, plan
pub mod resource; // names, system properties, errors
pub mod resource_id; // `_rid`s
pub mod resource_path; // dbs/a/colls/b/docs/c ↔ typed path
pub mod session_token; // parse, compare, merge
pub mod status; // status and sub-status codes
pub mod throughput; // throughput and offers
pub mod user; // users and permissions

mod definition_error; // the error of an invalid resource definition
mod number; // doubles as JSON text
