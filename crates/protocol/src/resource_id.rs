//! `_rid`s: the compact ids the service gives to everything.
//!
//! In and out: base64 (with `-` for `/`) of a few bytes that spell out the parents. Handing out
//! numbers, and finding what has one, is left to the catalog.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::alphabet::Alphabet;
use base64::engine::general_purpose::{GeneralPurpose, PAD};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// The ordinary alphabet, except that `/` would end a path segment.
const ALPHABET: Alphabet =
    match Alphabet::new("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-") {
        Ok(alphabet) => alphabet,
        Err(_) => panic!("64 different characters"),
    };
const BASE64: GeneralPurpose = GeneralPurpose::new(&ALPHABET, PAD);

/// The most bytes an id has: an attachment's.
const BYTES_MAX: usize = 20;
/// The most characters: 20 bytes in base64.
const TEXT_MAX: usize = 28;

/// The bit that tells a container from a user.
const CONTAINER_BIT: u32 = 1 << 31;
/// Ordinals leave room for the kind above them.
const ORDINAL_BITS: u32 = 60;

/// A database: 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseRid(pub u32);

/// A container: its database, and a number below 2³¹.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerRid {
    /// The database it is in.
    pub database: DatabaseRid,
    /// Its number there.
    pub container: u32,
}

/// An item: its container, and an ordinal below 2⁶⁰ that grows in creation order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemRid {
    /// The container it is in.
    pub container: ContainerRid,
    /// Its number there; what `DOCUMENTID(c)` answers.
    pub ordinal: u64,
}

/// Anything else in a container: a range, a script, a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChildRid {
    /// The container it is in.
    pub container: ContainerRid,
    /// What it is.
    pub kind: ChildKind,
    /// Its number among its kind.
    pub ordinal: u64,
}

/// What a [`ChildRid`] stands for. The number is the one in the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ChildKind {
    /// A conflict of a multi-write account.
    Conflict = 0x4,
    /// A physical partition.
    PartitionKeyRange = 0x5,
    /// A user-defined function.
    UserDefinedFunction = 0x6,
    /// A trigger.
    Trigger = 0x7,
    /// A stored procedure.
    StoredProcedure = 0x8,
    /// A schema.
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

    /// The word of its feed in a path.
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

/// A user: its database, and a number below 2³¹.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserRid {
    /// The database it is in.
    pub database: DatabaseRid,
    /// Its number there.
    pub user: u32,
}

/// A permission of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PermissionRid {
    /// The user who has it.
    pub user: UserRid,
    /// Its number there.
    pub permission: u64,
}

/// An attachment of an item; nothing here makes one, but ids of old containers name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttachmentRid {
    /// The item it hangs on.
    pub item: ItemRid,
    /// Its number there.
    pub attachment: u32,
}

/// An offer: a number below 2²⁴, without a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferRid(pub u32);

/// Text that is not an id of the kind asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a resource id of this kind")]
pub struct ResourceIdError;

/// Any id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceId {
    /// See [`OfferRid`].
    Offer(OfferRid),
    /// See [`DatabaseRid`].
    Database(DatabaseRid),
    /// See [`UserRid`].
    User(UserRid),
    /// See [`ContainerRid`].
    Container(ContainerRid),
    /// See [`PermissionRid`].
    Permission(PermissionRid),
    /// See [`ItemRid`].
    Item(ItemRid),
    /// See [`ChildRid`].
    Child(ChildRid),
    /// See [`AttachmentRid`].
    Attachment(AttachmentRid),
}

impl ResourceId {
    /// Reads an id. Names that happen to be base64 of the right length are read too: whether
    /// something has the id is another question.
    ///
    /// Cost: constant, without an allocation; text that is too long is refused unread.
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

    /// Writes the bytes into `out` and says how many there are.
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

/// Each kind of id reads, prints and serialises like the sum of them.
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
    PermissionRid => Permission, ItemRid => Item, ChildRid => Child, AttachmentRid => Attachment
}

impl OfferRid {
    /// `_self`: without a leading, with a trailing slash.
    pub fn self_link(self) -> String {
        format!("offers/{self}/")
    }
}

impl DatabaseRid {
    /// `_self`: without a leading, with a trailing slash.
    pub fn self_link(self) -> String {
        format!("dbs/{self}/")
    }
}

impl UserRid {
    /// `_self`: without a leading, with a trailing slash.
    pub fn self_link(self) -> String {
        format!("dbs/{}/users/{self}/", self.database)
    }
}

impl PermissionRid {
    /// `_self`: without a leading, with a trailing slash.
    pub fn self_link(self) -> String {
        format!("dbs/{}/users/{}/permissions/{self}/", self.user.database, self.user)
    }
}

impl ContainerRid {
    /// `_self`: without a leading, with a trailing slash.
    pub fn self_link(self) -> String {
        format!("dbs/{}/colls/{self}/", self.database)
    }
}

impl ItemRid {
    /// `_self`: without a leading, with a trailing slash.
    pub fn self_link(self) -> String {
        format!("dbs/{}/colls/{}/docs/{self}/", self.container.database, self.container)
    }
}

impl ChildRid {
    /// `_self`: without a leading, with a trailing slash.
    pub fn self_link(self) -> String {
        let (database, feed) = (self.container.database, self.kind.feed());
        format!("dbs/{database}/colls/{}/{feed}/{self}/", self.container)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CONTAINER: ContainerRid = ContainerRid { database: DatabaseRid(0x6D00_0010), container: 1 };

    #[test]
    fn ids_are_laid_out_as_the_service_lays_them_out() {
        assert_eq!(DatabaseRid(1).to_string(), "AAAAAQ==");
        assert_eq!(CONTAINER.to_string(), "bQAAEIAAAAE=");
        assert_eq!("bQAAEIAAAAE=".parse(), Ok(CONTAINER));
        let item: ItemRid = "36ZyAPW+uN8NAAAAAAAAAA==".parse().expect("an item");
        assert_eq!(item.ordinal, 13);
        assert_eq!(item.to_string(), "36ZyAPW+uN8NAAAAAAAAAA==");
        let container = ContainerRid { database: DatabaseRid(0), container: 0 };
        let range = ChildRid { container, kind: ChildKind::PartitionKeyRange, ordinal: 2 };
        assert_eq!(container.to_string(), "AAAAAIAAAAA=");
        assert_eq!(range.to_string(), "AAAAAIAAAAACAAAAAAAAUA==");
    }

    #[test]
    fn a_slash_is_written_as_a_dash() {
        let rid = DatabaseRid(0xFFFF_FFFF);
        assert_eq!(rid.to_string(), "-----w==");
        assert_eq!("-----w==".parse(), Ok(rid));
        assert!("/////w==".parse::<DatabaseRid>().is_err());
    }

    #[test]
    fn links_to_oneself_spell_out_the_parents() {
        let item = ItemRid { container: CONTAINER, ordinal: 7 };
        for (link, expected) in [
            (OfferRid(0x69B71D).self_link(), "offers/abcd/".to_owned()),
            (CONTAINER.database.self_link(), "dbs/bQAAEA==/".to_owned()),
            (CONTAINER.self_link(), "dbs/bQAAEA==/colls/bQAAEIAAAAE=/".to_owned()),
            (item.self_link(), format!("dbs/bQAAEA==/colls/bQAAEIAAAAE=/docs/{item}/")),
        ] {
            assert_eq!(link, expected);
        }
        let user = UserRid { database: DatabaseRid(1), user: 2 };
        let permission = PermissionRid { user, permission: 3 };
        assert_eq!(user.self_link(), "dbs/AAAAAQ==/users/AAAAAQAAAAI=/");
        assert_eq!(
            permission.self_link(),
            "dbs/AAAAAQ==/users/AAAAAQAAAAI=/permissions/AAAAAQAAAAIDAAAAAAAAAA==/"
        );
        let range = ChildRid { container: CONTAINER, kind: ChildKind::PartitionKeyRange, ordinal: 0 };
        assert_eq!(range.self_link(), format!("dbs/bQAAEA==/colls/bQAAEIAAAAE=/pkranges/{range}/"));
    }

    #[test]
    fn names_are_not_ids() {
        for text in ["", "db1", "my-container", "AAAAAQ", "AAAAAQ===", "AAAAAR==", "AAAAAQAAAAE", "\u{e9}AAA"]
        {
            assert!(text.parse::<DatabaseRid>().is_err(), "{text}");
        }
        assert!("bQAAEIAAAAE=".parse::<DatabaseRid>().is_err(), "a container is not a database");
        assert!("A".repeat(1000).parse::<ResourceId>().is_err());
    }

    fn any_id() -> impl Strategy<Value = ResourceId> {
        let container = (any::<u32>(), 0..CONTAINER_BIT)
            .prop_map(|(database, container)| ContainerRid { database: DatabaseRid(database), container });
        let user = (any::<u32>(), 0..CONTAINER_BIT)
            .prop_map(|(database, user)| UserRid { database: DatabaseRid(database), user });
        let item = (container.clone(), 0u64..1 << ORDINAL_BITS)
            .prop_map(|(container, ordinal)| ItemRid { container, ordinal });
        prop_oneof![
            (0u32..1 << 24).prop_map(|number| OfferRid(number).into()),
            any::<u32>().prop_map(|number| DatabaseRid(number).into()),
            container.clone().prop_map(ResourceId::from),
            user.clone().prop_map(ResourceId::from),
            (user, any::<u64>()).prop_map(|(user, permission)| PermissionRid { user, permission }.into()),
            item.clone().prop_map(ResourceId::from),
            (item.clone(), any::<u32>())
                .prop_map(|(item, attachment)| AttachmentRid { item, attachment }.into()),
            (item, 4u64..=9).prop_map(|(item, nibble)| {
                let kind = ChildKind::from_nibble(nibble).expect("4 to 9 are kinds");
                ChildRid { container: item.container, kind, ordinal: item.ordinal }.into()
            }),
        ]
    }

    proptest! {
        #[test]
        fn an_id_survives_its_text(id in any_id()) {
            let text = id.to_string();
            prop_assert!(!text.contains('/'));
            prop_assert_eq!(text.parse(), Ok(id));
        }

        #[test]
        fn no_text_is_too_strange(text in any::<String>(), bytes in prop::collection::vec(any::<u8>(), 0..24)) {
            let _ = ResourceId::parse(&text);
            let text = BASE64.encode(&bytes);
            if let Ok(id) = ResourceId::parse(&text) {
                prop_assert_eq!(id.to_string(), text, "one text per id");
            }
        }

        #[test]
        fn items_sort_by_creation_when_their_ordinals_do(a in 0u64..1 << 60, b in 0u64..1 << 60) {
            let rid = |ordinal| ItemRid { container: CONTAINER, ordinal };
            prop_assert_eq!(rid(a).cmp(&rid(b)), a.cmp(&b));
        }
    }
}
