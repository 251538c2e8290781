//! An account with a data directory whose regions all write: replicas, messages in flight, and conflicts
//! survive.

use std::collections::BTreeMap;

use super::*;
use crate::regions::{ReadContext, StalenessBound};

const NAMES: [&str; 3] = ["West US", "East US", "North Europe"];
/// Longer than any message is in flight.
const LATER: Duration = Duration::from_secs(1_000);

fn open_multi_write(path: &Path) -> Result<Account, OpenError> {
    open_in(path, Fsync::Never, &NAMES, true)
}

fn container_of(account: &Account) -> Arc<ContainerEntry> {
    Arc::clone(account.catalog.snapshot().container("d", "c").unwrap())
}

/// An account with a container that sends conflicts to the feed, or resolves them by last writer wins.
fn multi_write_account_with(path: &Path, custom: bool) -> Account {
    let account = open_multi_write(path).unwrap();
    account.catalog.create_database("d", None, NOW).unwrap();
    let policy = if custom { r#","conflictResolutionPolicy":{"mode":"Custom"}}"# } else { "}" };
    let body = PLAIN.strip_suffix('}').unwrap().to_owned() + policy;
    account.catalog.create_container(new_container(&account, "d", &body), NOW).unwrap();
    account
}

fn at(region: u8, milliseconds: u64) -> WriteContext {
    let uptime = Duration::from_millis(milliseconds);
    WriteContext { region: RegionId(region), now: 100 + milliseconds, uptime }
}

/// Creates or replaces an item in a region.
fn put(account: &Account, write: WriteContext, id: u32, value: u32) -> Result<(), WriteError> {
    let container = container_of(account);
    let text = format!(r#"{{"id":"{id}","pk":"{}","value":{value}}}"#, id % 7);
    let document = Document::parse(text.as_bytes(), &container.store.schema(), write.now)?;
    let written = container.store.write(&document.epk, write, |t| t.upsert(&document, Precondition::None));
    written.unwrap().1.result.map(drop)
}

fn remove(account: &Account, write: WriteContext, id: u32) -> Result<(), WriteError> {
    let container = container_of(account);
    let text = format!(r#"{{"id":"{id}","pk":"{}"}}"#, id % 7);
    let document = Document::parse(text.as_bytes(), &container.store.schema(), write.now)?;
    let delete = |t: &mut crate::store::Transaction<'_>| {
        t.delete(&document.epk, &document.id, Precondition::None).map(drop)
    };
    container.store.write(&document.epk, write, delete).unwrap().1.result
}

/// Applies the messages that have arrived at a region.
fn inspect(account: &Account, region: u8, uptime: Duration) {
    let read = ReadContext {
        region: RegionId(region),
        staleness: StalenessBound::Newest,
        uptime,
        enforces_session_token: true,
    };
    container_of(account).store.partitions().iter().for_each(|partition| drop(partition.head(read)));
}

/// The entity tag of each item in each region, when everything has arrived.
fn resolved_tags(account: &Account) -> Vec<BTreeMap<String, String>> {
    let regions = 0..NAMES.len() as u8;
    regions.clone().for_each(|region| inspect(account, region, LATER));
    let tags = |region: u8| {
        let partitions = container_of(account).store.partitions();
        let chains =
            partitions.iter().map(|partition| partition.every_chain()[usize::from(region)].1.clone());
        let items = chains.flat_map(|state| state.items_from(Ordinal(0)).cloned().collect::<Vec<_>>());
        items.map(|item| (item.id.to_string(), item.etag_str().to_owned())).collect()
    };
    regions.map(tags).collect()
}

#[track_caller]
fn reopened_multi_write(account: Account, path: &Path) -> Account {
    reopened_by(account, || open_multi_write(path))
}

#[test]
fn every_region_continues_and_receives_messages_in_flight() {
    let directory = tempfile::tempdir().unwrap();
    let account = multi_write_account_with(directory.path(), false);
    put(&account, at(0, 1), 1, 10).unwrap();
    put(&account, at(1, 1), 2, 20).unwrap();
    put(&account, at(2, 2), 3, 30).unwrap();
    // The hub and the second region have applied it; the third has not.
    inspect(&account, 1, Duration::from_millis(70));
    put(&account, at(2, 71), 1, 11).unwrap();
    put(&account, at(1, 72), 1, 12).unwrap();
    remove(&account, at(1, 73), 2).unwrap();
    let account = reopened_multi_write(account, directory.path());
    let account = reopened_multi_write(account, directory.path());
    let tags = resolved_tags(&account);
    assert_eq!(tags[0].keys().collect::<Vec<_>>(), ["1", "3"]);
    assert!(tags.iter().all(|region| *region == tags[0]), "{tags:?}");
    let account = reopened_multi_write(account, directory.path());
    assert_eq!(resolved_tags(&account), tags);
    // Later writes continue the history: no entity tag occurs twice.
    put(&account, at(1, 2_000), 9, 1).unwrap();
    put(&account, at(2, 2_000), 8, 1).unwrap();
    let after = resolved_tags(&account);
    assert!(after.iter().all(|region| region.len() == 4 && *region == after[0]), "{after:?}");
}

#[test]
fn conflicts_keep_their_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let account = multi_write_account_with(directory.path(), true);
    for id in 0..6 {
        put(&account, at(1, 1), id, 1).unwrap();
        put(&account, at(2, 2), id, 2).unwrap();
    }
    inspect(&account, 0, Duration::from_millis(40));
    let conflicts = |account: &Account| -> Vec<String> {
        let partitions = container_of(account).store.partitions();
        let all = partitions.iter().flat_map(|partition| {
            let conflicts = partition.conflicts().unwrap();
            conflicts
                .all()
                .map(|conflict| format!("{} {conflict:?}", partition.identity.id))
                .collect::<Vec<_>>()
        });
        all.collect()
    };
    let published = conflicts(&account);
    assert_eq!(published.len(), 6, "{published:?}");
    let account = reopened_multi_write(account, directory.path());
    assert_eq!(conflicts(&account), published);
    resolved_tags(&account);
    assert_eq!(conflicts(&account), published, "nothing is resolved twice");
    // The newest conflict is removed, and its number is not assigned again.
    let partition = container_of(&account).store.partitions()[0].clone();
    let newest = partition.conflicts().unwrap().all().last().unwrap().number;
    assert!(partition.remove_conflict(newest).unwrap() && !partition.remove_conflict(newest).unwrap());
    let account = reopened_multi_write(account, directory.path());
    assert_eq!(conflicts(&account).len(), 5);
    for id in 0..6 {
        put(&account, at(1, 3_000), id, 3).unwrap();
        put(&account, at(2, 3_000), id, 4).unwrap();
    }
    resolved_tags(&account);
    let partition = container_of(&account).store.partitions()[0].clone();
    let numbers: Vec<u64> = partition.conflicts().unwrap().all().map(|conflict| conflict.number).collect();
    assert!(numbers.iter().filter(|number| **number >= newest).all(|number| *number > newest), "{numbers:?}");
    reopened_multi_write(account, directory.path());
}

#[test]
fn multi_write_splits_and_merges_are_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let account = multi_write_account_with(directory.path(), true);
    for id in 0..20 {
        put(&account, at((id % 3) as u8, u64::from(id)), id, 1).unwrap();
        put(&account, at(((id + 1) % 3) as u8, u64::from(id)), id, 2).unwrap();
    }
    let halves = container_of(&account).store.split(0, None, Duration::ZERO).unwrap();
    let account = reopened_multi_write(account, directory.path());
    for id in 0..20 {
        put(&account, at((id % 3) as u8, 500 + u64::from(id)), id, 3).unwrap();
    }
    let account = reopened_multi_write(account, directory.path());
    container_of(&account).store.merge(&halves, Duration::ZERO).unwrap();
    let account = reopened_multi_write(account, directory.path());
    put(&account, at(2, 900), 100, 1).unwrap();
    let tags = resolved_tags(&account);
    assert!(tags.iter().all(|region| region.len() == 21 && *region == tags[0]), "{tags:?}");
    reopened_multi_write(account, directory.path());
}

#[test]
fn write_regions_must_match_when_it_is_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let account = multi_write_account_with(directory.path(), false);
    put(&account, at(1, 1), 1, 1).unwrap();
    drop(account);
    let other: [(&[&str], bool); 3] =
        [(&NAMES, false), (&NAMES[..2], true), (&["East US", "West US", "North Europe"], true)];
    for (names, multi_write) in other {
        let error = open_in(directory.path(), Fsync::Never, names, multi_write).unwrap_err();
        assert!(matches!(error, OpenError::OtherRegions { .. }), "{error}");
        assert!(error.to_string().contains("North Europe") && error.advice().contains("--multi-write"));
    }
    drop(open_multi_write(directory.path()).unwrap());
    let single = tempfile::tempdir().unwrap();
    with_container(&open(single.path()).unwrap());
    let error = open_multi_write(single.path()).unwrap_err();
    assert!(error.advice().contains("leave out --multi-write"), "{error}");
    let empty = tempfile::tempdir().unwrap();
    drop(open(empty.path()).unwrap());
    drop(open_multi_write(empty.path()).unwrap());
}

#[test]
fn a_message_that_cannot_be_persisted_stays_queued() {
    let directory = tempfile::tempdir().unwrap();
    let account = multi_write_account_with(directory.path(), false);
    put(&account, at(1, 1), 1, 1).unwrap();
    let before = everything(&account);
    account.disk.as_ref().unwrap().journal.fail("test".to_owned());
    inspect(&account, 2, LATER);
    assert!(put(&account, at(2, 5), 2, 1).unwrap_err().to_string().contains("not stored"));
    assert!(container_of(&account).store.split(0, None, Duration::ZERO).is_err());
    assert!(account.save_snapshot("s", NOW).is_err(), "what is on its way cannot arrive");
    assert_eq!(everything(&account), before);
    account.disk.as_ref().unwrap().close();
    let account = open_multi_write(directory.path()).unwrap();
    assert!(resolved_tags(&account).iter().all(|region| region.len() == 1));
}

#[test]
fn messages_leave_the_disk_when_every_region_has_them() {
    let directory = tempfile::tempdir().unwrap();
    let account = multi_write_account_with(directory.path(), false);
    for id in 0..30 {
        put(&account, at((id % 3) as u8, u64::from(id)), id, 1).unwrap();
    }
    resolved_tags(&account);
    account.disk.as_ref().unwrap().close();
    let regions = account.regions.current().stored();
    drop(account);
    let settings = DataDir::new(directory.path());
    let (_disk, opened) = Disk::open(&settings, &regions, RegionSource::Configured).unwrap();
    let entries = opened.containers.values().flat_map(|read| read.replication.values()).flatten();
    let messages = entries.filter(|(entry, _)| matches!(entry, ReplicationEntry::Message(..))).count();
    // The last of each partition stays until another one comes.
    assert!(messages <= 2, "{messages} messages");
}

#[test]
fn messages_to_a_paused_region_stay_queued() {
    let directory = tempfile::tempdir().unwrap();
    let account = multi_write_account_with(directory.path(), false);
    put(&account, at(0, 1), 1, 1).unwrap();
    account.pause_replication("North Europe", Duration::from_millis(2)).unwrap();
    account.set_lag(None, None, Lag::NONE).unwrap();
    let account = reopened_multi_write(account, directory.path());
    let counts =
        |account: &Account| -> Vec<usize> { resolved_tags(account).iter().map(BTreeMap::len).collect() };
    assert_eq!(counts(&account), [1, 1, 0]);
    put(&account, at(1, 5), 2, 1).unwrap();
    let account = reopened_multi_write(account, directory.path());
    assert_eq!(counts(&account), [2, 2, 0]);
    account.resume_replication("North Europe", Duration::from_millis(6)).unwrap();
    assert_eq!(counts(&account), [2, 2, 2]);
    reopened_multi_write(account, directory.path());
}
