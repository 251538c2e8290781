//! The driver beside the published one and beside a bare hyper loop, against one `peri up`.
//!
//! `peri` is the server, in a process of its own; `subject` is each of the three behind one function;
//! `load` keeps so many operations in flight for so long. The parts of the comparison are `points` (reads and
//! creates), `distance` (a server that takes 50 ms), `ordered` (a query over all partitions), `slow_region`
//! (hedging), `memory` (no network at all) and `telemetry` (nobody listens to it). `report` prints ratios.

pub mod clock;
pub mod options;

// What is asked, and of whom.
pub mod item;
pub mod peri;
pub mod subject;

// How it is measured.
pub mod figures;
pub mod instructions;
pub mod load;

// The parts.
pub mod distance;
pub mod memory;
pub mod ordered;
pub mod points;
pub mod slow_region;
pub mod telemetry;

pub mod report;
