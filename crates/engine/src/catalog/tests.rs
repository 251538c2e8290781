//! Tests of lookups and changes of the catalog.

use std::sync::Arc;

use protocol::container::{ContainerProperties, PartitionKeyDefinition};
use protocol::throughput::Throughput;

use super::*;
use crate::regions::Regions;
use crate::store::Partitioning;
use clock::Ticks;

const NOW: Ticks = Ticks(1_700_000_000 * 10_000_000);

fn container<'a>(database: &'a str, id: &str) -> NewContainer<'a> {
    let key = PartitionKeyDefinition::hash("/pk").unwrap();
    NewContainer {
        database,
        properties: ContainerProperties::new(id, key),
        throughput: Some(Throughput::Manual(400)),
        partitions: Partitioning::of(1),
        regions: Regions::single_region(),
    }
}

#[test]
fn a_snapshot_is_immutable() {
    let catalog = Catalog::new(1);
    catalog.create_database("d", None, NOW).unwrap();
    let before = catalog.snapshot();
    catalog.create_container(container("d", "c"), NOW).unwrap();
    assert_eq!(before.container("d", "c").err(), Some(CatalogError::NotFound));
    assert!(catalog.snapshot().container("d", "c").is_ok());
    catalog.delete_database("d", |_| Ok::<_, CatalogError>(())).unwrap();
    assert_eq!(catalog.snapshot().container("d", "c").err(), Some(CatalogError::OwnerNotFound));
}

#[test]
fn a_failed_change_changes_nothing() {
    let catalog = Catalog::new(1);
    catalog.create_database("d", None, NOW).unwrap();
    catalog.create_container(container("d", "c"), NOW).unwrap();
    let before = Arc::clone(&catalog.snapshot());
    assert_eq!(catalog.create_database("d", None, NOW).err(), Some(CatalogError::AlreadyExists));
    assert_eq!(catalog.create_container(container("d", "c"), NOW).err(), Some(CatalogError::AlreadyExists));
    assert_eq!(catalog.create_container(container("x", "c"), NOW).err(), Some(CatalogError::OwnerNotFound));
    let refused = catalog.delete_container("d", "c", |_| Err::<(), _>(CatalogError::AlreadyExists));
    assert_eq!(refused.err(), Some(CatalogError::AlreadyExists));
    assert!(Arc::ptr_eq(&before, &catalog.snapshot()), "nothing was published");
}

#[test]
fn concurrent_writers_lose_no_update() {
    let catalog = Catalog::new(1);
    catalog.create_database("d", None, NOW).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let catalog = &catalog;
            scope.spawn(move || {
                for index in 0..50 {
                    catalog.create_container(container("d", &format!("{writer}-{index}")), NOW).unwrap();
                }
            });
        }
    });
    let snapshot = catalog.snapshot();
    let rids: std::collections::BTreeSet<_> =
        snapshot.database("d").unwrap().containers_after(None).map(|entry| entry.rid).collect();
    assert_eq!(rids.len(), 200, "every container is there, under an id of its own");
    assert_eq!(snapshot.offers_after(None).count(), 200);
}

#[test]
fn a_name_that_looks_like_a_rid_still_works() {
    let catalog = Catalog::new(1);
    let rid = catalog.create_database("first", None, NOW).unwrap().system.rid.clone();
    // No database has this `_rid`, so it is a name.
    catalog.create_database("AAAA7w==", None, NOW).unwrap();
    let snapshot = catalog.snapshot();
    assert_eq!(snapshot.database(&rid).unwrap().id, "first");
    assert_eq!(snapshot.database("AAAA7w==").unwrap().id, "AAAA7w==");
}

#[test]
fn paths_in_headers_are_ascii() {
    let catalog = Catalog::new(1);
    catalog.create_database("d", None, NOW).unwrap();
    let entry = catalog.create_container(container("d", "Validate 中文"), NOW).unwrap();
    assert_eq!(entry.alt_content_path, "dbs/d/colls/Validate %E4%B8%AD%E6%96%87");
    assert_eq!(entry.content_path, entry.system.rid.as_str());
}

#[test]
fn a_replaced_container_keeps_its_id_and_its_items() {
    let catalog = Catalog::new(1);
    catalog.create_database("d", None, NOW).unwrap();
    let old = catalog.create_container(container("d", "c"), NOW).unwrap();
    let new = catalog
        .replace_container("d", "c", NOW, |current| {
            Ok::<_, CatalogError>(ContainerProperties {
                default_ttl: Some(5),
                ..ContainerProperties::clone(&current.properties)
            })
        })
        .unwrap();
    assert_eq!((new.rid, new.offer), (old.rid, old.offer));
    assert_ne!(new.system.etag, old.system.etag);
    assert!(Arc::ptr_eq(&new.store, &old.store));
    assert_eq!(catalog.snapshot().container("d", "c").unwrap().properties.default_ttl, Some(5));
}
