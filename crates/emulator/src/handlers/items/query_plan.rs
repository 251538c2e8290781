//! `POST docs` with the plan header: how a client runs a query over several ranges itself.

use protocol::status::Status;
use sql::{SqlError, Statement};

use super::query;
use crate::charge;
use crate::gateway::{Reply, ServiceError};
use crate::handlers::ItemRequest;
use crate::store::Schema;

/// Answers with the plan, or refuses features the client did not list.
pub(super) fn query_plan(request: &ItemRequest<'_>) -> Result<Reply, ServiceError> {
    let schema = request.container.store.schema();
    let statement = query::prepare(request, &schema)?;
    let plan = plan_text(request, &schema, &statement)?;
    Ok(Reply::ok(plan.into()).charge(charge::METADATA_READ))
}

/// The plan as JSON.
pub(super) fn plan_text(
    request: &ItemRequest<'_>,
    schema: &Schema,
    statement: &Statement,
) -> Result<String, ServiceError> {
    let _ = (request, schema, statement);
    Err(ServiceError::new(Status::NOT_IMPLEMENTED, "Query plans are not there yet."))
}

/// 400 with the position and what would fit.
pub(super) fn refuse(error: SqlError) -> ServiceError {
    ServiceError::new(Status::BAD_REQUEST, format!("Message: {}", error.errors_json()))
}
