//! The diagnostics of the most recent of many requests.

use std::collections::VecDeque;

use super::Diagnostics;

/// Requests whose diagnostics are kept between two pages; those before them are only counted.
pub(crate) const RECENT_MAX: usize = 16;

/// The diagnostics of the last [`RECENT_MAX`] requests, newest first.
#[derive(Debug, Default)]
pub(crate) struct Recent(VecDeque<Diagnostics>);

impl Recent {
    /// Adds a request, in place of the oldest one where there is no room.
    pub(crate) fn push(&mut self, diagnostics: Diagnostics) {
        self.0.truncate(RECENT_MAX - 1);
        self.0.push_front(diagnostics);
    }

    /// Takes all of them out, newest first.
    pub(crate) fn take(&mut self) -> Vec<Diagnostics> {
        std::mem::take(&mut self.0).into()
    }
}
