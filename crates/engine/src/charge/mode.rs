//! Whether request units are counted, and whether they run out.

/// Whether request units are counted, and whether they run out.
///
/// Every response states its charge in each of the modes: clients sum it up and expect it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestUnitMode {
    /// Charges are stated in responses and not counted.
    Off,
    /// Charges are counted per partition; no request is throttled.
    #[default]
    Account,
    /// Charges are counted and limited: requests beyond the provisioned throughput get 429.
    Enforce,
}
