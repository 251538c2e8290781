//! `POST /dbs`: a new database, 409 if the name is taken.

use protocol::database::DatabaseProperties;

use crate::handlers::throughput;
use crate::request::Call;
use crate::response::{Reply, ServiceError};

/// Request units for writing metadata.
const CHARGE: f64 = 4.95;

/// Creates a database; with throughput if the headers ask for it.
pub(crate) fn create(call: &Call<'_>) -> Result<Reply, ServiceError> {
    let DatabaseProperties { id } = DatabaseProperties::parse(&call.body)?;
    let throughput = throughput::requested(call.headers)?;
    let entry = call.account.catalog.create_database(&id, throughput, call.now)?;
    Ok(Reply::created(entry.json.clone()).version(&entry.system).charge(CHARGE))
}
