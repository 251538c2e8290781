//! The vector embedding policy of a container: which properties are vectors, and how distances are
//! measured.
//!
//! Input and output: the `vectorEmbeddingPolicy` property, validated together with the vector indexes.
//! Distances are computed by the crate `sql`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::indexing_policy::{IndexingPolicy, VectorIndex};
use crate::definition_error::{DefinitionError, invalid};
use crate::partition::PartitionKeyPath;

/// The largest number of dimensions of a vector.
pub const VECTOR_DIMENSIONS_MAX: i64 = 4096;
const QUANTIZATION_BYTES_MAX: i64 = 512;

/// The properties of a container that are vectors. Once the container exists, they can be added and removed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VectorEmbeddingPolicy {
    /// The vector embeddings, one per property.
    pub vector_embeddings: Vec<VectorEmbedding>,
    /// Further properties, kept as they were sent.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A property that is a vector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VectorEmbedding {
    /// The path of the property in the item.
    pub path: String,
    /// The element type: `float32`, `float16`, `int8` or `uint8`.
    pub data_type: String,
    /// The number of dimensions.
    pub dimensions: i64,
    /// The name of the distance function; see [`VectorEmbedding::distance`].
    pub distance_function: String,
    /// Further properties, kept as they were sent.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// How the similarity of two vectors is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DistanceFunction {
    /// Cosine similarity; larger is closer.
    #[default]
    Cosine,
    /// Dot product; larger is closer.
    DotProduct,
    /// Euclidean distance; smaller is closer.
    Euclidean,
}

impl DistanceFunction {
    /// The function of this name, in any case.
    pub fn from_name(word: &str) -> Option<DistanceFunction> {
        [
            ("cosine", DistanceFunction::Cosine),
            ("dotproduct", DistanceFunction::DotProduct),
            ("euclidean", DistanceFunction::Euclidean),
        ]
        .into_iter()
        .find_map(|(known, function)| known.eq_ignore_ascii_case(word).then_some(function))
    }

    /// Whether the nearest vector has the smallest distance, so that sorting is ascending.
    pub fn nearest_is_smallest(self) -> bool {
        match self {
            DistanceFunction::Euclidean => true,
            DistanceFunction::Cosine | DistanceFunction::DotProduct => false,
        }
    }
}

impl VectorEmbeddingPolicy {
    /// Checks that `next` does not change the embeddings that it repeats.
    pub(super) fn check_paths_stay(&self, next: &VectorEmbeddingPolicy) -> Result<(), DefinitionError> {
        let changed = |new: &VectorEmbedding| {
            self.vector_embeddings.iter().any(|old| old.path == new.path && old != new)
        };
        match next.vector_embeddings.iter().any(changed) {
            true => Err(invalid(
                "Paths in existing embedding policy cannot be modified in Collection Replace. They can only be added \
                 or removed.",
            )),
            false => Ok(()),
        }
    }
}

impl VectorEmbedding {
    /// The distance function of a validated policy.
    pub fn distance(&self) -> DistanceFunction {
        DistanceFunction::from_name(&self.distance_function).unwrap_or_default()
    }
}

impl VectorEmbeddingPolicy {
    /// Whether no property is a vector.
    pub fn is_empty(&self) -> bool {
        self.vector_embeddings.is_empty() && self.other.is_empty()
    }

    /// Validates the embeddings of the policy.
    pub fn validate(&self) -> Result<(), DefinitionError> {
        for (index, embedding) in self.vector_embeddings.iter().enumerate() {
            let VectorEmbedding { path, data_type, dimensions, distance_function, .. } = embedding;
            if PartitionKeyPath::parse(path).is_err() {
                return Err(invalid(format!("The Vector Embedding Policy has an invalid Path:{path}.")));
            }
            if self.vector_embeddings[..index].iter().any(|earlier| earlier.path == *path) {
                return Err(invalid(format!("The Vector Embedding Policy has a duplicate Path:{path}.")));
            }
            const DATA_TYPES: [&str; 4] = ["float32", "float16", "int8", "uint8"];
            if !DATA_TYPES.iter().any(|known| known.eq_ignore_ascii_case(data_type)) {
                return Err(invalid(format!(
                    "The Vector Embedding Policy has an invalid DataType:{data_type}."
                )));
            }
            if *dimensions < 1 {
                return Err(invalid(format!(
                    "The Vector Embedding Policy has Dimensions:{dimensions} which is less than the minimum supported \
                     value of 1."
                )));
            }
            if *dimensions > VECTOR_DIMENSIONS_MAX {
                return Err(invalid(format!(
                    "The Vector Embedding Policy has Dimensions:{dimensions} which is more than the maximum supported \
                     value of {VECTOR_DIMENSIONS_MAX}."
                )));
            }
            if DistanceFunction::from_name(distance_function).is_none() {
                return Err(invalid(format!(
                    "The Vector Embedding Policy has an invalid DistanceFunction:{distance_function}."
                )));
            }
        }
        Ok(())
    }

    /// Validates the vector indexes against the policy.
    pub fn validate_indexes(&self, policy: &IndexingPolicy) -> Result<(), DefinitionError> {
        policy.vector_indexes.iter().try_for_each(|index| self.validate_index(index))
    }

    fn validate_index(&self, index: &VectorIndex) -> Result<(), DefinitionError> {
        let VectorIndex { path, kind, .. } = index;
        let Some(embedding) = self.vector_embeddings.iter().find(|embedding| embedding.path == *path) else {
            return Err(invalid(format!(
                "The Vector Indexing Policy's path::{path} not matching in Embedding's path."
            )));
        };
        if !["flat", "quantizedFlat", "diskANN"].iter().any(|known| known.eq_ignore_ascii_case(kind)) {
            return Err(invalid(format!("The Vector Indexing Policy's Index Type::{kind} is invalid.")));
        }
        let out_of_range = |name, value, min, max| {
            invalid(format!(
                "The Vector Indexing Policy parameter {name} value :: {value} is out of range. The allowed range is \
                 between {min} and {max}."
            ))
        };
        let bytes_max = embedding.dimensions.min(QUANTIZATION_BYTES_MAX);
        if let Some(bytes) = index.quantization_byte_size
            && !(1..=bytes_max).contains(&bytes)
        {
            return Err(out_of_range("QuantizationByteSize", bytes, 1, bytes_max));
        }
        if let Some(size) = index.indexing_search_list_size
            && !(25..=500).contains(&size)
        {
            return Err(out_of_range("IndexingSearchListSize", size, 25, 500));
        }
        let shards = index.vector_index_shard_key.as_deref().unwrap_or_default();
        if shards.len() > 1 {
            return Err(invalid(format!(
                "The number of shard paths defined in the Vector Indexing Policy: {} exceeds the maximum: 1.",
                shards.len()
            )));
        }
        if let Some(path) = shards.iter().find(|path| PartitionKeyPath::parse(path).is_err()) {
            return Err(invalid(format!("The Vector Indexing Policy has an invalid Shard Path: {path}.")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn embedding(data_type: &str, dimensions: i64, distance: &str) -> VectorEmbeddingPolicy {
        let json = format!(
            r#"{{"vectorEmbeddings":[{{"path":"/v","dataType":"{data_type}","dimensions":{dimensions},"distanceFunction":"{distance}"}}]}}"#
        );
        serde_json::from_str(&json).expect("a policy")
    }

    #[test]
    fn embedding_policies_are_validated() {
        for (policy, expected) in [
            (embedding("float32", 256, "euclidean"), None),
            (embedding("float16", 4096, "Cosine"), None),
            (embedding("uint8", 1, "dotproduct"), None),
            (embedding("float33", 256, "euclidean"), Some("Vector Embedding Policy has an invalid DataType")),
            (
                embedding("float32", 8000, "euclidean"),
                Some(
                    "Vector Embedding Policy has Dimensions:8000 which is more than the maximum supported value",
                ),
            ),
            (embedding("float32", -1, "euclidean"), Some("The Vector Embedding Policy has Dimensions:-1")),
            (
                embedding("float32", 256, "handMeasured"),
                Some("The Vector Embedding Policy has an invalid DistanceFunction:handMeasured"),
            ),
        ] {
            let outcome = policy.validate();
            match expected {
                None => assert_eq!(outcome, Ok(())),
                Some(fragment) => {
                    let message = outcome.expect_err(fragment).message;
                    assert!(message.contains(fragment), "{message}");
                }
            }
        }
        assert_eq!(
            embedding("int8", 2, "DotProduct").vector_embeddings[0].distance(),
            DistanceFunction::DotProduct
        );
    }

    #[test]
    fn vector_indexes_must_fit_the_embeddings() {
        for (dimensions, index, expected) in [
            (256, r#"{"path":"/v","type":"flat"}"#, None),
            (256, r#"{"path":"/v","type":"diskANN","vectorIndexShardKey":["/country/city"]}"#, None),
            (
                256,
                r#"{"path":"/vector1","type":"flat"}"#,
                Some("Vector Indexing Policy's path::/vector1 not matching in Embedding's path"),
            ),
            (256, r#"{"path":"/v","type":"notFlat"}"#, Some("Index Type::notFlat is invalid")),
            (
                256,
                r#"{"path":"/v","type":"quantizedFlat","quantizationByteSize":0}"#,
                Some(
                    "The Vector Indexing Policy parameter QuantizationByteSize value :: 0 is out of range. The allowed range is between 1 and 256.",
                ),
            ),
            (
                550,
                r#"{"path":"/v","type":"quantizedFlat","quantizationByteSize":513}"#,
                Some("QuantizationByteSize value :: 513 is out of range."),
            ),
            (
                256,
                r#"{"path":"/v","type":"diskANN","indexingSearchListSize":5}"#,
                Some(
                    "IndexingSearchListSize value :: 5 is out of range. The allowed range is between 25 and 500.",
                ),
            ),
            (
                256,
                r#"{"path":"/v","type":"diskANN","vectorIndexShardKey":["country"]}"#,
                Some("The Vector Indexing Policy has an invalid Shard Path: country."),
            ),
            (
                256,
                r#"{"path":"/v","type":"diskANN","vectorIndexShardKey":["/a","/b","/c"]}"#,
                Some(
                    "The number of shard paths defined in the Vector Indexing Policy: 3 exceeds the maximum: 1.",
                ),
            ),
        ] {
            let policy: IndexingPolicy =
                serde_json::from_str(&format!(r#"{{"vectorIndexes":[{index}]}}"#)).expect("a policy");
            let outcome = embedding("float32", dimensions, "cosine").validate_indexes(&policy);
            match expected {
                None => assert_eq!(outcome, Ok(()), "{index}"),
                Some(fragment) => {
                    let message = outcome.expect_err(fragment).message;
                    assert!(message.contains(fragment), "{message}");
                }
            }
        }
    }
}
