//! What is kept of a topology, so that it goes on where it was.

use std::time::Duration;

use super::{Lag, RegionId, Topology};
use crate::disk::KeptRegions;

impl Topology {
    /// What a disk keeps of it.
    pub(crate) fn kept(&self) -> KeptRegions {
        let name = |id: RegionId| self.region(id).name.clone();
        let pairs = self.regions().flat_map(|(from, _)| self.regions().map(move |(to, _)| (from, to)));
        let set = pairs.filter(|(from, to)| self.lag(*from, *to) != self.lag_at_start());
        KeptRegions {
            names: self.regions().map(|(id, _)| name(id)).collect(),
            multi_write: self.is_multi_write(),
            order: self.failover_order().iter().map(|id| name(*id)).collect(),
            lag: self.lag_at_start().to_string(),
            lags: set.map(|(from, to)| (name(from), name(to), self.lag(from, to).to_string())).collect(),
            paused: self.regions().filter(|(_, it)| it.paused_at.is_some()).map(|(id, _)| name(id)).collect(),
            moves: self.failover_count(),
        }
    }

    /// Goes on with what was set when the account was last running, as far as the regions are the same:
    /// who writes, what is paused and, unless it was started with another lag, how far apart they are.
    pub(crate) fn go_on(&mut self, kept: &KeptRegions) {
        self.order_as(kept);
        self.set_failover_count(kept.moves);
        if kept.lag == self.lag_at_start().to_string() {
            for (from, to, lag) in &kept.lags {
                if let (Ok(from), Ok(to), Ok(lag)) = (self.find(from), self.find(to), lag.parse::<Lag>()) {
                    self.set_lag(from, to, lag);
                }
            }
        }
        for name in &kept.paused {
            if let Ok(region) = self.find(name) {
                self.set_paused(region, Some(Duration::ZERO));
            }
        }
    }

    /// Lists the regions in the order that was kept, but for those that were removed. Those it does not
    /// know come last.
    fn order_as(&mut self, kept: &KeptRegions) {
        let found = |names: &[String]| -> Vec<RegionId> {
            names.iter().filter_map(|name| self.find(name).ok()).collect()
        };
        let (mut order, known) = (found(&kept.order), found(&kept.names));
        let removed: Vec<RegionId> = known.iter().copied().filter(|id| !order.contains(id)).collect();
        if order.is_empty() {
            return;
        }
        order.extend(self.failover_order().iter().filter(|id| !known.contains(id)));
        order.extend(&removed);
        // Where all write the first one stays the first, as it was then.
        if self.set_failover_order(order).is_ok() {
            for region in removed {
                // Not the first, so it can be removed.
                let _ = self.remove(region);
            }
        }
    }
}
