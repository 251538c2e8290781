//! Operations on the account's regions while they serve: failover, replication lag, pause and resume.
//!
//! Each operation changes the topology first and then every partition under its write guard: a write sees the
//! topology from before or after, and its partition is changed after it.

use std::sync::Arc;
use std::time::Duration;

use super::Account;
use super::events::EventKind;
use crate::regions::{Lag, Region, RegionId, Topology, TopologyError};
use crate::store;

impl Account {
    /// Makes `region` the write region. No write is lost: it has caught up before it takes its first write.
    pub fn fail_over(&self, region: &str) -> Result<(), TopologyError> {
        self.move_writes(|topology| {
            let region = topology.find(region)?;
            topology.fail_over(region)
        })
    }

    /// Lists `region` as writable beside the write region, as the service does before a failover.
    pub fn announce_failover(&self, region: &str) -> Result<(), TopologyError> {
        self.regions.update(|topology| {
            let region = topology.find(region)?;
            topology.announce_failover(region)
        })
    }

    /// Makes `region` the write region while the former one, which rejects writes, is still listed as
    /// writable.
    pub fn begin_failover(&self, region: &str) -> Result<(), TopologyError> {
        self.move_writes(|topology| {
            let region = topology.find(region)?;
            topology.begin_failover(region)
        })
    }

    /// Ends what [`announce_failover`](Account::announce_failover) or
    /// [`begin_failover`](Account::begin_failover) has begun: only the region that writes is listed as
    /// writable.
    pub fn complete_failover(&self) {
        let _: Result<(), TopologyError> = self.regions.update(|topology| {
            topology.complete_failover();
            Ok(())
        });
    }

    /// Sets the failover order. If its first region is another one, that becomes the write region.
    pub fn set_failover_order(&self, regions: &[String]) -> Result<(), TopologyError> {
        self.move_writes(|topology| {
            let order: Result<Vec<RegionId>, _> = regions.iter().map(|name| topology.find(name)).collect();
            topology.set_failover_order(order?)
        })
    }

    /// Removes `region` from the account's list. Replication to it and its responses do not change.
    pub fn remove_region(&self, region: &str) -> Result<(), TopologyError> {
        let name = self.regions.update(|topology| {
            let region = topology.find(region)?;
            topology.remove(region)?;
            Ok::<_, TopologyError>(topology.region(region).name.clone())
        })?;
        self.events.record(EventKind::RegionRemoved, Some(&name), "it is listed no longer");
        Ok(())
    }

    /// Lists `region` again, last in the failover order.
    pub fn add_region(&self, region: &str) -> Result<(), TopologyError> {
        let name = self.regions.update(|topology| {
            let region = topology.find(region)?;
            topology.add(region);
            Ok::<_, TopologyError>(topology.region(region).name.clone())
        })?;
        self.events.record(EventKind::RegionAdded, Some(&name), "it is listed");
        Ok(())
    }

    /// Adds a new region behind `port`, last in the failover order. It sees everything that was written so
    /// far, and follows what is written from now on. Where every region writes, it writes as well: writers wait
    /// while each partition gets a replica there, which takes as long as storing its items.
    pub fn extend_regions(&self, name: &str, port: u16) -> Result<RegionId, TopologyError> {
        let name = name.trim();
        let region = self.regions.update_together(
            |topology| {
                let region = topology.extend(Region::new(name, port))?;
                Ok::<_, TopologyError>((region, topology.is_multi_write()))
            },
            |topology, batch, publish| {
                Ok(self.catalog.add_write_region(topology.region_count(), batch, publish)?)
            },
        )?;
        self.events.record(EventKind::RegionAdded, Some(name), format!("it was added, on port {port}"));
        Ok(region)
    }

    /// Sets the ports that the gateways of the first regions listen on, in the order of their numbers.
    pub fn set_region_ports(&self, ports: &[u16]) -> Result<(), TopologyError> {
        self.regions.update(|topology| {
            let ids: Vec<RegionId> = topology.regions().map(|(id, _)| id).collect();
            ids.into_iter().zip(ports).for_each(|(region, port)| topology.set_port(region, *port));
            Ok(())
        })
    }

    /// Makes a change that may move the account's writes to another region, which catches up first.
    fn move_writes(
        &self,
        change: impl FnOnce(&mut Topology) -> Result<(), TopologyError>,
    ) -> Result<(), TopologyError> {
        let (old, new) = self.regions.update(|topology| {
            let old = topology.hub();
            change(topology)?;
            topology.set_failover_count(topology.failover_count() + 1);
            Ok::<_, TopologyError>((old, topology.hub()))
        })?;
        self.for_each_container(|container| {
            container.clear_write_regions();
            container.catch_up(old);
            container.catch_up(new);
        });
        if old != new {
            let topology = self.regions.current();
            let message = format!("it is the write region now, instead of {}", topology.region(old).name);
            self.events.record(EventKind::Failover, Some(&topology.region(new).name), message);
        }
        Ok(())
    }

    /// Sets the replication lag between two regions or, where one is left open, between the other and all.
    pub fn set_lag(&self, from: Option<&str>, to: Option<&str>, lag: Lag) -> Result<(), TopologyError> {
        self.regions.update(|topology| -> Result<(), TopologyError> {
            let from = from.map(|name| topology.find(name)).transpose()?;
            let to = to.map(|name| topology.find(name)).transpose()?;
            let all: Vec<RegionId> = topology.regions().map(|(id, _)| id).collect();
            for source in all.iter().filter(|id| from.is_none_or(|from| from == **id)) {
                for target in all.iter().filter(|id| to.is_none_or(|to| to == **id)) {
                    topology.set_lag(*source, *target, lag);
                }
            }
            Ok(())
        })?;
        let (from, to) = (from.unwrap_or("every region"), to.unwrap_or("every region"));
        self.events.record(EventKind::ReplicationLag, None, format!("{lag} from {from} to {to}"));
        Ok(())
    }

    /// Pauses replication to `region` until it is resumed. `uptime` is now.
    pub fn pause_replication(&self, region: &str, uptime: Duration) -> Result<(), TopologyError> {
        let region = self.regions.update(|topology| {
            let region = topology.find(region)?;
            if topology.region(region).paused_at.is_none() {
                topology.set_paused(region, Some(uptime));
            }
            Ok::<_, TopologyError>(region)
        })?;
        self.for_each_container(|container| container.pause(region, uptime));
        self.record_about(region, EventKind::ReplicationPaused, "replication to it is paused");
        Ok(())
    }

    /// Resumes replication to `region`, which catches up. `uptime` is now.
    pub fn resume_replication(&self, region: &str, uptime: Duration) -> Result<(), TopologyError> {
        let (region, due) = self.regions.update(|topology| {
            let region = topology.find(region)?;
            topology.set_paused(region, None);
            Ok::<_, TopologyError>((region, uptime + topology.lag(topology.hub(), region).max()))
        })?;
        self.for_each_container(|container| container.resume(region, uptime, due));
        self.record_about(region, EventKind::ReplicationResumed, "replication to it continues");
        Ok(())
    }

    fn record_about(&self, region: RegionId, kind: EventKind, message: &str) {
        self.events.record(kind, Some(&self.regions.current().region(region).name), message);
    }

    fn for_each_container(&self, mut work: impl FnMut(&store::Container)) {
        let snapshot = Arc::clone(&self.catalog.snapshot());
        snapshot.containers().for_each(|container| work(&container.store));
    }
}
