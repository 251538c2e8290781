//! `/dbs` and `/dbs/{database}`.

mod create;
mod delete;
mod list;
mod read;

use crate::request::{Call, DatabaseVerb, FeedVerb};
use crate::response::{Reply, ServiceError};

/// Anything asked of `/dbs`.
pub(crate) fn feed(call: &Call<'_>, verb: FeedVerb) -> Result<Reply, ServiceError> {
    match verb {
        FeedVerb::List => list::list(call),
        FeedVerb::Query => list::query(call),
        FeedVerb::Create => create::create(call),
        FeedVerb::Upsert => Err(ServiceError::bad_request("A database cannot be upserted.")),
    }
}

/// Anything asked of one database.
pub(crate) fn one(call: &Call<'_>, id: &str, verb: DatabaseVerb) -> Result<Reply, ServiceError> {
    match verb {
        DatabaseVerb::Read => read::read(call, id),
        DatabaseVerb::Delete => delete::delete(call, id),
    }
}
