//! `DELETE /dbs/{database}`: the database and everything in it.

use crate::handlers::condition;
use crate::request::Call;
use crate::response::{Reply, ServiceError};

/// Request units for writing metadata.
const CHARGE: f64 = 4.95;

/// Deletes a database.
pub(crate) fn delete(call: &Call<'_>, id: &str) -> Result<Reply, ServiceError> {
    call.account
        .catalog
        .delete_database(id, |entry| condition::check_if_match(call.headers, &entry.system))?;
    Ok(Reply::no_content().charge(CHARGE))
}
