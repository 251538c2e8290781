//! A document as a client sends it: parsed, validated, and ready to be stored.
//!
//! All work that does not depend on stored items happens here, before the write guard is taken: parsing,
//! validation, the text to store, index terms and unique keys.

use std::borrow::Cow;
use std::sync::Arc;

use protocol::partition::{EffectivePartitionKey, PartitionKeyComponent, effective_key};
use smol_str::SmolStr;
use sql::Value;
use sql::value::{NotJson, check_json, write_json, write_json_string};
use thiserror::Error;

use crate::items::{Item, is_system_member};
use crate::store::index::{IndexSpace, Policy, Terms};
use crate::store::schema::ContainerSchema;

/// The largest item, in bytes of JSON.
pub(crate) const ITEM_BYTES_MAX: usize = 2 * 1024 * 1024;
/// The longest item id, in bytes.
pub(crate) const ID_BYTES_MAX: usize = 1023;

/// Initial capacity for the text of a document that is serialized anew.
const TEXT_LENGTH_USUAL: usize = 1024;

/// A document ready to be written.
#[derive(Debug)]
pub struct Document {
    /// The schema it was prepared under.
    schema: Arc<ContainerSchema>,
    /// The `id` of the document.
    pub id: SmolStr,
    /// The effective partition key of its partition key value.
    pub epk: EffectivePartitionKey,
    pub(crate) ttl: Option<i32>,
    pub(in crate::store) is_indexed: bool,
    value: Value,
    /// The user's members as JSON, with the opening brace and without the closing one.
    pub(in crate::store) user_text: Vec<u8>,
    /// Its index entries if it is written at `prepared_at`.
    terms: Terms,
    prepared_at: u64,
    /// The version that it is expected to replace, with its index terms.
    prepared_replacement: Option<(Arc<Item>, Terms)>,
}

/// Why a document cannot be stored.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum DocumentError {
    /// The body is not valid JSON.
    #[error("The request payload is invalid. Ensure to provide a valid request payload: {0}")]
    InvalidJson(String),
    /// The body is JSON, but not an object.
    #[error("The input content is invalid because it is not a JSON object")]
    NotAnObject,
    /// The document is a computed value that JSON cannot represent, or too deeply nested.
    #[error("The request payload is invalid. The document cannot be stored as JSON: {0}")]
    NotJson(NotJson),
    /// The document has no `id`.
    #[error("The input content is invalid because the required properties - 'id; ' - are missing")]
    MissingId,
    /// The `id` is empty, too long, or not a string.
    #[error(
        "The input name is invalid. Ensure to provide a unique non-empty string less than '1024' characters."
    )]
    InvalidId,
    /// The `id` contains a backslash.
    #[error("The input name '{0}' is invalid because it contains '\\'; choose an id without it")]
    ForbiddenId(String),
    /// The document has more bytes than an item may have.
    #[error("Request size is too large")]
    TooLarge(usize),
    /// The `ttl` is neither positive nor -1.
    #[error(
        "The input ttl '{0}' is invalid. Ensure to provide a nonzero positive integer less than or equal to '2147483647', or -1."
    )]
    InvalidTtl(String),
}

impl Document {
    /// Parses and checks `body`, which is JSON text, to be written at `now`.
    pub fn parse(body: &[u8], schema: &Arc<ContainerSchema>, now: u64) -> Result<Document, DocumentError> {
        if body.len() > ITEM_BYTES_MAX {
            return Err(DocumentError::TooLarge(body.len()));
        }
        let (value, compact) = sql::value::parse_checking_canonical(body)
            .map_err(|error| DocumentError::InvalidJson(error.to_string()))?;
        Document::prepare(&value, schema, now, Source { text: body, compact })
    }

    /// Checks `value`, which was computed, and prepares it to be written at `now`.
    ///
    /// This check is what keeps everything but JSON out of the store. Every version of an item is made from a
    /// `Document`, or is a copy of a version that was. A document that came as text has passed the parser, and
    /// what is stored is that text or what the writer makes of the parsed value: both are JSON. A computed
    /// value is the only other source, and it passes here.
    pub(crate) fn from_value(
        value: &Value,
        schema: &Arc<ContainerSchema>,
        now: u64,
    ) -> Result<Document, DocumentError> {
        check_json(value).map_err(DocumentError::NotJson)?;
        Document::prepare(value, schema, now, Source { text: &[], compact: false })
    }

    fn prepare(
        value: &Value,
        schema: &Arc<ContainerSchema>,
        now: u64,
        source: Source<'_>,
    ) -> Result<Document, DocumentError> {
        let members = value.as_object().ok_or(DocumentError::NotAnObject)?;
        let id = match members.get("id") {
            Some(Value::String(id)) => id.clone(),
            Some(_) => return Err(DocumentError::InvalidId),
            None => return Err(DocumentError::MissingId),
        };
        check_id(&id)?;
        let ttl = read_ttl(members.get("ttl"))?;
        let user_text = user_text(members, source);
        if user_text.len() > ITEM_BYTES_MAX {
            return Err(DocumentError::TooLarge(user_text.len()));
        }
        let key = schema.extract_key(value);
        let epk = effective_key(&schema.partition_key, &key);
        let terms = all_terms(value, schema, &epk, (now, ttl), true);
        Ok(Document {
            schema: Arc::clone(schema),
            id,
            epk,
            ttl,
            is_indexed: true,
            value: value.clone(),
            user_text,
            terms,
            prepared_at: now,
            prepared_replacement: None,
        })
    }

    /// Leaves the properties of the document out of the index, or not.
    #[must_use]
    pub fn indexed(mut self, is_indexed: bool) -> Document {
        if self.is_indexed != is_indexed {
            let time = (self.prepared_at, self.ttl);
            self.terms = all_terms(&self.value, &self.schema, &self.epk, time, is_indexed);
            self.is_indexed = is_indexed;
        }
        self
    }

    /// Computes before the write guard is taken what replacing `old` will need.
    pub fn prepare_replacement(&mut self, old: &Arc<Item>) {
        self.prepared_replacement = Some((Arc::clone(old), terms_of_item(old, &old.value(), &self.schema)));
    }

    /// The unique key terms, which no other item of its logical partition may have.
    pub(in crate::store) fn unique_terms<'a>(
        &'a self,
        schema: &'a ContainerSchema,
    ) -> impl Iterator<Item = Vec<u8>> + 'a {
        schema.unique_keys.iter().map(|unique| {
            let mut term = unique.space.to_bytes().to_vec();
            term.extend_from_slice(&unique.value(&self.value, &self.epk));
            term
        })
    }

    /// Its index terms at a write timestamp.
    pub(in crate::store) fn terms_at(&self, seconds: u64, schema: &Arc<ContainerSchema>) -> Cow<'_, Terms> {
        // The container's properties may have been replaced since the document was prepared.
        if seconds == self.prepared_at && Arc::ptr_eq(&self.schema, schema) {
            return Cow::Borrowed(&self.terms);
        }
        Cow::Owned(all_terms(&self.value, schema, &self.epk, (seconds, self.ttl), self.is_indexed))
    }

    /// The index terms of the version it replaces.
    pub(in crate::store) fn terms_of_replaced(
        &self,
        old: &Arc<Item>,
        schema: &Arc<ContainerSchema>,
    ) -> Cow<'_, Terms> {
        match &self.prepared_replacement {
            Some((item, terms)) if Arc::ptr_eq(item, old) && Arc::ptr_eq(&self.schema, schema) => {
                Cow::Borrowed(terms)
            }
            _ => Cow::Owned(terms_of_item(old, &old.value(), schema)),
        }
    }
}

/// The index terms of a stored item, which are removed with it.
pub(in crate::store) fn terms_of_item(item: &Item, value: &Value, schema: &ContainerSchema) -> Terms {
    all_terms(value, schema, &item.epk, (item.modified_at, item.ttl), item.is_indexed)
}

/// Every index term of a document written at `seconds`.
fn all_terms(
    value: &Value,
    schema: &ContainerSchema,
    epk: &EffectivePartitionKey,
    (seconds, ttl): (u64, Option<i32>),
    is_indexed: bool,
) -> Terms {
    let no_paths = Policy::default();
    let policy = if is_indexed { &schema.policy } else { &no_paths };
    let mut terms = Terms::of(value, policy);
    for unique in &schema.unique_keys {
        terms.add(unique.space, &unique.value(value, epk));
    }
    terms.add(IndexSpace::EPK, epk.as_bytes());
    schema.add_time_terms(&mut terms, policy, value, (seconds, ttl));
    terms.sort();
    terms
}

/// An item's `ttl`. Without a default on the container it has no effect, and is remembered in case a default is
/// set later.
fn read_ttl(value: Option<&Value>) -> Result<Option<i32>, DocumentError> {
    let Some(value) = value else { return Ok(None) };
    match value.as_i64() {
        Some(seconds) if seconds == -1 || (1..=i64::from(i32::MAX)).contains(&seconds) => {
            Ok(Some(seconds as i32))
        }
        _ => Err(DocumentError::InvalidTtl(value.to_string())),
    }
}

/// Checks that an id may name an item.
pub(crate) fn check_id(id: &str) -> Result<(), DocumentError> {
    if id.is_empty() || id.len() > ID_BYTES_MAX {
        return Err(DocumentError::InvalidId);
    }
    if id.contains('\\') {
        return Err(DocumentError::ForbiddenId(id.to_owned()));
    }
    Ok(())
}

/// The source of a document: JSON text or a value.
#[derive(Clone, Copy)]
struct Source<'a> {
    /// Its JSON text; empty when it came as a value.
    text: &'a [u8],
    /// The text is what writing the value would make.
    compact: bool,
}

fn user_text(members: &sql::Object, source: Source<'_>) -> Vec<u8> {
    if source.compact
        && let Some(text) = source.text.strip_suffix(b"}")
        && !members.iter().any(|(name, _)| is_system_member(name))
    {
        return text.to_vec();
    }
    let mut text = Vec::with_capacity(source.text.len().max(TEXT_LENGTH_USUAL));
    text.push(b'{');
    for (name, value) in members.iter() {
        if is_system_member(name) {
            continue;
        }
        if text.len() > 1 {
            text.push(b',');
        }
        write_json_string(name, &mut text);
        text.push(b':');
        write_json(value, &mut text);
    }
    text
}

/// The partition key component a document's value stands for.
pub(in crate::store) fn component(value: &Value) -> PartitionKeyComponent {
    match value {
        // Objects and arrays cannot be keys; clients treat them as missing.
        Value::Undefined | Value::Array(_) | Value::Object(_) => PartitionKeyComponent::Undefined,
        Value::Null => PartitionKeyComponent::Null,
        Value::Bool(value) => PartitionKeyComponent::Bool(*value),
        Value::Number(number) => PartitionKeyComponent::Number(number.as_f64()),
        Value::String(text) => PartitionKeyComponent::String(text.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use protocol::container::ContainerProperties;

    use super::*;

    fn schema() -> Arc<ContainerSchema> {
        let properties = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
        let properties: ContainerProperties = serde_json::from_str(properties).expect("properties");
        Arc::new(ContainerSchema::of(&properties))
    }

    /// Documents as clients write them: mostly compact, with now and then something that is stored
    /// in another form.
    fn body() -> impl Strategy<Value = String> {
        let values = [
            "null",
            "true",
            "1",
            "-1",
            "0",
            "-0",
            "1.0",
            "1.5",
            "1e2",
            "1E-3",
            "-0.0",
            "12345678901234567890",
            "9007199254740993",
            "100.50",
            "\"text\"",
            "\"\"",
            "\"é😀\"",
            "\"a\\nb\"",
            "\"a\\/b\"",
            "\"\\u0041\"",
            "\"\\u0001\"",
            "\"\\u001F\"",
            "[]",
            "{}",
            "[1,2]",
            "[1, 2]",
            "{\"a\":1}",
            "{\"a\":1,\"a\":2}",
            "{\"_ts\":1}",
        ];
        let names = [
            "a",
            "b",
            "pk",
            "ttl2",
            "_rid",
            "_self",
            "_etag",
            "_attachments",
            "_ts",
            "_lsn",
            "_x",
            "n\\u0061",
            "é",
        ];
        let space = prop_oneof![20 => Just(""), 1 => Just(" "), 1 => Just("\n\t")];
        let member = (prop::sample::select(names.to_vec()), space, prop::sample::select(values.to_vec()))
            .prop_map(|(name, space, value)| format!("\"{name}\":{space}{value}"));
        (
            prop::collection::vec(member, 0..5),
            any::<prop::sample::Index>(),
            prop_oneof![9 => Just(""), 1 => Just(" ")],
        )
            .prop_map(|(mut members, at, end)| {
                members.insert(at.index(members.len() + 1), "\"id\":\"1\"".to_owned());
                format!("{{{}}}{end}", members.join(","))
            })
    }

    proptest! {
        #[test]
        fn the_stored_text_is_the_same_whether_copied_or_serialized(body in body()) {
            let schema = schema();
            let stored = Document::parse(body.as_bytes(), &schema, 0).expect("a document");
            let value = sql::value::parse(body.as_bytes()).expect("JSON");
            let written = Document::from_value(&value, &schema, 0).expect("a document");
            prop_assert_eq!(
                String::from_utf8_lossy(&stored.user_text),
                String::from_utf8_lossy(&written.user_text)
            );
        }
    }

    #[test]
    fn an_entity_tag_reads_as_a_guid() {
        use crate::items::EntityTag;
        use protocol::lsn::Lsn;

        let tag = EntityTag::new(0x0001_0002, Lsn(0x0003_0000_002A), 7, 0x6730_0000);
        assert_eq!(format!("{tag:?}"), "EntityTag(\"0000002a-0003-0002-0007-673000000001\")");
    }
}
