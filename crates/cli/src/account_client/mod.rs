//! A small client of one Cosmos DB account: what `peri import` and `peri export` need and no more.
//!
//! In: a connection string. Out: containers read or made, items upserted, pages of items. Every
//! request has a deadline, and a budget for waiting when the account asks for it. It speaks to the
//! endpoint it is given, whatever regions the account has: choosing among them is a driver's work,
//! and a driver may stand in for this module behind [`AccountClient`].

mod bulk; // many items in one request
mod client; // requests and answers
mod connection_string; // where, and with which key
mod retry; // what follows an attempt; pure

pub(crate) use bulk::{Fate, Ranges, Upsert};
pub(crate) use client::{AccountClient, AccountError};
pub(crate) use connection_string::ConnectionString;
