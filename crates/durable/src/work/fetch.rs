//! Finds an activity that a worker may execute, and locks it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::{SessionFetchConfig, TagFilter, WorkItem};
use tokio::sync::oneshot;

use crate::clock::{self, Millis};
use crate::core::Core;
use crate::dispatch::{LockedWork, WorkFilter};
use crate::documents::{WorkDocument, check_version};
use crate::error::Result;
use crate::held::HeldWork;
use crate::ids::WorkToken;
use crate::store::Versioned;

/// A locked activity as the runtime gets it: what to execute, the lock token, and how often it was tried.
pub(crate) type FetchedWork = (WorkItem, String, u32);

/// When an activity is looked at again that this process cannot execute.
const FOREIGN_DELAY: Millis = 5_000.0;

/// When an activity is looked at again that could not be locked ahead.
const ERROR_DELAY: Millis = 1_000.0;

/// How an activity is to be locked.
#[derive(Clone, Debug)]
struct LockRequest {
    filter: WorkFilter,
    lock_time: Millis,
    session: Option<SessionFetchConfig>,
}

/// Removes a worker from those that wait when it stops waiting.
struct Waiting<'a> {
    core: &'a Core,
    number: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.core.work.ready.lock().stop_waiting(self.number);
    }
}

impl Core {
    /// Fetches an activity. Waits up to `poll_timeout` for one.
    pub(crate) async fn fetch_work(
        self: &Arc<Core>,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tags: &TagFilter,
    ) -> Result<Option<FetchedWork>> {
        if *tags == TagFilter::None {
            tokio::time::sleep(poll_timeout).await;
            return Ok(None);
        }
        let deadline = clock::now() + clock::millis(poll_timeout);
        let request = LockRequest {
            filter: WorkFilter { tags: tags.clone(), sessions: session.is_some() },
            lock_time: clock::millis(lock_timeout),
            session: session.cloned(),
        };
        self.work.ready.lock().note_request(&request.filter, request.lock_time);
        let mut has_polled = false;
        loop {
            let woken = self.work.wake.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if let Some(work) = self.take_work(&request).await? {
                return Ok(Some(work));
            }
            let must_poll = poll_timeout.is_zero() && !has_polled;
            has_polled = true;
            if self.poll_work(must_poll, &request.filter).await? {
                continue;
            }
            let now = clock::now();
            if now >= deadline {
                return Ok(None);
            }
            let number = self.work.ready.lock().wait(&request.filter);
            let _waiting = Waiting { core: self, number };
            let due = self.work.ready.lock().next_due(now).unwrap_or(Millis::INFINITY);
            let next = deadline.min(due).min(self.work.polls.lock().next());
            tokio::select! {
                () = &mut woken => {}
                () = tokio::time::sleep(clock::until(next, now)) => {}
            }
        }
    }

    /// Takes an activity that this process knows of, and locks it unless it is locked already.
    async fn take_work(self: &Arc<Core>, request: &LockRequest) -> Result<Option<FetchedWork>> {
        let mut passed_over = Vec::new();
        // Sessions of other workers.
        let mut others = HashSet::new();
        let result = loop {
            let now = clock::now();
            let locked = self.work.ready.lock().take_locked(&request.filter, request.lock_time, now);
            if let Some(locked) = locked {
                let work = self.hand_out(locked);
                self.lock_more_ahead();
                break Ok(Some(work));
            }
            let unlocked = self.work.ready.lock().take_unlocked(&request.filter, now);
            let Some(version) = unlocked else { break Ok(None) };
            // One question about each session is enough.
            let session = version.document.session_id.clone();
            if session.as_ref().is_some_and(|session| others.contains(session)) {
                passed_over.push(version);
                continue;
            }
            match self.lock_work_in_task(version, request).await {
                Ok(WorkAttempt::Locked(work)) => break Ok(Some(*work)),
                Ok(WorkAttempt::OtherOwner(version)) => {
                    others.extend(session);
                    passed_over.push(*version);
                }
                Ok(WorkAttempt::Gone) => {}
                Err(error) => break Err(error),
            }
        };
        let mut ready = self.work.ready.lock();
        for version in passed_over.into_iter().rev() {
            ready.put_back(version);
        }
        result
    }

    /// Locks an activity in a task of its own: if the caller stops waiting meanwhile, another worker gets it.
    async fn lock_work_in_task(
        self: &Arc<Core>,
        version: Versioned<WorkDocument>,
        request: &LockRequest,
    ) -> Result<WorkAttempt> {
        let (sender, receiver) = oneshot::channel();
        let (core, request) = (Arc::clone(self), request.clone());
        tokio::spawn(async move {
            let attempt = Box::pin(core.lock_work(version, &request)).await;
            match attempt {
                Ok(LockedOr::Locked(locked)) => {
                    if sender.is_closed() {
                        core.work.ready.lock().add_locked(*locked);
                        core.work.wake.notify_one();
                    } else {
                        let work = Box::new(core.hand_out(*locked));
                        if let Err(Ok(WorkAttempt::Locked(work))) = sender.send(Ok(WorkAttempt::Locked(work)))
                            && let Err(error) = core.abandon_work(&work.1, None, true).await
                        {
                            tracing::debug!(%error, "the lock on an activity that nobody waits for will expire");
                        }
                    }
                }
                Ok(LockedOr::Attempt(attempt)) => drop(sender.send(Ok(attempt))),
                Err(error) => drop(sender.send(Err(error))),
            }
        });
        // The task ends without a result only if its runtime does.
        receiver.await.unwrap_or(Ok(WorkAttempt::Gone))
    }

    /// Locks the oldest activities that nobody has locked, in the background, as far as workers will have them soon.
    pub(crate) fn lock_more_ahead(self: &Arc<Core>) {
        if !self.options.prefetch {
            return;
        }
        loop {
            let next = self.work.ready.lock().take_to_lock_ahead(clock::now());
            let Some((version, filter, lock_time)) = next else { return };
            let core = Arc::clone(self);
            tokio::spawn(async move {
                let request = LockRequest { filter, lock_time, session: None };
                let mut again = version.clone();
                let attempt = Box::pin(core.lock_work(version, &request)).await;
                let mut ready = core.work.ready.lock();
                ready.unreserve(1);
                match attempt {
                    Ok(LockedOr::Locked(locked)) => ready.add_locked(*locked),
                    Ok(LockedOr::Attempt(WorkAttempt::OtherOwner(version))) => ready.put_back(*version),
                    Ok(LockedOr::Attempt(_)) => return,
                    Err(error) => {
                        tracing::debug!(%error, "an activity could not be locked ahead");
                        again.document.visible_at = clock::now() + ERROR_DELAY;
                        ready.put_back(again);
                    }
                }
                drop(ready);
                core.work.wake.notify_one();
            });
        }
    }

    async fn lock_work(
        &self,
        mut version: Versioned<WorkDocument>,
        request: &LockRequest,
    ) -> Result<LockedOr> {
        let document = &mut version.document;
        let version_known = check_version(&format!("The work item {}", document.id), document.schema_version);
        if let Err(error) = version_known {
            // A newer release can execute it: it waits for one.
            tracing::error!(instance = document.instance_id, %error, "an activity is left alone");
            document.visible_at = clock::now() + FOREIGN_DELAY;
            return Ok(LockedOr::Attempt(WorkAttempt::OtherOwner(Box::new(version))));
        }
        let item: WorkItem = match serde_json::from_str(document.work_item.get()) {
            Ok(item) => item,
            Err(error) => {
                self.quarantine(&document.instance_id, &document.id, &error.to_string()).await?;
                return Ok(LockedOr::Attempt(WorkAttempt::Gone));
            }
        };
        if let (Some(session), Some(config)) = (&document.session_id, &request.session)
            && !self.claim_session(session, config).await?
        {
            return Ok(LockedOr::Attempt(WorkAttempt::OtherOwner(Box::new(version))));
        }
        let now = clock::now();
        let token = WorkToken::new(&document.instance_id, &document.id);
        document.lock(&token.text, now + request.lock_time);
        let written =
            self.store.replace(&token.instance, &token.document, &version.etag, &version.document).await;
        match written {
            Ok(etag) => {
                version.etag = etag;
                Ok(LockedOr::Locked(Box::new(LockedWork { token, item, version, locked_at: now })))
            }
            Err(error) if error.is_lost_race() => Ok(LockedOr::Attempt(WorkAttempt::Gone)),
            Err(error) if error.is_undecided() => match self.read_held_work(token.clone()).await {
                Ok(held) => {
                    let version = held.version;
                    Ok(LockedOr::Locked(Box::new(LockedWork { token, item, version, locked_at: now })))
                }
                Err(_) => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// Gives a locked activity to the runtime.
    fn hand_out(&self, locked: LockedWork) -> FetchedWork {
        let LockedWork { token, item, version, .. } = locked;
        let text = token.text.clone();
        let attempts = version.document.attempt_count;
        self.work.ready.lock().started(&token.instance);
        let held = HeldWork { token, version, started_at: Some(clock::now()) };
        self.held_work.lock().insert(text.clone(), held);
        (item, text, attempts)
    }
}

/// The result of trying to lock an activity.
#[derive(Debug)]
enum WorkAttempt {
    Locked(Box<FetchedWork>),
    /// Another worker has its session.
    OtherOwner(Box<Versioned<WorkDocument>>),
    /// It ended, or somebody else has it.
    Gone,
}

/// A locked activity that was not given out yet, or why there is none.
#[derive(Debug)]
enum LockedOr {
    Locked(Box<LockedWork>),
    Attempt(WorkAttempt),
}
