//! Random writes to the store, checked against a model.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use protocol::container::ContainerProperties;
use protocol::lsn::Lsn;
use protocol::resource_id::{ContainerRid, DatabaseRid};
use sql::Value;

use super::transaction::document::ITEM_BYTES_MAX;
use super::*;
use crate::items::{ChangeKind, Item, Ordinal};
use crate::regions::{RegionId, Regions};

fn container(properties: &str, partitions: usize) -> Container {
    let properties = ContainerProperties::parse(properties.as_bytes()).unwrap();
    let rid = ContainerRid { database: DatabaseRid(1), container: 0x8000_0001 };
    Container::new(rid, &properties, Partitioning::of(partitions), Regions::single_region(), None)
}

fn at(now: u64) -> WriteContext {
    WriteContext { region: RegionId(0), now, uptime: Duration::from_secs(now) }
}

fn plain() -> Container {
    container(r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#, 3)
}

/// One write through the partition that owns the document.
fn write<T>(
    container: &Container,
    body: &str,
    now: u64,
    work: impl FnOnce(&mut Transaction<'_>, &Document) -> Result<T, WriteError>,
) -> Result<T, WriteError> {
    let document = Document::parse(body.as_bytes(), &container.schema(), now)?;
    container.write(&document.epk, at(now), |transaction| work(transaction, &document)).unwrap().1.result
}

fn find(container: &Container, body: &str, now: u64) -> Option<Arc<Item>> {
    let document = Document::parse(body.as_bytes(), &container.schema(), 0).unwrap();
    container.partition_of(&document.epk).latest_head().get_live(&document.epk, &document.id, now).cloned()
}

#[test]
fn a_created_item_is_read_back_with_its_system_properties() {
    let container = plain();
    let body = r#"{"id":"1","pk":"a","n":1.0,"_etag":"mine","list":[1,2]}"#;
    let written = write(&container, body, 1_700_000_000, |t, d| t.create(d)).unwrap();
    let stored = written.item.value();
    assert_eq!(stored.member("n").to_string(), "1");
    assert_eq!(stored.member("_ts"), &Value::from(1_700_000_000));
    assert_eq!(stored.member("_etag").as_str(), Some(written.item.etag_str()));
    assert!(stored.member("_self").as_str().unwrap().contains("/docs/"));
    let text = String::from_utf8(written.item.body().to_vec()).unwrap();
    assert!(text.starts_with(r#"{"id":"1","pk":"a","n":1,"list":[1,2],"_rid":""#), "{text}");
    assert_eq!(write(&container, body, 0, |t, d| t.create(d)).unwrap_err(), WriteError::Conflict);
}

#[test]
fn a_failed_transaction_leaves_no_trace() {
    let container = plain();
    write(&container, r#"{"id":"1","pk":"a"}"#, 0, |t, d| t.create(d)).unwrap();
    let partition = container
        .partition_of(&Document::parse(br#"{"id":"1","pk":"a"}"#, &container.schema(), 0).unwrap().epk);
    let before = partition.latest_state();
    let second = Document::parse(br#"{"id":"2","pk":"a"}"#, &container.schema(), 0).unwrap();
    let first = Document::parse(br#"{"id":"1","pk":"a"}"#, &container.schema(), 0).unwrap();
    let (_, commit) = container
        .write(&second.epk, at(0), |transaction| {
            transaction.create(&second)?;
            transaction.create(&first)
        })
        .unwrap();
    assert_eq!(commit.result.unwrap_err(), WriteError::Conflict);
    assert_eq!(commit.progress.lsn, before.lsn);
    assert!(Arc::ptr_eq(&before, &partition.latest_state()));
}

#[test]
fn each_write_is_one_lsn_and_a_batch_is_one() {
    let container = container(r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}"#, 1);
    let lsn = || container.partitions()[0].latest_state().lsn;
    let first = lsn();
    for id in 0..3 {
        write(&container, &format!(r#"{{"id":"{id}","pk":"a"}}"#), 0, |t, d| t.create(d)).unwrap();
    }
    assert_eq!(lsn(), Lsn(first.0 + 3));
    write(&container, r#"{"id":"9","pk":"a"}"#, 0, |t, d| {
        t.create(d).and_then(|_| t.upsert(d, Precondition::None))
    })
    .unwrap();
    assert_eq!(lsn(), Lsn(first.0 + 4));
}

#[test]
fn unique_keys_hold_within_a_logical_partition() {
    let container = container(
        r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/email"]}]}}"#,
        1,
    );
    let create = |body: &str| write(&container, body, 0, |t, d| t.create(d)).map(|_| ());
    assert_eq!(create(r#"{"id":"1","pk":"a","email":1}"#), Ok(()));
    assert_eq!(create(r#"{"id":"2","pk":"a","email":1.0}"#), Err(WriteError::UniqueConflict));
    assert_eq!(create(r#"{"id":"2","pk":"b","email":1}"#), Ok(()));
    assert_eq!(create(r#"{"id":"3","pk":"a"}"#), Ok(()));
    assert_eq!(create(r#"{"id":"4","pk":"a"}"#), Err(WriteError::UniqueConflict));
    let replace = |body: &str, id: &str| {
        write(&container, body, 0, |t, d| t.replace(id, d, Precondition::None)).map(|_| ())
    };
    assert_eq!(replace(r#"{"id":"1","pk":"a","email":1,"x":2}"#, "1"), Ok(()));
    assert_eq!(replace(r#"{"id":"3","pk":"a","email":1}"#, "3"), Err(WriteError::UniqueConflict));
}

#[test]
fn expired_items_are_gone_for_readers_at_once_and_purged_by_writers() {
    let container =
        container(r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":10}"#, 1);
    let short = r#"{"id":"short","pk":"a"}"#;
    write(&container, short, 100, |t, d| t.create(d)).unwrap();
    write(&container, r#"{"id":"long","pk":"a","ttl":50}"#, 100, |t, d| t.create(d)).unwrap();
    write(&container, r#"{"id":"ever","pk":"a","ttl":-1}"#, 100, |t, d| t.create(d)).unwrap();
    assert!(find(&container, short, 109).is_some());
    assert!(find(&container, short, 110).is_none());
    // The id is free again.
    write(&container, short, 111, |t, d| t.create(d)).unwrap();
    write(&container, r#"{"id":"other","pk":"a"}"#, 1000, |t, d| t.create(d)).unwrap();
    assert_eq!(container.usage().items, 2);
    let kinds: Vec<ChangeKind> = container.partitions()[0]
        .latest_state()
        .log
        .after(Lsn(1))
        .unwrap()
        .map(|change| change.kind)
        .collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == ChangeKind::Expire).count(), 3);
}

#[test]
fn invalid_documents_are_rejected_with_a_reason() {
    let schema = plain().schema();
    let rejected = |body: &str| Document::parse(body.as_bytes(), &schema, 0).unwrap_err().to_string();
    assert!(rejected("{").contains("payload"));
    assert!(rejected("[]").contains("not a JSON object"));
    assert!(rejected("{}").contains("'id; '"));
    assert!(rejected(r#"{"id":""}"#).contains("'1024'"));
    assert!(rejected(&format!(r#"{{"id":"{}"}}"#, "x".repeat(1024))).contains("'1024'"));
    assert!(rejected(r#"{"id":5}"#).contains("'1024'"));
    assert!(rejected(r#"{"id":"a\\b"}"#).contains(r"a\b"));
    assert!(rejected(&format!(r#"{{"id":"1","x":"{}"}}"#, "x".repeat(ITEM_BYTES_MAX))).contains("too large"));
}

#[test]
fn replacing_the_policy_rebuilds_the_index() {
    let container = plain();
    write(&container, r#"{"id":"1","pk":"a","x":5}"#, 0, |t, d| t.create(d)).unwrap();
    let space = index::IndexSpace::ROOT.member("x");
    let count =
        || container.partitions().iter().map(|p| p.latest_state().index.count(space).entries).sum::<u64>();
    assert_eq!(count(), 1);
    let replaced = ContainerProperties::parse(
        r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"indexingPolicy":{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/x/?"}]}}"#.as_bytes(),
    )
    .unwrap();
    // A document prepared under the old rules is stored under the new ones.
    let late = Document::parse(br#"{"id":"2","pk":"a","x":6}"#, &container.schema(), 0).unwrap();
    container.replace_properties(&replaced);
    assert_eq!(count(), 0);
    container.write(&late.epk, at(0), |t| t.create(&late)).unwrap().1.result.unwrap();
    assert_eq!(count(), 0);
}

#[derive(Clone, Debug)]
enum Step {
    Create(u8, u8, i8),
    Upsert(u8, u8, i8),
    Replace(u8, u8, i8),
    Delete(u8, u8),
}

fn step() -> impl Strategy<Value = Step> {
    let (key, id) = (0..3u8, 0..6u8);
    prop_oneof![
        (key.clone(), id.clone(), any::<i8>()).prop_map(|(k, i, v)| Step::Create(k, i, v)),
        (key.clone(), id.clone(), any::<i8>()).prop_map(|(k, i, v)| Step::Upsert(k, i, v)),
        (key.clone(), id.clone(), any::<i8>()).prop_map(|(k, i, v)| Step::Replace(k, i, v)),
        (key, id).prop_map(|(k, i)| Step::Delete(k, i)),
    ]
}

fn body(key: u8, id: u8, v: i8) -> String {
    format!(
        r#"{{"id":"{id}","pk":{key},"v":{v},"tags":[{},{}],"o":{{"s":"{}"}}}}"#,
        v / 2,
        v / 3,
        "x".repeat(v.unsigned_abs() as usize * 3)
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_writes_ends_where_the_model_does(steps in prop::collection::vec(step(), 1..60)) {
        let container = container(
            r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"indexingPolicy":{"compositeIndexes":[[{"path":"/v","order":"descending"},{"path":"/_ts"}]]}}"#,
            2,
        );
        let mut model: BTreeMap<(u8, u8), i8> = BTreeMap::new();
        for (now, step) in steps.iter().enumerate() {
            let now = now as u64;
            match *step {
                Step::Create(k, i, v) => {
                    let created = write(&container, &body(k, i, v), now, |t, d| t.create(d));
                    prop_assert_eq!(created.is_ok(), !model.contains_key(&(k, i)));
                    model.entry((k, i)).or_insert(v);
                }
                Step::Upsert(k, i, v) => {
                    let written = write(&container, &body(k, i, v), now, |t, d| t.upsert(d, Precondition::None)).unwrap();
                    prop_assert_eq!(written.previous.is_some(), model.insert((k, i), v).is_some());
                }
                Step::Replace(k, i, v) => {
                    let replaced = write(&container, &body(k, i, v), now, |t, d| t.replace(&i.to_string(), d, Precondition::None));
                    prop_assert_eq!(replaced.is_ok(), model.contains_key(&(k, i)));
                    model.entry((k, i)).and_modify(|old| *old = v);
                }
                Step::Delete(k, i) => {
                    let deleted = write(&container, &body(k, i, 0), now, |t, d| t.delete(&d.epk, &d.id, Precondition::None));
                    prop_assert_eq!(deleted.is_ok(), model.remove(&(k, i)).is_some());
                }
            }
        }
        let mut stored = BTreeMap::new();
        for partition in container.partitions().iter() {
            let (head, state) = (partition.latest_head(), partition.latest_state());
            let mut bytes = 0;
            for item in state.items_from(Ordinal(0)) {
                prop_assert!(partition.range.contains(&item.epk));
                prop_assert!(Arc::ptr_eq(item, head.get(&item.epk, &item.id).unwrap()));
                bytes += item.size() as u64;
                let value = item.value();
                let at = (value.member("pk").as_i64().unwrap() as u8, item.id.parse().unwrap());
                stored.insert(at, value.member("v").as_i64().unwrap() as i8);
            }
            prop_assert_eq!((bytes, state.len()), (head.bytes(), head.len()));
            // The index that was maintained write by write equals one that is built anew.
            let mut anew = PartitionState::clone(&state);
            anew.reindex(Arc::clone(&state.schema));
            prop_assert!(state.index == anew.index);
        }
        prop_assert_eq!(stored, model);
    }
}
