//! Finds an instance that has messages, and locks it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use duroxide::providers::{DispatcherCapabilityFilter, OrchestrationItem};
use tokio::sync::oneshot;

use super::lock::{FOREIGN_DELAY, LockAttempt, LockRequest};
use crate::clock::{self, Millis};
use crate::core::Core;
use crate::dispatch::Candidate;
use crate::error::Result;

/// When an instance is looked at again after an error.
const ERROR_DELAY: Millis = 1_000.0;

/// How long a dispatcher that does not want to wait waits for others that are about to lock an instance.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// A locked instance as the runtime gets it: what to process, the lock token, and how often it was tried.
pub(crate) type FetchedTurn = (OrchestrationItem, String, u32);

/// What became of an instance that was a candidate.
#[derive(Debug)]
enum Fetch {
    Turn(Box<FetchedTurn>),
    Unsupported,
    Nothing,
}

/// Counts among the attempts to lock an instance until a dispatcher has the result, or the lock is released again.
struct Attempt {
    core: Arc<Core>,
}

impl Attempt {
    fn new(core: &Arc<Core>) -> Attempt {
        core.attempts.fetch_add(1, Ordering::Relaxed);
        Attempt { core: Arc::clone(core) }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.core.attempts.fetch_sub(1, Ordering::Relaxed);
        self.core.settled.notify_waiters();
    }
}

/// A turn on its way to a dispatcher. If that stops waiting, the lock is released.
struct Unclaimed {
    attempt: Option<Attempt>,
    fetch: Option<Result<Fetch>>,
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let (Some(Ok(Fetch::Turn(turn))), Some(attempt)) = (self.fetch.take(), self.attempt.take()) {
            tokio::spawn(async move {
                if let Err(error) = attempt.core.abandon_turn(&turn.1, None, true).await {
                    tracing::debug!(%error, "a lock that nobody waits for will expire");
                }
            });
        }
    }
}

/// Instances that this dispatcher cannot process; others may when it has ended its search.
struct PassedOver<'a> {
    core: &'a Core,
    instances: Vec<String>,
}

impl PassedOver<'_> {
    fn put_off(&mut self) {
        let at = clock::now() + FOREIGN_DELAY;
        let mut ready = self.core.instances.ready.lock();
        for instance in self.instances.drain(..) {
            ready.retry_at(&instance, at);
        }
    }
}

impl Drop for PassedOver<'_> {
    fn drop(&mut self) {
        self.put_off();
    }
}

impl Core {
    /// Fetches an instance that has messages. Waits up to `poll_timeout` for one.
    pub(crate) async fn fetch_turn(
        self: &Arc<Core>,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<FetchedTurn>> {
        let deadline = clock::now() + clock::millis(poll_timeout);
        let supports_nothing = filter.is_some_and(|filter| filter.supported_duroxide_versions.is_empty());
        if supports_nothing {
            tokio::time::sleep(poll_timeout).await;
            return Ok(None);
        }
        let request = LockRequest { lock_time: clock::millis(lock_timeout), filter: filter.cloned() };
        let mut has_polled = false;
        let mut passed_over = PassedOver { core: self, instances: Vec::new() };
        loop {
            let woken = self.instances.wake.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            loop {
                // The guard must not live as long as the body of the loop.
                let candidate = self.instances.ready.lock().take(clock::now());
                let Some(candidate) = candidate else { break };
                let instance = candidate.instance.clone();
                match self.lock_turn_in_task(candidate, &request).await? {
                    Fetch::Turn(turn) => return Ok(Some(*turn)),
                    Fetch::Unsupported => passed_over.instances.push(instance),
                    Fetch::Nothing => {}
                }
            }
            let must_poll = poll_timeout.is_zero() && !has_polled;
            has_polled = true;
            if self.poll_messages(must_poll).await? {
                continue;
            }
            passed_over.put_off();
            // Who asks without waiting wants to know what is there: what others may be about to give back counts.
            if must_poll && self.wait_for_others().await {
                continue;
            }
            let now = clock::now();
            if now >= deadline {
                return Ok(None);
            }
            let due = self.instances.ready.lock().next_due().unwrap_or(Millis::INFINITY);
            let next = deadline.min(due).min(self.instances.polls.lock().next());
            tokio::select! {
                () = &mut woken => {}
                () = tokio::time::sleep(clock::until(next, now)) => {}
            }
        }
    }

    /// Locks an instance in a task of its own: if the caller stops waiting meanwhile, the lock is released.
    async fn lock_turn_in_task(
        self: &Arc<Core>,
        candidate: Candidate,
        request: &LockRequest,
    ) -> Result<Fetch> {
        let (sender, receiver) = oneshot::channel();
        let (attempt, request) = (Attempt::new(self), request.clone());
        tokio::spawn(async move {
            let core = &attempt.core;
            let instance = candidate.instance.clone();
            let result = Box::pin(core.lock_candidate(candidate, &request)).await;
            let fetch = core.note_attempt(&instance, result);
            // If nobody waits for it, it is dropped, and with it the lock.
            let _ = sender.send(Unclaimed { attempt: Some(attempt), fetch: Some(fetch) });
        });
        match receiver.await {
            Ok(mut unclaimed) => unclaimed.fetch.take().unwrap_or(Ok(Fetch::Nothing)),
            // The task ends without a result only if its runtime does.
            Err(_) => Ok(Fetch::Nothing),
        }
    }

    /// Waits until other dispatchers of this process know whether they have locked the instances that they try to lock.
    /// Returns whether there were any.
    async fn wait_for_others(&self) -> bool {
        let settled = self.settled.notified();
        tokio::pin!(settled);
        settled.as_mut().enable();
        if self.attempts.load(Ordering::Relaxed) == 0 {
            return false;
        }
        tokio::time::timeout(SETTLE_TIME, settled).await.is_ok()
    }

    /// Notes what became of trying to lock an instance.
    fn note_attempt(&self, instance: &str, attempt: Result<LockAttempt>) -> Result<Fetch> {
        let now = clock::now();
        let mut ready = self.instances.ready.lock();
        match attempt {
            Ok(LockAttempt::Locked(locked)) => {
                let (held, item) = *locked;
                ready.locked(instance, held.locked_until());
                ready.fetched(instance, &held.version.document.locked_messages);
                drop(ready);
                let token = held.token.text.clone();
                let attempts = held.version.document.attempts_max();
                self.turns.lock().insert(token.clone(), Arc::new(tokio::sync::Mutex::new(held)));
                Ok(Fetch::Turn(Box::new((item, token, attempts))))
            }
            Ok(LockAttempt::RetryAt(at)) => {
                ready.retry_at(instance, at);
                Ok(Fetch::Nothing)
            }
            // It stays reserved while this dispatcher looks for another.
            Ok(LockAttempt::Unsupported) => Ok(Fetch::Unsupported),
            Ok(LockAttempt::Nothing) => {
                ready.done(instance, now);
                Ok(Fetch::Nothing)
            }
            Err(error) => {
                ready.retry_at(instance, now + ERROR_DELAY);
                Err(error)
            }
        }
    }
}
