//! Restoring a snapshot of an account with a data directory: all of it is there afterwards, or nothing.

use super::damage::{copy_killed, files, record_starts};
use super::*;

fn container_of(account: &Account, name: &str) -> Arc<ContainerEntry> {
    Arc::clone(account.catalog.snapshot().container("d", name).unwrap())
}

fn named(name: &str) -> String {
    PLAIN.replace("\"c\"", &format!("\"{name}\""))
}

/// An account with a container `c`, and one of this name.
fn account_with(path: &Path, other: &str) -> Account {
    let account = open(path).unwrap();
    with_container(&account);
    account.catalog.create_container(new_container(&account, "d", &named(other)), NOW).unwrap();
    for id in 0..30 {
        upsert(&container_of(&account, "c"), id, 10, 100).unwrap();
        upsert(&container_of(&account, other), id, 20, 100).unwrap();
    }
    account
}

/// Changes everything that can be changed.
fn change(account: &Account, now: u64) {
    for id in 0..30 {
        match id % 3 {
            0 => upsert(&container_of(account, "c"), id, 33, now).unwrap(),
            1 => delete(&container_of(account, "c"), id, now),
            _ => upsert(&container_of(account, "c"), id + 100, 3, now).unwrap(),
        }
    }
    account.catalog.create_container(new_container(account, "d", &named("new")), NOW).unwrap();
    upsert(&container_of(account, "new"), 1, 10, now).unwrap();
}

/// What clients see, whatever the LSNs are by now: `_rid`s, entity tags, texts.
fn items(account: &Account) -> Vec<String> {
    let snapshot = Arc::clone(&account.catalog.snapshot());
    let mut seen: Vec<String> = Vec::new();
    for container in snapshot.containers() {
        seen.push(String::from_utf8(container.json.to_vec()).unwrap());
        let partitions = container.store.partitions();
        let states = partitions.iter().map(|partition| partition.latest_state());
        let mut items: Vec<String> = states
            .flat_map(|state| state.items_from(Ordinal(0)).cloned().collect::<Vec<_>>())
            .map(|item| format!("{:?} {:?}", item.ordinal, item.body()))
            .collect();
        items.sort();
        seen.extend(items);
    }
    seen
}

#[test]
fn a_restored_account_is_read_back_and_continues() {
    let directory = tempfile::tempdir().unwrap();
    let account = account_with(directory.path(), "other");
    account.save_snapshot("s", NOW).unwrap();
    let saved = items(&account);
    for round in 0..3 {
        change(&account, 200 + round);
        account.restore_snapshot("s").unwrap();
        assert_eq!(items(&account), saved, "round {round}");
    }
    let account = reopened(account, directory.path());
    assert_eq!(items(&account), saved);
    // No ordinal, LSN or entity tag occurs twice.
    change(&account, 300);
    let account = reopened(account, directory.path());
    // Also what is not checkpointed yet.
    for round in 0..60 {
        upsert(&container_of(&account, "other"), round % 9, 300, 400).unwrap();
    }
    checkpointed(&account);
    reopened(account, directory.path());
}

#[test]
fn the_change_log_around_a_restore_is_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let account = account_with(directory.path(), "other");
    account.save_snapshot("first", NOW).unwrap();
    change(&account, 200);
    account.restore_snapshot("first").unwrap();
    for id in 0..10 {
        upsert(&container_of(&account, "c"), id, 7, 210).unwrap();
    }
    account.save_snapshot("second", NOW).unwrap();
    change(&account, 220);
    account.restore_snapshot("second").unwrap();
    for id in 0..5 {
        upsert(&container_of(&account, "c"), id, 8, 230).unwrap();
    }
    let account = reopened(account, directory.path());
    checkpointed(&account);
    reopened(account, directory.path());
}

#[test]
fn changed_partitions_and_containers_are_restored() {
    let directory = tempfile::tempdir().unwrap();
    let account = account_with(directory.path(), "other");
    account.save_snapshot("s", NOW).unwrap();
    let saved = items(&account);
    let halves = container_of(&account, "c").store.split(0, None, Duration::ZERO).unwrap();
    change(&account, 200);
    account.restore_snapshot("s").unwrap();
    assert_eq!(items(&account), saved);
    let account = reopened(account, directory.path());
    assert!(container_of(&account, "c").store.partition_by_id(halves[0]).is_none());
    account.save_snapshot("again", NOW).unwrap();
    account.catalog.delete_container("d", "other", |_| Ok::<_, CatalogError>(())).unwrap();
    change(&account, 300);
    account.restore_snapshot("again").unwrap();
    assert_eq!(items(&account), saved);
    upsert(&container_of(&account, "other"), 1, 44, 310).unwrap();
    let account = reopened(account, directory.path());
    checkpointed(&account);
    let account = reopened(account, directory.path());
    upsert(&container_of(&account, "other"), 2, 44, 310).unwrap();
    reopened(account, directory.path());
}

#[test]
fn a_snapshot_newer_than_a_restored_one_can_be_restored() {
    for splits in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let account = account_with(directory.path(), "other");
        account.save_snapshot("older", NOW).unwrap();
        let older = items(&account);
        change(&account, 200);
        account.save_snapshot("newer", NOW).unwrap();
        let newer = items(&account);
        if splits {
            container_of(&account, "c").store.split(0, None, Duration::ZERO).unwrap();
        }
        account.restore_snapshot("older").unwrap();
        account.restore_snapshot("newer").unwrap();
        assert_eq!(items(&account), newer);
        account.restore_snapshot("older").unwrap();
        assert_eq!(items(&account), older);
        account.restore_snapshot("newer").unwrap();
        let account = reopened(account, directory.path());
        assert_eq!(items(&account), newer, "splits: {splits}");
        upsert(&container_of(&account, "c"), 1, 10, 300).unwrap();
        delete(&container_of(&account, "c"), 0, 300);
        reopened(account, directory.path());
    }
}

#[test]
fn a_torn_restore_did_not_happen() {
    let directory = tempfile::tempdir().unwrap();
    let account = open(directory.path()).unwrap();
    let container = with_container(&account);
    // Few enough for one file of the journal.
    (0..6).for_each(|id| upsert(&container, id, 10, 100).unwrap());
    account.save_snapshot("s", NOW).unwrap();
    let saved = items(&account);
    upsert(&container, 1, 20, 200).unwrap();
    delete(&container, 2, 200);
    upsert(&container, 9, 20, 200).unwrap();
    account.catalog.create_container(new_container(&account, "d", &named("new")), NOW).unwrap();
    let changed = items(&account);
    account.restore_snapshot("s").unwrap();
    let killed = tempfile::tempdir().unwrap();
    // The record is the last one in the newest file.
    let (name, bytes) = files(directory.path()).pop_last().unwrap();
    let starts = record_starts(&name, &bytes);
    let (before, after) = (starts[starts.len() - 2], starts[starts.len() - 1]);
    for torn_at in [after - 20, after - 40, (after + before) / 2, before + 1, before] {
        copy_killed(directory.path(), killed.path());
        let mut torn = bytes.clone();
        torn[torn_at..].fill(0);
        fs::write(killed.path().join("journal").join(name.file_name().unwrap()), torn).unwrap();
        let account = open(killed.path()).unwrap();
        assert_eq!(items(&account), changed, "torn at {torn_at}");
        assert_eq!(account.disk.as_ref().unwrap().health().truncated_tail.is_some(), torn_at > before);
    }
    copy_killed(directory.path(), killed.path());
    assert_eq!(items(&open(killed.path()).unwrap()), saved);
}

#[test]
fn a_restore_that_cannot_be_persisted_is_not_made() {
    let directory = tempfile::tempdir().unwrap();
    let account = account_with(directory.path(), "other");
    account.save_snapshot("s", NOW).unwrap();
    change(&account, 200);
    container_of(&account, "c").store.split(0, None, Duration::ZERO).unwrap();
    let before = everything(&account);
    account.disk.as_ref().unwrap().journal.fail("test".to_owned());
    let error = account.restore_snapshot("s").unwrap_err().to_string();
    assert!(error.contains("not stored"), "{error}");
    assert_eq!(everything(&account), before);
}

#[test]
fn a_restore_writes_only_the_difference() {
    let directory = tempfile::tempdir().unwrap();
    let account = open(directory.path()).unwrap();
    let container = with_container(&account);
    for id in 0..200 {
        upsert(&container, id, 1_000, 100).unwrap();
    }
    account.save_snapshot("s", NOW).unwrap();
    upsert(&container, 7, 5, 100).unwrap();
    let written = |account: &Account| account.disk.as_ref().unwrap().journal.bytes_written();
    let before = written(&account);
    account.restore_snapshot("s").unwrap();
    let bytes = written(&account) - before;
    // One item of a thousand bytes, and its neighbours in a leaf at the most.
    assert!(bytes < 3_000, "{bytes} bytes");
}

#[test]
fn multi_write_replicas_are_restored() {
    let directory = tempfile::tempdir().unwrap();
    let names = ["West US", "East US"];
    let open = || open_in(directory.path(), Fsync::Never, &names, true);
    let account = open().unwrap();
    let container = with_container(&account);
    let write = |id: u32, region: u8, fill: usize| {
        let text = format!(r#"{{"id":"{id}","pk":"a","text":"{}"}}"#, "x".repeat(fill));
        let document = Document::parse(text.as_bytes(), &container.store.schema(), 100).unwrap();
        let write = WriteContext { region: RegionId(region), ..write_at(100) };
        let (_, commit) =
            container.store.write(&document.epk, write, |t| t.upsert(&document, Precondition::None)).unwrap();
        commit.result.unwrap();
    };
    (0..10).for_each(|id| write(id, (id % 2) as u8, 5));
    account.save_snapshot("s", NOW).unwrap();
    let saved = items(&account);
    (5..15).for_each(|id| write(id, (id % 2) as u8, 9));
    account.restore_snapshot("s").unwrap();
    assert_eq!(items(&account), saved);
    write(1, 1, 6);
    let account = reopened_by(account, open);
    let split = container_of(&account, "c").store.split(0, None, Duration::ZERO).unwrap();
    account.save_snapshot("t", NOW).unwrap();
    container_of(&account, "c").store.merge(&split, Duration::ZERO).unwrap();
    account.restore_snapshot("t").unwrap();
    reopened_by(account, open);
}

/// Writes to an item of one container, and then of the other, from one region.
fn write_both(containers: &[Arc<ContainerEntry>], region: u8, round: u32) {
    for container in containers {
        let text = format!(r#"{{"id":"{}","pk":"a{region}","round":{round}}}"#, round % 5);
        let document = Document::parse(text.as_bytes(), &container.store.schema(), 100).unwrap();
        let write = WriteContext { region: RegionId(region), ..write_at(100) };
        let work = |t: &mut crate::store::Transaction<'_>| match round % 7 {
            6 => t.delete(&document.epk, &document.id, Precondition::None).map(drop),
            _ => t.upsert(&document, Precondition::None).map(drop),
        };
        match container.store.write(&document.epk, write, work).unwrap().1.result {
            Ok(()) | Err(WriteError::NotFound) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn concurrent_writers_write_before_or_after_a_restore() {
    for multi_write in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let open = || open_in(directory.path(), Fsync::Never, &["West US", "East US"], multi_write);
        let account = open().unwrap();
        with_container(&account);
        account.catalog.create_container(new_container(&account, "d", &named("other")), NOW).unwrap();
        let containers = [container_of(&account, "c"), container_of(&account, "other")];
        (0..10).for_each(|round| write_both(&containers, 0, round));
        account.save_snapshot("s", NOW).unwrap();
        std::thread::scope(|scope| {
            for region in [0, u8::from(multi_write)] {
                let containers = &containers;
                scope.spawn(move || (0..60).for_each(|round| write_both(containers, region, round)));
            }
            for round in 0..8 {
                account.restore_snapshot("s").unwrap();
                if round % 5 == 2 {
                    account.save_snapshot("s", NOW).unwrap();
                    let first = containers[0].store.partitions()[0].identity.id;
                    containers[0].store.split(first, None, Duration::ZERO).unwrap();
                }
            }
        });
        let account = reopened_by(account, open);
        (200..210).for_each(|round| {
            write_both(&[container_of(&account, "c"), container_of(&account, "other")], 0, round);
        });
        reopened_by(account, open);
    }
}
