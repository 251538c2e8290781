//! `GET …/users` and queries over it.

use std::sync::Arc;

use protocol::resource_id::UserRid;

use crate::handlers::feed::{Feed, FeedEntry, parse_continuation};
use crate::handlers::metadata_query;
use crate::request::Call;
use crate::response::{Reply, ServiceError};
use engine::catalog::DatabaseEntry;

/// Lists the users of a database, oldest first.
pub(crate) fn list(call: &Call<'_>, database: &str) -> Result<Reply, ServiceError> {
    let database = find(call, database)?;
    let after: Option<UserRid> = parse_continuation(call.headers)?;
    let users = database.users_after(after);
    feed(&database)
        .page(call, users.map(|entry| FeedEntry { rid: entry.system.rid.clone(), json: entry.json.clone() }))
}

/// Answers a query over the users of a database.
pub(crate) fn query(call: &Call<'_>, database: &str) -> Result<Reply, ServiceError> {
    let database = find(call, database)?;
    metadata_query::run_query(call, feed(&database), database.users_after(None).map(|entry| &entry.json))
}

fn find(call: &Call<'_>, database: &str) -> Result<Arc<DatabaseEntry>, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    snapshot.database(database).cloned().ok_or_else(ServiceError::owner_not_found)
}

fn feed(database: &DatabaseEntry) -> Feed<'_> {
    Feed { parent: &database.system.rid, plural: "Users" }
}
