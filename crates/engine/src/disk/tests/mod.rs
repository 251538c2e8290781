//! Tests of the data directory: commits, checkpoints, and what a new process reads back.

mod added_regions;
mod damage;
mod multi_write;
mod restore;
mod syncing;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use protocol::account::ConsistencyLevel;
use protocol::authorization::{AccountKey, EMULATOR_KEY};
use protocol::container::ContainerProperties;
use protocol::throughput::Throughput;
use protocol::user::Permission;

use super::*;
use crate::account::{Account, AccountSettings};
use crate::catalog::{CatalogError, ContainerEntry, NewContainer, UserAddress};
use crate::charge::RequestUnitMode;
use crate::regions::{Lag, Region, RegionId, Topology, TopologyError};
use crate::store::{Document, Head, PartitionState, Partitioning, Precondition, WriteContext, WriteError};
use clock::Ticks;

const NOW: Ticks = Ticks(1_700_000_000 * 10_000_000);
const PLAIN: &str = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;

fn open(path: &Path) -> Result<Account, OpenError> {
    open_with(path, Fsync::Never)
}

fn open_with(path: &Path, fsync: Fsync) -> Result<Account, OpenError> {
    open_in(path, fsync, &["West US"], false)
}

fn open_in(path: &Path, fsync: Fsync, regions: &[&str], multi_write: bool) -> Result<Account, OpenError> {
    let regions = regions.iter().map(|name| Region::new(*name, 0)).collect();
    let lag = if multi_write { "30ms".parse().unwrap() } else { Lag::NONE };
    let topology = Topology::new(regions, multi_write, ConsistencyLevel::Session, lag).unwrap();
    open_over(path, fsync, topology)
}

fn open_as(
    path: &Path,
    regions: &[&str],
    change: impl FnOnce(Topology) -> Topology,
) -> Result<Account, OpenError> {
    let regions = regions.iter().map(|name| Region::new(*name, 0)).collect();
    let topology = Topology::new(regions, false, ConsistencyLevel::Session, Lag::NONE).unwrap();
    open_over(path, Fsync::Never, change(topology))
}

fn open_over(path: &Path, fsync: Fsync, topology: Topology) -> Result<Account, OpenError> {
    open_from(DataDir { fsync, ..DataDir::new(path) }, topology, RegionSource::Configured)
}

fn open_data_dir(data: DataDir) -> Result<Account, OpenError> {
    let regions = vec![Region::new("West US", 0)];
    let topology = Topology::new(regions, false, ConsistencyLevel::Session, Lag::NONE).unwrap();
    open_from(data, topology, RegionSource::Configured)
}

fn open_from(data: DataDir, topology: Topology, region_source: RegionSource) -> Result<Account, OpenError> {
    let settings = AccountSettings {
        key: AccountKey::from_base64(EMULATOR_KEY).unwrap(),
        topology,
        region_source,
        partitions: None,
        partition_bytes_max: u64::MAX,
        request_units: RequestUnitMode::Off,
        seed: 77,
    };
    let account = Account::open(settings, &data)?;
    account.catalog.make_indexes();
    Ok(account)
}

fn write_at(now: u64) -> WriteContext {
    WriteContext { region: RegionId(0), now, uptime: Duration::ZERO }
}

fn new_container<'a>(account: &Account, database: &'a str, body: &str) -> NewContainer<'a> {
    NewContainer {
        database,
        properties: ContainerProperties::parse(body.as_bytes()).unwrap(),
        throughput: Some(Throughput::Manual(400)),
        partitions: Partitioning::of(2),
        regions: Arc::clone(&account.regions),
    }
}

fn with_container(account: &Account) -> Arc<ContainerEntry> {
    account.catalog.create_database("d", None, NOW).unwrap();
    account.catalog.create_container(new_container(account, "d", PLAIN), NOW).unwrap()
}

/// Creates or replaces an item; `fill` is how long its text is.
fn upsert(container: &ContainerEntry, id: u32, fill: usize, now: u64) -> Result<(), WriteError> {
    upsert_in(RegionId(0), container, id, fill, now)
}

fn upsert_in(
    region: RegionId,
    container: &ContainerEntry,
    id: u32,
    fill: usize,
    now: u64,
) -> Result<(), WriteError> {
    let text = format!(r#"{{"id":"{id}","pk":"{}","text":"{}"}}"#, id % 7, "x".repeat(fill));
    let document = Document::parse(text.as_bytes(), &container.store.schema(), now)?;
    let (_, commit) = container
        .store
        .write(&document.epk, WriteContext { region, ..write_at(now) }, |t| {
            t.upsert(&document, Precondition::None)
        })
        .unwrap();
    commit.result.map(drop)
}

fn delete(container: &ContainerEntry, id: u32, now: u64) {
    let text = format!(r#"{{"id":"{id}","pk":"{}"}}"#, id % 7);
    let document = Document::parse(text.as_bytes(), &container.store.schema(), now).unwrap();
    let (_, commit) = container
        .store
        .write(&document.epk, write_at(now), |t| t.delete(&document.epk, &document.id, Precondition::None))
        .unwrap();
    commit.result.unwrap();
}

/// Everything that clients can see, as text to compare.
fn everything(account: &Account) -> Vec<String> {
    let snapshot = Arc::clone(&account.catalog.snapshot());
    let mut seen = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    for database in snapshot.databases_after(None) {
        seen.push(format!("{:?} {}", database.offer, text(&database.json)));
        for user in database.users_after(None) {
            seen.push(text(&user.json));
            seen.extend(user.permissions_after(None).map(|entry| format!("{entry:?}")));
        }
        for container in database.containers_after(None) {
            seen.push(format!(
                "{:?} {} {:?}",
                container.offer,
                text(&container.json),
                container.alt_content_path
            ));
            seen.push(format!("{:?}", container.properties));
            let layout = container.store.stored_layout();
            // Ordinals of writes that failed are not assigned again either.
            seen.push(format!("{:?}", StoredLayout { next_ordinal: 0, ..layout }));
            for partition in container.store.partitions().iter() {
                for (head, state) in partition.every_chain() {
                    describe_chain(&head, &state, &mut seen);
                }
                let conflicts = partition.conflicts();
                seen.extend(conflicts.iter().flat_map(|it| it.all()).map(|conflict| format!("{conflict:?}")));
            }
        }
    }
    seen.extend(
        snapshot.offers_after(None).map(|offer| format!("{:?} {}", offer.throughput, text(&offer.json))),
    );
    seen
}

/// The contents of one version chain of a partition.
fn describe_chain(head: &Head, state: &PartitionState, seen: &mut Vec<String>) {
    seen.push(format!("{} {:?} {} {}", state.lsn, head.progress(), head.len(), head.bytes()));
    for item in state.items_from(Ordinal(0)) {
        let found = head.get(&item.epk, &item.id).expect("items by identity are the same");
        assert!(Arc::ptr_eq(found, item));
        seen.push(format!("{item:?}"));
    }
    for lsn in 0..=state.lsn.0 {
        if let Some(changes) = state.log.after(Lsn(lsn)) {
            seen.push(format!("known after {lsn}"));
            seen.extend(changes.map(|change| format!("{change:?}")));
            break;
        }
    }
    assert!(state.index_is_consistent(), "the index is what a new one would be");
}

#[track_caller]
fn reopened(account: Account, path: &Path) -> Account {
    reopened_by(account, || open(path))
}

#[track_caller]
fn reopened_by(account: Account, open: impl FnOnce() -> Result<Account, OpenError>) -> Account {
    let before = everything(&account);
    account.disk.as_ref().unwrap().close_and_wait();
    let account = open().unwrap();
    let after = everything(&account);
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before, after);
    }
    assert_eq!(before.len(), after.len());
    account
}

#[test]
fn an_account_is_read_back_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let account = open(directory.path()).unwrap();
    let container = with_container(&account);
    let user = UserAddress { database: "d", user: "u" };
    account.catalog.create_user("d", "u", NOW).unwrap();
    let permission =
        br#"{"id":"p","permissionMode":"Read","resource":"dbs/d/colls/c","resourcePartitionKey":["v"]}"#;
    account.catalog.create_permission(user, Permission::parse(permission).unwrap(), NOW).unwrap();
    account
        .catalog
        .create_database("shared", Some(Throughput::Autoscale { max: 4_000, increment_percent: None }), NOW)
        .unwrap();
    for id in 0..40 {
        upsert(&container, id, 10, 100).unwrap();
    }
    for id in (0..40).step_by(3) {
        upsert(&container, id, 20, 200).unwrap();
    }
    for id in (0..40).step_by(5) {
        delete(&container, id, 300);
    }
    let account = reopened(account, directory.path());
    // Later writes continue the history: no id, LSN or entity tag occurs twice.
    let container = Arc::clone(account.catalog.snapshot().container("d", "c").unwrap());
    upsert(&container, 1_000, 5, 400).unwrap();
    upsert(&container, 1, 7, 400).unwrap();
    account
        .catalog
        .create_container(new_container(&account, "d", &PLAIN.replace("\"c\"", "\"e\"")), NOW)
        .unwrap();
    account.catalog.delete_database("shared", |_| Ok::<_, CatalogError>(())).unwrap();
    let account = reopened(account, directory.path());
    let rids: Vec<_> = everything(&account).into_iter().filter(|text| text.contains("_rid")).collect();
    assert!(!rids.is_empty());
}

#[test]
fn unique_keys_and_expiry_hold_right_after_opening() {
    let directory = tempfile::tempdir().unwrap();
    let account = open(directory.path()).unwrap();
    account.catalog.create_database("d", None, NOW).unwrap();
    let body = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":50,
        "uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/text"]}]}}"#;
    let container = account.catalog.create_container(new_container(&account, "d", body), NOW).unwrap();
    upsert(&container, 1, 3, 100).unwrap();
    assert_eq!(upsert(&container, 8, 3, 101), Err(WriteError::UniqueConflict));
    let account = reopened(account, directory.path());
    let container = Arc::clone(account.catalog.snapshot().container("d", "c").unwrap());
    assert_eq!(upsert(&container, 8, 3, 102), Err(WriteError::UniqueConflict));
    upsert(&container, 8, 3, 151).unwrap();
    let account = reopened(account, directory.path());
    let container = Arc::clone(account.catalog.snapshot().container("d", "c").unwrap());
    assert_eq!(container.store.usage().items, 1, "the expired one is gone for good");
}

#[test]
fn splits_and_merges_are_read_back_with_their_history() {
    let directory = tempfile::tempdir().unwrap();
    let account = open(directory.path()).unwrap();
    let container = with_container(&account);
    for id in 0..30 {
        upsert(&container, id, 10, 100).unwrap();
    }
    let halves = container.store.split(0, None, Duration::ZERO).unwrap();
    for id in 0..30 {
        upsert(&container, id, 12, 110).unwrap();
    }
    let account = reopened(account, directory.path());
    let container = Arc::clone(account.catalog.snapshot().container("d", "c").unwrap());
    container.store.merge(&halves, Duration::ZERO).unwrap();
    for id in 0..30 {
        upsert(&container, id, 14, 120).unwrap();
    }
    let account = reopened(account, directory.path());
    let container = Arc::clone(account.catalog.snapshot().container("d", "c").unwrap());
    container.store.split(1, None, Duration::ZERO).unwrap();
    reopened(account, directory.path());
}

#[test]
fn checkpointed_data_is_read_back_and_the_journal_shrinks() {
    let directory = tempfile::tempdir().unwrap();
    let account = open(directory.path()).unwrap();
    let container = with_container(&account);
    let doomed = PLAIN.replace("\"c\"", "\"doomed\"");
    let doomed = account.catalog.create_container(new_container(&account, "d", &doomed), NOW).unwrap();
    for round in 0..40 {
        for id in 0..20 {
            upsert(&container, id + round * 3, 200, 100 + u64::from(round)).unwrap();
            upsert(&doomed, id, 50, 100).unwrap();
        }
        delete(&container, round * 3, 150 + u64::from(round));
    }
    account.catalog.delete_container("d", "doomed", |_| Ok::<_, CatalogError>(())).unwrap();
    for id in 0..200 {
        upsert(&container, id, 300, 300).unwrap();
    }
    let account = reopened(account, directory.path());
    checkpointed(&account);
    let journal: Vec<_> = fs::read_dir(directory.path().join("journal")).unwrap().collect();
    assert!(journal.len() < 20, "{} files", journal.len());
    assert!(directory.path().join("base/items").exists());
    reopened(account, directory.path());
}

/// Waits until the sealed segments are checkpointed.
fn checkpointed(account: &Account) {
    let disk = account.disk.as_ref().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut progress = disk.journal.progress.subscribe();
        let quiet = progress.wait_for(|now| now.backlog < journal::SEGMENT_BYTES);
        tokio::time::timeout(Duration::from_secs(20), quiet).await.expect("it is checkpointed").unwrap();
    });
}

#[test]
fn a_trimmed_log_is_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let account = open(directory.path()).unwrap();
    let container = with_container(&account);
    for id in 0..50 {
        upsert(&container, id % 5, 400, 100).unwrap();
    }
    // More than an hour later: old changes are trimmed, eight per write.
    for id in 0..50 {
        upsert(&container, id % 5, 400, 10_000).unwrap();
    }
    let account = reopened(account, directory.path());
    checkpointed(&account);
    reopened(account, directory.path());
}

#[test]
fn write_region_lags_and_pauses_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let open = || open_in(directory.path(), Fsync::Never, &["West US", "East US"], false);
    let account = open().unwrap();
    let container = with_container(&account);
    upsert(&container, 1, 10, 100).unwrap();
    account.fail_over("East US").unwrap();
    account.set_lag(None, None, "3ms".parse().unwrap()).unwrap();
    account.pause_replication("West US", Duration::from_secs(9)).unwrap();
    let account = reopened_by(account, open);
    let topology = Arc::clone(&account.regions.current());
    assert_eq!(
        (topology.hub(), topology.lag(RegionId(0), RegionId(1)).to_string()),
        (RegionId(1), "3ms".into())
    );
    // The paused region sees what was there when the pause began, and nothing since.
    let container = Arc::clone(account.catalog.snapshot().container("d", "c").unwrap());
    upsert_in(RegionId(1), &container, 2, 10, 100).unwrap();
    let read = topology.read_context(RegionId(0), ConsistencyLevel::Eventual, Duration::from_secs(100));
    let seen = |container: &ContainerEntry| -> usize {
        container.store.partitions().iter().map(|partition| partition.head(read).len()).sum()
    };
    assert_eq!(seen(&container), 1);
    account.resume_replication("West US", Duration::from_secs(1)).unwrap();
    account.fail_over("West US").unwrap();
    let account = reopened_by(account, open);
    let topology = Arc::clone(&account.regions.current());
    assert_eq!((topology.hub(), topology.region(RegionId(0)).paused_at), (RegionId(0), None));
    account.disk.as_ref().unwrap().journal.fail("test".to_owned());
    assert!(account.fail_over("East US").unwrap_err().to_string().contains("not stored"));
    assert_eq!(account.regions.current().hub(), RegionId(0));
}

#[test]
fn a_partition_failover_survives_a_restart_until_the_account_fails_over() {
    let directory = tempfile::tempdir().unwrap();
    let names = ["West US", "East US", "North Europe"];
    let with = |names: &[&str], allowed: bool| {
        let account = open_as(directory.path(), names, |topology| topology.with_partition_failover(allowed));
        account.unwrap()
    };
    let homes = |account: &Account| -> Vec<Option<String>> {
        let container = Arc::clone(account.catalog.snapshot().container("d", "c").unwrap());
        let topology = account.regions.current();
        let name = |region: RegionId| topology.region(region).name.clone();
        container.store.partitions().iter().map(|partition| partition.write_region().map(name)).collect()
    };
    let (east, none) = (Some("East US".to_owned()), None::<String>);
    let account = with(&names, true);
    let container = with_container(&account);
    upsert(&container, 1, 10, 100).unwrap();
    account.fail_over_partition("d", "c", 0, "East US").unwrap();
    assert_eq!(homes(&account), [east.clone(), none.clone()]);
    // Regions may have other numbers afterwards, and the children of a range stay in its write region.
    let account = reopened_by(account, || Ok(with(&["West US", "North Europe", "East US"], true)));
    assert_eq!(homes(&account), [east.clone(), none.clone()]);
    account.split_partition("d", "c", 0, None, Duration::ZERO).unwrap();
    let account = reopened_by(account, || Ok(with(&names, true)));
    assert_eq!(homes(&account), [east.clone(), east.clone(), none.clone()]);
    // A range that was failed back is in the account's write region.
    account.fail_over_partition("d", "c", 2, "West US").unwrap();
    let account = reopened_by(account, || Ok(with(&names, true)));
    assert_eq!(homes(&account), [none.clone(), east.clone(), none.clone()]);
    // Without partition failover the setting is ignored, and nothing is lost.
    account.disk.as_ref().unwrap().close_and_wait();
    let account = with(&names, false);
    assert_eq!(homes(&account), [none.clone(), none.clone(), none.clone()]);
    account.disk.as_ref().unwrap().close_and_wait();
    let account = with(&names, true);
    assert_eq!(homes(&account), [none.clone(), east, none.clone()]);
    // The account fails over, and with it every range: also when that is the last persisted change.
    let moved = |topology: &mut Topology| -> Result<(), DiskError> {
        topology.set_failover_count(topology.failover_count() + 1);
        Ok(())
    };
    account.regions.update(moved).unwrap();
    account.disk.as_ref().unwrap().close_and_wait();
    let account = with(&names, true);
    assert_eq!(homes(&account), [none.clone(), none.clone(), none.clone()]);
    account.fail_over_partition("d", "c", 3, "East US").unwrap();
    account.fail_over("North Europe").unwrap();
    assert_eq!(homes(&account), [none.clone(), none.clone(), none.clone()]);
    account.disk.as_ref().unwrap().journal.fail("test".to_owned());
    assert!(account.fail_over_partition("d", "c", 3, "East US").is_err());
    assert_eq!(homes(&account), [none.clone(), none.clone(), none]);
}

/// The ranges whose changes are on disk.
fn ranges_on_disk(account: &Account, path: &Path) -> std::collections::BTreeSet<u32> {
    let regions = account.regions.current().stored();
    account.disk.as_ref().unwrap().close_and_wait();
    let directory = Directory::open(path).unwrap();
    let trees = trees::Trees::open(directory.trees()).unwrap();
    let scanned = replay::scan(&directory.journal()).unwrap();
    let expected = directory.expected_journal(false).unwrap();
    let mut replay = scanned.replay(load::checkpointed(&trees).unwrap(), &expected, false).unwrap();
    let source = load::Source::new(&trees, std::mem::take(&mut replay.changes));
    let mut ranges = std::collections::BTreeSet::new();
    source
        .for_each_entry(Keyspace::Log, &[], &[0xFF; 30], |key, _| {
            ranges.insert(keys::read_log(key)?.0.partition);
            Ok(())
        })
        .unwrap();
    assert_eq!(regions.chains(), 1);
    ranges
}

#[test]
fn logs_of_replaced_ranges_are_removed_once_trimmed() {
    let directory = tempfile::tempdir().unwrap();
    let account = open(directory.path()).unwrap();
    let container = with_container(&account);
    for id in 0..20 {
        upsert(&container, id, 10, 100).unwrap();
    }
    let halves = container.store.split(0, None, Duration::ZERO).unwrap();
    upsert(&container, 1, 10, 100).unwrap();
    // Its descendants still have its changes in their logs.
    let account = reopened(account, directory.path());
    assert!(ranges_on_disk(&account, directory.path()).contains(&0));
    // More than an hour later they have trimmed their logs; also the deletion of something created there.
    let account = open(directory.path()).unwrap();
    let container = Arc::clone(account.catalog.snapshot().container("d", "c").unwrap());
    for id in 0..20 {
        delete(&container, id, 10_000);
    }
    for round in 0..40 {
        (100..110).for_each(|id| upsert(&container, id, 100, 20_000 + round * 10_000).unwrap());
    }
    let account = reopened(account, directory.path());
    checkpointed(&account);
    let account = reopened(account, directory.path());
    let remaining = ranges_on_disk(&account, directory.path());
    assert!(!remaining.contains(&0) && halves.iter().all(|half| remaining.contains(half)), "{remaining:?}");
    let account = open(directory.path()).unwrap();
    reopened(account, directory.path());
}
