//! Why an attempt was not sent to the region that comes first.

use std::fmt;

use super::account_state::{AccountState, Unavailable};
use super::breaker::Breaker;
use super::partition_state::PartitionState;
use super::{Region, RouteRequest};
use crate::operation::Access;

/// The region that an attempt avoided, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diversion {
    /// The region that would have been chosen.
    pub region: Region,
    /// The reason why it was not chosen.
    pub cause: DiversionCause,
}

/// Why a region was avoided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiversionCause {
    /// The circuit breaker of the partition is open there.
    BreakerOpen(Access, Breaker),
    /// The region is unavailable.
    RegionUnavailable(Unavailable),
}

impl Diversion {
    /// Why `wanted` avoids a region; none if nothing speaks against it.
    pub(super) fn from(
        region: &Region,
        wanted: &RouteRequest<'_>,
        account: &AccountState,
        partitions: &PartitionState,
    ) -> Option<Diversion> {
        let unavailable = account.is_unavailable(region, wanted.access == Access::Read);
        let unavailability = account.unavailability(region).filter(|_| unavailable);
        let breaker =
            wanted.partition.and_then(|partition| partitions.open_breaker(partition, region, wanted.access));
        let cause = match (unavailability, breaker) {
            (Some(what), _) => DiversionCause::RegionUnavailable(what),
            (None, Some(breaker)) => DiversionCause::BreakerOpen(wanted.access, *breaker),
            (None, None) => return None,
        };
        Some(Diversion { region: region.clone(), cause })
    }
}

impl fmt::Display for DiversionCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DiversionCause::BreakerOpen(access, breaker) => {
                let Breaker { failures, silent_failures, .. } = breaker;
                write!(f, "the breaker of its {}s is open after {failures} failures", access.name())?;
                match silent_failures {
                    0 => Ok(()),
                    silent => write!(f, ", {silent} of them without a response"),
                }
            }
            DiversionCause::RegionUnavailable(Unavailable::All) => f.write_str("the region is unavailable"),
            DiversionCause::RegionUnavailable(Unavailable::Writes) => {
                f.write_str("the region does not take writes")
            }
        }
    }
}
