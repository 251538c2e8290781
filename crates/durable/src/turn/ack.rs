//! Commits a turn: one batch in the partition of the instance, then the messages to others.

use std::sync::Arc;

use perihelion::Batch;
use tracing::Instrument;

use super::batch::{BYTES_MAX, OPERATIONS_MAX, Write};
use super::plan::{AckPlan, plan};
use crate::cache::CachedInstance;
use crate::clock::{self, Millis};
use crate::core::Core;
use crate::dispatch::LockedWork;
use crate::documents::{IntentDocument, Tombstone, WorkDocument, is_from_outbox};
use crate::error::Result;
use crate::held::{HeldTurn, turn_lost};
use crate::ids::WorkToken;
use crate::queries;
use crate::retry;
use crate::store::Versioned;
use crate::telemetry::LockKind;

pub(crate) use super::plan::Ack;

/// How often a commit is tried that loses races, although the turn has its lock.
const TRIES: usize = 4;

/// What is known about a commit that has happened.
#[derive(Debug, Default)]
pub(super) struct Committed {
    /// The ETag of the instance.
    pub(super) etag: Option<String>,
    /// The ETags of the work items, unless there was no response.
    pub(super) work_etags: Vec<String>,
}

impl Core {
    /// Commits a turn: everything it has done becomes visible at once, and the lock is released.
    pub(crate) async fn ack_turn(self: &Arc<Core>, token: &str, ack: Ack) -> Result<()> {
        let held = self.held_turn(token).await?;
        let mut held = held.lock().await;
        let instance = held.instance().to_owned();
        let span = tracing::debug_span!("durable.turn", instance, execution = ack.execution_id);
        let committed = Box::pin(self.commit(&mut held, &ack)).instrument(span).await;
        let (plan, committed) = match committed {
            Ok(committed) => committed,
            Err(error) => {
                self.cache.remove(&instance);
                if held.check_lock(clock::now()).is_err() {
                    self.options.telemetry.lock_lost(LockKind::Turn);
                }
                return Err(error);
            }
        };
        self.options.telemetry.turn_committed(clock::now() - held.locked_at);
        held.ended = true;
        self.turns.lock().remove(token);
        let intents = self.note_commit(&held, ack, plan, committed);
        self.turn_ended(&instance, clock::now());
        self.note_activity();
        self.deliver(&instance, intents).await;
        Ok(())
    }

    /// Writes what a turn has done. Repeats what failed as long as the turn has its lock.
    async fn commit(self: &Arc<Core>, held: &mut HeldTurn, ack: &Ack) -> Result<(AckPlan, Committed)> {
        let mut tries = 0;
        loop {
            tries += 1;
            let now = clock::now();
            held.check_lock(now)?;
            let mut plan = plan(held, ack, now, || self.timestamps.next())?;
            let cancelled = match self.cancelled_work(held.instance(), &ack.cancelled).await {
                Err(error) if retry::is_transient(&error) => {
                    retry::wait(&error, tries, held.locked_until()).await;
                    continue;
                }
                cancelled => cancelled?,
            };
            let reserved = self.lock_ahead(&mut plan, now);
            let written = match batch_writes(&plan, &cancelled)? {
                Some(writes) => self.commit_batch(held, &plan, &writes).await,
                None => Box::pin(self.commit_staged(held, &mut plan, cancelled)).await,
            };
            self.work.ready.lock().unreserve(reserved);
            let error = match written {
                Ok(committed) => return Ok((plan, committed)),
                Err(error) => error,
            };
            let passes = retry::is_transient(&error);
            if !passes && !error.is_lost_race() {
                return Err(error);
            }
            // There was no response, somebody renewed the lock, or an activity ended that was to be cancelled.
            match self.read_instance(held.instance()).await {
                Ok(current) => {
                    let last_turn =
                        current.as_ref().and_then(|current| current.document.last_turn.as_deref());
                    if last_turn == Some(held.token.text.as_str()) {
                        let etag = current.map(|current| current.etag);
                        // An earlier try may have written the messages under other ids: polls find them.
                        plan.messages.clear();
                        self.instances.polls.lock().hurry(now);
                        return Ok((plan, Committed { etag, work_etags: Vec::new() }));
                    }
                    held.refresh(current)?;
                }
                Err(error) if retry::is_transient(&error) => {}
                Err(error) => return Err(error),
            }
            if passes {
                retry::wait(&error, tries, held.locked_until()).await;
            } else if tries >= TRIES {
                // A message of this turn was processed before: the turn must not be, and the next one reads what is there.
                self.give_back(held).await;
                return Err(turn_lost(&held.token));
            }
        }
    }

    /// Releases a turn that cannot be committed.
    async fn give_back(&self, held: &mut HeldTurn) {
        let instance = held.instance().to_owned();
        if let Err(error) = self.release_turn(held, None, true).await {
            tracing::debug!(instance, %error, "a lock could not be released and will expire");
        }
        held.ended = true;
        self.turns.lock().remove(&held.token.text);
        self.instances.ready.lock().released(&instance, None, clock::now());
        self.instances.wake.notify_one();
    }

    /// Writes a turn that fits into one batch.
    async fn commit_batch(&self, held: &HeldTurn, plan: &AckPlan, writes: &[Write]) -> Result<Committed> {
        let mut batch = Batch::new(held.instance())
            .replace(&plan.instance.id, &plan.instance)
            .if_match(&held.version.etag);
        for write in writes {
            batch = write.add_to(batch);
        }
        let mut results = self.store.execute(batch).await?.into_iter().map(|result| result.etag);
        let etag = results.next().flatten();
        // Work items come first among the writes.
        let work_etags = results.take(plan.work.len()).map(Option::unwrap_or_default).collect();
        Ok(Committed { etag, work_etags })
    }

    /// The work items of activities that are to be cancelled, as far as these have not ended.
    async fn cancelled_work(&self, instance: &str, cancelled: &[(u64, u64)]) -> Result<Vec<String>> {
        let mut executions: Vec<u64> = cancelled.iter().map(|(execution, _)| *execution).collect();
        executions.dedup();
        let mut found = Vec::new();
        for execution in executions {
            let activities: Vec<u64> =
                cancelled.iter().filter(|(of, _)| *of == execution).map(|(_, activity)| *activity).collect();
            let query = || queries::work_of_activities(execution, &activities);
            found.extend(self.store.values_of_partition::<String>(instance, query).await?);
        }
        found.sort();
        found.dedup();
        Ok(found)
    }

    /// Locks work items for workers of this process that wait for some, or soon will. Returns how many.
    fn lock_ahead(&self, plan: &mut AckPlan, now: Millis) -> usize {
        if !self.options.prefetch {
            return 0;
        }
        let mut ready = self.work.ready.lock();
        let mut locked = 0;
        for document in &mut plan.work {
            let allowance = ready.prefetch(document, now);
            if allowance.items > 0 {
                let token = WorkToken::new(&document.instance_id, &document.id);
                document.lock(&token.text, now + allowance.lock_time);
                ready.reserve();
                locked += 1;
            }
        }
        locked
    }

    /// Tells the dispatchers of this process what a turn has enqueued, and remembers the instance for its next turn.
    /// Returns the messages to other instances.
    fn note_commit(
        self: &Arc<Core>,
        held: &HeldTurn,
        ack: Ack,
        plan: AckPlan,
        committed: Committed,
    ) -> Vec<IntentDocument> {
        let AckPlan { instance, work, messages, intents, .. } = plan;
        if let Some(etag) = committed.etag {
            let continues = held.version.document.current_execution_id == instance.current_execution_id;
            let is_current = ack.execution_id == instance.current_execution_id;
            // The store of an execution that has ended was written with it; it is read when it is needed.
            let history = held.history.as_ref().filter(|_| is_current && !instance.is_terminal());
            match history {
                Some(history) => {
                    let mut events = if continues { (**history).clone() } else { Vec::new() };
                    events.extend(ack.history_delta);
                    self.cache.insert(CachedInstance {
                        version: Versioned { document: instance, etag },
                        history: Some(Arc::new(events)),
                        key_values: Arc::clone(&held.key_values),
                        confirmed_at: clock::now(),
                    });
                }
                None => self.cache.remove(held.instance()),
            }
        }
        self.note_work(work, committed.work_etags);
        self.announce_messages(messages);
        intents
    }

    /// Tells the workers of this process what to execute.
    fn note_work(self: &Arc<Core>, documents: Vec<WorkDocument>, etags: Vec<String>) {
        if documents.is_empty() {
            return;
        }
        if etags.len() != documents.len() {
            // Without a response the ETags are unknown: a poll finds the items.
            self.work.polls.lock().hurry(clock::now());
            self.work.wake.notify_one();
            return;
        }
        let now = clock::now();
        for (document, etag) in documents.into_iter().zip(etags) {
            let version = Versioned { document, etag };
            let token = version.document.lock_token.as_deref().and_then(|text| WorkToken::parse(text).ok());
            let item = serde_json::from_str(version.document.work_item.get());
            match (token, item) {
                (Some(token), Ok(item)) => {
                    let locked = LockedWork { token, item, version, locked_at: now };
                    self.work.ready.lock().add_locked(locked);
                    self.work.wake.notify_one();
                }
                _ => self.announce_work([version]),
            }
        }
        self.lock_more_ahead();
    }
}

/// The writes of a turn beside that of the instance; none if they do not fit into one batch.
fn batch_writes(plan: &AckPlan, cancelled: &[String]) -> Result<Option<Vec<Write>>> {
    let operations = plan.work.len()
        + plan.processed.len()
        + plan.history.len()
        + plan.messages.len()
        + plan.intents.len()
        + plan.key_values.len()
        + plan.old_key_values.len()
        + usize::from(plan.earlier_execution.is_some())
        + cancelled.len();
    if operations >= OPERATIONS_MAX {
        return Ok(None);
    }
    let mut writes = Vec::with_capacity(operations);
    for document in &plan.work {
        writes.push(Write::create(document)?);
    }
    for document in &plan.messages {
        writes.push(Write::create(document)?);
    }
    for document in &plan.intents {
        writes.push(Write::create(document)?);
    }
    for document in &plan.history {
        writes.push(Write::create(document)?);
    }
    writes.extend(cancelled.iter().cloned().map(Write::Delete));
    writes.extend(shared_writes(plan)?);
    let bytes: usize = writes.iter().map(Write::bytes).sum();
    Ok((bytes <= BYTES_MAX).then_some(writes))
}

/// The writes that belong to the commit itself, however large the turn is.
pub(super) fn shared_writes(plan: &AckPlan) -> Result<Vec<Write>> {
    let mut writes = Vec::new();
    for id in &plan.processed {
        writes.push(if is_from_outbox(id) {
            Write::upsert(&Tombstone::new(&plan.instance.instance_id, id))?
        } else {
            Write::Delete(id.clone())
        });
    }
    if let Some(execution) = &plan.earlier_execution {
        writes.push(Write::upsert(execution)?);
    }
    for document in &plan.key_values {
        writes.push(Write::upsert(document)?);
    }
    writes.extend(plan.old_key_values.iter().cloned().map(Write::Delete));
    Ok(writes)
}
