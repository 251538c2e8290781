//! Regions that are added while an account runs, and regions that are taken from the directory.

use super::*;

const LAG: Duration = Duration::from_secs(3);

/// Opens the directory as an account that names no regions of its own.
fn open_any(path: &Path) -> Account {
    open_source(path, false, RegionSource::Stored).unwrap()
}

fn open_source(path: &Path, multi_write: bool, source: RegionSource) -> Result<Account, OpenError> {
    let regions = vec![Region::new("South Central US", 0)];
    let topology = Topology::new(regions, multi_write, ConsistencyLevel::Session, "3s".parse().unwrap());
    let data = DataDir { fsync: Fsync::Never, ..DataDir::new(path) };
    open_from(data, topology.unwrap(), source)
}

fn names(account: &Account) -> Vec<String> {
    account.regions.current().regions().map(|(_, region)| region.name.clone()).collect()
}

/// How many items a region sees at an uptime.
fn seen(account: &Account, region: u8, uptime: Duration) -> usize {
    let read = account.regions.current().read_context(RegionId(region), ConsistencyLevel::Eventual, uptime);
    let container = Arc::clone(account.catalog.snapshot().container("d", "c").unwrap());
    let partitions = container.store.partitions();
    partitions.iter().map(|partition| partition.head(read).len()).sum()
}

#[test]
fn an_added_region_has_everything_and_follows_with_the_lag() {
    let directory = tempfile::tempdir().unwrap();
    let account = open_any(directory.path());
    let container = with_container(&account);
    upsert(&container, 1, 10, 100).unwrap();
    assert_eq!(account.extend_regions("East US", 0), Ok(RegionId(1)));
    assert_eq!(account.extend_regions("eastus", 0), Err(TopologyError::DuplicateName("eastus".to_owned())));
    assert_eq!(seen(&account, 1, Duration::ZERO), 1, "what was there before it was added");
    upsert(&container, 2, 10, 100).unwrap();
    assert_eq!((seen(&account, 0, Duration::ZERO), seen(&account, 1, Duration::ZERO)), (2, 1));
    assert_eq!(seen(&account, 1, LAG), 2);
    let account = reopened_by(account, || Ok(open_any(directory.path())));
    assert_eq!(names(&account), ["South Central US", "East US"]);
    assert_eq!(seen(&account, 1, Duration::ZERO), 2);
    account.fail_over("East US").unwrap();
    assert_eq!(account.regions.current().hub(), RegionId(1));
    let account =
        reopened_by(account, || open_source(directory.path(), false, RegionSource::StoredIfCount(2)));
    assert_eq!((names(&account).len(), account.regions.current().hub()), (2, RegionId(1)));
    let account =
        reopened_by(account, || open_source(directory.path(), false, RegionSource::StoredIfCount(3)));
    assert_eq!(names(&account), ["South Central US"], "the directory has two regions, not three");
}

#[test]
fn an_added_region_whose_replication_is_paused_misses_what_follows() {
    let directory = tempfile::tempdir().unwrap();
    let account = open_any(directory.path());
    let container = with_container(&account);
    upsert(&container, 1, 10, 100).unwrap();
    account.extend_regions("East US", 0).unwrap();
    account.pause_replication("East US", Duration::ZERO).unwrap();
    upsert(&container, 2, 10, 100).unwrap();
    assert_eq!(seen(&account, 1, LAG), 1);
    account.resume_replication("East US", LAG).unwrap();
    assert_eq!(seen(&account, 1, LAG + LAG), 2);
}

#[test]
fn write_regions_are_taken_from_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    let account = open_in(directory.path(), Fsync::Never, &["West US", "East US"], true).unwrap();
    with_container(&account);
    let account = reopened_by(account, || open_source(directory.path(), true, RegionSource::Stored));
    assert!(names(&account) == ["West US", "East US"] && account.regions.current().is_multi_write());
    account.disk.as_ref().unwrap().close();
    drop(account);
    let error = open_source(directory.path(), false, RegionSource::Stored).unwrap_err();
    assert!(matches!(error, OpenError::OtherRegions { multi_write: true, .. }), "{error}");
}

/// The items in the container, whatever entry of the catalog has it now.
fn current(account: &Account) -> Arc<ContainerEntry> {
    Arc::clone(account.catalog.snapshot().container("d", "c").unwrap())
}

#[test]
fn an_added_write_region_has_everything_writes_and_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let account = open_in(directory.path(), Fsync::Never, &["West US", "East US"], true).unwrap();
    let container = with_container(&account);
    for id in 0..20 {
        // Some are still on their way to the other region, and some were written in both.
        upsert_in(RegionId((id % 2) as u8), &container, id, 10, 100).unwrap();
        upsert_in(RegionId(1), &container, id / 4, 20, 101).unwrap();
    }
    account.pause_replication("East US", Duration::ZERO).unwrap();
    let paused = Err(TopologyError::ReplicationPaused("East US".to_owned()));
    assert_eq!(account.extend_regions("North Europe", 0), paused);
    account.resume_replication("East US", Duration::ZERO).unwrap();
    assert_eq!(account.extend_regions("North Europe", 0), Ok(RegionId(2)));
    assert_eq!([0, 1, 2].map(|region| seen(&account, region, Duration::ZERO)), [20, 20, 20]);
    let ids: Vec<u32> = current(&account).store.partitions().iter().map(|it| it.identity.id).collect();
    assert_eq!(ids, (0..ids.len() as u32).collect::<Vec<_>>(), "the same ranges");
    upsert_in(RegionId(2), &container, 30, 10, 200).unwrap();
    upsert_in(RegionId(0), &container, 31, 10, 200).unwrap();
    let all_regions = || open_source(directory.path(), true, RegionSource::Stored);
    let account = reopened_by(account, all_regions);
    assert_eq!(names(&account), ["West US", "East US", "North Europe"]);
    let later = Duration::from_secs(60);
    assert_eq!([0, 1, 2].map(|region| seen(&account, region, later)), [22, 22, 22]);
    let container = current(&account);
    upsert_in(RegionId(2), &container, 32, 10, 300).unwrap();
    let account = reopened_by(account, all_regions);
    assert_eq!([0, 1, 2].map(|region| seen(&account, region, later)), [23, 23, 23]);
}

#[test]
fn a_snapshot_from_before_a_write_region_was_added_is_restored_in_all_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let account = open_in(directory.path(), Fsync::Never, &["West US", "East US"], true).unwrap();
    let container = with_container(&account);
    (0..5).for_each(|id| upsert_in(RegionId(1), &container, id, 10, 100).unwrap());
    account.save_snapshot("before", Ticks(0)).unwrap();
    account.extend_regions("North Europe", 0).unwrap();
    (5..9).for_each(|id| upsert_in(RegionId(2), &container, id, 10, 200).unwrap());
    account.restore_snapshot("before").unwrap();
    assert_eq!([0, 1, 2].map(|region| seen(&account, region, Duration::ZERO)), [5, 5, 5]);
    upsert_in(RegionId(2), &current(&account), 20, 10, 300).unwrap();
    // And once more, with the container gone since.
    account.catalog.delete_container("d", "c", |_| Ok::<_, CatalogError>(())).unwrap();
    account.extend_regions("Japan East", 0).unwrap();
    account.restore_snapshot("before").unwrap();
    assert_eq!([0, 1, 2, 3].map(|region| seen(&account, region, Duration::ZERO)), [5, 5, 5, 5]);
    upsert_in(RegionId(3), &current(&account), 21, 10, 400).unwrap();
    let account = reopened_by(account, || open_source(directory.path(), true, RegionSource::Stored));
    assert_eq!(seen(&account, 3, Duration::from_secs(60)), 6);
}

#[test]
fn the_second_region_of_an_account_for_several_write_regions_writes_as_well() {
    let directory = tempfile::tempdir().unwrap();
    let one_region = || open_source(directory.path(), true, RegionSource::Stored);
    let account = one_region().unwrap();
    let container = with_container(&account);
    upsert(&container, 1, 10, 100).unwrap();
    assert!(!account.regions.current().is_multi_write());
    account.extend_regions("East US", 0).unwrap();
    assert!(account.regions.current().is_multi_write());
    upsert_in(RegionId(1), &container, 2, 10, 100).unwrap();
    upsert_in(RegionId(0), &container, 3, 10, 100).unwrap();
    let account = reopened_by(account, one_region);
    let later = Duration::from_secs(60);
    assert_eq!([0, 1].map(|region| seen(&account, region, later)), [3, 3]);
}
