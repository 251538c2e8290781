//! The key-value store of an instance: changes of an execution are events, and are merged when it ends.

use std::collections::{BTreeMap, HashMap};

use duroxide::providers::KvEntry;
use duroxide::{Event, EventKind};

use crate::documents::{KeyValuesDocument, StoredValue};

/// The largest size of a document of the store. Larger documents cost more per byte.
const DOCUMENT_BYTES_MAX: usize = 512 << 10;

/// All values of an instance.
pub(crate) type KeyValues = BTreeMap<String, StoredValue>;

/// Whether an event changes the store.
pub(crate) fn is_change(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::KeyValueSet { .. } | EventKind::KeyValueCleared { .. } | EventKind::KeyValuesCleared
    )
}

/// Applies the changes among events to the values.
pub(crate) fn apply<'a>(values: &mut KeyValues, events: impl IntoIterator<Item = &'a Event>) {
    for event in events {
        match &event.kind {
            EventKind::KeyValueSet { key, value, last_updated_at_ms } => {
                let stored = StoredValue { value: value.clone(), updated_at: *last_updated_at_ms };
                values.insert(key.clone(), stored);
            }
            EventKind::KeyValueCleared { key } => {
                values.remove(key);
            }
            EventKind::KeyValuesCleared => values.clear(),
            _ => {}
        }
    }
}

/// The values as the runtime takes them over at the beginning of a turn.
pub(crate) fn snapshot(values: &KeyValues) -> HashMap<String, KvEntry> {
    let entry =
        |stored: &StoredValue| KvEntry { value: stored.value.clone(), last_updated_at_ms: stored.updated_at };
    values.iter().map(|(key, stored)| (key.clone(), entry(stored))).collect()
}

/// The documents that store the values after an execution; none if there are no values.
pub(crate) fn to_documents(instance: &str, execution_id: u64, values: &KeyValues) -> Vec<KeyValuesDocument> {
    let mut documents: Vec<KeyValuesDocument> = Vec::new();
    let mut bytes = usize::MAX;
    for (key, stored) in values {
        let size = key.len() + stored.value.len();
        if bytes.saturating_add(size) > DOCUMENT_BYTES_MAX {
            documents.push(KeyValuesDocument::new(instance, execution_id, documents.len()));
            bytes = 0;
        }
        bytes += size;
        if let Some(document) = documents.last_mut() {
            document.values.insert(key.clone(), stored.clone());
        }
    }
    documents
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: EventKind) -> Event {
        Event::with_event_id(1, "i", 1, None, kind)
    }

    fn set(key: &str, value: &str) -> Event {
        event(EventKind::KeyValueSet { key: key.into(), value: value.into(), last_updated_at_ms: 7 })
    }

    #[test]
    fn changes_apply_in_order() {
        let mut values = KeyValues::new();
        let events = [
            set("a", "1"),
            set("b", "2"),
            event(EventKind::KeyValueCleared { key: "a".into() }),
            set("b", "3"),
        ];
        apply(&mut values, &events);
        assert_eq!(values.keys().collect::<Vec<_>>(), ["b"]);
        assert_eq!(snapshot(&values)["b"], KvEntry { value: "3".into(), last_updated_at_ms: 7 });
        apply(&mut values, &[event(EventKind::KeyValuesCleared), set("c", "4")]);
        assert_eq!(values.keys().collect::<Vec<_>>(), ["c"]);
    }

    #[test]
    fn large_stores_take_several_documents() {
        let mut values = KeyValues::new();
        for n in 0..150 {
            apply(&mut values, &[set(&format!("key-{n}"), &"x".repeat(64 << 10))]);
        }
        let documents = to_documents("i", 1, &values);
        assert_eq!(documents.iter().map(|document| document.values.len()).sum::<usize>(), 150);
        assert!(documents.iter().all(|document| document.values.len() <= 8));
        assert!(to_documents("i", 1, &KeyValues::new()).is_empty());
    }
}
