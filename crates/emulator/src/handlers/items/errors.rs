//! Errors of the store as errors of the service.

use std::time::Duration;

use protocol::headers as name;
use protocol::status::{Status, SubStatus};

use super::partition_key;
use crate::request::RequestHeaders;
use crate::response::ServiceError;
use engine::charge;
use engine::disk::DiskError;
use engine::store::{DocumentError, WriteError, WriteUnavailable};

/// The retry-after of a write that has to wait for other regions to catch up.
const CATCH_UP_WAIT: Duration = Duration::from_secs(1);

impl From<DocumentError> for ServiceError {
    fn from(error: DocumentError) -> ServiceError {
        let status = match error {
            DocumentError::TooLarge(_) => Status::REQUEST_ENTITY_TOO_LARGE,
            _ => Status::BAD_REQUEST,
        };
        ServiceError::backend(status, &error.to_string())
    }
}

impl From<DiskError> for ServiceError {
    fn from(error: DiskError) -> ServiceError {
        let status = match error {
            DiskError::TooLarge(_) => Status::REQUEST_ENTITY_TOO_LARGE,
            // The service's status for a write whose outcome is unknown: SDKs do not repeat it by themselves.
            DiskError::Undecided(_) => Status::REQUEST_TIMEOUT,
            DiskError::Full | DiskError::Failed(_) | DiskError::Broken(_) | DiskError::Unsynced(_) => {
                Status::SERVICE_UNAVAILABLE
            }
        };
        ServiceError::backend(status, &error.to_string())
    }
}

impl From<WriteError> for ServiceError {
    fn from(error: WriteError) -> ServiceError {
        let text = error.to_string();
        match error {
            WriteError::NotFound => ServiceError::not_found().with_charge(charge::NOT_FOUND),
            WriteError::Conflict => ServiceError::conflict().with_charge(charge::CONFLICT),
            WriteError::UniqueConflict => ServiceError::backend(Status::CONFLICT, &text)
                .with_sub_status(SubStatus::UNIQUE_INDEX_VIOLATION)
                .with_charge(charge::CONFLICT),
            WriteError::PreconditionFailed => {
                ServiceError::precondition_failed().with_charge(charge::PRECONDITION_FAILED)
            }
            WriteError::ConditionFailed => ServiceError::backend(Status::PRECONDITION_FAILED, &text)
                .with_sub_status(SubStatus::PATCH_CONDITION_FALSE)
                .with_charge(charge::PRECONDITION_FAILED),
            WriteError::InvalidPatch(reason) => ServiceError::bad_request(reason),
            WriteError::InvalidDocument(error) => error.into(),
            WriteError::PartitionKeyMismatch => partition_key::mismatch(),
            WriteError::NotPersisted(error) => error.into(),
        }
    }
}

impl From<WriteUnavailable> for ServiceError {
    fn from(refused: WriteUnavailable) -> ServiceError {
        match refused {
            WriteUnavailable::ReplicationBacklogFull => {
                ServiceError::backend(Status::SERVICE_UNAVAILABLE, &refused.to_string())
            }
            WriteUnavailable::NotWriteRegion => {
                ServiceError::backend(Status::FORBIDDEN, &refused.to_string())
                    .with_sub_status(SubStatus::WRITE_FORBIDDEN)
            }
            WriteUnavailable::StalenessExceeded => ServiceError {
                retry_after: Some(CATCH_UP_WAIT),
                ..ServiceError::backend(Status::TOO_MANY_REQUESTS, &refused.to_string())
            },
        }
    }
}

/// Rejects a request that names triggers, which would otherwise silently not run.
pub(super) fn reject_triggers(headers: &RequestHeaders<'_>) -> Result<(), ServiceError> {
    let named = [
        (headers.pre_trigger_include, name::PRE_TRIGGER_INCLUDE),
        (headers.post_trigger_include, name::POST_TRIGGER_INCLUDE),
    ];
    match named.into_iter().find(|(value, _)| value.is_some_and(|value| !value.is_empty())) {
        Some((_, header)) => Err(ServiceError::bad_request(format!(
            "Running triggers is not supported by this account; send the request without the header {header}."
        ))),
        None => Ok(()),
    }
}
