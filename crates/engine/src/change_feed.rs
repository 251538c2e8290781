//! The change feed: changes of a scope in the order of their LSNs.
//!
//! In latest-version mode each item appears once, at its newest version; in all-versions mode every change
//! appears, deletions included. LSNs are per partition, so the position of a scope over several partitions
//! has one for each EPK range. Positions name EPK ranges, not partitions: they stay valid when partitions
//! split.

use std::fmt::Write as _;
use std::ops::Bound;
use std::sync::Arc;

use protocol::lsn::Lsn;
use protocol::partition::{EffectivePartitionKey, EpkRange};

use crate::charge;
use crate::items::{Change, ChangeKind, Item};
use crate::query::Scope;
use crate::regions::RegionId;
use crate::store::index::{IndexSpace, KeyRange};
use crate::store::{ContainerSchema, Partition, PartitionState, PartitionView, Progress};

/// Which changes a feed returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedMode {
    /// Each item once, at its newest version.
    LatestVersion,
    /// Every version and every deletion.
    AllVersions,
}

/// Where a feed begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedStart {
    /// With the first change there is.
    Beginning,
    /// With what comes next.
    Now,
    /// With changes after this second.
    Since(u64),
    /// Where an earlier page ended.
    After(FeedPosition),
}

/// How far a feed has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedPosition {
    /// The LSNs up to which the feed has been read.
    pub progress: FeedProgress,
    /// Whose LSNs these are, where each region has its own.
    pub region: Option<RegionId>,
}

/// The LSNs up to which a feed has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedProgress {
    /// One LSN for everything: the position in one partition, also valid for its children.
    Single(Lsn),
    /// One LSN per EPK range, by where the range begins.
    PerRange(Vec<(EffectivePartitionKey, Lsn)>),
}

/// One page of changes.
pub struct FeedPage {
    /// The partition the changes are from.
    pub partition: Arc<Partition>,
    /// The progress of the replica that was read, for the session token.
    pub progress: Progress,
    /// How many changes the page has.
    pub count: usize,
    /// The request units that the page costs.
    pub charge: f64,
    /// Where the next page begins.
    pub position: FeedPosition,
    rows: Vec<u8>,
}

/// The changes after this LSN are no longer retained.
#[derive(Debug, PartialEq, Eq)]
pub struct ChangesNotRetained(pub Lsn);

impl FeedPosition {
    /// `"42"`, or `"{epk}:42,{epk}:17"`; with `@2` behind it where the LSNs are the second region's.
    pub fn to_etag(&self) -> String {
        let mut text = String::from("\"");
        match &self.progress {
            FeedProgress::Single(lsn) => text.push_str(&lsn.0.to_string()),
            FeedProgress::PerRange(parts) => {
                for (at, (epk, lsn)) in parts.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    write!(text, "{comma}{}:{}", epk.to_hex(), lsn.0)
                        .expect("writing to a string does not fail");
                }
            }
        }
        if let Some(region) = self.region {
            write!(text, "@{}", u32::from(region.0) + 1).expect("writing to a string does not fail");
        }
        text + "\""
    }

    /// Reads an entity tag, with or without its quotes.
    pub fn parse(etag: &str) -> Option<FeedPosition> {
        let text = etag.trim_matches('"');
        let (text, region) = match text.split_once('@') {
            Some((text, region)) => (text, Some(RegionId(region.parse::<u8>().ok()?.checked_sub(1)?))),
            None => (text, None),
        };
        if !text.contains(':') {
            let read = FeedProgress::Single(Lsn(text.parse().ok()?));
            return Some(FeedPosition { progress: read, region });
        }
        let parts = text.split(',').map(|part| {
            let (epk, lsn) = part.split_once(':')?;
            Some((EffectivePartitionKey::from_hex(epk).ok()?, Lsn(lsn.parse().ok()?)))
        });
        let read = FeedProgress::PerRange(parts.collect::<Option<Vec<_>>>()?);
        Some(FeedPosition { progress: read, region })
    }

    /// How far the partition that begins at `epk` has been read.
    fn at(&self, epk: &EffectivePartitionKey) -> Lsn {
        match &self.progress {
            FeedProgress::Single(lsn) => *lsn,
            FeedProgress::PerRange(parts) => {
                parts.iter().rev().find(|(start, _)| start <= epk).map_or(Lsn(0), |(_, lsn)| *lsn)
            }
        }
    }
}

/// Reads up to `limit` changes that `accept` lets through, of the first partition that has any.
pub fn read_changes(
    scope: &Scope,
    mode: FeedMode,
    start: &FeedStart,
    limit: usize,
    now: u64,
    accept: &dyn Fn(&Item) -> bool,
) -> Result<FeedPage, ChangesNotRetained> {
    let mut read_to: Vec<Vec<(EffectivePartitionKey, Lsn)>> = scope
        .partitions
        .iter()
        .map(|partition| positions(start, partition, &scope.range_in(partition).0))
        .collect();
    let mut found = None;
    for (positions, partition) in read_to.iter_mut().zip(&scope.partitions) {
        let (within, _) = scope.range_in(partition);
        let schema = Arc::clone(&partition.head().schema);
        let reader = PageReader { within: &within, positions, start, limit, now, schema, accept };
        let state = partition.snapshot();
        let changes = match mode {
            FeedMode::LatestVersion => reader.latest(&state),
            FeedMode::AllVersions => reader.all(&state)?,
        };
        positions.iter_mut().for_each(|(_, lsn)| *lsn = changes.read_to.max(*lsn));
        let has_changes = changes.count > 0;
        found = Some((partition, Progress { lsn: state.lsn, ..partition.progress() }, changes));
        if has_changes {
            break;
        }
    }
    let (partition, progress, changes) = found.expect("an EPK range has an owner");
    let read = match read_to.as_slice() {
        [positions] if positions.iter().all(|(_, lsn)| *lsn == positions[0].1) => {
            FeedProgress::Single(positions[0].1)
        }
        _ => FeedProgress::PerRange(read_to.into_iter().flatten().collect()),
    };
    let position = FeedPosition { progress: read, region: None };
    Ok(FeedPage {
        partition: partition.partition(),
        progress,
        count: changes.count,
        charge: changes.charge,
        position,
        rows: changes.rows,
    })
}

/// How far each part of `within` has been read: more than one part where partitions merged that were not
/// equally far.
fn positions(
    start: &FeedStart,
    partition: &PartitionView,
    within: &EpkRange,
) -> Vec<(EffectivePartitionKey, Lsn)> {
    let first = |lsn| (within.min.clone(), lsn);
    match start {
        FeedStart::Beginning | FeedStart::Since(_) => vec![first(Lsn(0))],
        FeedStart::Now => vec![first(partition.head().lsn)],
        FeedStart::After(position) => {
            let mut positions = vec![first(position.at(&within.min))];
            if let FeedProgress::PerRange(parts) = &position.progress {
                let inside = |epk: &EffectivePartitionKey| *epk > within.min && within.contains(epk);
                positions.extend(parts.iter().filter(|(epk, _)| inside(epk)).cloned());
            }
            positions
        }
    }
}

impl FeedPage {
    /// The response body: `{"_rid":…,"Documents":[…],"_count":n}`.
    pub fn body(&self, container_rid: &str) -> Vec<u8> {
        let mut body = format!("{{\"_rid\":\"{container_rid}\",\"Documents\":[").into_bytes();
        body.extend_from_slice(&self.rows);
        body.extend_from_slice(format!("],\"_count\":{}}}", self.count).as_bytes());
        body
    }
}

struct PageReader<'a> {
    within: &'a EpkRange,
    positions: &'a [(EffectivePartitionKey, Lsn)],
    start: &'a FeedStart,
    limit: usize,
    now: u64,
    schema: Arc<ContainerSchema>,
    /// Whether the feed has the changes of an item.
    accept: &'a dyn Fn(&Item) -> bool,
}

#[derive(Default)]
struct FeedRows {
    rows: Vec<u8>,
    count: usize,
    charge: f64,
    read_to: Lsn,
}

impl PageReader<'_> {
    /// The LSN up to which every part has been read: where reading begins.
    fn after(&self) -> Lsn {
        self.positions.iter().map(|(_, lsn)| *lsn).min().unwrap_or_default()
    }

    /// Whether a change with this key and LSN is within the scope and not read yet.
    fn wants(&self, epk: &EffectivePartitionKey, lsn: Lsn) -> bool {
        let position = self.positions.iter().rev().find(|(start, _)| start <= epk);
        self.within.contains(epk) && position.is_none_or(|(_, read_to)| lsn > *read_to)
    }

    fn latest(&self, state: &PartitionState) -> FeedRows {
        let after = self.after();
        let mut from = IndexSpace::LSN.to_bytes().to_vec();
        from.extend_from_slice(&(after.0 + 1).to_be_bytes());
        let range =
            KeyRange { from: Bound::Included(from), ..KeyRange::prefix(IndexSpace::LSN.to_bytes().to_vec()) };
        let mut changes = FeedRows { read_to: after, ..FeedRows::default() };
        let items = state.index.range(&range).filter_map(|entry| state.item(entry.ordinal()));
        for item in items {
            // The items of one batch share an LSN and stay on one page.
            if changes.count >= self.limit && item.lsn > changes.read_to {
                return changes;
            }
            changes.read_to = item.lsn;
            let in_time = !matches!(self.start, FeedStart::Since(seconds) if item.modified_at <= *seconds);
            if in_time
                && self.wants(&item.epk, item.lsn)
                && item.is_live(self.schema.default_ttl, self.now)
                && (self.accept)(item)
            {
                changes.add(item, |rows| {
                    let body = item.body_bytes();
                    rows.extend_from_slice(&body[..body.len() - 1]);
                    rows.extend_from_slice(format!(",\"_lsn\":{}}}", item.lsn.0).as_bytes());
                });
            }
        }
        changes.read_to = changes.read_to.max(state.lsn);
        changes
    }

    fn all(&self, state: &PartitionState) -> Result<FeedRows, ChangesNotRetained> {
        let after = self.after();
        let mut changes = FeedRows { read_to: after, ..FeedRows::default() };
        for change in state.log.after(after).ok_or(ChangesNotRetained(after))? {
            if changes.count >= self.limit && change.lsn > changes.read_to {
                return Ok(changes);
            }
            changes.read_to = change.lsn;
            if self.wants(&change.item.epk, change.lsn) && (self.accept)(&change.item) {
                changes.add(&change.item, |rows| self.write_change(change, rows));
            }
        }
        changes.read_to = changes.read_to.max(state.lsn);
        Ok(changes)
    }

    /// The envelope of the all-versions format.
    fn write_change(&self, change: &Change, rows: &mut Vec<u8>) {
        let (operation, deleted) = match change.kind {
            ChangeKind::Create => ("create", None),
            ChangeKind::Replace => ("replace", None),
            ChangeKind::Delete => ("delete", Some(false)),
            ChangeKind::Expire => ("delete", Some(true)),
        };
        rows.extend_from_slice(b"{\"current\":");
        rows.extend_from_slice(if deleted.is_some() { b"{}" } else { change.item.body_bytes() });
        // Without a policy that asks for previous images, the service returns only their LSN.
        let previous_lsn = match change.kind {
            ChangeKind::Delete | ChangeKind::Expire => change.item.lsn.0,
            ChangeKind::Create | ChangeKind::Replace => change.previous.as_ref().map_or(0, |item| item.lsn.0),
        };
        let mut metadata = serde_json::json!({
            "lsn": change.lsn.0,
            "crts": change.at,
            "operationType": operation,
            "previousImageLSN": previous_lsn,
        });
        if let Some(expired) = deleted {
            metadata["timeToLiveExpired"] = expired.into();
            metadata["id"] = change.item.id.as_str().into();
            metadata["partitionKey"] = self.partition_key(&change.item);
        }
        rows.extend_from_slice(b",\"metadata\":");
        rows.extend_from_slice(metadata.to_string().as_bytes());
        rows.push(b'}');
    }

    /// The partition key by member name, as the item had it.
    fn partition_key(&self, item: &Item) -> serde_json::Value {
        let document: serde_json::Value = serde_json::from_slice(item.body_bytes()).unwrap_or_default();
        let mut key = serde_json::Map::new();
        for path in self.schema.key_paths() {
            let value = path.iter().try_fold(&document, |value, name| value.get(name.as_str()));
            if let (Some(name), Some(value)) = (path.last(), value) {
                key.insert(name.to_string(), value.clone());
            }
        }
        key.into()
    }
}

impl FeedRows {
    fn add(&mut self, item: &Item, write: impl FnOnce(&mut Vec<u8>)) {
        if self.count > 0 {
            self.rows.push(b',');
        }
        write(&mut self.rows);
        self.count += 1;
        self.charge += charge::read(item.size());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_round_trip_as_entity_tags() {
        let epk = |hex| EffectivePartitionKey::from_hex(hex).unwrap();
        let several = || FeedProgress::PerRange(vec![(epk(""), Lsn(1)), (epk("1FFF"), Lsn(2))]);
        for (read, region, text) in [
            (FeedProgress::Single(Lsn(42)), None, "\"42\""),
            (FeedProgress::Single(Lsn(42)), Some(RegionId(0)), "\"42@1\""),
            (several(), None, "\":1,1FFF:2\""),
            (several(), Some(RegionId(2)), "\":1,1FFF:2@3\""),
        ] {
            let position = FeedPosition { progress: read, region };
            assert_eq!(position.to_etag(), text);
            assert_eq!(FeedPosition::parse(text.trim_matches('"')), Some(position.clone()));
            assert_eq!(FeedPosition::parse(text), Some(position));
        }
        for text in ["\"abc\"", "42@", "42@0", "42@x", "@1", "42@1@1"] {
            assert_eq!(FeedPosition::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_child_continues_where_its_parent_was() {
        let epk = |hex| EffectivePartitionKey::from_hex(hex).unwrap();
        let read = FeedProgress::PerRange(vec![(epk(""), Lsn(5)), (epk("20"), Lsn(9))]);
        let position = FeedPosition { progress: read, region: None };
        assert_eq!(position.at(&epk("10")), Lsn(5));
        assert_eq!(position.at(&epk("30")), Lsn(9));
    }
}
