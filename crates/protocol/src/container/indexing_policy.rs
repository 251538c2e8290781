//! The indexing policy of a container.
//!
//! Input: the policy of a request. Output: the completed policy that the service stores, or its error.
//! Applying it is done in `indexing_rules` and in the store.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::index_path::{IndexPath, IndexPathEnd, IndexStep};
use super::policies::GeospatialType;
use crate::definition_error::{DefinitionError, invalid};

/// The indexing policy of a container: which paths are indexed, and with which kinds of index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IndexingPolicy {
    /// Whether items are indexed at all.
    pub indexing_mode: IndexingMode,
    /// Whether items are indexed automatically; `None` until the policy is completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automatic: Option<bool>,
    /// The paths that are indexed.
    pub included_paths: Vec<IncludedPath>,
    /// The paths that are not indexed.
    pub excluded_paths: Vec<ExcludedPath>,
    /// The composite indexes, for ORDER BY with several properties.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub composite_indexes: Vec<Vec<CompositePath>>,
    /// The spatial indexes, for GeoJSON properties.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spatial_indexes: Vec<SpatialIndex>,
    /// The vector indexes; validated together with the vector embedding policy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vector_indexes: Vec<VectorIndex>,
    /// The full-text indexes; validated together with the full-text policy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub full_text_indexes: Vec<FullTextIndex>,
    /// Further properties, kept as they were sent.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Whether items are indexed at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IndexingMode {
    /// The index is updated with every write. `lazy`, which the service no longer offers, is read as this.
    #[default]
    Consistent,
    /// Items are not indexed.
    None,
}

/// A path that is indexed. The index kinds (`indexes`) of old definitions are accepted and dropped, since
/// there is only one kind today.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncludedPath {
    /// The path, such as `/*` or `/a/?`.
    pub path: String,
}

/// A path that is not indexed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcludedPath {
    /// The path, such as `/a/*`.
    pub path: String,
}

/// One property of a composite index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompositePath {
    /// The path of the property, without a wildcard.
    pub path: String,
    /// The direction, which defaults to ascending.
    #[serde(default)]
    pub order: CompositeOrder,
}

/// The direction of a property in a composite index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CompositeOrder {
    /// From the smallest value to the largest.
    #[default]
    Ascending,
    /// From the largest value to the smallest.
    Descending,
}

/// An index on a GeoJSON property.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpatialIndex {
    /// The path of the GeoJSON property.
    pub path: String,
    /// The geometry types: `Point`, `LineString`, `Polygon`, `MultiPolygon`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// The bounding box, for planar coordinates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounding_box: Option<Value>,
}

/// An index on a vector property.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VectorIndex {
    /// The path of the vector property.
    pub path: String,
    /// The index type: `flat`, `quantizedFlat` or `diskANN`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The size of a quantized vector: 1 to 512 bytes, and at most the number of dimensions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantization_byte_size: Option<i64>,
    /// The size of the search list: 25 to 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indexing_search_list_size: Option<i64>,
    /// The path of the shard key; at most one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector_index_shard_key: Option<Vec<String>>,
    /// Further properties, such as `quantizerType`, kept as they were sent.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// An index on a full-text property.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FullTextIndex {
    /// The path of the property. The service has an error message of its own if it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Further properties, kept as they were sent.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

const ROOT: &str = "/*";
const ETAG: &str = "/\"_etag\"/?";

impl IndexingPolicy {
    /// The policy that the service stores: with defaults, the root path, and `_etag` excluded.
    pub fn completed(mut self) -> Result<IndexingPolicy, DefinitionError> {
        if self.indexing_mode == IndexingMode::None {
            self.automatic.get_or_insert(false);
            self.included_paths.clear();
            self.excluded_paths.clear();
            self.check_special_indexes()?;
            return Ok(self);
        }
        self.automatic.get_or_insert(true);
        let mut has_root = false;
        let mut has_etag = false;
        let paths = self.included_paths.iter_mut().map(|included| &mut included.path);
        for path in paths.chain(self.excluded_paths.iter_mut().map(|excluded| &mut excluded.path)) {
            let parsed = IndexPath::parse(path).map_err(invalid)?;
            if parsed.steps.is_empty() && parsed.end == IndexPathEnd::Subtree {
                if std::mem::replace(&mut has_root, true) {
                    return Err(invalid("The indexing path '/*' is specified more than once."));
                }
                ROOT.clone_into(path);
            }
            has_etag |= matches!(&*parsed.steps, [IndexStep::Key(name)] if name == "_etag");
        }
        if !has_root {
            if !self.included_paths.is_empty() {
                return Err(invalid(
                    "The special mandatory indexing path \"/\" is not provided in any of the path type sets. Please \
                     provide this path in one of the sets.",
                ));
            }
            self.included_paths.push(IncludedPath { path: ROOT.to_owned() });
        }
        if !has_etag {
            self.excluded_paths.push(ExcludedPath { path: ETAG.to_owned() });
        }
        self.check_special_indexes()?;
        Ok(self)
    }

    /// Checks that `next` does not change the vector indexes that it repeats. Indexes may be added and
    /// removed.
    pub(super) fn check_vector_indexes_stay(&self, next: &IndexingPolicy) -> Result<(), DefinitionError> {
        let changed = |new: &VectorIndex| {
            self.vector_indexes.iter().any(|old| {
                let same_kind = old.kind.eq_ignore_ascii_case(&new.kind);
                old.path == new.path
                    && !(same_kind && VectorIndex { kind: old.kind.clone(), ..new.clone() } == *old)
            })
        };
        match next.vector_indexes.iter().any(changed) {
            true => Err(invalid(
                "Paths in existing vector indexing policy cannot be modified in Collection Replace. They can only be \
                 added or removed.",
            )),
            false => Ok(()),
        }
    }

    /// Checks that spatial indexes have a bounding box on a plane, where coordinates have no limits of their
    /// own, and none on the earth, where they have.
    pub(super) fn check_bounding_boxes(&self, surface: GeospatialType) -> Result<(), DefinitionError> {
        for SpatialIndex { path, bounding_box, .. } in &self.spatial_indexes {
            match (surface, bounding_box) {
                (GeospatialType::Geography, None) => {}
                (GeospatialType::Geography, Some(_)) => {
                    return Err(invalid(format!(
                        "The spatial index '{path}' must not have a boundingBox, since the geospatialConfig type of \
                         the container is Geography."
                    )));
                }
                (GeospatialType::Geometry, None) => {
                    return Err(invalid(format!(
                        "The spatial index '{path}' must have a boundingBox, since the geospatialConfig type of the \
                         container is Geometry."
                    )));
                }
                (GeospatialType::Geometry, Some(bounds)) => {
                    let side = |name: &str| bounds.get(name).and_then(Value::as_f64);
                    let ordered =
                        |low: Option<f64>, high: Option<f64>| low.zip(high).is_some_and(|(l, h)| l < h);
                    if !ordered(side("xmin"), side("xmax")) || !ordered(side("ymin"), side("ymax")) {
                        return Err(invalid(format!(
                            "The boundingBox of the spatial index '{path}' must have numbers xmin below xmax and ymin \
                             below ymax."
                        )));
                    }
                }
            }
        }
        Ok(())
    }

    fn check_special_indexes(&self) -> Result<(), DefinitionError> {
        for index in &self.composite_indexes {
            if index.len() < 2 {
                return Err(invalid("The composite index must have at least two paths."));
            }
            for composite in index {
                let path = IndexPath::parse(&composite.path).map_err(invalid)?;
                if path.end == IndexPathEnd::Subtree {
                    let path = &composite.path;
                    return Err(invalid(format!(
                        "The composite path '{path}' must not end with a wildcard."
                    )));
                }
            }
        }
        for spatial in &self.spatial_indexes {
            IndexPath::parse(&spatial.path).map_err(invalid)?;
            if spatial.types.is_empty() {
                return Err(invalid(format!(
                    "The spatial data types array cannot be empty. Assign at least one spatial type for the 'types' \
                     array for the path '{}'.",
                    spatial.path
                )));
            }
            const TYPES: [&str; 4] = ["Point", "LineString", "Polygon", "MultiPolygon"];
            if let Some(unknown) = spatial.types.iter().find(|kind| !TYPES.contains(&kind.as_str())) {
                return Err(invalid(format!(
                    "The spatial type '{unknown}' is none of {}.",
                    TYPES.join(", ")
                )));
            }
        }
        Ok(())
    }
}

/// Serialises a fixed set of words, read in any case and written in lower case.
macro_rules! word {
    ($kind:ty, $what:literal, $($read:literal => $value:path),+; $($write:path => $text:literal),+) => {
        impl Serialize for $kind {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(match self { $($write => $text),+ })
            }
        }

        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$kind, D::Error> {
                let word = String::deserialize(deserializer)?;
                match &*word.to_ascii_lowercase() {
                    $($read => Ok($value),)+
                    _ => Err(serde::de::Error::custom(format!(concat!("'{}' is not ", $what), word))),
                }
            }
        }
    };
}

word! {
    IndexingMode, "an indexing mode",
    "consistent" => IndexingMode::Consistent, "lazy" => IndexingMode::Consistent, "none" => IndexingMode::None;
    IndexingMode::Consistent => "consistent", IndexingMode::None => "none"
}

word! {
    CompositeOrder, "an order",
    "ascending" => CompositeOrder::Ascending, "descending" => CompositeOrder::Descending;
    CompositeOrder::Ascending => "ascending", CompositeOrder::Descending => "descending"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sent: &str, kept: &str) {
        let policy: IndexingPolicy = serde_json::from_str(sent).expect("a policy");
        let kept_policy = policy.completed().expect("a good policy");
        assert_eq!(serde_json::to_string(&kept_policy).expect("plain data"), kept);
        let again = kept_policy.clone().completed().expect("a completed policy is good");
        assert_eq!(again, kept_policy, "completing twice changes nothing");
    }

    #[test]
    fn the_default_is_everything_but_the_etag() {
        check(
            "{}",
            r#"{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]}"#,
        );
    }

    #[test]
    fn the_etag_is_added_after_the_callers_paths_and_kinds_of_index_are_forgotten() {
        check(
            r#"{"indexingMode":"Consistent","includedPaths":[{"path":"/","indexes":[{"kind":"Range","dataType":"Number"}]}],"excludedPaths":[{"path":"/a/*"}]}"#,
            r#"{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/a/*"},{"path":"/\"_etag\"/?"}]}"#,
        );
        check(
            r#"{"excludedPaths":[{"path":"/_etag/?"}],"automatic":false}"#,
            r#"{"indexingMode":"consistent","automatic":false,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/_etag/?"}]}"#,
        );
    }

    #[test]
    fn a_root_that_is_excluded_is_not_included_as_well() {
        check(
            r#"{"includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/*"}]}"#,
            r#"{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/*"},{"path":"/\"_etag\"/?"}]}"#,
        );
    }

    #[test]
    fn no_index_has_no_paths() {
        check(
            r#"{"indexingMode":"none","automatic":false}"#,
            r#"{"indexingMode":"none","automatic":false,"includedPaths":[],"excludedPaths":[]}"#,
        );
    }

    #[test]
    fn special_indexes_and_unknown_members_are_kept() {
        let sent = r#"{"compositeIndexes":[[{"path":"/a","order":"ascending"},{"path":"/b","order":"Descending"}]],"spatialIndexes":[{"path":"/loc/*","types":["Point"]}],"vectorIndexes":[{"path":"/v","type":"diskANN","quantizationByteSize":8,"quantizerType":"x"}],"fullTextIndexes":[{"path":"/t"}],"future":1}"#;
        let policy: IndexingPolicy = serde_json::from_str(sent).expect("a policy");
        let kept = serde_json::to_value(policy.completed().expect("good")).expect("plain data");
        let mut sent: Value = serde_json::from_str(&sent.replace("Descending", "descending")).expect("json");
        for (name, value) in sent.as_object_mut().expect("an object") {
            assert_eq!(&kept[name.as_str()], value, "{name}");
        }
    }

    #[test]
    fn invalid_policies_are_rejected() {
        for (sent, fragment) in [
            (r#"{"includedPaths":[{"path":"/a/?"}]}"#, "mandatory indexing path"),
            (r#"{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/*"}]}"#, "more than once"),
            (r#"{"includedPaths":[{"path":"a"}]}"#, "failed near position '0'"),
            (r#"{"excludedPaths":[{"path":"/a/*/b"}]}"#, "failed near position '3'"),
            (r#"{"compositeIndexes":[[{"path":"/a"}]]}"#, "at least two paths"),
            (r#"{"compositeIndexes":[[{"path":"/a/*"},{"path":"/b"}]]}"#, "wildcard"),
            (r#"{"spatialIndexes":[{"path":"/a/*","types":["Circle"]}]}"#, "Circle"),
        ] {
            let policy: IndexingPolicy = serde_json::from_str(sent).expect("a policy");
            let error = policy.completed().expect_err(sent).to_string();
            assert!(error.contains(fragment), "{sent}: {error}");
        }
        for sent in [r#"{"indexingMode":"fast"}"#, r#"{"compositeIndexes":[[{"path":"/a","order":"up"}]]}"#] {
            assert!(serde_json::from_str::<IndexingPolicy>(sent).is_err(), "{sent}");
        }
    }
}
