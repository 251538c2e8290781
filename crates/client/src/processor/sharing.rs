//! The two loops of an instance beside its workers: one shares leases with the other instances, one renews.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use driver::{Error, ErrorKind};
use futures::StreamExt;
use futures::stream;

use super::balance::{Moves, Share, moves};
use super::crew::Crew;
use super::lease::{Lease, Plan, is_waiting};
use super::sightings::Sightings;
use super::store::{Stored, Written};
use crate::Result;

/// Requests to the lease container at a time.
const PARALLEL_MAX: usize = 8;

/// Takes leases, and asks for them, until the instance stops.
pub(super) async fn share(crew: Arc<Crew>) {
    let mut sightings = Sightings::default();
    while !crew.is_stopping() {
        let looked = look_around(&crew, &mut sightings).await;
        crew.tell(looked.err().map(|error| error.to_string()));
        let interval = crew.settings.acquire_interval.mul_f64(0.75 + crew.dice() * 0.5);
        rest(&crew, interval).await;
    }
    // What others were asked for is theirs to keep; they find out sooner if they are told.
    let _found_out_later = withdraw(&crew).await;
}

/// Shows that the instance lives, for as long as it has leases.
pub(super) async fn renew(crew: Arc<Crew>) {
    let interval = crew.settings.renew_interval;
    loop {
        crew.clock.sleep(interval).await;
        let now = crew.clock.now();
        // One that was written a moment ago has shown it already.
        let due = crew.held().into_iter().filter(|held| {
            !held.is_lost() && now.saturating_duration_since(held.certain_at()) >= interval / 2
        });
        stream::iter(due)
            .for_each_concurrent(PARALLEL_MAX, |held| async move {
                if let Err(error) = held.renew().await {
                    held.tell(|report| report.last_error = Some(error.message().to_owned()));
                }
            })
            .await;
    }
}

/// Waits, unless the instance stops.
async fn rest(crew: &Crew, interval: Duration) {
    let mut stopping = crew.stopping();
    let stop = stopping.wait_for(|stopping| *stopping);
    let _either = crew.clock.within(Some(crew.clock.now() + interval), stop).await.map(|_| ());
}

async fn look_around(crew: &Arc<Crew>, sightings: &mut Sightings) -> Result<()> {
    let listing = crew.store.list().await?;
    let Some(Stored { value: plan, .. }) = listing.plan else {
        let message = format!(
            "the processor {} is no longer in the lease container: somebody removed it; stop and start again",
            crew.store.id()
        );
        return Err(Error::new(ErrorKind::NotFound, message));
    };
    let leases = listing.leases;
    sightings.note(leases.iter().map(|stored| &stored.value), crew.clock.now());
    look_after_own(crew, &leases, &plan).await;
    let (take, ask) = {
        let Moves { take, ask } = decide(crew, &leases, sightings);
        let by_id: BTreeMap<&str, &Stored<Lease>> =
            leases.iter().map(|stored| (stored.value.id.as_str(), stored)).collect();
        let pick = |ids: Vec<&str>| -> Vec<Stored<Lease>> {
            ids.into_iter().filter_map(|id| by_id.get(id).copied().cloned()).collect()
        };
        (pick(take), pick(ask))
    };
    let plan = &plan;
    let taken = stream::iter(take).map(|stored| take_one(crew, stored, plan)).buffer_unordered(PARALLEL_MAX);
    let asked = stream::iter(ask).map(|stored| ask_for(crew, stored)).buffer_unordered(PARALLEL_MAX);
    // All are tried; the first that failed is told.
    let results: Vec<Result<()>> = taken.collect().await;
    let more: Vec<Result<()>> = asked.collect().await;
    results.into_iter().chain(more).collect()
}

fn decide<'a>(crew: &Crew, leases: &'a [Stored<Lease>], sightings: &Sightings) -> Moves<'a> {
    let (now, expiry) = (crew.clock.now(), crew.settings.lease_expiry);
    let grace = crew.settings.acquire_interval * 3;
    let all = || leases.iter().map(|stored| &stored.value);
    let me: &str = &crew.instance;
    let held: Vec<bool> = all().map(|lease| crew.holds(&lease.id).is_some()).collect();
    let shares: Vec<Share<'_>> = all()
        .zip(held)
        .filter(|(lease, _)| !is_waiting(lease, all()))
        .map(|(lease, is_held)| {
            let silent = !is_held && sightings.is_silent(&lease.id, now, expiry);
            // In my name and not at work: I was interrupted while I took it.
            let abandoned = silent || (!is_held && lease.owner.as_deref() == Some(me));
            // Whoever asked for it comes soon after it was let go of, or not at all.
            let forgotten = lease.owner.is_none() && sightings.is_silent(&lease.id, now, grace.min(expiry));
            Share {
                lease: &lease.id,
                owner: lease.owner.as_deref().filter(|_| !abandoned),
                wanted: lease.wanted.as_deref().filter(|_| !silent && !forgotten),
            }
        })
        .collect();
    moves(&shares, me, crew.settings.leases_max, crew.spread())
}

/// Looks after what others have done to the leases of this instance, without waiting for the next renewal.
async fn look_after_own(crew: &Arc<Crew>, leases: &[Stored<Lease>], plan: &Plan) {
    for Stored { value: found, .. } in leases {
        let Some(held) = crew.holds(&found.id) else { continue };
        let known = held.lease();
        let result = if known.generation < plan.generation && !known.is_divided() {
            held.rewind(plan).await
        } else if (&found.wanted, found.generation, found.term)
            != (&known.wanted, known.generation, known.term)
        {
            held.renew().await
        } else {
            continue;
        };
        if let Err(error) = result {
            held.tell(|report| report.last_error = Some(error.message().to_owned()));
        }
    }
}

async fn take_one(crew: &Arc<Crew>, stored: Stored<Lease>, plan: &Plan) -> Result<()> {
    let value = stored.value.taken_by(&crew.instance, plan);
    let began = crew.clock.now();
    if let Written::Done(etag) = crew.store.replace_lease(&value, &stored.etag).await? {
        Arc::clone(crew).put_to_work(Stored { value, etag }, began);
    }
    Ok(())
}

/// Takes back everything this instance asked others for.
async fn withdraw(crew: &Crew) -> Result<()> {
    for Stored { mut value, etag } in crew.store.list().await?.leases {
        if value.wanted.as_deref() == Some(&crew.instance) {
            value.wanted = None;
            crew.store.replace_lease(&value, &etag).await?;
        }
    }
    Ok(())
}

async fn ask_for(crew: &Crew, stored: Stored<Lease>) -> Result<()> {
    let mut value = stored.value;
    value.wanted = Some(crew.instance.clone());
    // Somebody who was faster may have had a better reason; there is another round.
    crew.store.replace_lease(&value, &stored.etag).await.map(|_| ())
}
