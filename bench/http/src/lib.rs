//! The HTTP client beside reqwest and hyper-util's pooled client, over loopback.
//!
//! `server` is what all of them talk to, in a process of its own; `subject` is each of them behind one
//! function; `load` keeps so many requests in flight for so long; `report` prints ratios.

pub mod clock;
pub mod load;
pub mod options;
pub mod report;
pub mod server;
pub mod subject;
