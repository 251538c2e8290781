//! Applying replication messages: at the hub, which resolves conflicts and broadcasts its decision, and at
//! the other regions, which adopt it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{HUB, MultiWriteReplicas};
use crate::disk::{DiskError, Keyspace, ReplicationEntry};
use crate::items::Item;
use crate::regions::{ConflictDecision, ConflictingVersions, RegionId};
use crate::store::replica::head::Head;
use crate::store::replica::version_chain::WriteGuard;
use crate::store::replication::conflicts::Conflict;
use crate::store::replication::context::ReplicationContext;
use crate::store::replication::message::ReplicationMessage;
use crate::store::replication::queue::{QueuePosition, ReplicationQueue};
use crate::store::replication::stored::StoredReplica;
use crate::store::transaction::{Transaction, TransactionOutcome};

/// Which of the queued messages to apply.
#[derive(Clone, Copy)]
struct DeliveryLimit {
    /// Those that are due by this uptime,
    until: Duration,
    /// and no more than this number of them.
    messages_max: u64,
}

impl DeliveryLimit {
    fn due_by(until: Duration) -> DeliveryLimit {
        DeliveryLimit { until, messages_max: u64::MAX }
    }

    /// The messages one after the other; each has to be taken out of the queue before the next.
    fn messages(self, queue: &ReplicationQueue) -> impl Iterator<Item = (QueuePosition, ReplicationMessage)> {
        (0..self.messages_max).map_while(move |_| queue.first_due(self.until))
    }
}

impl MultiWriteReplicas {
    /// Applies what is due at the hub and at `region`. Two atomic loads when nothing is.
    pub(super) fn drain(&self, context: &ReplicationContext<'_>, region: RegionId) {
        let hub = self.hub();
        let due = context.delivered_until(HUB);
        if hub.queue.has_due(due) {
            // A message that cannot be persisted has not arrived: it stays queued for the next request.
            let _ = self.apply_at_hub(context, &mut hub.chain.write_guard(), DeliveryLimit::due_by(due));
        }
        let replica = self.replica(region);
        let due = context.delivered_until(region);
        if region != HUB && replica.queue.has_due(due) {
            // As above: the message stays queued.
            let _ = self.apply_at_region(
                context,
                region,
                &mut replica.chain.write_guard(),
                DeliveryLimit::due_by(due),
            );
        }
    }

    /// Applies every message in flight, whatever the lag, under the write guards of all regions. A message
    /// that cannot be persisted is still queued afterwards.
    pub(super) fn apply_all(
        &self,
        context: &ReplicationContext<'_>,
        guards: &mut [WriteGuard<'_>],
    ) -> Result<(), DiskError> {
        let limit = DeliveryLimit::due_by(Duration::MAX);
        self.apply_at_hub(context, &mut guards[0], limit)?;
        for (region, guard) in (1..).zip(&mut guards[1..]) {
            self.apply_at_region(context, RegionId(region), guard, limit)?;
        }
        Ok(())
    }

    /// Applies up to `messages_max` messages per region, whatever the lag, while writers continue. Returns how
    /// many are left.
    pub(super) fn apply_some(
        &self,
        context: &ReplicationContext<'_>,
        messages_max: u64,
    ) -> Result<u64, DiskError> {
        let limit = DeliveryLimit { until: Duration::MAX, messages_max };
        self.apply_at_hub(context, &mut self.hub().chain.write_guard(), limit)?;
        for (region, replica) in self.followers() {
            self.apply_at_region(context, region, &mut replica.chain.write_guard(), limit)?;
        }
        Ok(self.replicas.iter().map(|replica| replica.queue.len() as u64).sum())
    }

    /// Resolves conflicts of the messages that have arrived at the hub, and broadcasts the decisions.
    fn apply_at_hub(
        &self,
        context: &ReplicationContext<'_>,
        guard: &mut WriteGuard<'_>,
        limit: DeliveryLimit,
    ) -> Result<(), DiskError> {
        let hub = self.hub();
        for (position, message) in limit.messages(&hub.queue) {
            let due = if limit.until == Duration::MAX { context.uptime } else { position.0 };
            let head = guard.head();
            let present = head.get(&message.key.epk, &message.key.id);
            let decision = decide(&head, &message, present);
            let wanted = match decision {
                ConflictDecision::Accept => message.item.clone(),
                ConflictDecision::Reject | ConflictDecision::Record => present.cloned(),
            };
            let lost =
                (decision == ConflictDecision::Record).then(|| Conflict::of(&message, present.cloned()));
            let (stored, outcome) = apply_version(context, guard, &message, wanted);
            // Relaxed: `sent` changes under the write guard alone, which is held here.
            let number = hub.sent.load(Ordering::Relaxed) + 1;
            let announcement = ReplicationMessage { item: stored, number, ..message.clone() };
            let mut conflicts = self.conflicts.lock();
            context.persist(|batch| {
                context.put_outcome(batch, HUB, guard.state(), &outcome);
                let last = conflicts.last() + u64::from(lost.is_some());
                let replica = StoredReplica { sent: number, ..hub.to_stored(&outcome.head, last) };
                context.put_replica(batch, HUB, &replica);
                let received = ReplicationEntry::Message(message.origin.0, message.number);
                batch.remove(Keyspace::Replication, &context.key(received));
                context.put_message(batch, HUB, &announcement);
                if let Some(lost) = &lost {
                    let key = context.key(ReplicationEntry::Conflict(last));
                    batch.put(Keyspace::Replication, &key, |to| lost.put(to));
                    if let Some(oldest) = conflicts.next_evicted() {
                        batch.remove(Keyspace::Replication, &context.key(ReplicationEntry::Conflict(oldest)));
                    }
                }
            })?;
            hub.queue.take(position);
            lost.into_iter().for_each(|lost| conflicts.add(lost));
            drop(conflicts);
            hub.sent.store(number, Ordering::Relaxed);
            guard.commit(outcome);
            self.broadcast(context, due, &announcement);
        }
        Ok(())
    }

    /// Applies the hub's decisions at a region, about its own changes and those of others.
    fn apply_at_region(
        &self,
        context: &ReplicationContext<'_>,
        region: RegionId,
        guard: &mut WriteGuard<'_>,
        limit: DeliveryLimit,
    ) -> Result<(), DiskError> {
        let replica = self.replica(region);
        for (position, message) in limit.messages(&replica.queue) {
            let own = u32::from(message.origin == region);
            let unresolved =
                replica.unresolved().get(&message.key).map_or(0, |count| count.saturating_sub(own));
            let wanted = if unresolved > 0 {
                guard.head().get(&message.key.epk, &message.key.id).cloned()
            } else {
                message.item.clone()
            };
            let (_, outcome) = apply_version(context, guard, &message, wanted);
            // Relaxed: a smaller number than the newest only leaves a message on disk for the next step.
            let released = self.released.load(Ordering::Relaxed);
            let applied = self.applied_everywhere(region, message.number);
            context.persist(|batch| {
                context.put_outcome(batch, region, guard.state(), &outcome);
                let stored = StoredReplica { applied: message.number, ..replica.to_stored(&outcome.head, 0) };
                context.put_replica(batch, region, &stored);
                for number in released + 1..=applied {
                    let key = context.key(ReplicationEntry::Message(HUB.0, number));
                    batch.remove(Keyspace::Replication, &key);
                }
            })?;
            replica.queue.take(position);
            // Relaxed: other regions read both only to free disk space, where a late value does no harm.
            replica.applied.store(message.number, Ordering::Relaxed);
            self.released.fetch_max(applied, Ordering::Relaxed);
            replica.set_unresolved(&message.key, unresolved);
            guard.commit(outcome);
        }
        Ok(())
    }

    /// Up to which of the hub's messages every region has applied them, when `region` has up to `number`.
    fn applied_everywhere(&self, region: RegionId, number: u64) -> u64 {
        let others = self.followers().filter(|(other, _)| *other != region);
        // Relaxed: see where `applied` is stored.
        others.map(|(_, replica)| replica.applied.load(Ordering::Relaxed)).fold(number, u64::min)
    }

    /// Sends a message of the hub, made at `from`, to every other region.
    pub(super) fn broadcast(
        &self,
        context: &ReplicationContext<'_>,
        from: Duration,
        message: &ReplicationMessage,
    ) {
        for (region, replica) in self.followers() {
            replica.queue.send(HUB, context.due(HUB, region, from), message.clone());
        }
    }
}

/// Decides between the version in a message and the one that the hub has.
fn decide(head: &Head, message: &ReplicationMessage, present: Option<&Arc<Item>>) -> ConflictDecision {
    let (incoming, there) =
        (message.item.as_ref().map(|item| item.value()), present.map(|item| item.value()));
    head.schema.conflict_resolver.resolve(ConflictingVersions {
        base: message.base.as_ref().and_then(|base| std::str::from_utf8(base).ok()),
        incoming: incoming.as_ref(),
        present: present.zip(there.as_ref()).map(|(item, value)| (item.etag_str(), value)),
    })
}

/// The transaction that makes a replica hold exactly `wanted`, and which version it holds afterwards.
fn apply_version(
    context: &ReplicationContext<'_>,
    guard: &WriteGuard<'_>,
    message: &ReplicationMessage,
    wanted: Option<Arc<Item>>,
) -> (Option<Arc<Item>>, TransactionOutcome) {
    let mut head = Head::clone(&guard.head());
    head.versions = head.versions.with(message.origin, message.commit);
    let mut transaction =
        Transaction::new(head, guard.state(), context.identity, context.ordinals, message.at);
    // A version that violates a unique key here loses: the hub had the other item first.
    let stored = transaction.apply_version(&message.key, wanted.as_ref()).unwrap_or_else(|present| present);
    (stored, transaction.finish_always())
}
