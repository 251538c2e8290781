//! `GET /dbs` and queries over it.

use protocol::resource_id::DatabaseRid;

use crate::handlers::feed::{Feed, FeedEntry, parse_continuation};
use crate::handlers::metadata_query;
use crate::request::Call;
use crate::response::{Reply, ServiceError};

const FEED: Feed<'static> = Feed { parent: "", plural: "Databases" };

/// Lists the databases, oldest first.
pub(crate) fn list(call: &Call<'_>) -> Result<Reply, ServiceError> {
    let after: Option<DatabaseRid> = parse_continuation(call.headers)?;
    let snapshot = call.account.catalog.snapshot();
    let databases = snapshot.databases_after(after);
    FEED.page(
        call,
        databases.map(|entry| FeedEntry { rid: entry.system.rid.clone(), json: entry.json.clone() }),
    )
}

/// Answers a query over the databases.
pub(crate) fn query(call: &Call<'_>) -> Result<Reply, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    metadata_query::run_query(call, FEED, snapshot.databases_after(None).map(|entry| &entry.json))
}
