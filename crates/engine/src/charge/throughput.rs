//! How many physical partitions a throughput takes, and how an offer changes its kind. Pure.

use std::num::NonZeroU32;

use protocol::throughput::{AUTOSCALE_MIN, AUTOSCALE_STEP, MANUAL_MIN, Throughput};

/// The throughput of a container that was created without one.
pub const THROUGHPUT_DEFAULT: Throughput = Throughput::Manual(MANUAL_MIN);
/// Request units per second that one physical partition can serve.
const PARTITION_THROUGHPUT_MAX: u32 = 10_000;
/// Request units per second of each physical partition that a container is created with.
const PARTITION_THROUGHPUT_AT_CREATION: u32 = 6_000;

/// The number of physical partitions of a new container with throughput of its own.
pub fn initial_partition_count(fixed: Option<NonZeroU32>, throughput: &Throughput) -> usize {
    match (fixed, throughput) {
        (None, Throughput::Manual(units)) => {
            let count = units.div_ceil(PARTITION_THROUGHPUT_AT_CREATION).max(1);
            usize::try_from(count).expect("a u32 fits the machines this runs on")
        }
        _ => shared_partition_count(fixed, throughput),
    }
}

/// The number of physical partitions of a new container that uses the throughput of its database.
pub fn shared_partition_count(fixed: Option<NonZeroU32>, throughput: &Throughput) -> usize {
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
    fn a_container_is_created_with_a_partition_for_each_six_thousand_units() {
        for (units, own, shared) in
            [(400, 1, 1), (6_000, 1, 1), (6_100, 2, 1), (12_000, 2, 2), (25_100, 5, 3), (30_000, 5, 3)]
        {
            assert_eq!(initial_partition_count(None, &Throughput::Manual(units)), own, "{units}");
            assert_eq!(shared_partition_count(None, &Throughput::Manual(units)), shared, "{units}");
        }
        let autoscale = Throughput::Autoscale { max: 10_000, increment_percent: None };
        assert_eq!(initial_partition_count(None, &autoscale), 1, "a partition serves ten thousand");
        let autoscale = Throughput::Autoscale { max: 11_000, increment_percent: None };
        assert_eq!(initial_partition_count(None, &autoscale), 2, "room for the maximum");
        assert_eq!(
            initial_partition_count(NonZeroU32::new(4), &THROUGHPUT_DEFAULT),
            4,
            "an explicit count wins"
        );
    }
}
