//! The copies of a partition in an account where one region writes: its line, and each other region's
//! view of it.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::Guard;
use protocol::account::ConsistencyLevel;
use protocol::lsn::Lsn;

use super::contents::Contents;
use super::head::Head;
use super::line::Line;
use super::partition::WriteContext;
use super::state::PartitionState;
use super::view::View;
use crate::regions::{MaxStaleness, ReadContext, RegionId, StalenessBound, Topology};

/// One line, seen from several places.
pub(super) struct Viewed {
    pub(super) line: Line,
    /// One per region; none where there is only one region.
    views: Vec<View>,
}

impl Viewed {
    /// Every region sees `contents`.
    pub(super) fn new(contents: Contents, regions: usize) -> Viewed {
        let line = Line::new(contents.head, contents.state);
        let newest = Guard::into_inner(line.peek());
        let views = if regions > 1 { regions } else { 0 };
        Viewed { line, views: (0..views).map(|_| View::new(Arc::clone(&newest))).collect() }
    }

    pub(super) fn peek(&self, vantage: ReadContext) -> Guard<Arc<Head>> {
        match (vantage.staleness, self.views.get(vantage.region.index())) {
            (StalenessBound::Newest, _) | (_, None) => self.line.peek(),
            (StalenessBound::Replicated(uptime), Some(view)) => view.peek(uptime),
            (StalenessBound::Bounded(uptime, bound), Some(view)) => view.peek_bounded(uptime, bound),
        }
    }

    pub(super) fn snapshot(&self, vantage: ReadContext) -> Arc<PartitionState> {
        match (vantage.staleness, self.views.get(vantage.region.index())) {
            (StalenessBound::Newest, _) | (_, None) => self.line.snapshot(),
            (StalenessBound::Replicated(_) | StalenessBound::Bounded(..), Some(view)) => {
                let lsn = self.peek(vantage).lsn;
                view.state(&self.line.snapshot(), lsn)
            }
        }
    }

    /// Sends a commit on its way to the other regions, and says when most will have it. Within the turn
    /// that made it, so that no other is replicated before it.
    pub(super) fn replicate(
        &self,
        partition: u32,
        head: &Arc<Head>,
        moment: WriteContext,
        topology: impl FnOnce() -> Arc<Topology>,
    ) -> Duration {
        if self.views.is_empty() {
            return Duration::ZERO;
        }
        let topology = topology();
        // Only strongly consistent writers wait for the others.
        let waits = topology.consistency == ConsistencyLevel::Strong;
        let mut dues = Vec::new();
        for (id, region) in topology.regions().filter(|(id, _)| *id != moment.region) {
            let due = if region.paused_at.is_some() {
                self.views[id.index()].miss(moment.uptime);
                Duration::MAX
            } else {
                let lag = topology.lag(moment.region, id);
                let due = moment.uptime + lag.at(draw(partition, head.lsn, id));
                self.views[id.index()].push(head, moment.uptime, due);
                due
            };
            if waits {
                dues.push(due);
            }
        }
        dues.sort_unstable();
        // The writer is one of the majority.
        let others = topology.len() / 2;
        others.checked_sub(1).and_then(|at| dues.get(at).copied()).unwrap_or(Duration::ZERO)
    }

    /// Lets every region see `head` at once.
    pub(super) fn show_everywhere(&self, head: &Arc<Head>) {
        self.views.iter().for_each(|view| view.jump(Arc::clone(head)));
    }

    /// Lets a region see everything at once: it begins to write, or has just stopped.
    pub(super) fn catch_up(&self, region: RegionId) {
        let turn = self.line.turn();
        if let Some(view) = self.views.get(region.index()) {
            view.jump(turn.head());
        }
    }

    /// Lets a region that was paused see everything, at `due`.
    pub(super) fn resume(&self, region: RegionId, uptime: Duration, due: Duration) {
        let turn = self.line.turn();
        if let Some(view) = self.views.get(region.index()) {
            view.make_up(&turn.head(), uptime, due);
        }
    }

    /// What a region sees, to keep. Stays worked out until the region moves on.
    pub(super) fn seen(&self, region: RegionId, uptime: Duration) -> Option<Arc<PartitionState>> {
        let view = self.views.get(region.index())?;
        let lsn = view.peek(uptime).lsn;
        Some(view.state(&self.line.snapshot(), lsn))
    }

    /// When the first commit was made that a region does not see.
    pub(super) fn behind_since(&self, region: RegionId, uptime: Duration) -> Option<Duration> {
        self.views.get(region.index())?.behind_since(uptime)
    }

    /// Whether a region that nothing reaches is staler at `uptime` than agreed. Any other one catches up
    /// as it is looked at.
    pub(super) fn is_too_stale(&self, topology: &Topology, region: RegionId, uptime: Duration) -> bool {
        let (Some(view), Some(paused)) =
            (self.views.get(region.index()), topology.region(region).paused_at.filter(|at| *at < uptime))
        else {
            return false;
        };
        let MaxStaleness { versions, interval } = topology.staleness;
        // What was as old as agreed when it was paused had arrived by then, however long the way.
        view.peek_bounded(paused, topology.staleness);
        let since = view.behind_since(paused);
        since.is_some_and(|since| since + interval < uptime)
            || self.line.peek().lsn.0 - view.peek(paused).lsn.0 > versions
    }

    /// Decides what a region sees of a partition that is being made.
    pub(super) fn set_view(&mut self, region: RegionId, view: View) {
        if let Some(place) = self.views.get_mut(region.index()) {
            *place = view;
        }
    }
}

/// From zero to one, and always the same for the same commit and region.
fn draw(partition: u32, lsn: Lsn, region: RegionId) -> f64 {
    // The finaliser of a well-known generator: neighbouring seeds give unrelated draws.
    let mut bits = lsn.0 ^ (u64::from(partition) << 40) ^ (u64::from(region.0) << 56);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}
