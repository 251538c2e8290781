//! The logical keys that cost most, found in bounded memory.
//!
//! The space-saving sketch: as many counters as there is room for; a key without one takes over the
//! smallest, with its count, so that a count is never too low and at most as much too high as the
//! smallest was. A key that makes up more than one part in `KEYS_MAX` of all is always among them.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::operation::ContainerName;

/// Keys counted at a time.
pub const KEYS_MAX: usize = 128;
/// Keys that are named.
pub const NAMED_MAX: usize = 16;
/// Bytes of a key that are kept to name it.
const KEY_BYTES_MAX: usize = 256;

/// A key that costs much.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HotKey {
    /// The container of the key.
    pub container: ContainerName,
    /// The key as the header carries it, cut when it is long.
    pub key: Arc<str>,
    /// Request units it cost, at most.
    pub charge: f64,
    /// How much of that may be others'.
    pub error: f64,
}

/// Estimates the most expensive partition keys.
#[derive(Debug, Default)]
pub struct HotKeys {
    hasher: RandomState,
    /// Where a key's counter is, by the key's hash.
    positions: HashMap<u64, usize, RandomState>,
    counters: Vec<Counter>,
    /// The smallest weight, as long as a counter at or after `cursor` has it.
    smallest: u64,
    cursor: usize,
}

#[derive(Debug)]
struct Counter {
    hash: u64,
    container: ContainerName,
    key: String,
    weight: u64,
    error: u64,
}

impl HotKeys {
    /// Counts `weight` for a key.
    ///
    /// Cost: a look-up for a key that has a counter; for one that has not, a part of a walk over the counters.
    pub fn record(&mut self, container: &ContainerName, key: &str, weight: u64) {
        let hash = self.hasher.hash_one((container.link(), key));
        if let Some(&at) = self.positions.get(&hash) {
            self.counters[at].weight += weight;
            return;
        }
        if self.counters.len() < KEYS_MAX {
            self.positions.insert(hash, self.counters.len());
            let key = cut(key).to_owned();
            self.counters.push(Counter { hash, container: container.clone(), key, weight, error: 0 });
            return;
        }
        let at = self.smallest();
        let counter = &mut self.counters[at];
        self.positions.remove(&counter.hash);
        self.positions.insert(hash, at);
        counter.hash = hash;
        counter.container = container.clone();
        counter.key.clear();
        counter.key.push_str(cut(key));
        counter.error = counter.weight;
        counter.weight += weight;
    }

    /// The place of a counter with the smallest weight. Weights only grow, so as long as the walk has not come
    /// to its end, the smallest weight is the one it was: many keys that are met once share one walk.
    fn smallest(&mut self) -> usize {
        loop {
            let rest = self.counters.get(self.cursor..).unwrap_or_default();
            if let Some(at) = rest.iter().position(|counter| counter.weight == self.smallest) {
                self.cursor += at;
                return self.cursor;
            }
            self.cursor = 0;
            self.smallest = self.counters.iter().map(|counter| counter.weight).min().unwrap_or_default();
        }
    }

    /// The keys that cost most, most first: those that surely did before those that may have.
    pub fn hottest(&self) -> Vec<HotKey> {
        let mut counters: Vec<&Counter> = self.counters.iter().collect();
        counters.sort_by_key(|counter| std::cmp::Reverse(counter.weight - counter.error));
        let named = counters.into_iter().take(NAMED_MAX).map(|counter| HotKey {
            container: counter.container.clone(),
            key: counter.key.as_str().into(),
            charge: counter.weight as f64 / 100.0,
            error: counter.error as f64 / 100.0,
        });
        named.collect()
    }
}

fn cut(key: &str) -> &str {
    let end = (0..=key.len().min(KEY_BYTES_MAX)).rev().find(|at| key.is_char_boundary(*at)).unwrap_or(0);
    &key[..end]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The two promises of the sketch.
        #[test]
        fn counts_are_never_too_low_and_heavy_keys_are_never_missed(
            keys in prop::collection::vec((0u32..400, 1u64..20), 1..3000),
        ) {
            let container = ContainerName::new("d", "c");
            let mut sketch = HotKeys::default();
            let mut exact: HashMap<String, u64> = HashMap::new();
            for (key, weight) in &keys {
                // A third of everything goes to a few keys.
                let key = if key % 3 == 0 { format!("hot{}", key % 4) } else { format!("cold{key}") };
                sketch.record(&container, &key, *weight);
                *exact.entry(key).or_default() += weight;
            }
            let total: u64 = exact.values().sum();
            prop_assert!(sketch.counters.len() <= KEYS_MAX);
            prop_assert_eq!(sketch.counters.len(), sketch.positions.len());
            for counter in &sketch.counters {
                let true_weight = exact[&counter.key];
                prop_assert!(counter.weight >= true_weight);
                prop_assert!(counter.weight - counter.error <= true_weight);
            }
            for (key, weight) in exact {
                if weight > total / KEYS_MAX as u64 {
                    prop_assert!(sketch.counters.iter().any(|counter| counter.key == key), "{key} is missing");
                }
            }
        }
    }

    #[test]
    fn keys_of_two_containers_are_two_keys_and_long_ones_are_cut() {
        let mut sketch = HotKeys::default();
        sketch.record(&ContainerName::new("d", "a"), "[1]", 100);
        sketch.record(&ContainerName::new("d", "b"), "[1]", 200);
        sketch.record(&ContainerName::new("d", "b"), &"é".repeat(1000), 50);
        let hottest = sketch.hottest();
        let charges: Vec<f64> = hottest.iter().map(|key| key.charge).collect();
        assert_eq!(charges, [2.0, 1.0, 0.5]);
        assert!(hottest[2].key.len() <= KEY_BYTES_MAX);
    }
}
