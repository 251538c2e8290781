//! The cache of containers, by name.
//!
//! A [`Container`] holds everything that is cached of one: its `_rid`, its partition key, its
//! partition ranges and its session tokens. All of it is dropped when the name leads to another container.

use std::future::Future;
use std::sync::Arc;

use protocol::container::PartitionKeyDefinition;
use serde::Deserialize;

use super::partition_ranges::{PartitionRanges, RangesCache};
use super::single_flight::SingleFlight;
use crate::error::{Error, ErrorKind};
use crate::operation::ContainerName;
use crate::routing::ContainerIdentity;
use crate::session::ContainerSession;

/// Containers known at a time; beyond it the least recently used is removed.
pub(super) const CONTAINERS_MAX: usize = 1024;

/// The properties of a container that the driver needs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerDefinition {
    /// The `_rid`, which differs for another container of the same name.
    #[serde(rename = "_rid")]
    pub rid: String,
    /// The partition key definition.
    pub partition_key: PartitionKeyDefinition,
}

impl ContainerDefinition {
    /// Parses the response to a container read; other properties are ignored.
    pub fn parse(body: &[u8]) -> Result<ContainerDefinition, Error> {
        let definition: ContainerDefinition = serde_json::from_slice(body).map_err(|error| {
            Error::new(
                ErrorKind::BadResponse,
                format!("the service did not respond with a container: {error}"),
            )
        })?;
        if definition.rid.is_empty() || definition.partition_key.paths.is_empty() {
            return Err(Error::new(
                ErrorKind::BadResponse,
                "the container has no `_rid` or no partition key",
            ));
        }
        Ok(definition)
    }
}

/// A container, with its cached partition ranges and session.
#[derive(Debug)]
pub struct Container {
    identity: Arc<ContainerIdentity>,
    definition: ContainerDefinition,
    session: ContainerSession,
    ranges: RangesCache,
}

impl Container {
    /// A container without cached ranges and tokens.
    pub fn new(name: ContainerName, definition: ContainerDefinition) -> Container {
        let identity = Arc::new(ContainerIdentity { name, rid: definition.rid.clone() });
        Container { identity, definition, session: ContainerSession::new(), ranges: RangesCache::new() }
    }

    /// The name that leads to it.
    pub fn name(&self) -> &ContainerName {
        &self.identity.name
    }

    /// Its name and `_rid`, shared by what is kept about its partitions.
    pub fn identity(&self) -> &Arc<ContainerIdentity> {
        &self.identity
    }

    /// The `_rid`, which differs for another container of the same name.
    pub fn rid(&self) -> &str {
        &self.definition.rid
    }

    /// The partition key definition.
    pub fn partition_key(&self) -> &PartitionKeyDefinition {
        &self.definition.partition_key
    }

    /// The session tokens of the container.
    pub fn session(&self) -> &ContainerSession {
        &self.session
    }

    /// Gives the session tokens of partitions that are gone to those that took their place. To be called once for
    /// each new listing, in the order in which the listings come into use: an older one knows nothing of the partitions
    /// of a newer one.
    pub(crate) fn adopt_session(&self, ranges: &PartitionRanges) {
        let live = ranges.map().partitions().iter();
        self.session.adopt(live.map(|partition| (partition.id, &*partition.parents)));
    }

    /// The cached partition ranges of the container.
    pub fn ranges(&self) -> &RangesCache {
        &self.ranges
    }
}

/// The cached containers, by name.
#[derive(Debug)]
pub(crate) struct ContainerCache(SingleFlight<ContainerName, Arc<Container>>);

impl Default for ContainerCache {
    fn default() -> ContainerCache {
        ContainerCache(SingleFlight::new(CONTAINERS_MAX))
    }
}

impl ContainerCache {
    /// A cache without containers.
    pub(crate) fn new() -> ContainerCache {
        ContainerCache::default()
    }

    /// The container, if it is cached.
    pub(crate) fn peek(&self, name: &ContainerName) -> Option<Arc<Container>> {
        self.0.peek(name)
    }

    /// The container; fetched if it is not cached.
    pub(crate) async fn get<F>(
        &self,
        name: &ContainerName,
        fetch: impl FnOnce() -> F,
    ) -> Result<Arc<Container>, Error>
    where
        F: Future<Output = Result<ContainerDefinition, Error>> + Send + 'static,
    {
        let made = name.clone();
        self.0.get(name, move || fetch_as_container(made, None, fetch())).await
    }

    /// The container its name leads to now, after a response contradicted `known`. It is `known` itself,
    /// with its ranges and tokens, if the name still leads to it.
    pub(crate) async fn refresh<F>(
        &self,
        known: &Arc<Container>,
        fetch: impl FnOnce() -> F,
    ) -> Result<Arc<Container>, Error>
    where
        F: Future<Output = Result<ContainerDefinition, Error>> + Send + 'static,
    {
        let name = known.identity.name.clone();
        let make = || fetch_as_container(name.clone(), Some(Arc::clone(known)), fetch());
        let refreshed =
            self.0.refresh(&known.identity.name, |current| Arc::ptr_eq(current, known), make).await;
        if let Err(error) = &refreshed
            && error.kind() == ErrorKind::NotFound
        {
            self.forget(known);
        }
        refreshed
    }

    /// Forgets a container, unless its name leads to another one already; returns whether it did.
    pub(crate) fn forget(&self, known: &Arc<Container>) -> bool {
        self.0.forget(&known.identity.name, |current| Arc::ptr_eq(current, known))
    }

    /// Whether the cache is empty.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A container of the definition that `fetch` brings, or `known` itself when it is still the same.
async fn fetch_as_container(
    name: ContainerName,
    known: Option<Arc<Container>>,
    fetch: impl Future<Output = Result<ContainerDefinition, Error>>,
) -> Result<Arc<Container>, Error> {
    let definition = fetch.await?;
    match known {
        Some(known) if known.definition == definition => Ok(known),
        _ => Ok(Arc::new(Container::new(name, definition))),
    }
}

#[cfg(test)]
mod tests {
    use futures::future::ready;
    use protocol::status::{Status, SubStatus};

    use super::*;
    use crate::session::SessionScope;

    fn definition(rid: &str) -> ContainerDefinition {
        let body = format!(
            r#"{{"id":"c","_rid":"{rid}","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}},"newer":[]}}"#
        );
        ContainerDefinition::parse(body.as_bytes()).expect("a container")
    }

    async fn known(cache: &ContainerCache, rid: &str) -> Arc<Container> {
        let name = ContainerName::new("d", "c");
        let container = cache.get(&name, || ready(Ok(definition(rid)))).await.expect("asked");
        container.session().record("0:1#5");
        container
    }

    #[test]
    fn a_body_without_rid_or_key_is_no_container() {
        for body in [
            "",
            "{}",
            r#"{"_rid":"x"}"#,
            r#"{"_rid":"","partitionKey":{"paths":["/pk"]}}"#,
            r#"{"_rid":"x","partitionKey":{"paths":[]}}"#,
        ] {
            let error = ContainerDefinition::parse(body.as_bytes()).expect_err(body);
            assert_eq!(error.kind(), ErrorKind::BadResponse);
        }
    }

    #[tokio::test]
    async fn a_container_recreated_under_its_name_starts_afresh() {
        let cache = ContainerCache::new();
        let old = known(&cache, "old").await;
        let new = cache.refresh(&old, || ready(Ok(definition("new")))).await.expect("asked");
        assert_eq!((new.rid(), new.session().token(SessionScope::Unknown)), ("new", None));
        let late = cache
            .refresh(&old, || async { Err(Error::new(ErrorKind::Unavailable, "not asked")) })
            .await
            .expect("refreshed already");
        assert!(Arc::ptr_eq(&late, &new));
        assert!(!cache.forget(&old), "the new one stays");
    }

    #[tokio::test]
    async fn a_container_that_is_still_the_same_keeps_what_was_seen() {
        let cache = ContainerCache::new();
        let container = known(&cache, "same").await;
        let again = cache.refresh(&container, || ready(Ok(definition("same")))).await.expect("asked");
        assert!(Arc::ptr_eq(&again, &container));
        assert_eq!(again.session().token(SessionScope::Unknown).as_deref(), Some("0:1#5"));
    }

    #[tokio::test]
    async fn a_container_that_is_gone_is_forgotten() {
        let cache = ContainerCache::new();
        let container = known(&cache, "gone").await;
        let gone = || ready(Err(Error::of_response(Status::NOT_FOUND, SubStatus::NONE, b"")));
        cache.refresh(&container, gone).await.expect_err("gone");
        assert!(cache.is_empty());
    }
}
