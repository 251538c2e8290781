//! Query plans, `POST docs` with the plan header: how a client runs a query over several ranges itself.

use protocol::headers as name;
use protocol::status::Status;
use sql::{PlanError, SqlError, Statement, SupportedFeatures};

use super::query_body::{QueryText, read_query};
use crate::handlers::ItemRequest;
use crate::request::RequestHeaders;
use crate::response::{Reply, ServiceError};
use engine::store::ContainerSchema;

/// Returns the plan of a query, or an error if it needs features that the client does not support.
pub(super) fn query_plan(request: &ItemRequest<'_>) -> Result<Reply, ServiceError> {
    request.call.check_query_length()?;
    let schema = request.container.store.schema();
    let QueryText { text, parameters, .. } = read_query(request)?;
    let statement = Statement::prepare_plan(&text, &parameters, &schema.sql).map_err(sql_error)?;
    let listed = request.call.headers.supported_query_features;
    let listed = RequestHeaders::text(listed, name::SUPPORTED_QUERY_FEATURES)?.unwrap_or_default();
    let plan = plan_text(&schema, &statement, &SupportedFeatures::parse(listed))?;
    // The service plans queries in its gateway, which costs nothing.
    Ok(Reply::ok(plan.into()).charge(0.0))
}

/// The plan of a statement as JSON text.
pub(super) fn plan_text(
    schema: &ContainerSchema,
    statement: &Statement,
    features: &SupportedFeatures,
) -> Result<String, ServiceError> {
    let plan = statement.gateway_plan(&schema.partition_key, features).map_err(|error| match error {
        PlanError::Query(error) => sql_error(error),
        unsupported => ServiceError::new(Status::BAD_REQUEST, unsupported.service_message()),
    })?;
    Ok(serde_json::to_string(&plan).expect("a plan is plain data"))
}

/// 400 with the position of the error and what was expected.
pub(super) fn sql_error(error: SqlError) -> ServiceError {
    ServiceError::new(Status::BAD_REQUEST, format!("Message: {}", error.errors_json()))
}
