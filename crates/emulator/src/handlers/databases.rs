//! Databases: `/dbs` and `/dbs/{database}`.

use protocol::database::DatabaseProperties;
use protocol::resource_id::DatabaseRid;

use super::feed::{Feed, FeedEntry, parse_position};
use super::{condition, metadata_query, offers};
use crate::request::{Call, DatabaseVerb, FeedVerb};
use crate::response::{Reply, ServiceError};
use engine::catalog::ListPosition;

/// Request units of creating or deleting a database.
const WRITE_CHARGE: f64 = 4.95;

const FEED: Feed<'static> = Feed { parent: "", plural: "Databases" };

/// Handles an operation on `/dbs`.
pub(crate) fn handle_feed(call: &Call<'_>, verb: FeedVerb) -> Result<Reply, ServiceError> {
    match verb {
        FeedVerb::List => list(call),
        FeedVerb::Query => query(call),
        FeedVerb::Create => create(call),
        FeedVerb::Upsert => Err(ServiceError::bad_request("A database cannot be upserted.")),
    }
}

/// Handles an operation on one database.
pub(crate) fn handle(call: &Call<'_>, id: &str, verb: DatabaseVerb) -> Result<Reply, ServiceError> {
    match verb {
        DatabaseVerb::Read => read(call, id),
        DatabaseVerb::Delete => delete(call, id),
    }
}

/// `GET /dbs`: lists the databases, oldest first.
fn list(call: &Call<'_>) -> Result<Reply, ServiceError> {
    let position: ListPosition<DatabaseRid> = parse_position(call.headers)?;
    let snapshot = call.account.catalog.snapshot();
    let databases = snapshot.databases_after(position);
    FEED.page(
        call,
        databases.map(|entry| FeedEntry { rid: entry.system.rid.clone(), json: entry.json.clone() }),
    )
}

/// `POST /dbs` with a query.
fn query(call: &Call<'_>) -> Result<Reply, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    metadata_query::run_query(call, FEED, snapshot.databases_after(None).map(|entry| &entry.json))
}

/// `POST /dbs`: creates a database, with throughput if the headers request it; 409 if the id is taken.
fn create(call: &Call<'_>) -> Result<Reply, ServiceError> {
    let DatabaseProperties { id } = DatabaseProperties::parse(&call.body)?;
    let throughput = offers::requested_throughput(call.headers)?;
    let entry = call.account.catalog.create_database(&id, throughput, call.now)?;
    Ok(Reply::created(entry.json.clone()).version(&entry.system).charge(WRITE_CHARGE))
}

/// `GET /dbs/{database}`: reads a database.
fn read(call: &Call<'_>, id: &str) -> Result<Reply, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    let entry = snapshot.database(id).ok_or_else(ServiceError::not_found)?;
    if let Some(reply) = condition::not_modified(call.headers, &entry.system) {
        return Ok(reply);
    }
    Ok(Reply::ok(entry.json.clone()).version(&entry.system))
}

/// `DELETE /dbs/{database}`: deletes a database and everything in it.
fn delete(call: &Call<'_>, id: &str) -> Result<Reply, ServiceError> {
    call.account
        .catalog
        .delete_database(id, |entry| condition::check_if_match(call.headers, &entry.system))?;
    Ok(Reply::no_content().charge(WRITE_CHARGE))
}
