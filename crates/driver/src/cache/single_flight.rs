//! A cache that runs one fetch per key for all concurrent callers.
//!
//! In: keys and, for those that are missing or distrusted, a future that fetches. Out: values. All callers
//! during a fetch share it; it continues as long as one of them waits, so the one that started it may be
//! dropped, and it is dropped with the last. An error goes to the callers that waited for it and is not
//! cached.
//!
//! Callers on different runtimes do not share a fetch: its timers and sockets belong to the runtime that it began
//! on, and end or stand still with it. The first result counts for all.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{RwLock, RwLockWriteGuard};

use futures::FutureExt;
use futures::future::{BoxFuture, WeakShared};

use crate::background::current_runtime;
use crate::error::Error;

type Entries<K, V> = HashMap<K, Entry<V>, foldhash::fast::RandomState>;
type Flight<V> = BoxFuture<'static, Result<V, Error>>;

/// Values by key, each fetched once. Values are cloned out, so they are usually `Arc`s.
pub(super) struct SingleFlight<K, V>
where
    V: Clone + Send + Sync + 'static,
{
    entries: RwLock<Entries<K, V>>,
    capacity: usize,
    /// Grows with every use: the order of uses.
    clock: AtomicU64,
}

struct Entry<V>
where
    V: Clone + Send + Sync + 'static,
{
    value: Option<V>,
    /// How many values were stored.
    version: u64,
    /// The newest fetch in progress, as long as a caller waits for it.
    flight: Option<FlightInProgress<V>>,
    used: AtomicU64,
}

struct FlightInProgress<V>
where
    V: Clone + Send + Sync + 'static,
{
    id: u64,
    runtime: Option<tokio::runtime::Id>,
    flight: WeakShared<Flight<V>>,
}

impl<K, V> SingleFlight<K, V>
where
    K: Clone + Eq + Hash,
    V: Clone + Send + Sync + 'static,
{
    /// An empty cache of at most `capacity` values; beyond it the least recently used goes.
    pub(super) fn new(capacity: usize) -> SingleFlight<K, V> {
        SingleFlight { entries: RwLock::default(), capacity: capacity.max(1), clock: AtomicU64::new(0) }
    }

    /// The value, if it is there. Never waits for a fetch.
    ///
    /// Cost: a read lock, a look-up and a clone.
    pub(super) fn peek(&self, key: &K) -> Option<V> {
        let entries = crate::sync::read(&self.entries);
        let entry = entries.get(key)?;
        entry.used.store(self.tick(), Ordering::Relaxed);
        entry.value.clone()
    }

    /// The value; fetched if it is not there.
    pub(super) async fn get<F>(&self, key: &K, fetch: impl FnOnce() -> F) -> Result<V, Error>
    where
        F: Future<Output = Result<V, Error>> + Send + 'static,
    {
        match self.peek(key) {
            Some(value) => Ok(value),
            None => self.refresh(key, |_| false, fetch).await,
        }
    }

    /// A value that can be trusted: the one that is there unless `is_stale`, otherwise a fetched one.
    /// The caller says with `is_stale` which value it found out of date, so that concurrent callers that found the
    /// same value out of date share one fetch.
    pub(super) async fn refresh<F>(
        &self,
        key: &K,
        is_stale: impl FnOnce(&V) -> bool,
        fetch: impl FnOnce() -> F,
    ) -> Result<V, Error>
    where
        F: Future<Output = Result<V, Error>> + Send + 'static,
    {
        self.refresh_then(key, is_stale, fetch, |_| ()).await
    }

    /// As [`SingleFlight::refresh`]. Whoever stores the fetched value calls `stored` with it: once for each value, in
    /// the order in which they are stored, and before anyone gets it.
    pub(super) async fn refresh_then<F>(
        &self,
        key: &K,
        is_stale: impl FnOnce(&V) -> bool,
        fetch: impl FnOnce() -> F,
        stored: impl FnOnce(&V),
    ) -> Result<V, Error>
    where
        F: Future<Output = Result<V, Error>> + Send + 'static,
    {
        let (id, version, flight) = {
            let mut entries = self.write();
            let entry = entries.entry(key.clone()).or_insert_with(|| Entry {
                value: None,
                version: 0,
                flight: None,
                used: AtomicU64::new(0),
            });
            entry.used.store(self.tick(), Ordering::Relaxed);
            if let Some(value) = &entry.value
                && !is_stale(value)
            {
                return Ok(value.clone());
            }
            let (version, runtime) = (entry.version, current_runtime());
            let under_way = entry.flight.as_ref().filter(|known| known.runtime == runtime);
            match under_way.and_then(|known| Some((known.id, known.flight.upgrade()?))) {
                Some((id, joined)) => (id, version, joined),
                None => {
                    let flight = fetch().boxed().shared();
                    let id = self.tick();
                    entry.flight = flight.downgrade().map(|flight| FlightInProgress { id, runtime, flight });
                    self.make_room(&mut entries, key);
                    (id, version, flight)
                }
            }
        };
        let outcome = flight.await;
        self.complete(key, id, version, outcome, stored)
    }

    /// Forgets the value if it `is_stale`; says whether it did. A fetch in progress continues.
    pub(super) fn forget(&self, key: &K, is_stale: impl FnOnce(&V) -> bool) -> bool {
        let mut entries = self.write();
        let Some(entry) = entries.get_mut(key) else { return false };
        if !entry.value.as_ref().is_some_and(is_stale) {
            return false;
        }
        entry.value = None;
        if entry.flight.is_none() {
            entries.remove(key);
        }
        true
    }

    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        crate::sync::read(&self.entries).len()
    }

    /// Whether there are none.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Stores the result of fetch `id`, which began when `version` values had been stored, and returns what the caller
    /// gets: a value that was stored since then, by another caller or another fetch, or the result itself.
    fn complete(
        &self,
        key: &K,
        id: u64,
        version: u64,
        outcome: Result<V, Error>,
        stored: impl FnOnce(&V),
    ) -> Result<V, Error> {
        let mut entries = self.write();
        let Some(entry) = entries.get_mut(key) else { return outcome };
        if entry.version != version {
            return entry.value.clone().map_or(outcome, Ok);
        }
        if entry.flight.as_ref().is_some_and(|known| known.id == id) {
            entry.flight = None;
        }
        match &outcome {
            Ok(value) => {
                stored(value);
                entry.version += 1;
                entry.value = Some(value.clone());
            }
            Err(_) if entry.value.is_none() && entry.flight.is_none() => {
                entries.remove(key);
            }
            Err(_) => {}
        }
        outcome
    }

    /// Drops the least recently used entries but never `newest`.
    fn make_room(&self, entries: &mut Entries<K, V>, newest: &K) {
        while entries.len() > self.capacity {
            let oldest = entries
                .iter()
                .filter(|(key, _)| *key != newest)
                .min_by_key(|(_, entry)| entry.used.load(Ordering::Relaxed))
                .map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { return };
            entries.remove(&oldest);
        }
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Entries<K, V>> {
        crate::sync::write(&self.entries)
    }
}

impl<K, V> fmt::Debug for SingleFlight<K, V>
where
    K: Clone + Eq + Hash,
    V: Clone + Send + Sync + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleFlight").field("len", &self.len()).field("capacity", &self.capacity).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;

    use futures::channel::oneshot;
    use futures::future::{join, pending, ready};

    use super::*;
    use crate::error::ErrorKind;

    type Cache = SingleFlight<&'static str, u32>;

    /// A fetch that counts its starts and ends when fetched.
    fn controlled(
        starts: &Arc<AtomicU32>,
    ) -> (impl FnOnce() -> BoxFuture<'static, Result<u32, Error>>, oneshot::Sender<u32>) {
        let (sender, fetched) = oneshot::channel();
        let starts = Arc::clone(starts);
        let fetch = move || {
            starts.fetch_add(1, Ordering::Relaxed);
            async move { fetched.await.map_err(|_| Error::new(ErrorKind::Unavailable, "no response")) }
                .boxed()
        };
        (fetch, sender)
    }

    fn ready_with(value: u32) -> impl FnOnce() -> BoxFuture<'static, Result<u32, Error>> {
        move || ready(Ok(value)).boxed()
    }

    fn unexpected() -> BoxFuture<'static, Result<u32, Error>> {
        panic!("there was no need to fetch")
    }

    #[tokio::test]
    async fn concurrent_calls_share_one_fetch() {
        let (cache, starts) = (Cache::new(8), Arc::new(AtomicU32::new(0)));
        let (fetch, sender) = controlled(&starts);
        let first = cache.get(&"a", fetch);
        let second = cache.get(&"a", unexpected);
        let sending = async { sender.send(7).expect("the fetch waits") };
        let ((first, second), ()) = join(join(first, second), sending).await;
        assert_eq!((first.expect("a value"), second.expect("a value")), (7, 7));
        assert_eq!(starts.load(Ordering::Relaxed), 1);
        assert_eq!(cache.get(&"a", unexpected).await.expect("kept"), 7);
    }

    #[tokio::test]
    async fn a_dropped_fetcher_hands_over_to_the_waiters() {
        let (cache, starts) = (Cache::new(8), Arc::new(AtomicU32::new(0)));
        let (fetch, sender) = controlled(&starts);
        let mut first = Box::pin(cache.get(&"a", fetch));
        assert!((&mut first).now_or_never().is_none());
        let mut second = Box::pin(cache.get(&"a", unexpected));
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        sender.send(7).expect("the second waits on");
        assert_eq!(second.await.expect("a value"), 7);
        assert_eq!(starts.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_fetch_without_waiters_is_dropped_and_the_next_one_starts_anew() {
        let (cache, starts) = (Cache::new(8), Arc::new(AtomicU32::new(0)));
        let (fetch, sender) = controlled(&starts);
        let mut first = Box::pin(cache.get(&"a", fetch));
        assert!((&mut first).now_or_never().is_none());
        drop(first);
        assert!(sender.is_canceled(), "the fetch is gone");
        assert_eq!(cache.get(&"a", ready_with(8)).await.expect("fetched again"), 8);
    }

    #[tokio::test]
    async fn an_error_goes_to_all_who_waited_and_is_forgotten() {
        let (cache, starts) = (Cache::new(8), Arc::new(AtomicU32::new(0)));
        let (fetch, sender) = controlled(&starts);
        let failing = async { drop(sender) };
        let ((first, second), ()) =
            join(join(cache.get(&"a", fetch), cache.get(&"a", unexpected)), failing).await;
        for outcome in [first, second] {
            assert_eq!(outcome.expect_err("no response").kind(), ErrorKind::Unavailable);
        }
        assert!(cache.is_empty());
        assert_eq!(cache.get(&"a", ready_with(9)).await.expect("fetched again"), 9);
    }

    fn on_new_runtime<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(work)
    }

    #[test]
    fn callers_on_different_runtimes_do_not_share_a_fetch_and_the_first_result_counts() {
        let (cache, starts) = (Cache::new(8), Arc::new(AtomicU32::new(0)));
        let ((first, first_sender), (second, second_sender)) = (controlled(&starts), controlled(&starts));
        let mut first = Box::pin(cache.get(&"a", first));
        assert!(on_new_runtime(async { (&mut first).now_or_never() }).is_none());
        on_new_runtime(async {
            let mut second = Box::pin(cache.get(&"a", second));
            assert!((&mut second).now_or_never().is_none());
            assert_eq!(starts.load(Ordering::Relaxed), 2);
            second_sender.send(7).expect("the second waits");
            assert_eq!(second.await.expect("a value"), 7);
        });
        first_sender.send(8).expect("the first waits");
        assert_eq!(on_new_runtime(first).expect("a value"), 7, "what is stored is what everyone gets");
        assert_eq!(cache.peek(&"a"), Some(7));
    }

    #[test]
    fn a_fetch_that_stands_still_with_its_runtime_keeps_nobody_waiting() {
        let cache = Cache::new(8);
        let mut stalled = Box::pin(cache.get(&"a", || pending().boxed()));
        assert!(on_new_runtime(async { (&mut stalled).now_or_never() }).is_none());
        assert_eq!(on_new_runtime(cache.get(&"a", ready_with(7))).expect("a value"), 7);
    }

    #[tokio::test]
    async fn each_value_is_announced_once_when_it_is_stored() {
        let (cache, starts) = (Cache::new(8), Arc::new(AtomicU32::new(0)));
        let announced = std::sync::Mutex::new(Vec::new());
        let announce = |value: &u32| announced.lock().expect("no panic").push(*value);
        let (fetch, sender) = controlled(&starts);
        let waiting = join(
            cache.refresh_then(&"a", |_| true, fetch, announce),
            cache.refresh_then(&"a", |_| true, unexpected, announce),
        );
        let ((first, second), ()) = join(waiting, async { sender.send(7).expect("waits") }).await;
        assert_eq!((first.expect("a value"), second.expect("a value")), (7, 7));
        let late = cache.refresh_then(&"a", |value| *value == 6, unexpected, announce).await;
        assert_eq!(late.expect("a value"), 7);
        cache.refresh_then(&"a", |value| *value == 7, ready_with(8), announce).await.expect("a value");
        assert_eq!(*announced.lock().expect("no panic"), [7, 8]);
    }

    #[tokio::test]
    async fn those_who_distrust_the_same_value_fetch_once_between_them() {
        let cache = Cache::new(8);
        cache.get(&"a", ready_with(1)).await.expect("a value");
        let refreshed = cache.refresh(&"a", |value| *value == 1, ready_with(2)).await;
        assert_eq!(refreshed.expect("fetched"), 2);
        let late = cache.refresh(&"a", |value| *value == 1, unexpected).await;
        assert_eq!(late.expect("already refreshed"), 2);
    }

    #[tokio::test]
    async fn a_refresh_that_fails_keeps_what_was_there() {
        let cache = Cache::new(8);
        cache.get(&"a", ready_with(1)).await.expect("a value");
        let fails = || ready(Err(Error::new(ErrorKind::Unavailable, "down"))).boxed();
        cache.refresh(&"a", |_| true, fails).await.expect_err("down");
        assert_eq!(cache.peek(&"a"), Some(1));
    }

    #[tokio::test]
    async fn others_keep_reading_while_one_refreshes() {
        let cache = Cache::new(8);
        cache.get(&"a", ready_with(1)).await.expect("a value");
        let mut refreshing = Box::pin(cache.refresh(&"a", |_| true, || pending().boxed()));
        assert!((&mut refreshing).now_or_never().is_none());
        assert_eq!(cache.get(&"a", unexpected).await.expect("the old one"), 1);
    }

    #[tokio::test]
    async fn only_the_value_that_was_distrusted_is_forgotten() {
        let cache = Cache::new(8);
        cache.get(&"a", ready_with(2)).await.expect("a value");
        assert!(!cache.forget(&"a", |value| *value == 1));
        assert_eq!(cache.peek(&"a"), Some(2));
        assert!(cache.forget(&"a", |value| *value == 2));
        assert_eq!((cache.peek(&"a"), cache.len()), (None, 0));
    }

    #[tokio::test]
    async fn memory_is_bounded_and_the_least_recently_used_goes_first() {
        let cache = Cache::new(2);
        for key in ["a", "b"] {
            cache.get(&key, ready_with(1)).await.expect("a value");
        }
        assert_eq!(cache.peek(&"a"), Some(1));
        cache.get(&"c", ready_with(1)).await.expect("a value");
        assert_eq!(cache.len(), 2);
        assert_eq!((cache.peek(&"a"), cache.peek(&"b"), cache.peek(&"c")), (Some(1), None, Some(1)));
    }
}
