//! The topology as the data directory stores it, and how a new process continues with it.

use std::time::Duration;

use super::{Lag, RegionId, Topology};
use crate::disk::StoredRegions;

impl Topology {
    /// The part of the topology that is persisted.
    pub(crate) fn stored(&self) -> StoredRegions {
        let name = |id: RegionId| self.region(id).name.clone();
        let pairs = self.regions().flat_map(|(from, _)| self.regions().map(move |(to, _)| (from, to)));
        let set = pairs.filter(|(from, to)| self.lag(*from, *to) != self.lag_at_start());
        StoredRegions {
            names: self.regions().map(|(id, _)| name(id)).collect(),
            multi_write: self.is_multi_write(),
            multi_write_requested: self.multi_write_requested(),
            order: self.failover_order().iter().map(|id| name(*id)).collect(),
            lag: self.lag_at_start().to_string(),
            lags: set.map(|(from, to)| (name(from), name(to), self.lag(from, to).to_string())).collect(),
            paused: self.regions().filter(|(_, it)| it.paused_at.is_some()).map(|(id, _)| name(id)).collect(),
            failover_count: self.failover_count(),
        }
    }

    /// Restores the settings of the last process, as far as the regions are the same: the failover order,
    /// what is paused and, unless the account was started with another lag, the lags.
    pub(crate) fn restore_settings(&mut self, stored: &StoredRegions) {
        self.restore_failover_order(stored);
        self.set_failover_count(stored.failover_count);
        if stored.lag == self.lag_at_start().to_string() {
            for (from, to, lag) in &stored.lags {
                if let (Ok(from), Ok(to), Ok(lag)) = (self.find(from), self.find(to), lag.parse::<Lag>()) {
                    self.set_lag(from, to, lag);
                }
            }
        }
        for name in &stored.paused {
            if let Ok(region) = self.find(name) {
                self.set_paused(region, Some(Duration::ZERO));
            }
        }
    }

    /// Restores the stored failover order, without the regions that were removed. Regions it does not know
    /// come last.
    fn restore_failover_order(&mut self, stored: &StoredRegions) {
        let found = |names: &[String]| -> Vec<RegionId> {
            names.iter().filter_map(|name| self.find(name).ok()).collect()
        };
        let (mut order, known) = (found(&stored.order), found(&stored.names));
        let removed: Vec<RegionId> = known.iter().copied().filter(|id| !order.contains(id)).collect();
        if order.is_empty() {
            return;
        }
        order.extend(self.failover_order().iter().filter(|id| !known.contains(id)));
        order.extend(&removed);
        // Where every region writes, the first one stays the first, so this cannot fail for that reason.
        if self.set_failover_order(order).is_ok() {
            for region in removed {
                // Fails only for the write region, which is first in the order and never among the removed
                // ones.
                let _ = self.remove(region);
            }
        }
    }
}
