//! Instances that have messages.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};

use serde::Deserialize;

use crate::clock::{Millis, OrderedTime};
use crate::documents::MessageDocument;

/// The largest number of instances that are remembered. Those beyond it are found by polls.
const INSTANCES_MAX: usize = 50_000;
/// The largest size of remembered messages, in bytes. Those beyond it are read again.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// How many messages that were fetched are remembered. A message is announced within a request of being stored.
const FETCHED_MAX: usize = 4096;

/// Instances of this process that have messages, or may have, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct ReadyInstances {
    ready: VecDeque<String>,
    entries: HashMap<String, Entry>,
    /// When to look at an instance again: a message becomes visible, a lock expires.
    due: BinaryHeap<Reverse<(OrderedTime, String, Due)>>,
    message_bytes: usize,
    /// Messages that were fetched lately: one that a poll has found must not be announced afterwards.
    fetched: RecentIds,
    /// Whether an instance was left out because there were too many.
    overflowed: bool,
}

#[derive(Debug, Default)]
struct Entry {
    /// Messages that this process has enqueued and that were not fetched yet.
    known: Vec<MessageDocument>,
    /// Whether the instance may have further messages, so that the container has to be asked.
    incomplete: bool,
    /// Whether the instance is in the queue.
    queued: bool,
    /// Until when this process has the instance locked; infinite while it tries to.
    held_until: Option<Millis>,
    /// Until when results of activities wait for others of the instance.
    gathers_until: Millis,
    /// Polls are not to bring the instance up before this time.
    not_before: Millis,
}

/// Why an instance is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// A message becomes visible.
    Message,
    /// A lock of this process expires, unless the turn has ended.
    Lock,
}

/// A message that a poll has found.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FoundMessage {
    pub(crate) instance_id: String,
    pub(crate) id: String,
    pub(crate) visible_at: Millis,
}

/// An instance to lock, with what is known about its messages.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) instance: String,
    /// Its visible messages, if the container need not be asked for them.
    pub(crate) messages: Option<Vec<MessageDocument>>,
}

impl ReadyInstances {
    /// Adds a message that this process has enqueued. It makes its instance ready when it is visible, or later if it is to
    /// wait for others.
    pub(crate) fn add_message(&mut self, message: MessageDocument, ready_at: Millis, now: Millis) {
        if self.fetched.contains(&message.id) {
            return;
        }
        let instance = message.instance_id.clone();
        let Some(entry) = self.entry(&instance) else { return };
        let bytes = message.work_item.get().len();
        let remembered = self.message_bytes + bytes <= MESSAGE_BYTES_MAX;
        let entry = {
            if remembered {
                self.message_bytes += bytes;
            }
            self.entries.get_mut(&entry).expect("just found or added")
        };
        let gathers = ready_at > message.visible_at && ready_at > now;
        if remembered {
            entry.known.push(message);
        } else {
            entry.incomplete = true;
        }
        if gathers {
            // The first message says how long the others are waited for.
            if entry.gathers_until > now {
                return;
            }
            entry.gathers_until = ready_at;
        } else if ready_at <= now {
            entry.gathers_until = 0.0;
        }
        if ready_at <= now {
            self.queue(&instance);
        } else {
            self.due.push(Reverse((OrderedTime(ready_at), instance, Due::Message)));
        }
    }

    /// Adds an instance that a poll has found a message of. A poll that somebody asked for brings up instances again that
    /// were put off. Returns whether the instance is ready now because of it.
    pub(crate) fn add_found(&mut self, found: &FoundMessage, asked_for: bool, now: Millis) -> bool {
        let instance = found.instance_id.as_str();
        if let Some(entry) = self.entries.get(instance)
            && (entry.held_until.is_some_and(|until| until > now)
                || (entry.not_before > now && !asked_for)
                || entry.known.iter().any(|known| known.id == found.id))
        {
            return false;
        }
        if self.entry(instance).is_none() {
            return false;
        }
        let entry = self.entries.get_mut(instance).expect("just found or added");
        entry.incomplete = true;
        entry.held_until = None;
        if found.visible_at <= now {
            self.queue(instance);
            return true;
        }
        self.due.push(Reverse((OrderedTime(found.visible_at), instance.to_owned(), Due::Message)));
        false
    }

    /// Takes the instance that has waited longest. It stays reserved until one of the methods below is called for it.
    pub(crate) fn take(&mut self, now: Millis) -> Option<Candidate> {
        self.queue_due(now);
        while let Some(instance) = self.ready.pop_front() {
            let Some(entry) = self.entries.get_mut(&instance) else { continue };
            entry.queued = false;
            let messages = if entry.incomplete {
                // All of them are read from the container.
                for message in entry.known.drain(..) {
                    self.message_bytes -= message.work_item.get().len();
                }
                None
            } else {
                let (visible, later): (Vec<_>, Vec<_>) =
                    entry.known.drain(..).partition(|message| message.visible_at <= now);
                entry.known = later;
                for message in &visible {
                    self.message_bytes -= message.work_item.get().len();
                }
                if visible.is_empty() {
                    self.forget_if_idle(&instance);
                    continue;
                }
                Some(visible)
            };
            entry.incomplete = false;
            entry.gathers_until = 0.0;
            entry.held_until = Some(Millis::INFINITY);
            return Some(Candidate { instance, messages });
        }
        None
    }

    /// Notes that this process has locked an instance, or renewed its lock.
    pub(crate) fn locked(&mut self, instance: &str, until: Millis) {
        if let Some(entry) = self.entries.get_mut(instance) {
            entry.held_until = Some(until);
            self.due.push(Reverse((OrderedTime(until), instance.to_owned(), Due::Lock)));
        }
    }

    /// Notes which messages the turn of a locked instance processes.
    pub(crate) fn fetched(&mut self, instance: &str, messages: &[String]) {
        for id in messages {
            self.fetched.add(id);
        }
        let Some(entry) = self.entries.get_mut(instance) else { return };
        // They may have been announced while the instance was being locked.
        let known = std::mem::take(&mut entry.known);
        let (fetched, known): (Vec<_>, Vec<_>) =
            known.into_iter().partition(|message| messages.contains(&message.id));
        entry.known = known;
        self.message_bytes -= fetched.iter().map(|message| message.work_item.get().len()).sum::<usize>();
    }

    /// Notes that an instance that was taken has no messages, or that its turn is committed. Messages that came meanwhile
    /// make it ready again.
    pub(crate) fn done(&mut self, instance: &str, now: Millis) {
        let Some(entry) = self.entries.get_mut(instance) else { return };
        entry.held_until = None;
        let next_visible = entry.known.iter().map(|message| message.visible_at).reduce(Millis::min);
        match next_visible {
            _ if entry.incomplete => self.queue(instance),
            Some(_) if entry.gathers_until > now => {
                self.due.push(Reverse((OrderedTime(entry.gathers_until), instance.to_owned(), Due::Message)));
            }
            Some(at) if at <= now => self.queue(instance),
            // What became due during the turn was passed over then.
            Some(at) => self.due.push(Reverse((OrderedTime(at), instance.to_owned(), Due::Message))),
            None => self.forget_if_idle(instance),
        }
    }

    /// Notes that a turn was given back: other messages of the instance are visible, its own become so at this time.
    pub(crate) fn released(&mut self, instance: &str, visible_at: Option<Millis>, now: Millis) {
        if self.entry(instance).is_none() {
            return;
        }
        let entry = self.entries.get_mut(instance).expect("just found or added");
        entry.held_until = None;
        entry.incomplete = true;
        entry.not_before = 0.0;
        self.queue(instance);
        if let Some(at) = visible_at.filter(|at| *at > now) {
            self.due.push(Reverse((OrderedTime(at), instance.to_owned(), Due::Message)));
        }
    }

    /// Notes that an instance that was taken is to be looked at again at this time, in the container.
    pub(crate) fn retry_at(&mut self, instance: &str, at: Millis) {
        if let Some(entry) = self.entries.get_mut(instance) {
            entry.held_until = None;
            entry.incomplete = true;
            entry.not_before = at;
            self.due.push(Reverse((OrderedTime(at), instance.to_owned(), Due::Message)));
        }
    }

    /// Forgets an instance that was deleted.
    pub(crate) fn forget(&mut self, instance: &str) {
        if let Some(entry) = self.entries.remove(instance) {
            self.message_bytes -= entry.known.iter().map(|known| known.work_item.get().len()).sum::<usize>();
        }
    }

    /// When the next instance becomes due.
    pub(crate) fn next_due(&self) -> Option<Millis> {
        self.due.peek().map(|Reverse((at, _, _))| at.0)
    }

    /// Whether an instance was left out since this was last asked.
    pub(crate) fn take_overflow(&mut self) -> bool {
        std::mem::take(&mut self.overflowed)
    }

    /// The number of instances that wait.
    pub(crate) fn len(&self) -> usize {
        self.ready.len()
    }

    /// The entry of an instance, by its id; none if there are too many.
    fn entry(&mut self, instance: &str) -> Option<String> {
        if !self.entries.contains_key(instance) {
            if self.entries.len() >= INSTANCES_MAX {
                self.overflowed = true;
                return None;
            }
            self.entries.insert(instance.to_owned(), Entry::default());
        }
        Some(instance.to_owned())
    }

    fn queue(&mut self, instance: &str) {
        if let Some(entry) = self.entries.get_mut(instance)
            && !entry.queued
            && entry.held_until.is_none()
        {
            entry.queued = true;
            self.ready.push_back(instance.to_owned());
        }
    }

    fn queue_due(&mut self, now: Millis) {
        while self.next_due().is_some_and(|at| at <= now) {
            let Some(Reverse((_, instance, due))) = self.due.pop() else { return };
            if due == Due::Message && !self.entries.contains_key(&instance) && self.entry(&instance).is_some()
            {
                self.entries.insert(instance.clone(), Entry { incomplete: true, ..Entry::default() });
            }
            let Some(entry) = self.entries.get_mut(&instance) else { continue };
            match entry.held_until {
                // Renewed, or about to be locked: another due time follows.
                Some(until) if until > now => continue,
                Some(_) => {
                    entry.held_until = None;
                    entry.incomplete = true;
                }
                None => {}
            }
            self.queue(&instance);
        }
    }

    fn forget_if_idle(&mut self, instance: &str) {
        let idle = |entry: &Entry| entry.known.is_empty() && !entry.incomplete && entry.held_until.is_none();
        if self.entries.get(instance).is_some_and(idle) {
            self.entries.remove(instance);
        }
    }
}

/// The last ids of messages, up to a number.
#[derive(Debug, Default)]
struct RecentIds {
    ids: HashSet<String>,
    by_age: VecDeque<String>,
}

impl RecentIds {
    fn contains(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    fn add(&mut self, id: &str) {
        if self.ids.insert(id.to_owned()) {
            self.by_age.push_back(id.to_owned());
        }
        if self.by_age.len() > FETCHED_MAX
            && let Some(oldest) = self.by_age.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use duroxide::providers::WorkItem;

    fn message(instance: &str, at: Millis) -> MessageDocument {
        let item = WorkItem::CancelInstance { instance: instance.to_owned(), reason: String::new() };
        MessageDocument::new(instance, &item, at, None).expect("serializable")
    }

    fn taken(ready: &mut ReadyInstances, now: Millis) -> Option<(String, Option<usize>)> {
        ready.take(now).map(|candidate| (candidate.instance, candidate.messages.map(|all| all.len())))
    }

    #[test]
    fn messages_of_one_instance_are_taken_together_and_once() {
        let mut ready = ReadyInstances::default();
        ready.add_message(message("a", 1.0), 1.0, 1.0);
        ready.add_message(message("b", 2.0), 2.0, 2.0);
        ready.add_message(message("a", 3.0), 3.0, 3.0);
        assert_eq!(taken(&mut ready, 3.0), Some(("a".to_owned(), Some(2))));
        assert_eq!(taken(&mut ready, 3.0), Some(("b".to_owned(), Some(1))));
        assert_eq!(taken(&mut ready, 3.0), None);
    }

    #[test]
    fn a_message_that_was_fetched_before_it_is_announced_is_not_taken_again() {
        let mut ready = ReadyInstances::default();
        let late = message("a", 1.0);
        let found = FoundMessage { instance_id: "a".to_owned(), id: late.id.clone(), visible_at: 1.0 };
        assert!(ready.add_found(&found, false, 1.0));
        ready.take(1.0).expect("a");
        ready.locked("a", 100.0);
        let early = message("a", 1.5);
        ready.add_message(early.clone(), 1.5, 1.5);
        ready.fetched("a", &[late.id.clone(), early.id.clone()]);
        ready.add_message(late, 1.0, 2.0);
        ready.done("a", 3.0);
        assert_eq!((taken(&mut ready, 3.0), ready.message_bytes), (None, 0));
        for n in 0..2 * FETCHED_MAX {
            ready.fetched("a", &[n.to_string()]);
        }
        assert_eq!((ready.fetched.ids.len(), ready.fetched.by_age.len()), (FETCHED_MAX, FETCHED_MAX));
    }

    #[test]
    fn messages_that_come_during_a_turn_wait_for_its_end() {
        let mut ready = ReadyInstances::default();
        ready.add_message(message("a", 1.0), 1.0, 1.0);
        ready.take(1.0).expect("a");
        ready.locked("a", 100.0);
        ready.add_message(message("a", 2.0), 2.0, 2.0);
        assert_eq!(taken(&mut ready, 3.0), None);
        ready.done("a", 4.0);
        assert_eq!(taken(&mut ready, 4.0), Some(("a".to_owned(), Some(1))));
        ready.done("a", 5.0);
        assert!(ready.entries.is_empty() && ready.message_bytes == 0);
    }

    #[test]
    fn a_message_that_is_visible_a_moment_after_the_turn_is_taken_then() {
        let mut ready = ReadyInstances::default();
        ready.add_message(message("a", 1.0), 1.0, 1.0);
        ready.take(1.0).expect("a");
        ready.locked("a", 5000.0);
        ready.add_message(message("a", 2.001), 2.001, 2.0);
        assert_eq!(taken(&mut ready, 2.0005), None);
        ready.done("a", 2.0005);
        assert_eq!(taken(&mut ready, 2.0005), None);
        assert_eq!(ready.next_due(), Some(2.001));
        assert_eq!(taken(&mut ready, 2.001), Some(("a".to_owned(), Some(1))));
    }

    #[test]
    fn results_wait_for_others_of_their_instance_but_not_longer_than_the_first() {
        let mut ready = ReadyInstances::default();
        ready.add_message(message("a", 1.0), 3.0, 1.0);
        ready.add_message(message("a", 2.0), 4.0, 2.0);
        assert_eq!(taken(&mut ready, 2.9), None);
        assert_eq!(taken(&mut ready, 3.0), Some(("a".to_owned(), Some(2))));
        ready.locked("a", 100.0);
        // During the turn.
        ready.add_message(message("a", 5.0), 7.0, 5.0);
        ready.done("a", 6.0);
        assert_eq!(taken(&mut ready, 6.0), None);
        assert_eq!(ready.next_due(), Some(7.0));
        // The last one that was waited for.
        ready.add_message(message("a", 6.5), 6.5, 6.5);
        assert_eq!(taken(&mut ready, 6.5), Some(("a".to_owned(), Some(2))));
        ready.locked("a", 100.0);
        ready.add_message(message("a", 8.0), 10.0, 8.0);
        ready.done("a", 11.0);
        assert_eq!(taken(&mut ready, 11.0), Some(("a".to_owned(), Some(1))));
        ready.done("a", 12.0);
        assert!(ready.entries.is_empty());
    }

    #[test]
    fn an_expired_lock_makes_the_container_be_asked() {
        let mut ready = ReadyInstances::default();
        ready.add_message(message("a", 1.0), 1.0, 1.0);
        ready.take(1.0).expect("a");
        ready.locked("a", 10.0);
        ready.locked("a", 20.0);
        assert_eq!(taken(&mut ready, 15.0), None);
        assert_eq!(taken(&mut ready, 20.0), Some(("a".to_owned(), None)));
    }

    #[test]
    fn a_delayed_message_is_taken_when_it_becomes_visible() {
        let mut ready = ReadyInstances::default();
        let mut timer = message("a", 1.0);
        timer.visible_at = 50.0;
        ready.add_message(timer, 50.0, 1.0);
        assert_eq!(taken(&mut ready, 49.0), None);
        assert_eq!(ready.next_due(), Some(50.0));
        assert_eq!(taken(&mut ready, 50.0), Some(("a".to_owned(), Some(1))));
    }

    #[test]
    fn a_poll_adds_only_what_is_not_known_and_not_locked_here() {
        let found = |instance: &str, id: &str, visible_at| {
            let (instance_id, id) = (instance.to_owned(), id.to_owned());
            FoundMessage { instance_id, id, visible_at }
        };
        let mut ready = ReadyInstances::default();
        let known = message("a", 1.0);
        ready.add_message(known.clone(), 1.0, 1.0);
        assert!(!ready.add_found(&found("a", &known.id, 1.0), false, 2.0));
        assert!(ready.add_found(&found("a", "other", 1.0), false, 2.0));
        assert_eq!(taken(&mut ready, 2.0), Some(("a".to_owned(), None)));
        ready.locked("a", 10.0);
        assert!(!ready.add_found(&found("a", "other", 1.0), true, 3.0));
        assert!(ready.add_found(&found("a", "other", 1.0), false, 11.0));
        assert!(!ready.add_found(&found("b", "later", 30.0), false, 11.0));
        ready.take(11.0).expect("a");
        assert_eq!(taken(&mut ready, 29.0), None);
        assert_eq!(taken(&mut ready, 30.0), Some(("b".to_owned(), None)));
        ready.retry_at("b", 90.0);
        assert!(!ready.add_found(&found("b", "later", 30.0), false, 40.0), "put off");
        assert!(ready.add_found(&found("b", "later", 30.0), true, 40.0), "asked for");
    }
}
