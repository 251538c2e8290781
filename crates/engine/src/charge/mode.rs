//! What becomes of the request units that operations cost.

/// Whether request units are counted, and whether they run out.
///
/// Every answer states its charge in each of the modes: clients sum it up and expect it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestUnitMode {
    /// Stated and forgotten.
    Off,
    /// Counted per partition; nobody is throttled.
    #[default]
    Account,
    /// Counted, and budgeted: who spends more than the throughput allows is answered 429.
    Enforce,
}
