//! Containers: `/dbs/{database}/colls` and `/dbs/{database}/colls/{container}`.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use protocol::container::{ContainerProperties, INVALID_INPUT};
use protocol::headers as name;
use protocol::resource_id::ContainerRid;
use protocol::throughput::Throughput;
use sql::ComputedProperty;
use sql::ast::Selection;

use super::feed::{Feed, FeedEntry, parse_position};
use super::{check_container_rid, condition, metadata_query, offers};
use crate::request::{Call, ContainerIds, FeedVerb, RequestHeaders, ResourceVerb};
use crate::response::{QUOTA, QuotaUsage, Reply, ServiceError};
use engine::catalog::{ContainerEntry, DatabaseEntry, ListPosition, NewContainer};
use engine::charge::throughput::{THROUGHPUT_DEFAULT, initial_partition_count, shared_partition_count};
use engine::store::Partitioning;

/// Request units of creating, replacing or deleting a container.
const WRITE_CHARGE: f64 = 4.95;

/// Handles an operation on a database's containers.
pub(crate) fn handle_feed(call: &Call<'_>, database: &str, verb: FeedVerb) -> Result<Reply, ServiceError> {
    match verb {
        FeedVerb::List => list(call, database),
        FeedVerb::Query => query(call, database),
        FeedVerb::Create => create(call, database),
        FeedVerb::Upsert => Err(ServiceError::bad_request("A container cannot be upserted.")),
    }
}

/// Handles an operation on one container.
pub(crate) fn handle(
    call: &Call<'_>,
    ids: &ContainerIds<'_>,
    verb: ResourceVerb,
) -> Result<Reply, ServiceError> {
    match verb {
        ResourceVerb::Read => read(call, ids),
        ResourceVerb::Replace => replace(call, ids),
        ResourceVerb::Delete => delete(call, ids),
    }
}

/// `GET …/colls`: lists the containers of a database, oldest first.
fn list(call: &Call<'_>, database: &str) -> Result<Reply, ServiceError> {
    let database = find_database(call, database)?;
    let position: ListPosition<ContainerRid> = parse_position(call.headers)?;
    let containers = database.containers_after(position);
    container_feed(&database).page(
        call,
        containers.map(|entry| FeedEntry { rid: entry.system.rid.clone(), json: entry.json.clone() }),
    )
}

/// `POST …/colls` with a query.
fn query(call: &Call<'_>, database: &str) -> Result<Reply, ServiceError> {
    let database = find_database(call, database)?;
    metadata_query::run_query(
        call,
        container_feed(&database),
        database.containers_after(None).map(|entry| &entry.json),
    )
}

fn find_database(call: &Call<'_>, database: &str) -> Result<Arc<DatabaseEntry>, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    snapshot.database(database).cloned().ok_or_else(ServiceError::owner_not_found)
}

fn container_feed(database: &DatabaseEntry) -> Feed<'_> {
    Feed { parent: &database.system.rid, plural: "DocumentCollections" }
}

/// `POST …/colls`: creates a container; 409 if the id is taken.
fn create(call: &Call<'_>, database: &str) -> Result<Reply, ServiceError> {
    let properties = parse_definition(call)?;
    let throughput = offers::requested_throughput(call.headers)?;
    let fixed = call.account.partitions;
    let (own, count) = match (throughput, shared_throughput(call, database)?) {
        (None, Some(shared)) => (None, shared_partition_count(fixed, &shared)),
        (own, _) => {
            let own = own.unwrap_or(THROUGHPUT_DEFAULT);
            let count = initial_partition_count(fixed, &own);
            (Some(own), count)
        }
    };
    let new = NewContainer {
        database,
        properties,
        throughput: own,
        partitions: Partitioning { count, bytes_max: call.account.partition_bytes_max },
        regions: Arc::clone(&call.account.regions),
    };
    let container = call.account.catalog.create_container(new, call.now)?;
    let reply = Reply::created(container.json.clone()).version(&container.system).charge(WRITE_CHARGE);
    add_quota_headers(reply, call.headers, &container)
}

/// The throughput that the containers of the database share, if it has any.
fn shared_throughput(call: &Call<'_>, database: &str) -> Result<Option<Throughput>, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    let database = snapshot.database(database).ok_or_else(ServiceError::owner_not_found)?;
    Ok(database.offer.and_then(|rid| snapshot.offer(rid)).map(|offer| offer.throughput.clone()))
}

/// `GET …/colls/{container}`: reads a container's properties.
fn read(call: &Call<'_>, ids: &ContainerIds<'_>) -> Result<Reply, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    let container = snapshot.container(&ids.database, &ids.container)?;
    call.principal.check_read(container)?;
    check_container_rid(call.headers, container)?;
    if let Some(reply) = condition::not_modified(call.headers, &container.system) {
        return Ok(reply);
    }
    let requested = call.headers.populate_partition_statistics;
    let body = match RequestHeaders::flag(requested, name::POPULATE_PARTITION_STATISTICS)? {
        true => with_statistics(container),
        false => container.json.clone(),
    };
    let reply = Reply::ok(body).version(&container.system);
    add_quota_headers(reply, call.headers, container)
}

/// The properties with the size of each partition key range. Large partition keys are not computed.
fn with_statistics(container: &ContainerEntry) -> Bytes {
    let ranges: Vec<_> = container
        .store
        .partitions()
        .iter()
        .map(|partition| {
            let state = partition.latest_head();
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

/// `PUT …/colls/{container}`: replaces the policies of a container; id and partition key stay.
fn replace(call: &Call<'_>, ids: &ContainerIds<'_>) -> Result<Reply, ServiceError> {
    call.principal.check_whole_account()?;
    let wanted = parse_definition(call)?;
    let container =
        call.account.catalog.replace_container(&ids.database, &ids.container, call.now, |current| {
            condition::check_if_match(call.headers, &current.system)?;
            Ok::<_, ServiceError>(current.properties.replaced_by(wanted)?)
        })?;
    let reply = Reply::ok(container.json.clone()).version(&container.system).charge(WRITE_CHARGE);
    add_quota_headers(reply, call.headers, &container)
}

/// `DELETE …/colls/{container}`: deletes a container and its items.
fn delete(call: &Call<'_>, ids: &ContainerIds<'_>) -> Result<Reply, ServiceError> {
    call.principal.check_whole_account()?;
    call.account.catalog.delete_container(&ids.database, &ids.container, |container| {
        condition::check_if_match(call.headers, &container.system)
    })?;
    Ok(Reply::no_content().charge(WRITE_CHARGE))
}

/// Parses, completes and checks the definition in the body.
fn parse_definition(call: &Call<'_>) -> Result<ContainerProperties, ServiceError> {
    let properties = ContainerProperties::parse(&call.body)?;
    for (index, property) in properties.computed_properties.iter().enumerate() {
        let query = &property.query;
        let computed = ComputedProperty { name: property.name.as_str().into(), query: query.clone() };
        let Err(error) = sql::check_computed_property(&computed) else { continue };
        let selection = sql::parse_query(query).map(|parsed| parsed.selection);
        return Err(ServiceError::bad_request(match matches!(selection, Ok(Selection::List(_))) {
            true => format!(
                "Required VALUE expression missing from computed property query '{query}' at index ({index})."
            ),
            false => format!(
                "{INVALID_INPUT}. Computed property at index ({index}) has a malformed query: '{query}' Error \
                 details: '{}'",
                error.errors_json()
            ),
        }));
    }
    Ok(properties)
}

/// Adds the quota and the usage of the container. The progress of an index transformation is only sent on
/// request; it is always 100, because a changed policy is applied before the response.
fn add_quota_headers(
    reply: Reply,
    headers: &RequestHeaders<'_>,
    container: &ContainerEntry,
) -> Result<Reply, ServiceError> {
    let usage = container.store.usage();
    let usage = QuotaUsage { items: usage.items, bytes: usage.bytes };
    let reply = reply
        .header(name::RESOURCE_QUOTA, HeaderValue::from_static(QUOTA))
        .header(name::RESOURCE_USAGE, usage.to_header());
    let reply = if container.shares_throughput() {
        reply.header(name::SHARE_THROUGHPUT, HeaderValue::from_static("true"))
    } else {
        reply
    };
    Ok(if RequestHeaders::flag(headers.populate_quota_info, name::POPULATE_QUOTA_INFO)? {
        reply.header(name::INDEX_TRANSFORMATION_PROGRESS, HeaderValue::from_static("100"))
    } else {
        reply
    })
}
