//! The whole definition of a container.
//!
//! Input: the body of a create or replace request. Output: the definition to store, and the body of the
//! response.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use super::client_encryption::ClientEncryptionPolicy;
use super::full_text::FullTextPolicy;
use super::indexing_policy::IndexingPolicy;
use super::policies::{
    ChangeFeedPolicy, ComputedProperty, ConflictResolutionPolicy, GeospatialConfig, TimeToLive,
};
use super::unique_keys::UniqueKeyPolicy;
use super::vectors::VectorEmbeddingPolicy;
use crate::definition_error::{DefinitionError, INVALID_INPUT, invalid};
use crate::partition::PartitionKeyPath;
use crate::partition::{PartitionKeyDefinition, PartitionKeyKind, PartitionKeyVersion};
use crate::resource::{SystemProperties, check_name};

/// All properties of a container that its owner sets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerProperties {
    /// The name of the container.
    pub id: String,
    /// Which paths are indexed.
    #[serde(default)]
    pub indexing_policy: IndexingPolicy,
    /// The paths of the partition key and how it is hashed.
    #[serde(default = "system_key")]
    pub partition_key: PartitionKeyDefinition,
    /// The default time to live. If absent, items never expire. See [`ContainerProperties::time_to_live`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_ttl: Option<i64>,
    /// The time to live in the analytical store; stored, but without effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analytical_storage_ttl: Option<i64>,
    /// The values that must be unique within a logical partition.
    #[serde(default)]
    pub unique_key_policy: UniqueKeyPolicy,
    /// How conflicts between regions are resolved.
    #[serde(default)]
    pub conflict_resolution_policy: ConflictResolutionPolicy,
    /// How the spatial functions interpret coordinates.
    #[serde(default)]
    pub geospatial_config: GeospatialConfig,
    /// Which properties are vector embeddings.
    #[serde(default, skip_serializing_if = "VectorEmbeddingPolicy::is_empty")]
    pub vector_embedding_policy: VectorEmbeddingPolicy,
    /// Which properties full-text search covers.
    #[serde(default, skip_serializing_if = "FullTextPolicy::is_empty")]
    pub full_text_policy: FullTextPolicy,
    /// Properties that queries can read although items do not store them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub computed_properties: Vec<ComputedProperty>,
    /// How long the change feed retains all versions and deletes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_feed_policy: Option<ChangeFeedPolicy>,
    /// Which properties clients encrypt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_encryption_policy: Option<ClientEncryptionPolicy>,
    /// Further properties, such as `materializedViewDefinition`, kept as they were sent.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The partition key of a container that was created without one.
fn system_key() -> PartitionKeyDefinition {
    PartitionKeyDefinition {
        paths: vec![PartitionKeyPath::parse("/_partitionKey").expect("a valid path")],
        kind: PartitionKeyKind::Hash,
        stated_version: None,
        system_key: true,
    }
}

impl ContainerProperties {
    /// A container with this name and partition key, and defaults for everything else.
    pub fn new(id: &str, partition_key: PartitionKeyDefinition) -> ContainerProperties {
        ContainerProperties {
            id: id.to_owned(),
            indexing_policy: IndexingPolicy::default().completed().expect("the default policy is complete"),
            partition_key,
            default_ttl: None,
            analytical_storage_ttl: None,
            unique_key_policy: UniqueKeyPolicy::default(),
            conflict_resolution_policy: ConflictResolutionPolicy::default(),
            geospatial_config: GeospatialConfig::default(),
            vector_embedding_policy: VectorEmbeddingPolicy::default(),
            full_text_policy: FullTextPolicy::default(),
            computed_properties: Vec::new(),
            change_feed_policy: None,
            client_encryption_policy: None,
            other: Map::new(),
        }
    }

    /// Parses, completes and validates the body of a create or replace request. System properties are
    /// ignored; a `null` property counts as absent, except for times to live.
    pub fn parse(body: &[u8]) -> Result<ContainerProperties, DefinitionError> {
        let invalid_body = |error: serde_json::Error| invalid(format!("{INVALID_INPUT}. {error}"));
        let mut members: Map<String, Value> = serde_json::from_slice(body).map_err(invalid_body)?;
        if let Some(ttl) = members.get("defaultTtl") {
            TimeToLive::from_json(ttl)?;
        }
        members.retain(|name, value| !name.starts_with('_') && !value.is_null());
        if let Some(Value::Number(ttl)) = members.get_mut("defaultTtl") {
            // The validation above found that 60.0 is whole.
            if let Some(whole) = ttl.as_f64() {
                *ttl = (whole as i64).into();
            }
        }
        members.entry("id").or_insert_with(|| Value::String(String::new()));
        let properties: ContainerProperties =
            serde_json::from_value(Value::Object(members)).map_err(invalid_body)?;
        properties.completed()
    }

    /// Fills in defaults and validates the whole definition.
    fn completed(mut self) -> Result<ContainerProperties, DefinitionError> {
        check_name(&self.id)?;
        if self.other.contains_key("ttlPropertyPath") && self.default_ttl.is_none() {
            return Err(invalid(format!("{INVALID_INPUT}. 'ttlPropertyPath' needs 'defaultTtl' to be set.")));
        }
        self.partition_key.validate().map_err(invalid)?;
        self.indexing_policy = self.indexing_policy.completed()?;
        self.indexing_policy.check_bounding_boxes(self.geospatial_config.kind)?;
        self.unique_key_policy.validate()?;
        ComputedProperty::validate_all(&self.computed_properties)?;
        let spatial = |name: &str| {
            let mut paths = self.indexing_policy.spatial_indexes.iter().map(|index| index.path.as_str());
            paths.any(|path| path.strip_prefix('/').and_then(|path| path.split('/').next()) == Some(name))
        };
        let properties = self.computed_properties.iter().enumerate();
        if let Some((index, property)) = properties.into_iter().find(|(_, property)| spatial(&property.name))
        {
            return Err(invalid(format!(
                "Computed property '{}' at index ({index}) has a spatial index. Remove the spatial index on this \
                 path.",
                property.name
            )));
        }
        self.vector_embedding_policy.validate()?;
        self.vector_embedding_policy.validate_indexes(&self.indexing_policy)?;
        self.full_text_policy.validate()?;
        self.full_text_policy.validate_indexes(&self.indexing_policy)?;
        if let Some(policy) = &self.client_encryption_policy {
            policy.validate(&self.partition_key)?;
        }
        Ok(self)
    }

    /// The definition after a replace request. Name, partition key, unique keys and encryption policy must not
    /// change; a request without the unique keys would remove them. Vector embeddings may be added and removed, not changed.
    pub fn replaced_by(&self, next: ContainerProperties) -> Result<ContainerProperties, ReplaceError> {
        if next.id != self.id {
            return Err(invalid("Replacing the id of a container is not allowed.").into());
        }
        let (old, new) = (&self.partition_key, &next.partition_key);
        let raised = old.version() == PartitionKeyVersion::V1 && new.version() == PartitionKeyVersion::V2;
        // An omitted partition key reads as the system key, and an omitted version as 1.
        if !new.system_key && (old.paths != new.paths || old.kind != new.kind || raised) {
            return Err(invalid("Document collection partition key cannot be changed.").into());
        }
        if next.unique_key_policy != self.unique_key_policy {
            return Err(ReplaceError::UniqueKeysChanged);
        }
        if next.client_encryption_policy != self.client_encryption_policy {
            return Err(invalid(
                "'clientEncryptionPolicy' cannot be changed as part of collection replace operation.",
            )
            .into());
        }
        self.vector_embedding_policy.check_paths_stay(&next.vector_embedding_policy)?;
        self.indexing_policy.check_vector_indexes_stay(&next.indexing_policy)?;
        Ok(ContainerProperties { partition_key: self.partition_key.clone(), ..next })
    }

    /// The time to live of items that have none of their own; `None` if items never expire.
    pub fn time_to_live(&self) -> Option<TimeToLive> {
        self.default_ttl.and_then(|seconds| TimeToLive::from_seconds(seconds).ok())
    }
}

/// Why a container cannot be replaced by another definition.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReplaceError {
    /// The new definition is invalid, or not for this container. The service rejects it with status 400.
    #[error(transparent)]
    Invalid(#[from] DefinitionError),
    /// The new definition has other unique keys, or none. The service forbids it with status 403.
    #[error(
        "The unique index cannot be modified. To change the unique index, remove the collection and re-create a new one."
    )]
    UniqueKeysChanged,
}

/// The body that describes a container: its definition and its system properties.
#[derive(Clone, Debug, Serialize)]
pub struct ContainerBody<'a> {
    /// The definition of the container.
    #[serde(flatten)]
    pub properties: &'a ContainerProperties,
    /// The system properties of the container.
    #[serde(flatten)]
    pub system: SystemProperties,
    #[serde(rename = "_docs")]
    docs: &'static str,
    #[serde(rename = "_sprocs")]
    sprocs: &'static str,
    #[serde(rename = "_triggers")]
    triggers: &'static str,
    #[serde(rename = "_udfs")]
    udfs: &'static str,
    #[serde(rename = "_conflicts")]
    conflicts: &'static str,
}

impl<'a> ContainerBody<'a> {
    /// The body of a container with these system properties.
    pub fn new(properties: &'a ContainerProperties, system: SystemProperties) -> ContainerBody<'a> {
        ContainerBody {
            properties,
            system,
            docs: "docs/",
            sprocs: "sprocs/",
            triggers: "triggers/",
            udfs: "udfs/",
            conflicts: "conflicts/",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> ContainerProperties {
        ContainerProperties::parse(json.as_bytes()).expect(json)
    }

    #[test]
    fn a_bare_definition_is_completed() {
        let properties = parse(r#"{"id":"c1","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#);
        let system = SystemProperties {
            rid: "bQAAEIAAAAE=".into(),
            self_link: "dbs/bQAAEA==/colls/bQAAEIAAAAE=/".into(),
            etag: "\"e\"".into(),
            ts: 1_700_000_000,
        };
        let expected = concat!(
            r#"{"id":"c1","indexingPolicy":{"indexingMode":"consistent","automatic":true,"#,
            r#""includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]},"#,
            r#""partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"uniqueKeyPolicy":{"uniqueKeys":[]},"#,
            r#""conflictResolutionPolicy":{"mode":"LastWriterWins","conflictResolutionPath":"/_ts","#,
            r#""conflictResolutionProcedure":""},"geospatialConfig":{"type":"Geography"},"#,
            r#""_rid":"bQAAEIAAAAE=","_self":"dbs/bQAAEA==/colls/bQAAEIAAAAE=/","_etag":"\"e\"","_ts":1700000000,"#,
            r#""_docs":"docs/","_sprocs":"sprocs/","_triggers":"triggers/","_udfs":"udfs/","_conflicts":"conflicts/"}"#
        );
        let body = serde_json::to_string(&ContainerBody::new(&properties, system)).expect("plain data");
        assert_eq!(body, expected);
        assert_eq!(parse(&body), properties, "what is answered can be sent back");
        assert_eq!(properties, ContainerProperties::new("c1", properties.partition_key.clone()));
    }

    #[test]
    fn a_definition_without_version_means_version_1_and_without_key_the_system_key() {
        assert_eq!(
            parse(r#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#).partition_key.version(),
            PartitionKeyVersion::V1
        );
        let keyless = parse(r#"{"id":"c"}"#).partition_key;
        assert!(keyless.system_key);
        assert_eq!(keyless.paths[0].as_str(), "/_partitionKey");
    }

    #[test]
    fn unknown_properties_are_kept() {
        let sent = r#"{"id":"c","partitionKey":{"paths":["/pk"]},"clientEncryptionPolicy":{"includedPaths":[],"policyFormatVersion":1},"materializedViewDefinition":{"x":1},"analyticalStorageTtl":-1,"changeFeedPolicy":{"retentionDuration":10},"defaultTtl":60,"computedProperties":[{"name":"lower","query":"SELECT VALUE LOWER(c.n) FROM c"}]}"#;
        let properties = parse(sent);
        let kept = serde_json::to_value(&properties).expect("plain data");
        let sent: Map<String, Value> = serde_json::from_str(sent).expect("json");
        for (name, value) in sent.iter().filter(|(name, _)| *name != "partitionKey") {
            assert_eq!(&kept[name], value, "{name}");
        }
        assert_eq!(properties.time_to_live(), Some(TimeToLive::Seconds(60)));
    }

    #[test]
    fn invalid_definitions_are_rejected_with_the_services_messages() {
        for (body, fragment) in [
            ("", INVALID_INPUT),
            ("[]", INVALID_INPUT),
            ("{", INVALID_INPUT),
            (r#"{"id":7}"#, INVALID_INPUT),
            (r#"{"partitionKey":{"paths":["/a"]}}"#, "non-empty string less than '255' characters"),
            (r#"{"id":"c","partitionKey":{"paths":"/pk"}}"#, INVALID_INPUT),
            (
                r#"{"id":"c","partitionKey":{"paths":["pk"]}}"#,
                "Partition key paths must contain only valid characters",
            ),
            (
                r#"{"id":"c","partitionKey":{"paths":["/a","/b","/c","/d"],"kind":"MultiHash","version":2}}"#,
                "Too many partition key paths",
            ),
            (r#"{"id":"c","defaultTtl":null}"#, "time to live"),
            (r#"{"id":"c","defaultTtl":0}"#, "time to live"),
            (r#"{"id":"c","defaultTtl":-10}"#, "time to live"),
            (
                r#"{"id":"c","indexingPolicy":{"vectorIndexes":[{"path":"/v","type":"flat"}]}}"#,
                "not matching in Embedding's path",
            ),
            (
                r#"{"id":"c","indexingPolicy":{"vectorIndexes":[{"path":"/v","type":"flat","vectorIndexShardKey":"/c"}]}}"#,
                INVALID_INPUT,
            ),
            (r#"{"id":"c","fullTextPolicy":{"defaultLanguage":"xx-YY"}}"#, "unsupported language xx-YY"),
            (
                r#"{"id":"c","computedProperties":[{"name":"id","query":"SELECT VALUE 1"}]}"#,
                "The system property name 'id' cannot be used as a computed property name.",
            ),
            (r#"{"id":"c","uniqueKeyPolicy":{"uniqueKeys":[{"paths":[]}]}}"#, "unique key"),
        ] {
            let error = ContainerProperties::parse(body.as_bytes()).expect_err(body).message;
            assert!(error.contains(fragment), "{body}: {error}");
        }
        let nested = "[".repeat(100_000);
        assert!(
            ContainerProperties::parse(nested.as_bytes()).is_err(),
            "deep nesting is refused, not followed"
        );
    }

    #[test]
    fn a_replace_keeps_name_key_and_what_cannot_change() {
        let current = parse(
            r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/u"]}]},"vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","dataType":"float32","dimensions":3,"distanceFunction":"cosine"}]}}"#,
        );
        let next = current
            .replaced_by(parse(
                r#"{"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":-1,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/u"]}]}}"#,
            ))
            .expect("a fair replace");
        assert_eq!(next.partition_key, current.partition_key);
        assert!(next.vector_embedding_policy.is_empty(), "embeddings can be removed");
        assert_eq!(next.time_to_live(), Some(TimeToLive::Forever));
        for body in [
            r#"{"id":"other","partitionKey":{"paths":["/pk"]}}"#,
            r#"{"id":"c","partitionKey":{"paths":["/other"]}}"#,
            r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"MultiHash","version":2}}"#,
        ] {
            let error = current.replaced_by(parse(body)).expect_err(body);
            assert!(matches!(error, ReplaceError::Invalid(_)), "{body}");
        }
        for body in [
            r#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#,
            r#"{"id":"c","partitionKey":{"paths":["/pk"]},"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/x"]}]}}"#,
        ] {
            assert_eq!(current.replaced_by(parse(body)), Err(ReplaceError::UniqueKeysChanged), "{body}");
        }
        let old = parse(r#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#);
        assert!(
            old.replaced_by(parse(r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}"#)).is_err()
        );
    }

    #[test]
    fn a_replace_may_add_and_remove_vector_embeddings_but_not_change_them() {
        let with = |embeddings: &str| {
            parse(&format!(
                r#"{{"id":"c","partitionKey":{{"paths":["/pk"]}},"vectorEmbeddingPolicy":{{"vectorEmbeddings":[{embeddings}]}}}}"#
            ))
        };
        let vector = |path: &str, dimensions: u32| {
            format!(
                r#"{{"path":"{path}","dataType":"float32","dimensions":{dimensions},"distanceFunction":"cosine"}}"#
            )
        };
        let current = with(&vector("/v", 3));
        let both = format!("{},{}", vector("/w", 2), vector("/v", 3));
        let added = current.replaced_by(with(&both)).expect("one is added");
        assert_eq!(added.vector_embedding_policy.vector_embeddings.len(), 2);
        assert!(added.replaced_by(with("")).is_ok());
        let message = current.replaced_by(with(&vector("/v", 4))).expect_err("another length").to_string();
        assert!(
            message
                .starts_with("Paths in existing embedding policy cannot be modified in Collection Replace")
        );
    }

    #[test]
    fn a_spatial_index_has_a_bounding_box_on_a_plane_and_nowhere_else() {
        let bounds = r#","boundingBox":{"xmin":-10,"ymin":-20,"xmax":10,"ymax":20}"#;
        let reversed = r#","boundingBox":{"xmin":10,"ymin":-20,"xmax":-10,"ymax":20}"#;
        let define = |surface: &str, bounds: &str| {
            let body = format!(
                r#"{{"id":"c","geospatialConfig":{{"type":"{surface}"}},"indexingPolicy":{{"spatialIndexes":[{{"path":"/p/*","types":["Point"]{bounds}}}]}}}}"#
            );
            ContainerProperties::parse(body.as_bytes()).map(drop).map_err(|error| error.message)
        };
        assert_eq!(define("Geography", ""), Ok(()));
        assert_eq!(define("Geometry", bounds), Ok(()));
        for (surface, bounds) in [
            ("Geography", bounds),
            ("Geometry", ""),
            ("Geometry", reversed),
            ("Geometry", r#","boundingBox":{}"#),
        ] {
            let message = define(surface, bounds).expect_err(bounds);
            assert!(message.contains("boundingBox"), "{message}");
        }
    }

    #[test]
    fn a_replace_must_not_change_vector_indexes() {
        let with = |indexes: &str| {
            parse(&format!(
                r#"{{"id":"c","partitionKey":{{"paths":["/pk"]}},"indexingPolicy":{{"vectorIndexes":[{indexes}]}},"vectorEmbeddingPolicy":{{"vectorEmbeddings":[
                    {{"path":"/v","dataType":"float32","dimensions":3,"distanceFunction":"cosine"}},
                    {{"path":"/w","dataType":"float32","dimensions":3,"distanceFunction":"cosine"}}]}}}}"#
            ))
        };
        let current = with(r#"{"path":"/v","type":"flat"}"#);
        for indexes in [
            r#"{"path":"/v","type":"flat"}"#,
            r#"{"path":"/v","type":"FLAT"}"#,
            r#"{"path":"/w","type":"quantizedFlat"},{"path":"/v","type":"flat"}"#,
            r#"{"path":"/w","type":"diskANN"}"#,
            "",
        ] {
            assert!(current.replaced_by(with(indexes)).is_ok(), "{indexes}");
        }
        for indexes in [
            r#"{"path":"/v","type":"quantizedFlat"}"#,
            r#"{"path":"/v","type":"flat","quantizationByteSize":2}"#,
            r#"{"path":"/w","type":"flat"},{"path":"/v","type":"diskANN"}"#,
        ] {
            let message = current.replaced_by(with(indexes)).expect_err(indexes).to_string();
            let expected =
                "Paths in existing vector indexing policy cannot be modified in Collection Replace";
            assert!(message.contains(expected), "{indexes}: {message}");
        }
    }
}
