//! Resource paths: the path of a request URL, such as `dbs/a/colls/b/docs/c`.
//!
//! Input: the path of a request. Output: the resource it addresses, segment by segment, with decoded ids.
//! Whether an id is a name or a `_rid`, and whether the method is allowed, is decided by the server.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::percent_decode_str;
use thiserror::Error;

/// The type of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResourceType {
    /// The account itself, whose path is empty.
    Account,
    /// A database, in paths `dbs`.
    Database,
    /// A container, in paths `colls`.
    Container,
    /// An item, in paths `docs`.
    Item,
    /// A partition key range, in paths `pkranges`.
    PartitionKeyRange,
    /// A stored procedure, in paths `sprocs`.
    StoredProcedure,
    /// A trigger, in paths `triggers`.
    Trigger,
    /// A user-defined function, in paths `udfs`.
    UserDefinedFunction,
    /// A conflict, in paths `conflicts`.
    Conflict,
    /// A schema, in paths `schemas`.
    Schema,
    /// An attachment, in paths `attachments`.
    Attachment,
    /// A user, in paths `users`.
    User,
    /// A permission, in paths `permissions`.
    Permission,
    /// A client encryption key, in paths `clientencryptionkeys`.
    ClientEncryptionKey,
    /// An offer, in paths `offers`.
    Offer,
    /// An operation on a container such as `partitionkeydelete`, in paths `operations`.
    Operation,
    /// An address of direct mode, in paths `addresses`.
    Address,
    /// A media file, in paths `media`.
    Media,
}

impl ResourceType {
    /// All types that have a path segment.
    const SEGMENTS: [(&'static str, ResourceType); 17] = [
        ("docs", ResourceType::Item),
        ("dbs", ResourceType::Database),
        ("colls", ResourceType::Container),
        ("pkranges", ResourceType::PartitionKeyRange),
        ("offers", ResourceType::Offer),
        ("sprocs", ResourceType::StoredProcedure),
        ("triggers", ResourceType::Trigger),
        ("udfs", ResourceType::UserDefinedFunction),
        ("conflicts", ResourceType::Conflict),
        ("schemas", ResourceType::Schema),
        ("attachments", ResourceType::Attachment),
        ("users", ResourceType::User),
        ("permissions", ResourceType::Permission),
        ("clientencryptionkeys", ResourceType::ClientEncryptionKey),
        ("operations", ResourceType::Operation),
        ("addresses", ResourceType::Address),
        ("media", ResourceType::Media),
    ];

    /// The resource type of a path segment such as `docs`.
    pub fn from_path_segment(segment: &str) -> Option<ResourceType> {
        ResourceType::SEGMENTS.iter().find(|(name, _)| *name == segment).map(|(_, kind)| *kind)
    }

    /// The path segment of the type, which is also part of the string to sign; empty for the account.
    pub fn path_segment(self) -> &'static str {
        match self {
            ResourceType::Account => "",
            ResourceType::Database => "dbs",
            ResourceType::Container => "colls",
            ResourceType::Item => "docs",
            ResourceType::PartitionKeyRange => "pkranges",
            ResourceType::StoredProcedure => "sprocs",
            ResourceType::Trigger => "triggers",
            ResourceType::UserDefinedFunction => "udfs",
            ResourceType::Conflict => "conflicts",
            ResourceType::Schema => "schemas",
            ResourceType::Attachment => "attachments",
            ResourceType::User => "users",
            ResourceType::Permission => "permissions",
            ResourceType::ClientEncryptionKey => "clientencryptionkeys",
            ResourceType::Offer => "offers",
            ResourceType::Operation => "operations",
            ResourceType::Address => "addresses",
            ResourceType::Media => "media",
        }
    }

    /// The property of a feed response that holds the resources, such as `Documents`.
    pub fn feed_property(self) -> &'static str {
        match self {
            ResourceType::Account => "DatabaseAccounts",
            ResourceType::Database => "Databases",
            ResourceType::Container => "DocumentCollections",
            ResourceType::Item => "Documents",
            ResourceType::PartitionKeyRange => "PartitionKeyRanges",
            ResourceType::StoredProcedure => "StoredProcedures",
            ResourceType::Trigger => "Triggers",
            ResourceType::UserDefinedFunction => "UserDefinedFunctions",
            ResourceType::Conflict => "Conflicts",
            ResourceType::Schema => "Schemas",
            ResourceType::Attachment => "Attachments",
            ResourceType::User => "Users",
            ResourceType::Permission => "Permissions",
            ResourceType::ClientEncryptionKey => "ClientEncryptionKeys",
            ResourceType::Offer => "Offers",
            ResourceType::Operation => "Operations",
            ResourceType::Address => "Addresses",
            ResourceType::Media => "Media",
        }
    }

    /// The type of the parent; `None` for resources directly under the account.
    pub fn parent(self) -> Option<ResourceType> {
        match self {
            ResourceType::Account
            | ResourceType::Database
            | ResourceType::Offer
            | ResourceType::Address
            | ResourceType::Media => None,
            ResourceType::Container | ResourceType::User | ResourceType::ClientEncryptionKey => {
                Some(ResourceType::Database)
            }
            ResourceType::Permission => Some(ResourceType::User),
            ResourceType::Attachment => Some(ResourceType::Item),
            ResourceType::Item
            | ResourceType::PartitionKeyRange
            | ResourceType::StoredProcedure
            | ResourceType::Trigger
            | ResourceType::UserDefinedFunction
            | ResourceType::Conflict
            | ResourceType::Schema
            | ResourceType::Operation => Some(ResourceType::Container),
        }
    }
}

impl fmt::Display for ResourceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path_segment())
    }
}

/// A resource type and the id after it; without an id the feed of that type is addressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSegment<'a> {
    /// The type of the resource.
    pub kind: ResourceType,
    /// The decoded id; `None` at the end of the path of a feed.
    pub id: Option<Cow<'a, str>>,
}

/// The largest number of type and id pairs: database, container, item, attachment.
const LEVELS_MAX: usize = 4;

/// A parsed path, which borrows its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourcePath<'a> {
    /// The path without slashes at either end.
    raw: &'a str,
    levels: [Option<PathSegment<'a>>; LEVELS_MAX],
    depth: usize,
}

/// The error of a path that addresses no resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ResourcePathError {
    /// A segment is not a resource type that is allowed at its position.
    #[error("segment {0} of the path is not a resource type that can be there")]
    UnknownType(usize),
    /// An id is empty.
    #[error("segment {0} of the path is empty")]
    EmptyId(usize),
    /// A decoded id is not UTF-8.
    #[error("segment {0} of the path is not UTF-8 once decoded")]
    NotText(usize),
}

impl<'a> ResourcePath<'a> {
    /// Parses a path. Slashes at both ends are ignored. Segments are split before they are decoded, so that
    /// an escaped slash stays in its id; `+` is not an escape.
    ///
    /// Cost: one pass; allocates only for ids with escapes.
    pub fn parse(path: &'a str) -> Result<ResourcePath<'a>, ResourcePathError> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let raw = path.strip_suffix('/').unwrap_or(path);
        let mut parsed = ResourcePath { raw, levels: [const { None }; LEVELS_MAX], depth: 0 };
        if raw.is_empty() {
            return Ok(parsed);
        }
        let mut parent = None;
        let mut segments = segments(raw).enumerate();
        while let Some((index, segment)) = segments.next() {
            let kind = ResourceType::from_path_segment(segment).filter(|kind| kind.parent() == parent);
            let kind = kind.ok_or(ResourcePathError::UnknownType(index))?;
            let id = match segments.next() {
                None => None,
                Some((index, "")) => return Err(ResourcePathError::EmptyId(index)),
                Some((index, id)) => Some(decode(id).ok_or(ResourcePathError::NotText(index))?),
            };
            // Parents are checked, so a path cannot have more pairs than the deepest type.
            parsed.levels[parsed.depth] = Some(PathSegment { kind, id });
            parsed.depth += 1;
            parent = Some(kind);
        }
        Ok(parsed)
    }

    /// The pairs of type and id, outermost first; none for the account.
    pub fn levels(&self) -> impl DoubleEndedIterator<Item = &PathSegment<'a>> + ExactSizeIterator {
        self.levels[..self.depth]
            .iter()
            .map(|level| level.as_ref().expect("levels up to the depth are filled"))
    }

    /// The type of the addressed resource or feed.
    pub fn resource_type(&self) -> ResourceType {
        self.levels().next_back().map_or(ResourceType::Account, |level| level.kind)
    }

    /// Whether the path addresses a feed.
    pub fn is_feed(&self) -> bool {
        self.levels().next_back().is_some_and(|level| level.id.is_none())
    }

    /// The id at the end, unless the path addresses a feed or the account.
    pub fn id(&self) -> Option<&str> {
        self.levels().next_back()?.id.as_deref()
    }

    /// The id of the ancestor of this type, or of the resource itself.
    pub fn id_of(&self, kind: ResourceType) -> Option<&str> {
        self.levels().find(|level| level.kind == kind)?.id.as_deref()
    }

    /// The id of the database.
    pub fn database(&self) -> Option<&str> {
        self.id_of(ResourceType::Database)
    }

    /// The id of the container.
    pub fn container(&self) -> Option<&str> {
        self.id_of(ResourceType::Container)
    }

    /// The id of the item.
    pub fn item(&self) -> Option<&str> {
        self.id_of(ResourceType::Item)
    }

    /// The path as it was sent, without slashes at the ends.
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// The decoded link that is signed: the path itself, or its parent for a feed.
    ///
    /// Cost: none unless some id has escapes.
    pub fn link(&self) -> Cow<'a, str> {
        if !self.raw.contains('%') {
            return Cow::Borrowed(self.raw_link());
        }
        let mut link = String::with_capacity(self.raw.len());
        for level in self.levels() {
            if let Some(id) = &level.id {
                if !link.is_empty() {
                    link.push('/');
                }
                link.push_str(level.kind.path_segment());
                link.push('/');
                link.push_str(id);
            }
        }
        Cow::Owned(link)
    }

    /// The link that is signed, with its escapes.
    pub fn raw_link(&self) -> &'a str {
        if self.is_feed() { self.raw.rsplit_once('/').map_or("", |(parent, _)| parent) } else { self.raw }
    }
}

/// The segments between slashes. By hand because `split('/')` searches as for long texts, which costs more
/// for such short segments than the rest of the parsing.
fn segments(raw: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(raw);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(slash) = text.bytes().position(|byte| byte == b'/') else { return rest.take() };
        rest = Some(&text[slash + 1..]);
        Some(&text[..slash])
    })
}

fn decode(segment: &str) -> Option<Cow<'_, str>> {
    if !segment.contains('%') {
        return Some(Cow::Borrowed(segment));
    }
    percent_decode_str(segment).decode_utf8().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(path: &str, kind: ResourceType, id: Option<&str>, link: &str) {
        let parsed = ResourcePath::parse(path).expect(path);
        assert_eq!(parsed.resource_type(), kind, "{path}");
        assert_eq!(parsed.id(), id, "{path}");
        assert_eq!(parsed.link(), link, "{path}");
    }

    #[test]
    fn every_path_of_the_service_is_known() {
        use ResourceType as Kind;
        check("/", Kind::Account, None, "");
        check("", Kind::Account, None, "");
        check("/dbs", Kind::Database, None, "");
        check("/dbs/d", Kind::Database, Some("d"), "dbs/d");
        check("/dbs/d/colls", Kind::Container, None, "dbs/d");
        check("/dbs/d/colls/c", Kind::Container, Some("c"), "dbs/d/colls/c");
        check("/dbs/d/colls/c/docs", Kind::Item, None, "dbs/d/colls/c");
        check("/dbs/d/colls/c/docs/i", Kind::Item, Some("i"), "dbs/d/colls/c/docs/i");
        check("/dbs/d/colls/c/docs/i/attachments", Kind::Attachment, None, "dbs/d/colls/c/docs/i");
        check("/dbs/d/colls/c/pkranges", Kind::PartitionKeyRange, None, "dbs/d/colls/c");
        check("/dbs/d/colls/c/sprocs/s", Kind::StoredProcedure, Some("s"), "dbs/d/colls/c/sprocs/s");
        check("/dbs/d/colls/c/triggers", Kind::Trigger, None, "dbs/d/colls/c");
        check("/dbs/d/colls/c/udfs", Kind::UserDefinedFunction, None, "dbs/d/colls/c");
        check("/dbs/d/colls/c/conflicts/x", Kind::Conflict, Some("x"), "dbs/d/colls/c/conflicts/x");
        check("/dbs/d/users/u", Kind::User, Some("u"), "dbs/d/users/u");
        check("/dbs/d/users/u/permissions", Kind::Permission, None, "dbs/d/users/u");
        check("/dbs/d/clientencryptionkeys", Kind::ClientEncryptionKey, None, "dbs/d");
        check("/offers", Kind::Offer, None, "");
        check("/offers/abcd", Kind::Offer, Some("abcd"), "offers/abcd");
        check("/addresses/", Kind::Address, None, "");
        let path = ResourcePath::parse("/dbs/d/colls/c/operations/partitionkeydelete").expect("a path");
        assert_eq!(path.id_of(Kind::Operation), Some("partitionkeydelete"));
        assert_eq!((path.database(), path.container(), path.item()), (Some("d"), Some("c"), None));
    }

    #[test]
    fn segments_are_separated_by_slashes() {
        for text in ["", "/", "a", "a/", "/a", "a//b", "dbs/d/colls/ü/docs/€"] {
            assert_eq!(segments(text).collect::<Vec<_>>(), text.split('/').collect::<Vec<_>>(), "{text}");
        }
    }

    #[test]
    fn path_segments_and_types_map_one_to_one() {
        for (segment, kind) in ResourceType::SEGMENTS {
            assert_eq!(kind.path_segment(), segment);
            assert_eq!(ResourceType::from_path_segment(segment), Some(kind));
        }
        assert_eq!(ResourceType::from_path_segment("Docs"), None);
        assert_eq!(ResourceType::Item.feed_property(), "Documents");
    }

    #[test]
    fn a_trailing_slash_changes_nothing() {
        check("/dbs/db1/colls/c1/docs/", ResourceType::Item, None, "dbs/db1/colls/c1");
        check("/dbs/db1/", ResourceType::Database, Some("db1"), "dbs/db1");
    }

    #[test]
    fn ids_are_decoded_after_splitting() {
        check("/dbs/a%20b", ResourceType::Database, Some("a b"), "dbs/a b");
        check("/dbs/a+b", ResourceType::Database, Some("a+b"), "dbs/a+b");
        check("/dbs/d/colls/docs/docs/docs", ResourceType::Item, Some("docs"), "dbs/d/colls/docs/docs/docs");
        check(
            "/dbs/d/colls/c/docs/x%2Fy%3F%25",
            ResourceType::Item,
            Some("x/y?%"),
            "dbs/d/colls/c/docs/x/y?%",
        );
        check("/dbs/%E4%B8%AD", ResourceType::Database, Some("中"), "dbs/中");
        check("/dbs/中", ResourceType::Database, Some("中"), "dbs/中");
        check("/dbs/100%", ResourceType::Database, Some("100%"), "dbs/100%");
        let path = ResourcePath::parse("/dbs/a%20b/colls").expect("a path");
        assert_eq!((path.raw(), path.raw_link()), ("dbs/a%20b/colls", "dbs/a%20b"));
    }

    #[test]
    fn invalid_paths_name_the_segment() {
        use ResourcePathError::{EmptyId, NotText, UnknownType};
        for (path, expected) in [
            ("/nothing", UnknownType(0)),
            ("/colls", UnknownType(0)),
            ("/dbs/d/docs", UnknownType(2)),
            ("/dbs/d/colls/c/dbs", UnknownType(4)),
            ("/dbs/d/colls/c/docs/i/more", UnknownType(6)),
            ("/DBS", UnknownType(0)),
            ("//dbs", UnknownType(0)),
            ("/dbs//colls", EmptyId(1)),
            ("/dbs/%FF", NotText(1)),
        ] {
            assert_eq!(ResourcePath::parse(path), Err(expected), "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_path_parses_or_fails_without_panic(path in any::<String>(), segments in prop::collection::vec("dbs|colls|docs|users|attachments|permissions|[a-z%/]{0,4}", 0..12)) {
            let _ = ResourcePath::parse(&path);
            let _ = ResourcePath::parse(&segments.join("/"));
        }

        #[test]
        fn any_id_survives_escaping(id in "\\PC{1,20}") {
            let escaped = percent_encoding::utf8_percent_encode(&id, percent_encoding::NON_ALPHANUMERIC).to_string();
            let path = format!("/dbs/d/colls/c/docs/{escaped}");
            let parsed = ResourcePath::parse(&path).unwrap();
            prop_assert_eq!(parsed.item(), Some(&*id));
        }
    }
}
