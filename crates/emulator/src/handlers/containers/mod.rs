//! `/dbs/{database}/colls` and `/dbs/{database}/colls/{container}`.

mod create;
mod definition;
mod delete;
mod list;
mod quota;
mod read;
mod replace;

use crate::request::{Call, ContainerIds, FeedVerb, ResourceVerb};
use crate::response::{Reply, ServiceError};

/// Request units for writing metadata.
const CHARGE_WRITE: f64 = 4.95;

/// Anything asked of a database's containers.
pub(crate) fn feed(call: &Call<'_>, database: &str, verb: FeedVerb) -> Result<Reply, ServiceError> {
    match verb {
        FeedVerb::List => list::list(call, database),
        FeedVerb::Query => list::query(call, database),
        FeedVerb::Create => create::create(call, database),
        FeedVerb::Upsert => Err(ServiceError::bad_request("A container cannot be upserted.")),
    }
}

/// Anything asked of one container.
pub(crate) fn one(
    call: &Call<'_>,
    ids: &ContainerIds<'_>,
    verb: ResourceVerb,
) -> Result<Reply, ServiceError> {
    match verb {
        ResourceVerb::Read => read::read(call, ids),
        ResourceVerb::Replace => replace::replace(call, ids),
        ResourceVerb::Delete => delete::delete(call, ids),
    }
}
