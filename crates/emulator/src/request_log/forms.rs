//! Counts of requests by the encoding of their bodies and by the consistency level that they ask for.

use std::sync::atomic::{AtomicU64, Ordering};

use protocol::account::ConsistencyLevel;
use protocol::{binary_json, hybrid_row};

/// Counts of requests of an account since it was started. On a cache line of its own: all threads count here.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct RequestForms {
    binary_json: AtomicU64,
    hybrid_row: AtomicU64,
    binary_responses: AtomicU64,
    /// Requests that ask for a level themselves, in the order of [`ConsistencyLevel::ALL`].
    levels: [AtomicU64; ConsistencyLevel::ALL.len()],
}

/// What is counted of a request besides its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestForm {
    /// Whether the client reads binary JSON and nothing else.
    pub(crate) wants_binary: bool,
    /// The level that the request asks for, if it does.
    pub(crate) level: Option<ConsistencyLevel>,
}

impl RequestForms {
    /// Counts a request by its headers and the encoding of its body.
    pub(crate) fn count(&self, form: RequestForm, body: &[u8]) {
        if binary_json::is_binary(body) {
            add(&self.binary_json);
        }
        if hybrid_row::is_hybrid_row(body) {
            add(&self.hybrid_row);
        }
        if form.wants_binary {
            add(&self.binary_responses);
        }
        let counters = ConsistencyLevel::ALL.into_iter().zip(&self.levels);
        counters.filter(|(known, _)| Some(*known) == form.level).for_each(|(_, counter)| add(counter));
    }

    /// The counts as the control port shows them.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let levels = ConsistencyLevel::ALL.into_iter().zip(&self.levels);
        let levels = levels.map(|(level, counter)| (level.name().to_owned(), read(counter).into()));
        serde_json::json!({
            "binary": {
                "binaryJson": read(&self.binary_json),
                "hybridRow": read(&self.hybrid_row),
                "binaryResponses": read(&self.binary_responses),
            },
            "consistency": levels.collect::<serde_json::Map<_, _>>(),
        })
    }
}

fn add(counter: &AtomicU64) {
    // Relaxed: nothing is read because of a count.
    counter.fetch_add(1, Ordering::Relaxed);
}

fn read(counter: &AtomicU64) -> u64 {
    // Relaxed, as in `add`.
    counter.load(Ordering::Relaxed)
}
