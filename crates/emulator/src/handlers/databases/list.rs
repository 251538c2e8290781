//! `GET /dbs` and queries over it.

use protocol::resource_id::DatabaseRid;

use crate::handlers::feed::{Feed, Listed, resume};
use crate::handlers::metadata_query;
use crate::request::Call;
use crate::response::{Reply, ServiceError};

const FEED: Feed<'static> = Feed { parent: "", plural: "Databases" };

/// Lists the databases, oldest first.
pub(crate) fn list(call: &Call<'_>) -> Result<Reply, ServiceError> {
    let after: Option<DatabaseRid> = resume(call.headers)?;
    let snapshot = call.account.catalog.snapshot();
    let databases = snapshot.databases_after(after);
    FEED.page(call, databases.map(|entry| Listed { rid: entry.system.rid.clone(), json: entry.json.clone() }))
}

/// Answers a query over the databases.
pub(crate) fn query(call: &Call<'_>) -> Result<Reply, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    metadata_query::answer(call, FEED, snapshot.databases_after(None).map(|entry| &entry.json))
}
