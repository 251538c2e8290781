//! How much a new resource may consume, and how many partitions that takes.
//!
//! In: the two throughput headers of a create, or an offer to change. Out: a [`Throughput`], a
//! number of partitions. Pure; limits and steps are `protocol`'s.

use std::num::NonZeroU32;

use protocol::headers as name;
use protocol::throughput::{AUTOSCALE_MIN, AUTOSCALE_STEP, MANUAL_MIN, Throughput};

use crate::gateway::{RequestHeaders, ServiceError};

/// What a container gets when nobody says.
pub(crate) const THROUGHPUT_DEFAULT: Throughput = Throughput::Manual(MANUAL_MIN);
/// Request units per second of one physical partition.
const PARTITION_THROUGHPUT_MAX: u32 = 10_000;

/// What the headers of a create ask for, if anything.
pub(crate) fn requested(headers: &RequestHeaders<'_>) -> Result<Option<Throughput>, ServiceError> {
    let manual = RequestHeaders::text(headers.offer_throughput, name::OFFER_THROUGHPUT)?;
    let autoscale = RequestHeaders::text(headers.offer_autopilot_settings, name::OFFER_AUTOPILOT_SETTINGS)?;
    Ok(Throughput::from_headers(manual, autoscale)?)
}

/// How many physical partitions a new container starts with.
pub(crate) fn partitions(fixed: Option<NonZeroU32>, throughput: &Throughput) -> usize {
    let fixed = fixed.and_then(|count| usize::try_from(count.get()).ok());
    fixed.unwrap_or_else(|| partitions_for(throughput))
}

/// How many physical partitions can carry a throughput.
pub(crate) fn partitions_for(throughput: &Throughput) -> usize {
    let count = throughput.max().div_ceil(PARTITION_THROUGHPUT_MAX).max(1);
    usize::try_from(count).expect("a u32 fits the machines this runs on")
}

/// The least an offer of this kind can be set to.
pub(crate) fn floor(throughput: &Throughput) -> u32 {
    match throughput {
        Throughput::Manual(_) => MANUAL_MIN,
        Throughput::Autoscale { .. } => AUTOSCALE_MIN,
    }
}

/// The same capacity or a little more, growing with demand.
pub(crate) fn as_autoscale(throughput: &Throughput) -> Throughput {
    match throughput {
        Throughput::Manual(units) => {
            let max = units.next_multiple_of(AUTOSCALE_STEP).max(AUTOSCALE_MIN);
            Throughput::Autoscale { max, increment_percent: None }
        }
        Throughput::Autoscale { .. } => throughput.clone(),
    }
}

/// The same capacity, always.
pub(crate) fn as_manual(throughput: &Throughput) -> Throughput {
    Throughput::Manual(throughput.max())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_carries_ten_thousand_units() {
        for (units, count) in [(400, 1), (10_000, 1), (10_100, 2), (25_100, 3), (100_000, 10)] {
            assert_eq!(partitions(None, &Throughput::Manual(units)), count, "{units}");
        }
        let autoscale = Throughput::Autoscale { max: 11_000, increment_percent: None };
        assert_eq!(partitions(None, &autoscale), 2, "room for the maximum");
        assert_eq!(partitions(NonZeroU32::new(4), &THROUGHPUT_DEFAULT), 4, "an explicit count wins");
    }
}
