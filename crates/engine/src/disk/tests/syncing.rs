//! When a write is on the disk, and what happens when it cannot get there.

use super::*;

#[test]
fn always_waits_for_the_disk_and_one_sync_serves_many() {
    let directory = tempfile::tempdir().unwrap();
    let account = open_with(directory.path(), Fsync::Always).unwrap();
    let container = with_container(&account);
    let disk = Arc::clone(account.disk.as_ref().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let tickets: Vec<_> = (0..20)
        .map(|id| {
            upsert(&container, id, 10, 100).unwrap();
            disk.pending_sync_of_everything()
        })
        .collect();
    runtime.block_on(async {
        for ticket in tickets.into_iter().flatten() {
            disk.wait_durable(ticket).await.unwrap();
        }
        // A sync mark has been written since, which is not synced itself; no response may wait for it.
        assert_eq!(disk.pending_sync_of_everything(), None);
    });
    assert!(disk.journal.progress.borrow().synced >= 20);
    disk.close();
    assert_eq!(
        open_with(directory.path(), Fsync::Interval)
            .unwrap()
            .disk
            .as_ref()
            .unwrap()
            .pending_sync_of_everything(),
        None
    );
}

#[test]
fn a_write_that_cannot_be_persisted_is_not_made() {
    let directory = tempfile::tempdir().unwrap();
    let account = open(directory.path()).unwrap();
    let container = with_container(&account);
    upsert(&container, 1, 10, 100).unwrap();
    let before = everything(&account);
    account.disk.as_ref().unwrap().journal.fail("test".to_owned());
    let io = upsert(&container, 2, 10, 100).unwrap_err();
    assert!(io.to_string().contains("not stored"), "{io}");
    assert!(matches!(account.catalog.create_database("x", None, NOW), Err(CatalogError::NotPersisted(_))));
    assert!(container.store.split(0, None, Duration::ZERO).is_err());
    assert_eq!(everything(&account), before);
}
