//! Where a processor begins: made once by the first instance that starts, and anew by each rewind.

use std::collections::VecDeque;
use std::time::Duration;

use driver::Clock;
use driver::change_feed::FeedPosition;
use driver::change_feed::{
    ChangeFeedMode, ChangeFeedStart, ChangeRequest, ChangeSource, ServiceChanges, since,
};
use driver::query::PageError;
use driver::{Error, ErrorKind};
use protocol::partition::EpkRange;

use super::lease::{Lease, Mode, Plan, Position, Stretch};
use super::settings::{ProcessorStart, Settings};
use super::store::{LeaseStore, Stored, Written};
use crate::Result;

/// How often something is tried against other instances before it is given up.
const ROUNDS_MAX: u32 = 12;

/// The wait before a round. What another instance has written may take a moment to get to the region that is
/// asked here.
fn wait(round: u32) -> Duration {
    match round {
        0 => Duration::ZERO,
        _ => Duration::from_millis(10 << round.min(6)),
    }
}

/// The processor's plan, with a lease for all of the ring. The first instance to get here makes it.
pub(super) async fn begin(
    store: &LeaseStore,
    source: &ServiceChanges,
    settings: &Settings,
    name: &str,
    clock: &Clock,
) -> Result<Plan> {
    for round in 0..ROUNDS_MAX {
        clock.sleep(wait(round)).await;
        let Some(stored) = store.plan().await? else {
            create(store, source, settings, name).await?;
            continue;
        };
        if stored.value.mode != Mode::of(settings.mode) {
            let message = format!(
                "the processor {name} reads in the mode {:?}: start it in that mode, or give this one another name",
                stored.value.mode.feed()
            );
            return Err(Error::new(ErrorKind::Configuration, message));
        }
        if stored.value.ready {
            return Ok(stored.value);
        }
        make_leases(store, &stored).await?;
    }
    let message =
        format!("the processor {name} is being started and stopped by others all the time: start again");
    Err(Error::new(ErrorKind::Unavailable, message))
}

async fn create(store: &LeaseStore, source: &ServiceChanges, settings: &Settings, name: &str) -> Result<()> {
    let Some(start) = settings.start.of_feed() else {
        let message = format!(
            "the processor {name} never ran over this container, so there is nothing to go on from: check the name, or start it from the beginning or from now"
        );
        return Err(Error::new(ErrorKind::NotFound, message));
    };
    debug_assert!(settings.start != ProcessorStart::Stored, "it has no start of a feed");
    let mut stretches = Vec::new();
    for stretch in beginnings(source, settings.mode, start).await? {
        // A lease per partition, wherever it begins.
        let parts = source.divide(stretch.range(), false).await?;
        stretches.extend(parts.into_iter().map(|part| Stretch::new(part, stretch.position.clone())));
    }
    let id = store.id().to_owned();
    let mode = Mode::of(settings.mode);
    let plan = Plan { processor: id.clone(), id, mode, generation: 1, stretches, ready: false };
    // Whoever was first is right; everybody reads it again.
    store.create_plan(&plan).await.map(|_| ())
}

/// Makes the leases of a plan that has none yet. Nobody works before all are there.
async fn make_leases(store: &LeaseStore, stored: &Stored<Plan>) -> Result<()> {
    let plan = &stored.value;
    for stretch in &plan.stretches {
        store.create_lease(&Lease::new(&plan.id, stretch, plan.generation)).await?;
    }
    store.replace_plan(&Plan { ready: true, ..plan.clone() }, &stored.etag).await.map(|_| ())
}

/// Where the ring begins for this start; all of it, in order.
pub(super) async fn beginnings(
    source: &ServiceChanges,
    mode: ChangeFeedMode,
    start: ChangeFeedStart,
) -> Result<Vec<Stretch>> {
    match since(mode, start)? {
        FeedPosition::Beginning => Ok(vec![Stretch::new(EpkRange::FULL, Position::Beginning)]),
        FeedPosition::Time(time) => Ok(vec![Stretch::new(EpkRange::FULL, Position::Time(time))]),
        FeedPosition::Etag(etag) => Ok(vec![Stretch::new(EpkRange::FULL, Position::Etag(etag))]),
        FeedPosition::Now => now(source, mode).await,
    }
}

/// Asks every partition where now is.
async fn now(source: &ServiceChanges, mode: ChangeFeedMode) -> Result<Vec<Stretch>> {
    let mut ranges: VecDeque<EpkRange> = source.divide(EpkRange::FULL, false).await?.into();
    let mut stretches = Vec::with_capacity(ranges.len());
    let mut divisions = 0;
    while let Some(range) = ranges.pop_front() {
        let request = ChangeRequest { range: range.clone(), mode, since: FeedPosition::Now, items_max: None };
        match source.changes(request).await {
            Ok(changes) => stretches.push(Stretch::new(range, Position::Etag(changes.etag))),
            Err(PageError::Failed(error)) => return Err(error),
            Err(PageError::Gone) => {
                divisions += 1;
                let parts = source.divide(range, true).await?;
                if divisions > DIVISIONS_MAX {
                    let message = "partitions split faster than they can be asked: start again";
                    return Err(Error::new(ErrorKind::Unavailable, message));
                }
                parts.into_iter().rev().for_each(|part| ranges.push_front(part));
            }
        }
    }
    Ok(stretches)
}

/// Splits that are followed before a start is given up.
const DIVISIONS_MAX: u32 = 1000;

/// Sends all instances back, or ahead, to `to`; says which generation begins there. Safe while they run:
/// what is being handled is finished, its place is not kept, and the next batch is from the new place.
pub(super) async fn rewind(
    store: &LeaseStore,
    source: &ServiceChanges,
    name: &str,
    to: ChangeFeedStart,
    clock: &Clock,
) -> Result<u64> {
    for round in 0..ROUNDS_MAX {
        clock.sleep(wait(round)).await;
        let Some(stored) = store.plan().await?.filter(|stored| stored.value.ready) else {
            return Err(never_ran(name));
        };
        let plan = stored.value;
        let stretches = beginnings(source, plan.mode.feed(), to).await?;
        let plan = Plan { generation: plan.generation + 1, stretches, ..plan };
        if let Written::Done(_) = store.replace_plan(&plan, &stored.etag).await? {
            push(store, &plan, clock).await?;
            return Ok(plan.generation);
        }
    }
    let message = format!("the processor {name} is being rewound by others all the time: try again");
    Err(Error::new(ErrorKind::Unavailable, message))
}

/// Tells every lease, so that no owner finds out later than with its next write. From here on the rewind
/// happens by itself: whoever holds or takes a lease of an older generation does the same.
async fn push(store: &LeaseStore, plan: &Plan, clock: &Clock) -> Result<()> {
    for round in 0..ROUNDS_MAX {
        clock.sleep(wait(round)).await;
        let mut again = false;
        for Stored { value, etag } in store.list().await?.leases {
            let next = value.rewound(plan);
            if next != value {
                again |= store.replace_lease(&next, &etag).await? == Written::Changed;
            }
        }
        if !again {
            break;
        }
    }
    Ok(())
}

/// The error of those who ask for a processor that is not there.
pub(super) fn never_ran(name: &str) -> Error {
    let message =
        format!("the processor {name} never ran over this container: check the name and the lease container");
    Error::new(ErrorKind::NotFound, message)
}
