//! `POST …/colls`: a new container, 409 if the name is taken.

use std::sync::Arc;

use protocol::throughput::Throughput;

use super::{CHARGE_WRITE, definition, quota};
use crate::handlers::throughput;
use crate::request::Call;
use crate::response::{Reply, ServiceError};
use engine::catalog::NewContainer;
use engine::charge::throughput::{THROUGHPUT_DEFAULT, initial_partition_count};
use engine::store::Partitioning;

/// Creates a container.
pub(crate) fn create(call: &Call<'_>, database: &str) -> Result<Reply, ServiceError> {
    let properties = definition::read(call)?;
    let throughput = throughput::requested(call.headers)?;
    let (own, paid) = match (throughput, shared(call, database)?) {
        (Some(own), _) => (Some(own.clone()), own),
        (None, Some(shared)) => (None, shared),
        (None, None) => (Some(THROUGHPUT_DEFAULT), THROUGHPUT_DEFAULT),
    };
    let new = NewContainer {
        database,
        properties,
        throughput: own,
        partitions: Partitioning {
            count: initial_partition_count(call.account.partitions, &paid),
            bytes_max: call.account.partition_bytes_max,
        },
        regions: Arc::clone(&call.account.regions),
    };
    let container = call.account.catalog.create_container(new, call.now)?;
    let reply = Reply::created(container.json.clone()).version(&container.system).charge(CHARGE_WRITE);
    quota::add(reply, call.headers, &container)
}

/// The throughput that the database's containers share, if it has any.
fn shared(call: &Call<'_>, database: &str) -> Result<Option<Throughput>, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    let database = snapshot.database(database).ok_or_else(ServiceError::owner_not_found)?;
    Ok(database.offer.and_then(|rid| snapshot.offer(rid)).map(|offer| offer.throughput.clone()))
}
