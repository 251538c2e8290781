//! Resource tokens: signed permissions.
//!
//! Input: what a permission allows and until when. Output: the text of `_token`, and its verification. The
//! account signs tokens with its own key and stores no list of them, so verifying one needs only the key;
//! `authorize` checks the expiry. What a holder may do is decided by the `check_…` methods of [`Principal`].

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use protocol::authorization::{AccountKey, Signature};
use protocol::headers as name;
use protocol::partition::{PartitionKey, PartitionKeyHeader};
use protocol::resource_id::ContainerRid;
use protocol::status::Status;
use protocol::user::PermissionMode;
use serde::{Deserialize, Serialize};

use super::authorize::Principal;
use super::headers::RequestHeaders;
use super::operation::ItemOperation;
use crate::response::ServiceError;
use engine::catalog::ContainerEntry;

/// The prefix of every token.
const TOKEN_PREFIX: &str = "type=resource&ver=1.0&sig=";

/// What a resource token allows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Grant {
    /// The container that it covers; recreating the container invalidates the token. A permission for a
    /// resource that does not exist covers none.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub(crate) container: Option<ContainerRid>,
    /// The only item that it covers, by id or `_rid`; all items when absent.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub(crate) item: Option<String>,
    /// The only partition key that it covers, in header form; all when absent.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub(crate) partition_key: Option<String>,
    /// Whether it allows reads only, or writes as well.
    #[serde(rename = "m")]
    pub(crate) mode: PermissionMode,
    /// When it was issued, in seconds since the epoch.
    #[serde(rename = "s")]
    pub(crate) issued_at: i64,
    /// When it expires, in seconds since the epoch.
    #[serde(rename = "e")]
    pub(crate) expires_at: i64,
}

impl Grant {
    /// The token text, signed with `key`.
    pub(crate) fn sign(&self, key: &AccountKey) -> String {
        let payload = serde_json::to_vec(self).expect("strings and numbers always serialise");
        let signature = key.sign_bytes(&payload);
        format!("{TOKEN_PREFIX}{signature};{};", BASE64.encode(payload))
    }

    /// Parses and verifies a token that this account issued; `None` for anything else.
    pub(crate) fn verify(token: &str, key: &AccountKey) -> Option<Grant> {
        let (_, signed) = token.split_once("sig=")?;
        let (signature, rest) = signed.split_once(';')?;
        let payload = BASE64.decode(rest.trim_end_matches(';')).ok()?;
        if key.sign_bytes(&payload) != Signature::from_base64(signature)? {
            return None;
        }
        serde_json::from_slice(&payload).ok()
    }

    fn allows_write(&self) -> bool {
        match self.mode {
            PermissionMode::All => true,
            PermissionMode::Read => false,
        }
    }
}

impl Principal {
    /// Rejects everyone but the owner.
    pub(crate) fn check_owner(&self) -> Result<(), ServiceError> {
        match self {
            Principal::Owner => Ok(()),
            Principal::TokenHolder(_) => {
                Err(forbidden("a resource token does not reach beyond its container"))
            }
        }
    }

    /// Rejects a holder whose token is not for `container`.
    pub(crate) fn check_read(&self, container: &ContainerEntry) -> Result<(), ServiceError> {
        match self {
            Principal::Owner => Ok(()),
            Principal::TokenHolder(grant) if grant.container == Some(container.rid) => Ok(()),
            Principal::TokenHolder(_) => Err(forbidden("the resource token is for another container")),
        }
    }

    /// Rejects a holder whose token does not cover `operation` on `container`.
    pub(crate) fn check_items(
        &self,
        container: &ContainerEntry,
        operation: &ItemOperation<'_>,
        headers: &RequestHeaders<'_>,
    ) -> Result<(), ServiceError> {
        let Principal::TokenHolder(grant) = self else { return Ok(()) };
        self.check_read(container)?;
        if !operation.is_read() && !grant.allows_write() {
            return Err(forbidden("the resource token allows reading only"));
        }
        if let Some(item) = &grant.item
            && operation.item_id() != Some(item.as_str())
        {
            return Err(forbidden("the resource token is for one item only"));
        }
        // A query plan reveals nothing about items, and one SDK requests it without a partition key.
        if *operation == ItemOperation::QueryPlan {
            return Ok(());
        }
        match &grant.partition_key {
            Some(allowed) => check_partition_key(allowed, headers),
            None => Ok(()),
        }
    }
}

/// Rejects a partition key that the token does not cover. Keys are compared as values: `[1]` is `[1.0]`.
fn check_partition_key(allowed: &str, headers: &RequestHeaders<'_>) -> Result<(), ServiceError> {
    let key_of = |text: &str| match PartitionKey::parse_header(text) {
        Ok(PartitionKeyHeader::Key(key)) => Some(key),
        Ok(PartitionKeyHeader::Empty) | Err(_) => None,
    };
    let requested = RequestHeaders::text(headers.partition_key, name::PARTITION_KEY)?.and_then(key_of);
    match (key_of(allowed), requested) {
        (Some(allowed), Some(requested)) if allowed.is_prefix_of(&requested) => Ok(()),
        _ => Err(forbidden("the resource token is for another partition key")),
    }
}

fn forbidden(reason: &str) -> ServiceError {
    ServiceError::new(
        Status::FORBIDDEN,
        format!("Insufficient permissions provided in the authorization header for the request: {reason}."),
    )
}
