//! The Cosmos DB wire as data: what a client and a server must agree on, written once.
//!
//! Everything here is a type or a pure function. Nothing sends, waits, reads a clock or draws a
//! random number, and nothing knows of SQL: a JSON value that someone else will read is handed on
//! as text. Each module is pinned by the vectors and messages of the service.
//!
//! # Following a request
//!
//! | step | module | what it answers |
//! |---|---|---|
//! | which resource | [`resource_path`] | `dbs/a/colls/b/docs/c`, level by level, ids decoded |
//! | who asks | [`authorization`] | is the signature right, however the client spelled it |
//! | what else it says | [`headers`] | the name of every header |
//! | which partition | [`partition`] | key → position on the ring → range |
//! | how new it must be | [`session_token`], [`lsn`] | what the client has seen |
//! | what it carries | [`binary_json`], [`batch`], [`patch`], [`query`] | bodies, read as far as the wire goes |
//! | what comes back | [`status`], [`resource`] | codes by name, error bodies, system properties |
//!
//! And what there is to ask for: [`account`], [`database`], [`container`], [`partition_range`],
//! [`throughput`], [`user`], each with its body; [`resource_id`] names them all.
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
//! let position = effective_key(&definition, &key);
//! assert_eq!(position.to_hex(), "22E342F38A486A088463DFF7838A5963");
//!
//! // Of two partitions, the second one owns it.
//! let ranges = even_split(&definition, 2);
//! assert!(ranges[1].contains(&position));
//! # Ok(())
//! # }
//! ```
//!
//! # What is costly
//!
//! Paths, headers, tokens and keys are read on every request, so they borrow from the request and
//! allocate only for what must outlive it; each says in its documentation how its cost grows.
//! Definitions are read when a container is made and may take their time.

pub mod account; // regions, write mode, consistency
pub mod authorization; // string to sign, HMAC, tokens
pub mod batch; // many operations in one request
pub mod binary_json; // the compact form of items
pub mod container; // key, index, rules, and their checks
pub mod database; // database bodies
pub mod headers; // header names
pub mod lsn; // log sequence number
pub mod partition; // keys, hashes, ranges
pub mod partition_range; // physical partitions
pub mod patch; // instructions to change an item
pub mod query; // query text, parameters, plan
pub mod resource; // names, system properties, errors
pub mod resource_id; // compact ids: encode, decode, parents
pub mod resource_path; // dbs/a/colls/b/docs/c ↔ typed path
pub mod session_token; // parse, compare, merge
pub mod status; // status and sub-status, by name
pub mod throughput; // offers
pub mod user; // users and permissions

mod definition_error; // the error of an invalid resource definition
mod number; // doubles as JSON text
