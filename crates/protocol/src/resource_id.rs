//! Resource ids (`_rid`): the compact ids that the service assigns to every resource.
//!
//! Input and output: base64 text (with `-` for `/`) of bytes that contain the ids of all ancestors.
//! Assigning numbers and finding resources is left to the catalog.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::alphabet::Alphabet;
use base64::engine::general_purpose::{GeneralPurpose, PAD};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// The base64 alphabet with `-` in place of `/`, which would end a path segment.
const ALPHABET: Alphabet =
    match Alphabet::new("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-") {
        Ok(alphabet) => alphabet,
        Err(_) => panic!("64 different characters"),
    };
const BASE64: GeneralPurpose = GeneralPurpose::new(&ALPHABET, PAD);

/// The most bytes of a resource id, which an attachment has.
const BYTES_MAX: usize = 20;
/// The most characters of a resource id: 20 bytes in base64.
const TEXT_MAX: usize = 28;

/// The bit that tells a container from a user.
const CONTAINER_BIT: u32 = 1 << 31;
/// The last four bytes of the id of a client encryption key, whose place of a user is 0.
const CLIENT_ENCRYPTION_KEY: u32 = 2;
/// The bits of an ordinal; the bits above hold the resource type.
const ORDINAL_BITS: u32 = 60;

/// The resource id of a database, 4 bytes long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseRid(pub u32);

/// The resource id of a container: its database, and a number below 2³¹.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerRid {
    /// The database of the container.
    pub database: DatabaseRid,
    /// The number of the container in its database.
    pub container: u32,
}

/// The resource id of an item: its container, and an ordinal below 2⁶⁰ that grows in creation order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemRid {
    /// The container of the item.
    pub container: ContainerRid,
    /// The ordinal of the item, which `DOCUMENTID(c)` returns.
    pub ordinal: u64,
}

/// The resource id of anything else in a container: a partition key range, a script, a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChildRid {
    /// The container of the resource.
    pub container: ContainerRid,
    /// The type of the resource.
    pub kind: ChildKind,
    /// The number of the resource among those of its type.
    pub ordinal: u64,
}

/// The type of the resource that a [`ChildRid`] identifies. The discriminant is part of the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ChildKind {
    /// A conflict of a multi-write account.
    Conflict = 0x4,
    /// A partition key range (physical partition).
    PartitionKeyRange = 0x5,
    /// A user-defined function in JavaScript.
    UserDefinedFunction = 0x6,
    /// A trigger in JavaScript.
    Trigger = 0x7,
    /// A stored procedure in JavaScript.
    StoredProcedure = 0x8,
    /// A schema of the container.
    Schema = 0x9,
}

impl ChildKind {
    fn from_nibble(nibble: u64) -> Option<ChildKind> {
        Some(match nibble {
            0x4 => ChildKind::Conflict,
            0x5 => ChildKind::PartitionKeyRange,
            0x6 => ChildKind::UserDefinedFunction,
            0x7 => ChildKind::Trigger,
            0x8 => ChildKind::StoredProcedure,
            0x9 => ChildKind::Schema,
            _ => return None,
        })
    }

    /// The path segment of its feed.
    fn feed(self) -> &'static str {
        match self {
            ChildKind::Conflict => "conflicts",
            ChildKind::PartitionKeyRange => "pkranges",
            ChildKind::UserDefinedFunction => "udfs",
            ChildKind::Trigger => "triggers",
            ChildKind::StoredProcedure => "sprocs",
            ChildKind::Schema => "schemas",
        }
    }
}

/// The resource id of a user: its database, and a number below 2³¹.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserRid {
    /// The database of the user.
    pub database: DatabaseRid,
    /// The number of the user in its database.
    pub user: u32,
}

/// The resource id of a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PermissionRid {
    /// The user of the permission.
    pub user: UserRid,
    /// The number of the permission under its user.
    pub permission: u64,
}

/// The resource id of a client encryption key: its database, and a number above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientEncryptionKeyRid {
    /// The database of the key.
    pub database: DatabaseRid,
    /// The number of the key in its database.
    pub key: u32,
}

/// The resource id of an attachment; old containers have them, but they can no longer be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttachmentRid {
    /// The item of the attachment.
    pub item: ItemRid,
    /// The number of the attachment under its item.
    pub attachment: u32,
}

/// The resource id of an offer: a number below 2²⁴, without a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferRid(pub u32);

/// The error of a text that is not a resource id of the requested type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a resource id of this kind")]
pub struct ResourceIdError;

/// The resource id of any resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceId {
    /// The id of an offer, see [`OfferRid`].
    Offer(OfferRid),
    /// The id of a database, see [`DatabaseRid`].
    Database(DatabaseRid),
    /// The id of a user, see [`UserRid`].
    User(UserRid),
    /// The id of a container, see [`ContainerRid`].
    Container(ContainerRid),
    /// The id of a permission, see [`PermissionRid`].
    Permission(PermissionRid),
    /// The id of a client encryption key, see [`ClientEncryptionKeyRid`].
    ClientEncryptionKey(ClientEncryptionKeyRid),
    /// The id of an item, see [`ItemRid`].
    Item(ItemRid),
    /// The id of another resource in a container, see [`ChildRid`].
    Child(ChildRid),
    /// The id of an attachment, see [`AttachmentRid`].
    Attachment(AttachmentRid),
}

impl ResourceId {
    /// Parses a resource id. A name that happens to be base64 of a valid length parses as well; whether
    /// such a resource exists is decided by the caller.
    ///
    /// Cost: constant, without an allocation; text that is too long is rejected at once.
    pub fn parse(text: &str) -> Result<ResourceId, ResourceIdError> {
        if text.is_empty() || text.len() > TEXT_MAX {
            return Err(ResourceIdError);
        }
        let mut buffer = [0; TEXT_MAX];
        let length = BASE64.decode_slice(text, &mut buffer).map_err(|_| ResourceIdError)?;
        ResourceId::from_bytes(&buffer[..length]).ok_or(ResourceIdError)
    }

    fn from_bytes(bytes: &[u8]) -> Option<ResourceId> {
        if let [a, b, c] = *bytes {
            return Some(ResourceId::Offer(OfferRid(u32::from_be_bytes([0, a, b, c]))));
        }
        let (database, rest) = bytes.split_first_chunk()?;
        let database = DatabaseRid(u32::from_be_bytes(*database));
        let Some((second, rest)) = rest.split_first_chunk() else {
            return rest.is_empty().then_some(ResourceId::Database(database));
        };
        let second = u32::from_be_bytes(*second);
        let Some((third, rest)) = rest.split_first_chunk() else {
            return rest.is_empty().then(|| under_database(database, second));
        };
        let third = u64::from_le_bytes(*third);
        let (key, kind) = (third as u32, (third >> 32) as u32);
        if second == 0 && kind == CLIENT_ENCRYPTION_KEY && key != 0 {
            let rid = ClientEncryptionKeyRid { database, key };
            return rest.is_empty().then_some(ResourceId::ClientEncryptionKey(rid));
        }
        if second & CONTAINER_BIT == 0 {
            let user = UserRid { database, user: second };
            return rest
                .is_empty()
                .then_some(ResourceId::Permission(PermissionRid { user, permission: third }));
        }
        let container = ContainerRid { database, container: second & !CONTAINER_BIT };
        let (nibble, ordinal) = (third >> ORDINAL_BITS, third & ((1 << ORDINAL_BITS) - 1));
        match (nibble, rest.len()) {
            (0, 0) => Some(ResourceId::Item(ItemRid { container, ordinal })),
            (0, 4) => {
                let attachment = u32::from_be_bytes(*rest.first_chunk()?);
                let item = ItemRid { container, ordinal };
                Some(ResourceId::Attachment(AttachmentRid { item, attachment }))
            }
            (nibble, 0) => {
                let kind = ChildKind::from_nibble(nibble)?;
                Some(ResourceId::Child(ChildRid { container, kind, ordinal }))
            }
            _ => None,
        }
    }

    /// Writes the bytes into `out` and returns their number.
    fn write_bytes(self, out: &mut [u8; BYTES_MAX]) -> usize {
        let mut length = 0;
        let mut put = |bytes: &[u8]| {
            out[length..length + bytes.len()].copy_from_slice(bytes);
            length += bytes.len();
        };
        let container_bytes = |rid: ContainerRid| (rid.container | CONTAINER_BIT).to_be_bytes();
        match self {
            ResourceId::Offer(OfferRid(number)) => put(&number.to_be_bytes()[1..]),
            ResourceId::Database(DatabaseRid(number)) => put(&number.to_be_bytes()),
            ResourceId::User(rid) => {
                put(&rid.database.0.to_be_bytes());
                put(&(rid.user & !CONTAINER_BIT).to_be_bytes());
            }
            ResourceId::Container(rid) => {
                put(&rid.database.0.to_be_bytes());
                put(&container_bytes(rid));
            }
            ResourceId::Permission(rid) => {
                put(&rid.user.database.0.to_be_bytes());
                put(&(rid.user.user & !CONTAINER_BIT).to_be_bytes());
                put(&rid.permission.to_le_bytes());
            }
            ResourceId::ClientEncryptionKey(rid) => {
                put(&rid.database.0.to_be_bytes());
                put(&[0; 4]);
                put(&rid.key.to_le_bytes());
                put(&CLIENT_ENCRYPTION_KEY.to_le_bytes());
            }
            ResourceId::Item(ItemRid { container, ordinal }) => {
                put(&container.database.0.to_be_bytes());
                put(&container_bytes(container));
                put(&ordinal.to_le_bytes());
            }
            ResourceId::Child(ChildRid { container, kind, ordinal }) => {
                put(&container.database.0.to_be_bytes());
                put(&container_bytes(container));
                put(&(ordinal | u64::from(kind as u8) << ORDINAL_BITS).to_le_bytes());
            }
            ResourceId::Attachment(AttachmentRid { item, attachment }) => {
                put(&item.container.database.0.to_be_bytes());
                put(&container_bytes(item.container));
                put(&item.ordinal.to_le_bytes());
                put(&attachment.to_be_bytes());
            }
        }
        length
    }
}

fn under_database(database: DatabaseRid, second: u32) -> ResourceId {
    if second & CONTAINER_BIT == 0 {
        ResourceId::User(UserRid { database, user: second })
    } else {
        ResourceId::Container(ContainerRid { database, container: second & !CONTAINER_BIT })
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = [0; BYTES_MAX];
        let length = self.write_bytes(&mut bytes);
        let mut text = [0; TEXT_MAX];
        let length = BASE64.encode_slice(&bytes[..length], &mut text).map_err(|_| fmt::Error)?;
        f.write_str(std::str::from_utf8(&text[..length]).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for ResourceId {
    type Err = ResourceIdError;

    fn from_str(text: &str) -> Result<ResourceId, ResourceIdError> {
        ResourceId::parse(text)
    }
}

/// Implements parsing, printing and serialisation of one id type through [`ResourceId`].
macro_rules! typed_id {
    ($($kind:ident => $variant:ident),*) => {$(
        impl From<$kind> for ResourceId {
            fn from(rid: $kind) -> ResourceId {
                ResourceId::$variant(rid)
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                ResourceId::from(*self).fmt(f)
            }
        }

        impl FromStr for $kind {
            type Err = ResourceIdError;

            fn from_str(text: &str) -> Result<$kind, ResourceIdError> {
                match ResourceId::parse(text)? {
                    ResourceId::$variant(rid) => Ok(rid),
                    _ => Err(ResourceIdError),
                }
            }
        }

        impl Serialize for $kind {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$kind, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

typed_id! {
    OfferRid => Offer, DatabaseRid => Database, UserRid => User, ContainerRid => Container,
    PermissionRid => Permission, ClientEncryptionKeyRid => ClientEncryptionKey, ItemRid => Item, ChildRid => Child, AttachmentRid => Attachment
}

impl OfferRid {
    /// The `_self` link, without a leading slash and with a trailing one.
    pub fn self_link(self) -> String {
        format!("offers/{self}/")
    }
}

impl DatabaseRid {
    /// The `_self` link, without a leading slash and with a trailing one.
    pub fn self_link(self) -> String {
        format!("dbs/{self}/")
    }
}

impl UserRid {
    /// The `_self` link, without a leading slash and with a trailing one.
    pub fn self_link(self) -> String {
        format!("dbs/{}/users/{self}/", self.database)
    }
}

impl PermissionRid {
    /// The `_self` link, without a leading slash and with a trailing one.
    pub fn self_link(self) -> String {
        format!("dbs/{}/users/{}/permissions/{self}/", self.user.database, self.user)
    }
}

impl ClientEncryptionKeyRid {
    /// The `_self` link, without a leading slash and with a trailing one.
    pub fn self_link(self) -> String {
        format!("dbs/{}/clientencryptionkeys/{self}/", self.database)
    }
}

impl ContainerRid {
    /// The `_self` link, without a leading slash and with a trailing one.
    pub fn self_link(self) -> String {
        format!("dbs/{}/colls/{self}/", self.database)
    }
}

impl ItemRid {
    /// The `_self` link, without a leading slash and with a trailing one.
    pub fn self_link(self) -> String {
        format!("dbs/{}/colls/{}/docs/{self}/", self.container.database, self.container)
    }
}

impl ChildRid {
    /// The `_self` link, without a leading slash and with a trailing one.
    pub fn self_link(self) -> String {
        let (database, feed) = (self.container.database, self.kind.feed());
        format!("dbs/{database}/colls/{}/{feed}/{self}/", self.container)
    }
}

#[cfg(test)]
mod tests;
