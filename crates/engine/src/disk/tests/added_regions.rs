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
fn write_regions_are_taken_from_the_directory_and_none_is_added() {
    let directory = tempfile::tempdir().unwrap();
    let account = open_in(directory.path(), Fsync::Never, &["West US", "East US"], true).unwrap();
    with_container(&account);
    assert_eq!(account.extend_regions("North Europe", 0), Err(TopologyError::WriteRegionsAreFixed));
    let account = reopened_by(account, || open_source(directory.path(), true, RegionSource::Stored));
    assert!(names(&account) == ["West US", "East US"] && account.regions.current().is_multi_write());
    account.disk.as_ref().unwrap().close();
    drop(account);
    let error = open_source(directory.path(), false, RegionSource::Stored).unwrap_err();
    assert!(matches!(error, OpenError::OtherRegions { multi_write: true, .. }), "{error}");
}
