//! What activities have done, outside of the container: how often each ran, and whether two ran at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A ledger that all processes of a test share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger(Arc<Mutex<BTreeMap<String, Entry>>>);

#[derive(Clone, Debug, Default)]
struct Entry {
    runs: u32,
    running: u32,
    overlaps: u32,
}

/// One run of an activity. It ends when this is dropped, also if its process is killed.
pub(crate) struct Run {
    ledger: Ledger,
    key: String,
}

impl Ledger {
    /// Notes that an activity begins.
    pub(crate) fn begin(&self, key: &str) -> Run {
        let mut entries = self.0.lock().expect("no panic");
        let entry = entries.entry(key.to_owned()).or_default();
        entry.runs += 1;
        entry.running += 1;
        entry.overlaps += u32::from(entry.running > 1);
        Run { ledger: self.clone(), key: key.to_owned() }
    }

    /// Checks that each of these activities ran, and none twice at once.
    pub(crate) fn check(&self, activities: usize) {
        let entries = self.0.lock().expect("no panic");
        assert_eq!(entries.len(), activities, "{entries:#?}");
        let overlapping: Vec<_> = entries.iter().filter(|(_, entry)| entry.overlaps > 0).collect();
        assert!(overlapping.is_empty(), "ran twice at once: {overlapping:#?}");
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(entry) = self.ledger.0.lock().expect("no panic").get_mut(&self.key) {
            entry.running -= 1;
        }
    }
}
