//! `GET …/colls/{container}`.

use bytes::Bytes;
use protocol::headers as name;

use super::quota;
use crate::handlers::{check_container_rid, condition};
use crate::request::{Call, ContainerIds, RequestHeaders};
use crate::response::{Reply, ServiceError};
use engine::catalog::ContainerEntry;

/// Reads a container's properties.
pub(crate) fn read(call: &Call<'_>, ids: &ContainerIds<'_>) -> Result<Reply, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    let container = snapshot.container(&ids.database, &ids.container)?;
    call.principal.check_read(container)?;
    check_container_rid(call.headers, container)?;
    if let Some(reply) = condition::not_modified(call.headers, &container.system) {
        return Ok(reply);
    }
    let asked = call.headers.populate_partition_statistics;
    let body = match RequestHeaders::flag(asked, name::POPULATE_PARTITION_STATISTICS)? {
        true => with_statistics(container),
        false => container.json.clone(),
    };
    let reply = Reply::ok(body).version(&container.system);
    quota::add(reply, call.headers, container)
}

/// The properties, and how much each range holds. Which keys are large is not worked out.
fn with_statistics(container: &ContainerEntry) -> Bytes {
    let ranges: Vec<_> = container
        .store
        .partitions()
        .iter()
        .map(|partition| {
            let state = partition.newest();
            serde_json::json!({
                "id": partition.identity.id.to_string(),
                "sizeInKB": state.bytes().div_ceil(1024),
                "documentCount": state.len(),
                "partitionKeys": [],
            })
        })
        .collect();
    let properties = container.json.strip_suffix(b"}").expect("a container's properties are an object");
    let statistics = serde_json::Value::from(ranges).to_string();
    [properties, b",\"statistics\":", statistics.as_bytes(), b"}"].concat().into()
}
