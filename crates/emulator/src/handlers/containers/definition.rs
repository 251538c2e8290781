//! A container's definition, as far as it takes a SQL parser to check it.

use protocol::container::{ContainerProperties, INVALID_INPUT};
use sql::ComputedProperty;

use crate::request::Call;
use crate::response::ServiceError;

/// Reads, completes and checks the definition in the body.
pub(crate) fn read(call: &Call<'_>) -> Result<ContainerProperties, ServiceError> {
    let properties = ContainerProperties::parse(&call.body)?;
    for property in &properties.computed_properties {
        let property =
            ComputedProperty { name: property.name.as_str().into(), query: property.query.clone() };
        sql::check_computed_property(&property)
            .map_err(|error| ServiceError::bad_request(format!("{INVALID_INPUT}: {error}")))?;
    }
    Ok(properties)
}
