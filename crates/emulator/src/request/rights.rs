//! Which operations each kind of sender may use at all. Pure.
//!
//! What a resource token covers depends on the container and is decided in `resource_token`.

use http::Method;
use protocol::status::{Status, SubStatus};

use super::authorize::{Principal, wrong_key};
use super::operation::{DatabaseVerb, FeedVerb, Operation, ResourceVerb, UnsupportedVerb};
use crate::response::ServiceError;

/// A request as the error for Entra ID users names it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLine<'a> {
    /// The name of the account.
    pub(crate) account: &'a str,
    /// The method of the request.
    pub(crate) method: &'a Method,
    /// The path as it was sent.
    pub(crate) path: &'a str,
}

impl Principal {
    /// Rejects an operation that this kind of sender may not use, whatever the resource.
    pub(crate) fn check_operation(
        &self,
        operation: &Operation<'_>,
        line: RequestLine<'_>,
    ) -> Result<(), ServiceError> {
        match self {
            Principal::Owner | Principal::TokenHolder(_) => Ok(()),
            Principal::Reader if is_for_readers(operation) => Ok(()),
            Principal::Reader => {
                Err(wrong_key("The request was signed with a read-only key, which does not allow it."))
            }
            Principal::EntraUser if is_data_plane(operation) => Ok(()),
            Principal::EntraUser => {
                let RequestLine { account, method, path } = line;
                let message = format!(
                    "Request blocked by Auth {account} : The given request [{method} {path}] cannot be \
                     authorized by AAD token in data plane. Learn more: https://aka.ms/cosmos-native-rbac."
                );
                Err(ServiceError::new(Status::FORBIDDEN, message)
                    .with_sub_status(SubStatus::RBAC_REQUEST_FORBIDDEN))
            }
        }
    }
}

/// Whether a read-only key allows an operation: all reads but those of permissions, which contain tokens that
/// allow more.
fn is_for_readers(operation: &Operation<'_>) -> bool {
    match operation {
        Operation::Permissions(..) | Operation::Permission(..) => false,
        Operation::Unsupported(request) => request.verb != UnsupportedVerb::Use,
        operation => operation.write_target().is_none(),
    }
}

/// Whether a token of Entra ID allows an operation: everything about items, and reading what describes them. The
/// service lets it neither change databases and containers nor see throughput, users or scripts.
fn is_data_plane(operation: &Operation<'_>) -> bool {
    matches!(
        operation,
        Operation::ReadAccount
            | Operation::Databases(FeedVerb::List | FeedVerb::Query)
            | Operation::Database(_, DatabaseVerb::Read)
            | Operation::Containers(_, FeedVerb::List | FeedVerb::Query)
            | Operation::Container(_, ResourceVerb::Read)
            | Operation::Items(..)
            | Operation::PartitionRanges(_)
            | Operation::Conflicts(..)
    )
}
