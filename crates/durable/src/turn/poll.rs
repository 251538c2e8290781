//! Searches the container for messages that this process does not know of.

use std::sync::Arc;

use crate::clock::{self, Millis};
use crate::core::Core;
use crate::dispatch::FoundMessage;
use crate::error::Result;
use crate::queries;

/// How many messages the first query asks for.
const MESSAGES: usize = 64;
/// How many messages at most are looked at for one that this process can use.
const MESSAGES_MAX: usize = 4096;

impl Core {
    /// Searches for messages, if that is due or has to be. Returns whether any were found.
    pub(super) async fn poll_messages(self: &Arc<Core>, must: bool) -> Result<bool> {
        let is_due = || self.instances.polls.lock().next() <= clock::now();
        let _polling = if must {
            self.instances.polling.lock().await
        } else {
            match self.instances.polling.try_lock() {
                Ok(polling) if is_due() => polling,
                _ => return Ok(false),
            }
        };
        let found = self.find_messages(must).await;
        let now = clock::now();
        let overflowed = self.instances.ready.lock().take_overflow();
        let mut polls = self.instances.polls.lock();
        polls.polled(found.as_ref().is_ok_and(|count| *count > 0), now);
        if overflowed {
            polls.hurry(now);
        }
        drop(polls);
        for _ in 1..*found.as_ref().unwrap_or(&0) {
            self.instances.wake.notify_one();
        }
        Ok(found? > 0)
    }

    /// Adds the instances whose messages were found, and returns how many. Those that are visible come first; messages of
    /// instances that are locked may hide others, so the search goes on behind them.
    async fn find_messages(&self, asked_for: bool) -> Result<usize> {
        let slots = self.slots().await;
        if slots.is_empty() {
            return Ok(0);
        }
        let mut limit = MESSAGES;
        loop {
            let now = clock::now();
            // What becomes visible before the next poll is noted now.
            let until = now + self.poll_ahead();
            let found: Vec<FoundMessage> =
                self.store.values(|| queries::waiting_messages(until, slots, limit)).await?;
            let mut ready = self.instances.ready.lock();
            let mut added = 0;
            for message in &found {
                added += usize::from(ready.add_found(message, asked_for, now));
            }
            if added > 0 || found.len() < limit || limit >= MESSAGES_MAX {
                return Ok(added);
            }
            limit *= 8;
        }
    }

    /// How far ahead polls look.
    pub(crate) fn poll_ahead(&self) -> Millis {
        clock::millis(self.options.poll_interval_max)
    }
}
