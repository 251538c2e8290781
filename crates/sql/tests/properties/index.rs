//! A minimal index for tests: every value at every path, and the documents that have it.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

use perihelion_sql::Value;
use perihelion_sql::access_path::{DocPath, DocStep, Filter, Predicate};
use perihelion_sql::value::{compare, deep_equal};

/// The indexed values of some documents.
pub(crate) struct Index {
    entries: HashMap<DocPath, Vec<(Value, usize)>>,
    all: BTreeSet<usize>,
}

impl Index {
    pub(crate) fn new(documents: &[Value]) -> Index {
        let mut index = Index { entries: HashMap::new(), all: (0..documents.len()).collect() };
        for (at, document) in documents.iter().enumerate() {
            index.add(&DocPath::default(), document, at);
        }
        index
    }

    fn add(&mut self, path: &DocPath, value: &Value, at: usize) {
        self.entries.entry(path.clone()).or_default().push((value.clone(), at));
        match value {
            Value::Array(elements) => {
                for element in elements.iter() {
                    self.add(&path.then(DocStep::Element), element, at);
                }
            }
            Value::Object(members) => {
                for (name, member) in members.iter() {
                    self.add(&path.then(DocStep::Key(name.clone())), member, at);
                }
            }
            _ => {}
        }
    }

    /// The documents that `filter` accepts, found without reading any of them.
    pub(crate) fn find(&self, filter: &Filter) -> BTreeSet<usize> {
        match filter {
            Filter::All => self.all.clone(),
            Filter::Nothing => BTreeSet::new(),
            Filter::And(parts) => {
                parts.iter().fold(self.all.clone(), |found, part| &found & &self.find(part))
            }
            Filter::Or(parts) => parts.iter().flat_map(|part| self.find(part)).collect(),
            Filter::Predicate { path, predicate: test } => {
                let entries = self.entries.get(path).map_or(&[][..], Vec::as_slice);
                entries.iter().filter(|(value, _)| passes(test, value)).map(|(_, at)| *at).collect()
            }
        }
    }
}

fn passes(test: &Predicate, value: &Value) -> bool {
    let within = |bound: &Bound<Value>, is_low: bool| {
        let (end, open) = match bound {
            Bound::Unbounded => return true,
            Bound::Included(end) => (end, false),
            Bound::Excluded(end) => (end, true),
        };
        compare(value, end).is_some_and(|order| {
            let order = if is_low { order } else { order.reverse() };
            order.is_gt() || (order.is_eq() && !open)
        })
    };
    match test {
        Predicate::Equals(expected) => {
            assert!(
                !matches!(expected, Value::Undefined | Value::Array(_) | Value::Object(_)),
                "not a scalar"
            );
            deep_equal(value, expected)
        }
        Predicate::Defined => true,
        Predicate::Prefix(prefix) => value.as_str().is_some_and(|text| text.starts_with(prefix.as_str())),
        Predicate::Range { low, high } => {
            assert!(!matches!((low, high), (Bound::Unbounded, Bound::Unbounded)), "a range has an end");
            within(low, true) && within(high, false)
        }
    }
}
