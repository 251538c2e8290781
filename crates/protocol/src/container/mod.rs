//! What a container is: its key, its index, its rules.
//!
//! In: the body of a create or replace. Out: [`ContainerProperties`], checked and completed as the
//! service would, or the message it would refuse with. Computed properties are SQL, which is
//! checked where there is a parser.

mod full_text; // what is searched
mod index_path; // paths with wildcards
mod indexing_policy; // what is indexed
mod indexing_rules; // …place by place
mod invalid; // why not
mod partition_key; // which key, hashed how
mod path; // paths without wildcards
mod policies; // everything small
mod properties; // all of it together
mod unique_keys; // what must not repeat
mod vectors; // what is near what

pub use full_text::{FULL_TEXT_LANGUAGES, FullTextPath, FullTextPolicy};
pub use index_path::{IndexPath, IndexPathEnd, IndexPathError, IndexStep};
pub use indexing_policy::{
    CompositeOrder, CompositePath, ExcludedPath, FullTextIndex, IncludedPath, IndexingMode, IndexingPolicy,
    SpatialIndex, VectorIndex,
};
pub use indexing_rules::{IndexingNode, IndexingRules};
pub use invalid::{DefinitionError, INVALID_INPUT};
pub use partition_key::{
    KeyCompleteness, PARTITION_KEY_PATHS_MAX, PartitionKeyDefinition, PartitionKeyDefinitionError,
    PartitionKeyKind, PartitionKeyVersion,
};
pub use path::{PartitionKeyPath, PartitionKeyPathError};
pub use policies::{
    COMPUTED_PROPERTIES_MAX, ChangeFeedPolicy, ComputedProperty, ConflictResolutionMode,
    ConflictResolutionPolicy, GeospatialConfig, GeospatialType, TTL_SECONDS_MAX, TimeToLive,
};
pub use properties::{ContainerBody, ContainerProperties};
pub use unique_keys::{UNIQUE_KEY_PATHS_MAX, UNIQUE_KEYS_MAX, UniqueKey, UniqueKeyPolicy};
pub use vectors::{DistanceFunction, VECTOR_DIMENSIONS_MAX, VectorEmbedding, VectorEmbeddingPolicy};
