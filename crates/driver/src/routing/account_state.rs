//! The regions of the account, in the order they are tried, and which of them are unavailable.
//!
//! In: the account's properties, the caller's preferred regions, and what went wrong. Out: the next
//! snapshot. Pure: nothing here sends or reads a clock.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use azure_core::http::Url;
use protocol::account::{AccountProperties, ConsistencyLevel, Location};

use super::endpoint::Endpoint;
use super::gateway2::Gateway2;
use super::silence::{ProbeRole, Silence};
use crate::region::Region;

/// How long a region that could not be reached is left alone before it is tried again.
pub(crate) const UNAVAILABLE_FOR: Duration = Duration::from_secs(60);

/// Which requests an unavailable region does not get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unavailable {
    /// It does not take writes; reads continue.
    Writes,
    /// It cannot be reached, or the account is not there.
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    what: Unavailable,
    /// When the region last failed, or a probe of it did.
    last_failure: Instant,
    /// When it was last probed, or marked. Failures of requests that are still in flight put no probe off.
    probed_at: Instant,
}

/// A snapshot of the account: replaced as a whole, never changed in place.
#[derive(Clone, Debug)]
pub struct AccountState {
    /// Readable regions, best first.
    reads: Vec<Endpoint>,
    /// Writable regions, best first.
    writes: Vec<Endpoint>,
    /// Writable regions, then the readable ones: where one partition may have moved its writes to.
    failover_writes: Vec<Endpoint>,
    /// The account's own endpoint.
    global: Endpoint,
    is_known: bool,
    multi_write: bool,
    partition_failover: bool,
    hedging_forbidden: bool,
    consistency: ConsistencyLevel,
    unavailable: HashMap<Region, Mark>,
    /// Regions that have not responded to the last attempts.
    silences: HashMap<Region, Silence>,
    /// Recognised, and not used.
    gateway2: Arc<Gateway2>,
}

impl AccountState {
    /// What is known before the account has been asked: its own endpoint.
    pub fn unknown(global: Endpoint) -> AccountState {
        AccountState {
            reads: vec![global.clone()],
            writes: vec![global.clone()],
            failover_writes: vec![global.clone()],
            global,
            is_known: false,
            multi_write: false,
            partition_failover: false,
            hedging_forbidden: false,
            consistency: ConsistencyLevel::Session,
            unavailable: HashMap::new(),
            silences: HashMap::new(),
            gateway2: Arc::default(),
        }
    }

    /// The state `properties` describe. Regions are tried in the order of `preferred`, then in the account's.
    /// Trouble that was known stays known. Locations whose URL cannot be read are left out.
    #[must_use]
    pub fn with_properties(&self, properties: &AccountProperties, preferred: &[Region]) -> AccountState {
        let writes = self.endpoints(&properties.writable_locations, &[]);
        let reads = in_order(self.endpoints(&properties.readable_locations, &writes), preferred);
        // Of one write region there is nothing to prefer; of several, the nearest is the best.
        let multi_write = properties.enable_multiple_write_locations && writes.len() > 1;
        let writes = if multi_write { in_order(writes, preferred) } else { writes };
        let or_global = |endpoints: Vec<Endpoint>| {
            if endpoints.is_empty() { vec![self.global.clone()] } else { endpoints }
        };
        let writes = or_global(writes);
        let reads = if reads.is_empty() { writes.clone() } else { reads };
        let mut failover_writes = writes.clone();
        failover_writes.extend(reads.iter().filter(|endpoint| !writes.contains(endpoint)).cloned());
        AccountState {
            reads,
            writes,
            failover_writes,
            global: self.global.clone(),
            is_known: true,
            multi_write,
            partition_failover: properties.enable_per_partition_failover_behavior,
            hedging_forbidden: properties.disable_cross_regional_hedging,
            consistency: properties.user_consistency_policy.default_consistency_level,
            unavailable: self.unavailable.clone(),
            silences: self.silences.clone(),
            gateway2: Arc::new(Gateway2::of(properties)),
        }
    }

    /// Endpoints are kept while their region and URL stay, and are the same for reads and writes: latencies, and when a
    /// region last responded, hang on them. `new` are endpoints that were just made.
    fn endpoints(&self, locations: &[Location], new: &[Endpoint]) -> Vec<Endpoint> {
        let known = |region: &Region, url: &Url| {
            let mut known = self.failover_writes.iter().chain(new);
            known.find(|endpoint| endpoint.region() == region && endpoint.url() == url).cloned()
        };
        let endpoint = |location: &Location| {
            let url = Url::parse(&location.database_account_endpoint).ok()?;
            let region = Region::new(&location.name);
            Some(known(&region, &url).unwrap_or_else(|| Endpoint::regional(region, url)))
        };
        locations.iter().filter_map(endpoint).collect()
    }

    /// The state after a region was found unavailable.
    #[must_use]
    pub fn mark_unavailable(&self, region: &Region, what: Unavailable, now: Instant) -> AccountState {
        let mut next = self.clone();
        next.silences.remove(region);
        let new = Mark { what, last_failure: now, probed_at: now };
        let mark = next.unavailable.entry(region.clone()).or_insert(new);
        // A region that is unavailable for everything stays so when it also rejects writes.
        if what == Unavailable::All {
            mark.what = Unavailable::All;
        }
        mark.last_failure = now;
        next
    }

    /// The state after an attempt in a region that started at `started` ended without a response. A region that has
    /// been silent for long enough becomes unavailable.
    #[must_use]
    pub(crate) fn record_no_response(
        &self,
        region: &Region,
        started: Instant,
        last_response: Option<Instant>,
        now: Instant,
    ) -> AccountState {
        let known = self.silences.get(region).copied();
        match Silence::after_attempt(known, started, last_response) {
            Some(silence) if silence.is_outage(now) => self.mark_unavailable(region, Unavailable::All, now),
            silence => self.with_silence(region, silence),
        }
    }

    /// Whether the last attempt in a region got no response although it was waited for.
    pub fn is_silent(&self, region: &Region) -> bool {
        self.silences.contains_key(region)
    }

    /// Decides who probes a region that an attempt, started at `started`, has had no response from.
    pub(crate) fn begin_probe(
        &self,
        region: &Region,
        started: Instant,
        last_response: Option<Instant>,
        now: Instant,
        time: Duration,
    ) -> (AccountState, ProbeRole) {
        let known = self.silences.get(region).copied();
        let (silence, role) = Silence::probing(known, started, last_response, now, time);
        (self.with_silence(region, Some(silence)), role)
    }

    fn with_silence(&self, region: &Region, silence: Option<Silence>) -> AccountState {
        let mut next = self.clone();
        match silence {
            Some(silence) => next.silences.insert(region.clone(), silence),
            None => next.silences.remove(region),
        };
        next
    }

    /// The state after a region has responded with a success.
    #[must_use]
    pub fn mark_available(&self, region: &Region) -> AccountState {
        let mut next = self.clone();
        next.unavailable.remove(region);
        next.silences.remove(region);
        next
    }

    /// The state after a probe of an unavailable region has failed: what was learnt stays learnt, however long
    /// the outage lasts.
    #[must_use]
    pub(crate) fn probe_failed(&self, region: &Region, now: Instant) -> AccountState {
        let mut next = self.clone();
        if let Some(mark) = next.unavailable.get_mut(region) {
            (mark.last_failure, mark.probed_at) = (now, now);
        }
        next
    }

    /// The state without the marks of regions that have not failed for `age`: those regions are tried again.
    #[must_use]
    pub fn expire(&self, now: Instant, age: Duration) -> AccountState {
        let mut next = self.clone();
        next.unavailable.retain(|_, mark| now.saturating_duration_since(mark.last_failure) < age);
        next
    }

    /// Whether any mark is older than `age`, so that expiring would change something.
    pub fn has_expired(&self, now: Instant, age: Duration) -> bool {
        self.unavailable.values().any(|mark| now.saturating_duration_since(mark.last_failure) >= age)
    }

    /// Whether any region is marked unavailable.
    pub(crate) fn has_unavailable(&self) -> bool {
        !self.unavailable.is_empty()
    }

    /// The endpoints of regions that could not be reached and were not probed for `age`.
    pub fn unreachable_for(&self, now: Instant, age: Duration) -> Vec<Endpoint> {
        let is_due = |endpoint: &&Endpoint| {
            self.unavailable.get(endpoint.region()).is_some_and(|mark| {
                mark.what == Unavailable::All && now.saturating_duration_since(mark.probed_at) >= age
            })
        };
        if self.unavailable.is_empty() { Vec::new() } else { self.all().filter(is_due).cloned().collect() }
    }

    /// Which requests a region does not get; none if it is available.
    pub(crate) fn unavailability(&self, region: &Region) -> Option<Unavailable> {
        self.unavailable.get(region).map(|mark| mark.what)
    }

    /// Whether a region is known not to take reads, or writes.
    pub fn is_unavailable(&self, region: &Region, is_read: bool) -> bool {
        if self.unavailable.is_empty() {
            return false;
        }
        match self.unavailable.get(region) {
            None => false,
            Some(Mark { what: Unavailable::All, .. }) => true,
            Some(Mark { what: Unavailable::Writes, .. }) => !is_read,
        }
    }

    /// Whether the account has been asked.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// Where reads go, best first; never empty.
    pub fn reads(&self) -> &[Endpoint] {
        &self.reads
    }

    /// Where writes go, best first; never empty.
    pub fn writes(&self) -> &[Endpoint] {
        &self.writes
    }

    /// Where the writes of a single partition may have moved to on accounts that let partitions fail over.
    pub fn failover_writes(&self) -> &[Endpoint] {
        &self.failover_writes
    }

    /// Where the account says it has Gateway 2.0. Nothing is sent there: those endpoints speak another protocol.
    pub fn gateway2(&self) -> &Gateway2 {
        &self.gateway2
    }

    /// The region that has every write first.
    pub fn hub(&self) -> &Endpoint {
        self.writes.first().unwrap_or(&self.global)
    }

    /// The account's own endpoint.
    pub fn global(&self) -> &Endpoint {
        &self.global
    }

    /// Every endpoint that may know the account: its own, then each region's.
    pub fn all(&self) -> impl Iterator<Item = &Endpoint> {
        std::iter::once(&self.global)
            .chain(self.failover_writes.iter().filter(|endpoint| **endpoint != self.global))
    }

    /// Whether several regions take writes.
    pub fn is_multi_write(&self) -> bool {
        self.multi_write
    }

    /// Whether a single partition may move its writes to another region.
    pub fn has_partition_failover(&self) -> bool {
        self.partition_failover
    }

    /// Whether the account asks clients not to race regions.
    pub fn forbids_hedging(&self) -> bool {
        self.hedging_forbidden
    }

    /// What a read gets that asks for nothing.
    pub fn consistency(&self) -> ConsistencyLevel {
        self.consistency
    }

    /// Whether both describe the same regions in the same roles: nothing was learnt.
    pub fn same_regions(&self, other: &AccountState) -> bool {
        self.reads == other.reads && self.writes == other.writes && self.multi_write == other.multi_write
    }
}

/// The endpoints of preferred regions first, in that order, then the others as they came.
fn in_order(mut endpoints: Vec<Endpoint>, preferred: &[Region]) -> Vec<Endpoint> {
    let rank = |endpoint: &Endpoint| preferred.iter().position(|region| region == endpoint.region());
    endpoints.sort_by_key(|endpoint| rank(endpoint).unwrap_or(usize::MAX));
    endpoints
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::clock::Clock;

    pub(crate) fn global() -> Endpoint {
        Endpoint::global(Url::parse("http://account.example/").expect("a URL"))
    }

    fn location(name: &str) -> Location {
        let host = name.to_ascii_lowercase().replace(' ', "");
        Location { name: name.into(), database_account_endpoint: format!("http://{host}.example/") }
    }

    pub(crate) fn properties(writes: &[&str], reads: &[&str]) -> AccountProperties {
        let reads = reads.iter().map(|name| location(name)).collect();
        let mut properties = AccountProperties::new("account", reads, ConsistencyLevel::Session);
        properties.writable_locations = writes.iter().map(|name| location(name)).collect();
        properties.enable_multiple_write_locations = writes.len() > 1;
        properties
    }

    /// An account that writes in `writes` and reads in `reads`.
    pub(crate) fn account(writes: &[&str], reads: &[&str]) -> AccountState {
        AccountState::unknown(global()).with_properties(&properties(writes, reads), &[])
    }

    fn names(endpoints: &[Endpoint]) -> Vec<&str> {
        endpoints.iter().map(|endpoint| endpoint.region().as_str()).collect()
    }

    #[test]
    fn preferred_regions_come_first_and_the_others_in_the_accounts_order() {
        for (writes, preferred, expected_reads, expected_writes) in [
            (&["A"][..], &[][..], ["A", "B", "C"], &["A"][..]),
            (&["A"], &["C"], ["C", "A", "B"], &["A"]),
            (&["A"], &["c", "elsewhere", "b"], ["C", "B", "A"], &["A"]),
            (&["A", "B", "C"], &["B"], ["B", "A", "C"], &["B", "A", "C"]),
        ] {
            let preferred: Vec<Region> = preferred.iter().map(Region::new).collect();
            let state = AccountState::unknown(global())
                .with_properties(&properties(writes, &["A", "B", "C"]), &preferred);
            assert_eq!(names(state.reads()), expected_reads, "{preferred:?}");
            assert_eq!(names(state.writes()), expected_writes, "{preferred:?}");
            assert_eq!(state.is_multi_write(), writes.len() > 1);
        }
    }

    #[test]
    fn an_account_without_regions_is_used_at_its_own_endpoint() {
        let state = AccountState::unknown(global()).with_properties(&properties(&[], &[]), &[]);
        assert_eq!((names(state.reads()), names(state.writes())), (vec!["hub"], vec!["hub"]));
        let mut broken = properties(&["A"], &["A", "B"]);
        broken.readable_locations[1].database_account_endpoint = "not a url".into();
        let state = AccountState::unknown(global()).with_properties(&broken, &[]);
        assert_eq!(names(state.reads()), ["A"]);
    }

    #[test]
    fn what_is_known_of_a_region_survives_refreshes_and_is_one_for_reads_and_writes() {
        let properties = properties(&["A"], &["A", "B"]);
        let first = AccountState::unknown(global()).with_properties(&properties, &[]);
        let now = Clock::machine().now();
        first.reads()[0].last_response().record(now);
        assert_eq!(first.writes()[0].last_response().get(), Some(now));
        let refreshed = first.with_properties(&properties, &[]);
        for endpoint in [&refreshed.reads()[0], &refreshed.writes()[0]] {
            assert_eq!(endpoint.last_response().get(), Some(now));
        }
    }

    #[test]
    fn unavailable_marks_survive_a_refresh_and_expire() {
        let now = Clock::machine().now();
        let (a, b) = (Region::new("A"), Region::new("B"));
        let state = account(&["A"], &["A", "B"])
            .mark_unavailable(&a, Unavailable::Writes, now)
            .mark_unavailable(&b, Unavailable::All, now + Duration::from_secs(30));
        let state = state.with_properties(&properties(&["B"], &["A", "B"]), &[]);
        for (region, is_read, unavailable) in
            [(&a, true, false), (&a, false, true), (&b, true, true), (&b, false, true)]
        {
            assert_eq!(state.is_unavailable(region, is_read), unavailable, "{region} {is_read}");
        }
        let five = Duration::from_secs(5);
        assert!(state.unreachable_for(now + Duration::from_secs(34), five).is_empty());
        assert_eq!(
            names(&state.unreachable_for(now + Duration::from_secs(35), five)),
            ["B"],
            "reads of A go on"
        );
        let minute = Duration::from_secs(60);
        assert!(!state.has_expired(now + Duration::from_secs(59), minute));
        assert!(state.has_expired(now + minute, minute));
        let later = state.expire(now + minute, minute);
        assert!(!later.is_unavailable(&a, false) && later.is_unavailable(&b, true));
        assert!(!later.mark_available(&b).is_unavailable(&b, true));
    }

    #[test]
    fn being_unreachable_outweighs_rejecting_writes() {
        let now = Clock::machine().now();
        let a = Region::new("A");
        let state = account(&["A"], &["A"]).mark_unavailable(&a, Unavailable::All, now).mark_unavailable(
            &a,
            Unavailable::Writes,
            now,
        );
        assert!(state.is_unavailable(&a, true));
    }

    #[test]
    fn endpoints_outlive_a_refresh_that_changes_nothing() {
        let before = account(&["A"], &["A", "B"]);
        let after = before.with_properties(&properties(&["B"], &["A", "B"]), &[]);
        assert!(!before.same_regions(&after));
        assert!(std::ptr::eq(before.reads()[1].url(), after.reads()[1].url()));
        let all: Vec<_> = after.all().map(|endpoint| endpoint.region().as_str()).collect();
        assert_eq!(all, ["hub", "B", "A"]);
    }
}
