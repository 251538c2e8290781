//! Conflicts, `…/conflicts`: writes that lost against another region's, for containers with custom resolution.
//!
//! With one write region there are no conflicts, and last-writer-wins resolves them by itself: the feed
//! exists and is empty.

use bytes::Bytes;
use protocol::partition_range::RangeId;
use protocol::resource_id::ItemRid;
use serde_json::json;

use super::feed::Feed;
use super::{items, metadata_query};
use crate::request::{Call, ConflictVerb};
use crate::response::{Reply, ServiceError};
use engine::catalog::ContainerEntry;
use engine::store::{Conflict, Partition};

/// Handles an operation on a container's conflicts.
pub(crate) fn handle(
    call: &Call<'_>,
    container: &ContainerEntry,
    verb: ConflictVerb<'_>,
) -> Result<Reply, ServiceError> {
    let feed = Feed { parent: &container.system.rid, plural: "Conflicts" };
    match verb {
        ConflictVerb::List => {
            let mut conflicts = all(call, container);
            if call.headers.is_reversed()? {
                conflicts.reverse();
            }
            Ok(feed.reply(conflicts.iter()))
        }
        ConflictVerb::Query => {
            let headers = call.headers;
            if headers.partition_key.is_none() && headers.partition_key_range_id.is_none() {
                items::check_cross_partition(headers)?;
            }
            let conflicts = all(call, container);
            metadata_query::run_query(call, feed, conflicts.iter())
        }
        ConflictVerb::Read(id) => {
            let (partition, number) = find(container, &id).ok_or_else(ServiceError::not_found)?;
            // Reading the replica applies the writes that have arrived, which may resolve or add conflicts.
            drop(partition.head(call.read_context));
            let conflicts = partition.conflicts().ok_or_else(ServiceError::not_found)?;
            let conflict = conflicts.all().find(|conflict| conflict.number == number);
            conflict
                .map(|conflict| Reply::ok(to_json(container, &partition, conflict)))
                .ok_or_else(ServiceError::not_found)
        }
        ConflictVerb::Delete(id) => {
            let (partition, number) = find(container, &id).ok_or_else(ServiceError::not_found)?;
            if partition.remove_conflict(number)? {
                Ok(Reply::no_content())
            } else {
                Err(ServiceError::not_found())
            }
        }
    }
}

fn all(call: &Call<'_>, container: &ContainerEntry) -> Vec<Bytes> {
    let partitions = container.store.partitions();
    let of_one = |partition: &std::sync::Arc<Partition>| -> Vec<Bytes> {
        drop(partition.head(call.read_context));
        let conflicts = partition.conflicts();
        let conflicts = conflicts.iter().flat_map(|conflicts| conflicts.all());
        conflicts.map(|conflict| to_json(container, partition, conflict)).collect()
    };
    partitions.iter().flat_map(of_one).collect()
}

/// Finds the conflict with the id `{range}-{number}`.
fn find(container: &ContainerEntry, id: &str) -> Option<(std::sync::Arc<Partition>, u64)> {
    let (range, number) = id.split_once('-')?;
    Some((container.store.partition(range)?, number.parse().ok()?))
}

fn to_json(container: &ContainerEntry, partition: &Partition, conflict: &Conflict) -> Bytes {
    let source = conflict.item.as_ref().or(conflict.winner.as_ref());
    let source = source.map(|item| ItemRid { container: container.rid, ordinal: item.ordinal.0 }.to_string());
    let content = conflict.item.as_ref().map(|item| String::from_utf8_lossy(item.body_bytes()).into_owned());
    let id = format!("{}-{}", RangeId(partition.identity.id), conflict.number);
    let resource = json!({
        "id": id,
        "_rid": id,
        "_self": format!("{}conflicts/{id}/", container.system.self_link),
        "_etag": format!("\"{id}\""),
        "_ts": conflict.item.as_ref().map_or(0, |item| item.modified_at),
        "operationType": conflict.operation,
        "resourceType": "document",
        "sourceResourceId": source.unwrap_or_default(),
        "content": content.unwrap_or_default(),
    });
    resource.to_string().into()
}
