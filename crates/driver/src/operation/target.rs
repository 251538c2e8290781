//! What an operation is about: a resource, by the strings that will be sent and signed.
//!
//! The strings are made once, when the target is: the path that goes into the URL (escaped) and the link
//! that goes into the signature (not escaped). They are the same text unless an id needs escaping.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use protocol::resource_path::ResourceType;

/// What is escaped in an id: everything that is not unreserved in a URL's path.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A container by its names; cheap to clone, so keep one per container and make targets from it.
#[derive(Clone)]
pub struct ContainerName(Arc<Names>);

struct Names {
    database: String,
    container: String,
    /// The path `dbs/d/colls/c`, with escaped ids.
    path: String,
    /// The path without escapes, unless it has none.
    link: Option<String>,
}

impl ContainerName {
    /// The container `container` of the database `database`, by their ids as the user knows them.
    pub fn new(database: &str, container: &str) -> ContainerName {
        let mut path = String::with_capacity(12 + database.len() + container.len());
        let mut escaped = push_entry(&mut path, ResourceType::Database, database);
        escaped |= push_entry(&mut path, ResourceType::Container, container);
        let link = escaped.then(|| format!("dbs/{database}/colls/{container}"));
        ContainerName(Arc::new(Names {
            database: database.to_owned(),
            container: container.to_owned(),
            path,
            link,
        }))
    }

    /// The id of the database.
    pub fn database(&self) -> &str {
        &self.0.database
    }

    /// The id of the container.
    pub fn container(&self) -> &str {
        &self.0.container
    }

    /// `dbs/d/colls/c`, as it stands in a URL.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// `dbs/d/colls/c`, as it is signed.
    pub fn link(&self) -> &str {
        self.0.link.as_deref().unwrap_or(&self.0.path)
    }
}

/// The path says it all.
impl PartialEq for ContainerName {
    fn eq(&self, other: &ContainerName) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.path == other.0.path
    }
}

impl Eq for ContainerName {}

impl Hash for ContainerName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.path.hash(state);
    }
}

impl fmt::Debug for ContainerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.link())
    }
}

impl fmt::Display for ContainerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.link())
    }
}

/// The resource or feed an operation is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    resource: ResourceType,
    /// Below the endpoint, escaped, without a slash in front.
    path: String,
    /// How many bytes of the path are signed, when nothing is escaped: all of them, or the parent's of a feed.
    signed_len: usize,
    /// What is signed when it is not a part of the path.
    link: Option<String>,
    is_feed: bool,
    container: Option<ContainerName>,
}

impl Target {
    /// The properties of the account.
    pub fn account() -> Target {
        Target {
            resource: ResourceType::Account,
            path: String::new(),
            signed_len: 0,
            link: None,
            is_feed: false,
            container: None,
        }
    }

    /// The feed of all databases.
    pub fn databases() -> Target {
        Target::account().feed(ResourceType::Database)
    }

    /// One database, by its id.
    pub fn database(id: &str) -> Target {
        Target::account().entry(ResourceType::Database, id)
    }

    /// All containers of a database.
    pub fn containers(database: &str) -> Target {
        Target::database(database).feed(ResourceType::Container)
    }

    /// One container, by its name.
    pub fn container(name: &ContainerName) -> Target {
        Target {
            resource: ResourceType::Container,
            path: name.path().to_owned(),
            signed_len: name.path().len(),
            link: name.0.link.clone(),
            is_feed: false,
            container: Some(name.clone()),
        }
    }

    /// All items of a container: where they are made, listed and queried.
    pub fn items(container: &ContainerName) -> Target {
        Target::below(container, ResourceType::Item, None)
    }

    /// One item, by its container and id.
    pub fn item(container: &ContainerName, id: &str) -> Target {
        Target::below(container, ResourceType::Item, Some(id))
    }

    /// The partition key ranges of a container.
    pub fn partition_key_ranges(container: &ContainerName) -> Target {
        Target::below(container, ResourceType::PartitionKeyRange, None)
    }

    /// All offers: what throughput databases and containers have.
    pub fn offers() -> Target {
        Target::account().feed(ResourceType::Offer)
    }

    /// One offer. Its id is a resource id, which is signed in lower case.
    pub fn offer(rid: &str) -> Target {
        let mut target = Target::account().entry(ResourceType::Offer, rid);
        target.link = Some(rid.to_ascii_lowercase());
        target
    }

    /// The feed of one type inside `self`, such as the users of a database.
    pub fn feed(&self, kind: ResourceType) -> Target {
        let mut path = self.path.clone();
        push_word(&mut path, kind);
        Target { resource: kind, path, is_feed: true, ..self.clone() }
    }

    /// One resource inside `self`, such as a stored procedure of a container.
    pub fn entry(&self, kind: ResourceType, id: &str) -> Target {
        let mut path = self.path.clone();
        let escaped = push_entry(&mut path, kind, id);
        let link = (escaped || self.link.is_some()).then(|| {
            let parent = self.signed_link();
            let slash = if parent.is_empty() { "" } else { "/" };
            format!("{parent}{slash}{}/{id}", kind.path_segment())
        });
        let container = match kind {
            ResourceType::Container => self.database_id().map(|database| ContainerName::new(&database, id)),
            _ => self.container.clone(),
        };
        Target { resource: kind, signed_len: path.len(), path, link, is_feed: false, container }
    }

    fn below(container: &ContainerName, kind: ResourceType, id: Option<&str>) -> Target {
        let mut path = String::with_capacity(container.path().len() + 12 + id.map_or(0, str::len));
        path.push_str(container.path());
        let (signed_len, link) = match id {
            None => {
                push_word(&mut path, kind);
                (container.path().len(), container.0.link.clone())
            }
            Some(id) => {
                let escaped = push_entry(&mut path, kind, id) || container.0.link.is_some();
                (path.len(), escaped.then(|| format!("{}/{}/{id}", container.link(), kind.path_segment())))
            }
        };
        Target {
            resource: kind,
            path,
            signed_len,
            link,
            is_feed: id.is_none(),
            container: Some(container.clone()),
        }
    }

    fn database_id(&self) -> Option<String> {
        let link = self.signed_link();
        let id = link.strip_prefix("dbs/")?;
        (self.resource == ResourceType::Database).then(|| id.to_owned())
    }

    /// The id of the database that it is or lives in.
    pub fn database_name(&self) -> Option<&str> {
        match &self.container {
            Some(name) => Some(name.database()),
            None => self.signed_link().strip_prefix("dbs/")?.split('/').next(),
        }
    }

    /// The type that is signed.
    pub fn resource(&self) -> ResourceType {
        self.resource
    }

    /// The resource as a person knows it; of a feed, the resource that it belongs to.
    pub fn link(&self) -> &str {
        // Resources that are signed by their `_rid` alone say more in their path.
        if self.resource == ResourceType::Offer { &self.path } else { self.signed_link() }
    }

    /// Whether one of its ids is empty, `.` or `..`. No resource has such an id, and the path of one would lead
    /// to its parent: such a target must not be sent.
    pub fn names_nothing(&self) -> bool {
        let strange = |step| matches!(step, "" | "%2E" | "%2E%2E");
        // Only where something was escaped, which is hardly ever.
        self.link.is_some() && self.path.split('/').any(strange)
    }

    /// Whether it is a feed, not one resource.
    pub fn is_feed(&self) -> bool {
        self.is_feed
    }

    /// The path below the endpoint, escaped, without a slash in front.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The link that is signed: the resource's own, or its parent's for a feed.
    pub fn signed_link(&self) -> &str {
        self.link.as_deref().unwrap_or(&self.path[..self.signed_len])
    }

    /// The container it is or lives in.
    pub fn container_name(&self) -> Option<&ContainerName> {
        self.container.as_ref()
    }
}

fn push_word(path: &mut String, kind: ResourceType) {
    if !path.is_empty() {
        path.push('/');
    }
    path.push_str(kind.path_segment());
}

/// Appends `word/id` and says whether the id had to be escaped, or cannot be in a path.
fn push_entry(path: &mut String, kind: ResourceType, id: &str) -> bool {
    push_word(path, kind);
    path.push('/');
    // Dots alone would be taken for a step in the path, even escaped: see `Target::names_nothing`.
    if matches!(id, "" | "." | "..") {
        id.chars().for_each(|_| path.push_str("%2E"));
        return true;
    }
    let before = path.len();
    path.extend(utf8_percent_encode(id, ESCAPED));
    path[before..] != *id
}

#[cfg(test)]
mod tests {
    use protocol::resource_path::ResourcePath;

    use super::*;

    #[test]
    fn paths_and_links_are_what_the_service_expects() {
        let name = ContainerName::new("d", "c");
        for (target, path, link) in [
            (Target::account(), "", ""),
            (Target::databases(), "dbs", ""),
            (Target::database("d"), "dbs/d", "dbs/d"),
            (Target::containers("d"), "dbs/d/colls", "dbs/d"),
            (Target::container(&name), "dbs/d/colls/c", "dbs/d/colls/c"),
            (Target::items(&name), "dbs/d/colls/c/docs", "dbs/d/colls/c"),
            (Target::item(&name, "i"), "dbs/d/colls/c/docs/i", "dbs/d/colls/c/docs/i"),
            (Target::partition_key_ranges(&name), "dbs/d/colls/c/pkranges", "dbs/d/colls/c"),
            (Target::offers(), "offers", ""),
            (Target::offer("AbC"), "offers/AbC", "abc"),
            (
                Target::container(&name).entry(ResourceType::StoredProcedure, "s"),
                "dbs/d/colls/c/sprocs/s",
                "dbs/d/colls/c/sprocs/s",
            ),
            (Target::database("d").feed(ResourceType::User), "dbs/d/users", "dbs/d"),
        ] {
            assert_eq!(target.path(), path);
            assert_eq!(target.signed_link(), link, "{path}");
        }
    }

    #[test]
    fn ids_are_escaped_in_the_path_and_not_in_the_link() {
        let name = ContainerName::new("a b", "ü");
        assert_eq!(name.path(), "dbs/a%20b/colls/%C3%BC");
        assert_eq!(name.link(), "dbs/a b/colls/ü");
        let target = Target::item(&name, "x/y?");
        assert_eq!(target.path(), "dbs/a%20b/colls/%C3%BC/docs/x%2Fy%3F");
        assert_eq!(target.signed_link(), "dbs/a b/colls/ü/docs/x/y?");
        assert_eq!(Target::items(&name).signed_link(), "dbs/a b/colls/ü");
        assert_eq!(Target::item(&ContainerName::new("d", "c"), "..").path(), "dbs/d/colls/c/docs/%2E%2E");
    }

    #[test]
    fn an_id_of_dots_names_no_resource() {
        let name = ContainerName::new("d", "c");
        for (target, names_nothing) in [
            (Target::account(), false),
            (Target::databases(), false),
            (Target::item(&name, "i"), false),
            (Target::item(&name, "..."), false),
            (Target::item(&name, "a/b"), false),
            (Target::item(&name, ""), true),
            (Target::item(&name, "."), true),
            (Target::item(&name, ".."), true),
            (Target::database(""), true),
            (Target::containers(".."), true),
            (Target::items(&ContainerName::new("d", "")), true),
            (Target::item(&ContainerName::new(".", "c"), "i"), true),
        ] {
            assert_eq!(target.names_nothing(), names_nothing, "{target:?}");
        }
    }

    #[test]
    fn the_service_reads_a_path_as_it_was_meant() {
        let name = ContainerName::new("d%", "c+");
        let target = Target::item(&name, "100% ü");
        let parsed = ResourcePath::parse(target.path()).expect("a path");
        assert_eq!(
            (parsed.database(), parsed.container(), parsed.item()),
            (Some("d%"), Some("c+"), Some("100% ü"))
        );
        assert_eq!(parsed.link(), target.signed_link());
    }

    #[test]
    fn a_container_made_step_by_step_knows_its_name() {
        let target = Target::database("d").entry(ResourceType::Container, "c");
        assert_eq!(target.container_name(), Some(&ContainerName::new("d", "c")));
        assert_eq!(
            target.entry(ResourceType::Item, "i").container_name(),
            Some(&ContainerName::new("d", "c"))
        );
    }
}
