//! `GET /dbs/{database}`.

use crate::handlers::condition;
use crate::request::Call;
use crate::response::{Reply, ServiceError};

/// Reads a database.
pub(crate) fn read(call: &Call<'_>, id: &str) -> Result<Reply, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    let entry = snapshot.database(id).ok_or_else(ServiceError::not_found)?;
    if let Some(reply) = condition::not_modified(call.headers, &entry.system) {
        return Ok(reply);
    }
    Ok(Reply::ok(entry.json.clone()).version(&entry.system))
}
