//! Instances that were processed here lately, so that their next turn need not read them again.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use duroxide::Event;
use parking_lot::Mutex;

use crate::clock::Millis;
use crate::documents::InstanceDocument;
use crate::key_values::KeyValues;
use crate::store::Versioned;

/// What an instance without history takes at least.
const BYTES_MIN: usize = 1024;

/// An instance as it was when it was last read or written here.
#[derive(Clone, Debug)]
pub(crate) struct CachedInstance {
    pub(crate) version: Versioned<InstanceDocument>,
    /// The history of the current execution, if it could be read.
    pub(crate) history: Option<Arc<Vec<Event>>>,
    /// The key-value store after the execution before.
    pub(crate) key_values: Arc<KeyValues>,
    /// When this was known to be what the container has.
    pub(crate) confirmed_at: Millis,
}

impl CachedInstance {
    fn bytes(&self) -> usize {
        // Events in memory take about twice their JSON text.
        let values: usize = self.key_values.values().map(|stored| stored.value.len()).sum();
        BYTES_MIN + 2 * self.version.document.history_bytes as usize + values
    }
}

/// A bounded number of instances. The ETag of the document tells whether one is current.
#[derive(Debug)]
pub(crate) struct InstanceCache {
    bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    instances: HashMap<String, (u64, Arc<CachedInstance>)>,
    /// Instances by age; entries that were replaced meanwhile have another number.
    by_age: VecDeque<(String, u64)>,
    bytes: usize,
    next: u64,
}

impl InstanceCache {
    pub(crate) fn new(bytes_max: usize) -> InstanceCache {
        InstanceCache { bytes_max, state: Mutex::default() }
    }

    pub(crate) fn get(&self, instance: &str) -> Option<Arc<CachedInstance>> {
        self.state.lock().instances.get(instance).map(|(_, cached)| Arc::clone(cached))
    }

    pub(crate) fn insert(&self, cached: CachedInstance) {
        let bytes = cached.bytes();
        let instance = cached.version.document.instance_id.clone();
        let mut state = self.state.lock();
        // A read that took longer than the turn that overtook it.
        let turns =
            |cached: &CachedInstance| (cached.version.document.created_at, cached.version.document.turns);
        if state.instances.get(&instance).is_some_and(|(_, known)| turns(known) > turns(&cached)) {
            return;
        }
        state.remove(&instance);
        if bytes > self.bytes_max {
            return;
        }
        state.next += 1;
        let number = state.next;
        state.bytes += bytes;
        state.by_age.push_back((instance.clone(), number));
        state.instances.insert(instance, (number, Arc::new(cached)));
        while state.bytes > self.bytes_max {
            let Some((oldest, number)) = state.by_age.pop_front() else { break };
            if state.instances.get(&oldest).is_some_and(|(current, _)| *current == number) {
                state.remove(&oldest);
            }
        }
        // Entries of instances that were replaced meanwhile are dropped before they outnumber the others.
        if state.by_age.len() > 2 * state.instances.len() + 64 {
            let State { instances, by_age, .. } = &mut *state;
            by_age.retain(|(instance, number)| {
                instances.get(instance).is_some_and(|(current, _)| current == number)
            });
        }
    }

    pub(crate) fn remove(&self, instance: &str) {
        self.state.lock().remove(instance);
    }
}

impl State {
    fn remove(&mut self, instance: &str) {
        if let Some((_, cached)) = self.instances.remove(instance) {
            self.bytes -= cached.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cached(instance: &str, history_bytes: u64) -> CachedInstance {
        let mut document = InstanceDocument::new(instance, 0.0);
        document.history_bytes = history_bytes;
        CachedInstance {
            version: Versioned { document, etag: "e".to_owned() },
            history: None,
            key_values: Arc::default(),
            confirmed_at: 0.0,
        }
    }

    #[test]
    fn a_late_read_does_not_replace_what_a_later_turn_has_written() {
        let cache = InstanceCache::new(1 << 20);
        let mut newer = cached("i", 0);
        newer.version.document.turns = 2;
        cache.insert(newer);
        cache.insert(cached("i", 0));
        assert_eq!(cache.get("i").expect("cached").version.document.turns, 2);
    }

    #[test]
    fn the_oldest_instances_make_room() {
        let cache = InstanceCache::new(10 * BYTES_MIN);
        for n in 0..1000 {
            cache.insert(cached(&format!("i{}", n % 20), 0));
        }
        let found = (0..20).filter(|n| cache.get(&format!("i{n}")).is_some()).count();
        assert_eq!(found, 10);
        assert!(cache.state.lock().by_age.len() < 100);
        cache.insert(cached("large", 1 << 20));
        assert!(cache.get("large").is_none());
        cache.remove("i19");
        assert!(cache.get("i19").is_none());
        assert_eq!(cache.state.lock().bytes, 9 * BYTES_MIN);
    }
}
