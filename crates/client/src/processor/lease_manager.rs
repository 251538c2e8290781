//! Acquires and renews the leases of an instance: one task balances leases with the other instances, one renews.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use driver::{Error, ErrorKind};
use futures::StreamExt;
use futures::stream;

use super::balance::{BalanceActions, LeaseOwnership, balance};
use super::delivery::with_jitter;
use super::lease::{Lease, ProcessorRecord, is_blocked_by_split};
use super::lease_observations::LeaseObservations;
use super::store::{Versioned, WriteOutcome};
use super::worker_context::WorkerContext;
use crate::Result;

/// How many requests to the lease container are sent at a time.
const PARALLEL_MAX: usize = 8;

/// Acquires leases, and requests them from other instances, until the instance stops.
pub(super) async fn acquire_until_stopped(context: Arc<WorkerContext>) {
    let mut observations = LeaseObservations::default();
    while !context.is_stopping() {
        let round = acquire_round(&context, &mut observations).await;
        context.set_last_error(round.err().map(|error| error.to_string()));
        let interval = with_jitter(context.settings.acquire_interval, context.jitter());
        wait_for_interval(&context, interval).await;
    }
    // An owner ignores a request that is not followed up after a while, so an error here costs only that time.
    let _ignored_later = withdraw_requests(&context).await;
}

/// Renews all leases of the instance, for as long as it runs.
pub(super) async fn renew_periodically(context: Arc<WorkerContext>) {
    let interval = context.settings.renew_interval;
    loop {
        context.clock.sleep(interval).await;
        let now = context.clock.now();
        // A checkpoint renews a lease too, so a lease that was just written needs no renewal.
        let needs_renewal = context.owned_leases().into_iter().filter(|lease| {
            !lease.is_lost() && now.saturating_duration_since(lease.renewed_at()) >= interval / 2
        });
        stream::iter(needs_renewal)
            .for_each_concurrent(PARALLEL_MAX, |lease| async move {
                if let Err(error) = lease.renew().await {
                    lease.update_report(|report| report.last_error = Some(error.message().to_owned()));
                }
            })
            .await;
    }
}

/// Waits for `interval`, or until the instance stops.
async fn wait_for_interval(context: &WorkerContext, interval: Duration) {
    let mut stopping = context.stopping();
    let stop = stopping.wait_for(|stopping| *stopping);
    let _either = context.clock.within(Some(context.clock.after(interval)), stop).await.map(|_| ());
}

/// Reads all leases, follows what others did to the own ones, and acquires or requests what balance asks for.
async fn acquire_round(context: &Arc<WorkerContext>, observations: &mut LeaseObservations) -> Result<()> {
    let state = context.store.list().await?;
    let Some(Versioned { value: record, .. }) = state.record else {
        let message = format!(
            "the processor {} is no longer in the lease container: it was deleted; stop this instance and start again",
            context.store.id()
        );
        return Err(Error::new(ErrorKind::NotFound, message));
    };
    let leases = state.leases;
    observations.record(leases.iter().map(|stored| &stored.value), context.clock.now());
    sync_owned_leases(context, &leases, &record).await;
    let (acquire, request) = {
        let BalanceActions { acquire, request } = decide_actions(context, &leases, observations);
        let by_id: BTreeMap<&str, &Versioned<Lease>> =
            leases.iter().map(|stored| (stored.value.id.as_str(), stored)).collect();
        let pick = |ids: Vec<&str>| -> Vec<Versioned<Lease>> {
            ids.into_iter().filter_map(|id| by_id.get(id).copied().cloned()).collect()
        };
        (pick(acquire), pick(request))
    };
    let record = &record;
    let acquired = stream::iter(acquire)
        .map(|stored| acquire_lease(context, stored, record))
        .buffer_unordered(PARALLEL_MAX);
    let requested =
        stream::iter(request).map(|stored| request_lease(context, stored)).buffer_unordered(PARALLEL_MAX);
    // All are tried, also after one failed; the first error is returned.
    let results: Vec<Result<()>> = acquired.collect().await;
    let more: Vec<Result<()>> = requested.collect().await;
    results.into_iter().chain(more).collect()
}

/// Decides which leases to acquire and which to request, from what was observed of their owners.
fn decide_actions<'a>(
    context: &WorkerContext,
    leases: &'a [Versioned<Lease>],
    observations: &LeaseObservations,
) -> BalanceActions<'a> {
    let (now, expiry) = (context.clock.now(), context.settings.lease_expiry);
    let grace = context.settings.acquire_interval.saturating_mul(3);
    let all = || leases.iter().map(|stored| &stored.value);
    let me: &str = &context.instance;
    let owned: Vec<bool> = all().map(|lease| context.owned_lease(&lease.id).is_some()).collect();
    let ownerships: Vec<LeaseOwnership<'_>> = all()
        .zip(owned)
        .filter(|(lease, _)| !is_blocked_by_split(lease, all()))
        .map(|(lease, is_owned)| {
            let is_expired = !is_owned && observations.is_unchanged_for(&lease.id, now, expiry);
            // It names this instance as its owner and has no worker here: the response to its acquisition was lost.
            let is_free = is_expired || (!is_owned && lease.owner.as_deref() == Some(me));
            // An instance that requested a lease acquires it soon after its release, or not at all.
            let is_request_expired =
                lease.owner.is_none() && observations.is_unchanged_for(&lease.id, now, grace.min(expiry));
            LeaseOwnership {
                lease: &lease.id,
                owner: lease.owner.as_deref().filter(|_| !is_free),
                requested_by: lease.requested_by.as_deref().filter(|_| !is_expired && !is_request_expired),
            }
        })
        .collect();
    balance(&ownerships, me, context.settings.leases_max, context.start_offset)
}

/// Follows what other instances did to the leases of this instance, without waiting for the next renewal.
async fn sync_owned_leases(
    context: &Arc<WorkerContext>,
    leases: &[Versioned<Lease>],
    record: &ProcessorRecord,
) {
    for Versioned { value: found, .. } in leases {
        let Some(owned) = context.owned_lease(&found.id) else { continue };
        let known = owned.lease();
        let result = if known.generation < record.generation && !known.is_splitting() {
            owned.rewind(record).await
        } else if (&found.requested_by, found.generation, found.term)
            != (&known.requested_by, known.generation, known.term)
        {
            owned.renew().await
        } else {
            continue;
        };
        if let Err(error) = result {
            owned.update_report(|report| report.last_error = Some(error.message().to_owned()));
        }
    }
}

async fn acquire_lease(
    context: &Arc<WorkerContext>,
    stored: Versioned<Lease>,
    record: &ProcessorRecord,
) -> Result<()> {
    let value = stored.value.acquired_by(&context.instance, record);
    let began = context.clock.now();
    if let WriteOutcome::Stored(etag) = context.store.replace_lease(&value, &stored.etag).await? {
        Arc::clone(context).start_worker(Versioned { value, etag }, began);
    }
    Ok(())
}

/// Withdraws all requests of this instance for leases of others.
async fn withdraw_requests(context: &WorkerContext) -> Result<()> {
    for Versioned { mut value, etag } in context.store.list().await?.leases {
        if value.requested_by.as_deref() == Some(&context.instance) {
            value.requested_by = None;
            context.store.replace_lease(&value, &etag).await?;
        }
    }
    Ok(())
}

/// Asks the owner of a lease to release it to this instance.
async fn request_lease(context: &WorkerContext, stored: Versioned<Lease>) -> Result<()> {
    let mut value = stored.value;
    value.requested_by = Some(context.instance.clone());
    // If another instance wrote first, the next round decides again.
    context.store.replace_lease(&value, &stored.etag).await.map(|_| ())
}
