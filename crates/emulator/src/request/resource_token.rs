//! Resource tokens: signed permissions.
//!
//! Input: what a permission allows and until when. Output: the text of `_token`, and its verification. The
//! account signs tokens with its own key and stores no list of them, so verifying one needs only the key;
//! `authorize` checks the expiry. What a holder may do is decided by the `check_…` methods of [`Principal`].

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use protocol::authorization::{AccountKey, Signature};
use protocol::container::{KeyCompleteness, PartitionKeyDefinition};
use protocol::partition::{
    EpkRange, PartitionKey, PartitionKeyComponent, PartitionKeyHeader, effective_key, prefix_range,
};
use protocol::resource_id::{ContainerRid, ItemRid};
use protocol::resource_path::{ResourcePath, ResourceType};
use protocol::user::PermissionMode;
use serde::{Deserialize, Serialize};

use super::authorize::Principal;
use super::authorized_items::{AuthorizedItems, forbidden};
use super::operation::ItemOperation;
use super::sas_token::{SasRights, SasToken};
use crate::response::ServiceError;
use engine::catalog::{CatalogSnapshot, ContainerEntry};
use engine::items::{Item, Ordinal};
use engine::regions::ReadContext;
use engine::store::PartitionView;

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
    /// The rights of a shared access signature, in place of the mode.
    #[serde(skip)]
    pub(crate) sas_rights: Option<SasRights>,
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

    /// The grant of a shared access signature. Its link is resolved as that of a permission.
    pub(super) fn of_sas(token: SasToken, catalog: &CatalogSnapshot) -> Grant {
        let target = PermissionTarget::resolve(catalog, &token.resource);
        Grant {
            container: target.as_ref().map(|target| target.container),
            item: target.and_then(|target| target.item),
            partition_key: None,
            mode: PermissionMode::Read,
            sas_rights: Some(token.rights),
            issued_at: token.starts_at,
            expires_at: token.expires_at,
        }
    }

    fn allows(&self, operation: &ItemOperation<'_>) -> bool {
        match (self.sas_rights, self.mode) {
            (Some(rights), _) => rights.allow(operation),
            (None, PermissionMode::All) => true,
            (None, PermissionMode::Read) => operation.is_read(),
        }
    }
}

impl Principal {
    /// Rejects the holder of a resource token.
    pub(crate) fn check_whole_account(&self) -> Result<(), ServiceError> {
        match self {
            Principal::Owner | Principal::Reader | Principal::EntraUser => Ok(()),
            Principal::TokenHolder(_) => {
                Err(forbidden("a resource token does not reach beyond its container"))
            }
        }
    }

    /// Rejects a holder whose token is not for `container`.
    pub(crate) fn check_read(&self, container: &ContainerEntry) -> Result<(), ServiceError> {
        match self {
            Principal::Owner | Principal::Reader | Principal::EntraUser => Ok(()),
            Principal::TokenHolder(grant) if grant.container == Some(container.rid) => Ok(()),
            Principal::TokenHolder(_) => Err(forbidden("the resource token is for another container")),
        }
    }

    /// The items of `container` that the sender may use for `operation`.
    pub(crate) fn authorize_items(
        &self,
        container: &ContainerEntry,
        operation: &ItemOperation<'_>,
        read: ReadContext,
    ) -> Result<AuthorizedItems, ServiceError> {
        let Principal::TokenHolder(grant) = self else { return Ok(AuthorizedItems::all()) };
        self.check_read(container)?;
        if !grant.allows(operation) {
            return Err(forbidden("the token does not allow this operation"));
        }
        // A link by `_rid` is for the item that has it, in its logical partition.
        let linked = grant.item.as_deref().and_then(|item| find_by_rid(item, container, read));
        if let Some(item) = &grant.item {
            let id = linked.as_ref().map(|linked| linked.id.as_str());
            let named = operation.item_id();
            if named != Some(item.as_str()) && (named.is_none() || named != id) {
                return Err(forbidden("the resource token is for one item only"));
            }
        }
        let definition = &container.store.schema().partition_key;
        let range = match &grant.partition_key {
            None => None,
            Some(key) => Some(granted_range(key, definition).ok_or_else(|| {
                forbidden("the resource token is for a partition key that the container cannot have")
            })?),
        };
        let range = match (range, linked) {
            (Some(range), Some(item)) if !range.contains(&item.epk) => {
                return Err(forbidden("the resource token is for an item of another partition key"));
            }
            (_, Some(item)) => Some(EpkRange::point(item.epk.clone())),
            (range, None) => range,
        };
        Ok(AuthorizedItems { range, one_item: grant.item.is_some() })
    }
}

/// The item of `container` with this `_rid`.
fn find_by_rid(rid: &str, container: &ContainerEntry, read: ReadContext) -> Option<Arc<Item>> {
    let rid = rid.parse::<ItemRid>().ok().filter(|rid| rid.container == container.rid)?;
    container.store.partitions().iter().find_map(|partition| {
        let state = PartitionView::new(Arc::clone(partition), read).snapshot();
        state.item(Ordinal(rid.ordinal)).cloned()
    })
}

/// The container or item that a permission is for.
pub(crate) struct PermissionTarget {
    /// The container, by its `_rid`.
    pub(crate) container: ContainerRid,
    /// The item, by id or `_rid`; all items when absent.
    pub(crate) item: Option<String>,
}

impl PermissionTarget {
    /// Resolves the link of a permission, by names or `_rid`s. A link to a missing resource makes a token that
    /// allows nothing: the service accepts such permissions.
    pub(crate) fn resolve(catalog: &CatalogSnapshot, link: &str) -> Option<PermissionTarget> {
        let path = ResourcePath::parse(link).ok()?;
        let container = catalog.container(path.database()?, path.container()?).ok()?.rid;
        match path.resource_type() {
            ResourceType::Container => Some(PermissionTarget { container, item: None }),
            ResourceType::Item => Some(PermissionTarget { container, item: Some(path.item()?.to_owned()) }),
            _ => None,
        }
    }
}

/// The EPK range of the partition key that a token covers; `None` if no item of the container can have it.
fn granted_range(key: &str, definition: &PartitionKeyDefinition) -> Option<EpkRange> {
    match PartitionKey::parse_header(key).ok()? {
        // Containers without a partition key have one value for all their items.
        PartitionKeyHeader::Empty if definition.system_key => {
            let key = PartitionKey::single(PartitionKeyComponent::Undefined);
            Some(EpkRange::point(effective_key(definition, &key)))
        }
        PartitionKeyHeader::Empty => None,
        PartitionKeyHeader::Key(key) => match definition.completeness(&key) {
            KeyCompleteness::TooLong => None,
            KeyCompleteness::Prefix => Some(prefix_range(definition, &key)),
            KeyCompleteness::Complete => Some(EpkRange::point(effective_key(definition, &key))),
        },
    }
}
