//! A value that many read and few replace.

use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;

/// Holds the newest snapshot of a state. Readers never wait; writers take turns, so none loses another's
/// change.
#[derive(Debug)]
pub(crate) struct StateCell<T> {
    current: ArcSwap<T>,
    writer: Mutex<()>,
}

impl<T> StateCell<T> {
    /// A cell that holds `state`.
    pub(crate) fn new(state: T) -> StateCell<T> {
        StateCell { current: ArcSwap::from_pointee(state), writer: Mutex::new(()) }
    }

    /// The newest snapshot. It stays as it is, however the cell continues.
    pub(crate) fn snapshot(&self) -> Arc<T> {
        self.current.load_full()
    }

    /// Looks at the newest snapshot without counting a reference; for a glance, not to be kept over a wait.
    pub(crate) fn peek<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.current.load())
    }

    /// Applies `change` to the newest state, once. Readers see the old one until it is done.
    pub(crate) fn update(&self, change: impl FnOnce(&T) -> T) {
        self.update_with(|state| (change(state), ()));
    }

    /// Applies `change` to the newest state, once, and returns its output.
    pub(crate) fn update_with<R>(&self, change: impl FnOnce(&T) -> (T, R)) -> R {
        let _writer = crate::sync::lock(&self.writer);
        let (next, output) = change(&self.current.load());
        self.current.store(Arc::new(next));
        output
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn no_update_is_lost_between_writers() {
        let cell = StateCell::new(0u64);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| cell.update(|count| count + 1)));
            }
        });
        assert_eq!(*cell.snapshot(), 4000);
    }

    #[test]
    fn a_snapshot_stays_as_it_was() {
        let cell = StateCell::new(1);
        let before = cell.snapshot();
        assert_eq!(cell.update_with(|state| (state + 1, "output")), "output");
        assert_eq!((*before, *cell.snapshot(), cell.peek(|state| *state)), (1, 2, 2));
    }
}
