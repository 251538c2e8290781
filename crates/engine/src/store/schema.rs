//! A container's properties, prepared for the store: partition key, unique keys, indexing, TTL, conflicts.

use protocol::container::{ContainerProperties, GeospatialType, LanguageCode, PartitionKeyDefinition};
use protocol::partition::{EffectivePartitionKey, PartitionKey};
use smol_str::SmolStr;
use sql::Value;
use sql::value::write_json;

use crate::regions::ConflictResolver;
use crate::store::transaction::document::component;

use crate::store::index::{IndexSpace, Policy, Step, Terms, follow};

/// What a container's properties say about its documents.
#[derive(Debug)]
pub struct ContainerSchema {
    /// The paths of the partition key, and how it is hashed.
    pub partition_key: PartitionKeyDefinition,
    key_paths: Vec<Vec<SmolStr>>,
    pub(crate) default_ttl: Option<i32>,
    pub(super) unique_keys: Vec<UniqueKey>,
    pub(crate) policy: Policy,
    /// Decides which version wins when two regions write one item.
    pub(crate) conflict_resolver: ConflictResolver,
    /// What the query language has to know: computed properties, vectors, geography.
    pub sql: sql::QuerySchema,
}

/// Paths whose values may occur once per logical partition.
#[derive(Debug)]
pub(super) struct UniqueKey {
    pub(super) space: IndexSpace,
    paths: Vec<Vec<Step>>,
}

impl ContainerSchema {
    /// Prepares a container's properties.
    pub(crate) fn of(properties: &ContainerProperties) -> ContainerSchema {
        let key_paths = properties
            .partition_key
            .paths
            .iter()
            .map(|path| path.segments().iter().map(SmolStr::new).collect())
            .collect();
        let unique_keys = properties.unique_key_policy.unique_keys.iter().map(|key| {
            let paths: Vec<Vec<Step>> = key
                .paths
                .iter()
                .map(|path| path.segments().iter().cloned().map(Step::Key).collect())
                .collect();
            let space =
                paths.iter().fold(IndexSpace::ROOT, |space, path| space.join(3, path.iter().collect()));
            UniqueKey { space, paths }
        });
        ContainerSchema {
            key_paths,
            // Validated when the container was defined: -1, or seconds that fit.
            default_ttl: properties.default_ttl.and_then(|seconds| i32::try_from(seconds).ok()),
            unique_keys: unique_keys.collect(),
            policy: Policy::compile(&properties.indexing_policy),
            conflict_resolver: ConflictResolver::of(&properties.conflict_resolution_policy),
            sql: query_schema(properties),
            partition_key: properties.partition_key.clone(),
        }
    }

    /// The partition key a document carries.
    pub(crate) fn extract_key(&self, document: &Value) -> PartitionKey {
        let follow = |path: &Vec<SmolStr>| path.iter().fold(document, |value, name| value.member(name));
        PartitionKey::new(self.key_paths.iter().map(|path| component(follow(path))).collect())
    }

    /// The members that hold the partition key, for change feed metadata.
    pub(crate) fn key_paths(&self) -> &[Vec<SmolStr>] {
        &self.key_paths
    }

    pub(super) fn add_time_terms(
        &self,
        terms: &mut Terms,
        policy: &Policy,
        document: &Value,
        (seconds, ttl): (u64, Option<i32>),
    ) {
        terms.add_time(document, policy, seconds);
        let lifetime = self.default_ttl.map(|default| ttl.unwrap_or(default));
        if let Some(lifetime) = lifetime.and_then(|lifetime| u64::try_from(lifetime).ok()) {
            terms.add(IndexSpace::EXPIRY, &(seconds + lifetime).to_be_bytes());
        }
    }
}

impl UniqueKey {
    /// The logical partition and the values: equal for two documents that may not both exist. A
    /// missing value counts as null, numbers are equal by value.
    pub(super) fn value(&self, document: &Value, epk: &EffectivePartitionKey) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        bytes.push(epk.as_bytes().len() as u8);
        bytes.extend_from_slice(epk.as_bytes());
        for path in &self.paths {
            match follow(document, path) {
                Value::Undefined => bytes.extend_from_slice(b"null"),
                // As the service compares them: two integers beyond 2^53 can be the same double.
                Value::Number(number) => write_json(&Value::from(number.as_f64() + 0.0), &mut bytes),
                value => write_json(value, &mut bytes),
            }
            bytes.push(0);
        }
        bytes
    }
}

/// What the query language has to know of a container.
fn query_schema(properties: &ContainerProperties) -> sql::QuerySchema {
    let computed = properties.computed_properties.iter();
    let vectors = properties.vector_embedding_policy.vector_embeddings.iter();
    let texts = &properties.full_text_policy;
    let language = |code: Option<&LanguageCode>| sql::FullTextLanguage::from_tag(code?.supported_tag()?);
    sql::QuerySchema {
        computed_properties: computed
            .map(|property| sql::ComputedProperty {
                name: property.name.as_str().into(),
                query: property.query.clone(),
            })
            .collect(),
        geometry: match properties.geospatial_config.kind {
            GeospatialType::Geography => sql::GeometryKind::Geography,
            GeospatialType::Geometry => sql::GeometryKind::Geometry,
        },
        vector_policies: vectors
            .map(|vector| sql::VectorPolicy { path: vector.path.clone(), distance: vector.distance() })
            .collect(),
        full_text_language: language(texts.default_language.as_ref()).unwrap_or_default(),
        full_text_paths: texts
            .full_text_paths
            .iter()
            .filter_map(|known| {
                let language = language(known.language.as_ref())?;
                Some(sql::FullTextPathLanguage { path: known.path.clone(), language })
            })
            .collect(),
    }
}
