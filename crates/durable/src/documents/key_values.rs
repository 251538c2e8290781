//! The key-value store of an instance.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{DocumentType, SCHEMA_VERSION};
use crate::ids;

/// A part of the key-value store of an instance, as it is after an execution. Changes of the current execution are
/// events of its history.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeyValuesDocument {
    pub(crate) id: String,
    pub(crate) instance_id: String,
    #[serde(rename = "type")]
    pub(crate) document_type: DocumentType,
    #[serde(default)]
    pub(crate) schema_version: u32,
    pub(crate) values: BTreeMap<String, StoredValue>,
}

/// A value and when it was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredValue {
    pub(crate) value: String,
    pub(crate) updated_at: u64,
}

impl KeyValuesDocument {
    pub(crate) fn new(instance: &str, execution_id: u64, chunk: usize) -> KeyValuesDocument {
        KeyValuesDocument {
            id: ids::key_values_document(instance, execution_id, chunk),
            instance_id: instance.to_owned(),
            document_type: DocumentType::KeyValues,
            schema_version: SCHEMA_VERSION,
            values: BTreeMap::new(),
        }
    }
}
