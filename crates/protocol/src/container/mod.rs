//! The definition of a container: partition key, indexing policy, and the other policies.
//!
//! Input: the body of a create or replace request. Output: [`ContainerProperties`], validated and
//! completed as the service does, or the message of its error. The queries of computed properties
//! are validated by the crate that has a SQL parser.

mod client_encryption; // the client encryption policy
mod full_text; // the full-text policy
mod index_path; // paths of the indexing policy, with wildcards
mod indexing_policy; // included and excluded paths, composite, spatial and vector indexes
mod indexing_rules; // the policy's paths as a tree, for walking an item
mod policies; // conflict resolution, TTL, computed properties, geospatial, change feed
mod properties; // the whole definition
mod unique_keys; // the unique key policy
mod vectors; // the vector embedding policy

pub use crate::definition_error::{DefinitionError, INVALID_INPUT};
pub use crate::partition::{
    KeyCompleteness, PARTITION_KEY_PATHS_MAX, PartitionKeyDefinition, PartitionKeyDefinitionError,
    PartitionKeyKind, PartitionKeyPath, PartitionKeyPathError, PartitionKeyVersion,
};
pub use client_encryption::{ClientEncryptionPath, ClientEncryptionPolicy};
pub use full_text::{FULL_TEXT_LANGUAGES, FullTextPath, FullTextPolicy, LanguageCode};
pub use index_path::{IndexPath, IndexPathEnd, IndexPathError, IndexStep};
pub use indexing_policy::{
    CompositeOrder, CompositePath, ExcludedPath, FullTextIndex, IncludedPath, IndexingMode, IndexingPolicy,
    SpatialIndex, VectorIndex,
};
pub use indexing_rules::{IndexingNode, IndexingRules};
pub use policies::{
    COMPUTED_PROPERTIES_MAX, ChangeFeedPolicy, ComputedProperty, ConflictResolutionMode,
    ConflictResolutionPolicy, GeospatialConfig, GeospatialType, TTL_SECONDS_MAX, TimeToLive,
};
pub use properties::{ContainerBody, ContainerProperties, ReplaceError};
pub use unique_keys::{UNIQUE_KEY_PATHS_MAX, UNIQUE_KEYS_MAX, UniqueKey, UniqueKeyPolicy};
pub use vectors::{DistanceFunction, VECTOR_DIMENSIONS_MAX, VectorEmbedding, VectorEmbeddingPolicy};
