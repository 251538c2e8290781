//! Addresses of replicas, `GET /addresses`: what a client in direct mode asks for before anything else.
//!
//! The account serves gateway mode only. A client in direct mode shows the message of this error to its user.

use crate::response::ServiceError;

/// Whether a path asks for addresses. .NET's begins with two slashes, as the account document writes it.
pub(crate) fn is_address_request(path: &str) -> bool {
    path.trim_matches('/') == "addresses"
}

/// The refusal that names the setting for gateway mode in each SDK that has direct mode.
pub(crate) fn refuse_direct_mode() -> ServiceError {
    ServiceError::bad_request(
        "This account serves gateway mode only, and the client asked for the replica addresses of direct mode. Set the \
         client to gateway mode: CosmosClientBuilder.gatewayMode() in Java, CosmosClientOptions.ConnectionMode = \
         ConnectionMode.Gateway in .NET.",
    )
}
