//! How many physical partitions a throughput takes, and how an offer changes its kind. Pure.

use std::num::NonZeroU32;

use protocol::throughput::{AUTOSCALE_MIN, AUTOSCALE_STEP, MANUAL_MIN, Throughput};

/// The throughput of a container that was created without one.
pub const THROUGHPUT_DEFAULT: Throughput = Throughput::Manual(MANUAL_MIN);
/// Request units per second of one physical partition.
const PARTITION_THROUGHPUT_MAX: u32 = 10_000;

/// The number of physical partitions of a new container.
pub fn initial_partition_count(fixed: Option<NonZeroU32>, throughput: &Throughput) -> usize {
    let fixed = fixed.and_then(|count| usize::try_from(count.get()).ok());
    fixed.unwrap_or_else(|| partition_count_for(throughput))
}

/// The number of physical partitions that a throughput needs.
pub(crate) fn partition_count_for(throughput: &Throughput) -> usize {
    let count = throughput.max().div_ceil(PARTITION_THROUGHPUT_MAX).max(1);
    usize::try_from(count).expect("a u32 fits the machines this runs on")
}

/// The lowest throughput that an offer of this kind can be set to.
pub fn minimum(throughput: &Throughput) -> u32 {
    match throughput {
        Throughput::Manual(_) => MANUAL_MIN,
        Throughput::Autoscale { .. } => AUTOSCALE_MIN,
    }
}

/// The autoscale throughput whose maximum is at least this throughput.
pub fn as_autoscale(throughput: &Throughput) -> Throughput {
    match throughput {
        Throughput::Manual(units) => {
            let max = units.next_multiple_of(AUTOSCALE_STEP).max(AUTOSCALE_MIN);
            Throughput::Autoscale { max, increment_percent: None }
        }
        Throughput::Autoscale { .. } => throughput.clone(),
    }
}

/// The manual throughput of the same maximum.
pub fn as_manual(throughput: &Throughput) -> Throughput {
    Throughput::Manual(throughput.max())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_serves_ten_thousand_units() {
        for (units, count) in [(400, 1), (10_000, 1), (10_100, 2), (25_100, 3), (100_000, 10)] {
            assert_eq!(initial_partition_count(None, &Throughput::Manual(units)), count, "{units}");
        }
        let autoscale = Throughput::Autoscale { max: 11_000, increment_percent: None };
        assert_eq!(initial_partition_count(None, &autoscale), 2, "room for the maximum");
        assert_eq!(
            initial_partition_count(NonZeroU32::new(4), &THROUGHPUT_DEFAULT),
            4,
            "an explicit count wins"
        );
    }
}
