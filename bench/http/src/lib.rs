//! A comparison of the HTTP client with reqwest and hyper-util's pooled client, over loopback.
//!
//! `server` is the server of all clients, in a process of its own. `subject` has one function for all clients.
//! `load` keeps a number of requests in flight for some time. `report` prints ratios.

pub mod clock;
pub mod load;
pub mod options;
pub mod report;
pub mod server;
pub mod subject;
