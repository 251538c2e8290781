//! Sets the start position of a processor: by the first instance that starts, and again by each rewind.

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

use super::lease::{Lease, LeasePosition, ProcessorRecord, RangePosition, StoredMode};
use super::settings::{ProcessorSettings, ProcessorStart};
use super::store::{LeaseStore, Versioned, WriteOutcome};
use crate::Result;

/// How often a change is tried when other instances write at the same time.
const ROUNDS_MAX: u32 = 12;

/// The wait before a round. A write of another instance may take a while to be replicated to the region that this
/// instance reads from.
fn retry_delay(round: u32) -> Duration {
    match round {
        0 => Duration::ZERO,
        _ => Duration::from_millis(10 << round.min(6)),
    }
}

/// Returns the processor's record, once the whole EPK space has leases. The first instance creates both.
pub(super) async fn initialize(
    store: &LeaseStore,
    source: &ServiceChanges,
    settings: &ProcessorSettings,
    name: &str,
    clock: &Clock,
) -> Result<ProcessorRecord> {
    for round in 0..ROUNDS_MAX {
        clock.sleep(retry_delay(round)).await;
        let Some(stored) = store.record().await? else {
            create_record(store, source, settings, name).await?;
            continue;
        };
        if stored.value.mode != StoredMode::from_feed_mode(settings.mode) {
            let message = format!(
                "the processor {name} reads in the mode {:?}: start it in that mode, or give this one another name",
                stored.value.mode.to_feed_mode()
            );
            return Err(Error::new(ErrorKind::Configuration, message));
        }
        if stored.value.ready {
            return Ok(stored.value);
        }
        create_leases(store, &stored).await?;
    }
    let message =
        format!("other instances of the processor {name} are started and stopped all the time: start again");
    Err(Error::new(ErrorKind::Unavailable, message))
}

async fn create_record(
    store: &LeaseStore,
    source: &ServiceChanges,
    settings: &ProcessorSettings,
    name: &str,
) -> Result<()> {
    let Some(start) = settings.start.to_feed_start() else {
        let message = format!(
            "the processor {name} has never been started on this container, so it has no stored position: check the name, or start it from the beginning or from now"
        );
        return Err(Error::new(ErrorKind::NotFound, message));
    };
    debug_assert!(settings.start != ProcessorStart::Stored, "a stored position is no start of a feed");
    let mut positions = Vec::new();
    for start in start_positions(source, settings.mode, start).await? {
        // One lease for each physical partition.
        let parts = source.divide(start.range(), false).await?;
        positions.extend(parts.into_iter().map(|part| RangePosition::new(part, start.position.clone())));
    }
    let id = store.id().to_owned();
    let mode = StoredMode::from_feed_mode(settings.mode);
    let record = ProcessorRecord {
        processor: id.clone(),
        id,
        mode,
        generation: 1,
        start_positions: positions,
        ready: false,
    };
    // If another instance created the record first, that one is valid; the caller reads it again in both cases.
    store.create_record(&record).await.map(|_| ())
}

/// Creates the leases of a record that has none yet. No instance acquires a lease before all exist.
async fn create_leases(store: &LeaseStore, stored: &Versioned<ProcessorRecord>) -> Result<()> {
    let record = &stored.value;
    for start in &record.start_positions {
        store.create_lease(&Lease::new(&record.id, start, record.generation)).await?;
    }
    store.replace_record(&ProcessorRecord { ready: true, ..record.clone() }, &stored.etag).await.map(|_| ())
}

/// The start positions for this start of the feed, in the order of their ranges, which are the whole EPK space.
pub(super) async fn start_positions(
    source: &ServiceChanges,
    mode: ChangeFeedMode,
    start: ChangeFeedStart,
) -> Result<Vec<RangePosition>> {
    match since(mode, start)? {
        FeedPosition::Beginning => Ok(vec![RangePosition::new(EpkRange::FULL, LeasePosition::Beginning)]),
        FeedPosition::Time(time) => Ok(vec![RangePosition::new(EpkRange::FULL, LeasePosition::Time(time))]),
        FeedPosition::Etag(etag) => Ok(vec![RangePosition::new(EpkRange::FULL, LeasePosition::Etag(etag))]),
        FeedPosition::Now => current_positions(source, mode).await,
    }
}

/// The current position of every physical partition.
async fn current_positions(source: &ServiceChanges, mode: ChangeFeedMode) -> Result<Vec<RangePosition>> {
    let mut ranges: VecDeque<EpkRange> = source.divide(EpkRange::FULL, false).await?.into();
    let mut positions = Vec::with_capacity(ranges.len());
    let mut splits = 0;
    while let Some(range) = ranges.pop_front() {
        let request = ChangeRequest { range: range.clone(), mode, since: FeedPosition::Now, items_max: None };
        match source.changes(request).await {
            Ok(changes) => positions.push(RangePosition::new(range, LeasePosition::Etag(changes.etag))),
            Err(PageError::Failed(error)) => return Err(error),
            Err(PageError::Gone) => {
                splits += 1;
                let parts = source.divide(range, true).await?;
                if splits > SPLITS_MAX {
                    let message = "partitions split faster than their positions can be read: start again";
                    return Err(Error::new(ErrorKind::Unavailable, message));
                }
                parts.into_iter().rev().for_each(|part| ranges.push_front(part));
            }
        }
    }
    Ok(positions)
}

/// How many splits a start follows before it fails.
const SPLITS_MAX: u32 = 1000;

/// Moves all instances to the position `to` and returns the number of the generation that starts there. Safe while
/// they run: a batch that is being handled is finished without a checkpoint, and the next one starts at the new
/// position.
pub(super) async fn rewind(
    store: &LeaseStore,
    source: &ServiceChanges,
    name: &str,
    to: ChangeFeedStart,
    clock: &Clock,
) -> Result<u64> {
    for round in 0..ROUNDS_MAX {
        clock.sleep(retry_delay(round)).await;
        let Some(stored) = store.record().await?.filter(|stored| stored.value.ready) else {
            return Err(never_started_error(name));
        };
        let record = stored.value;
        let positions = start_positions(source, record.mode.to_feed_mode(), to).await?;
        let record =
            ProcessorRecord { generation: record.generation + 1, start_positions: positions, ..record };
        if let WriteOutcome::Stored(_) = store.replace_record(&record, &stored.etag).await? {
            rewind_leases(store, &record, clock).await?;
            return Ok(record.generation);
        }
    }
    let message = format!("others rewind the processor {name} all the time: try again");
    Err(Error::new(ErrorKind::Unavailable, message))
}

/// Rewinds every lease, so that each owner finds the rewind with its next write at the latest. If this fails, the
/// rewind still happens: an instance that owns or acquires a lease of an older generation rewinds it.
async fn rewind_leases(store: &LeaseStore, record: &ProcessorRecord, clock: &Clock) -> Result<()> {
    for round in 0..ROUNDS_MAX {
        clock.sleep(retry_delay(round)).await;
        let mut again = false;
        for Versioned { value, etag } in store.list().await?.leases {
            let next = value.rewound(record);
            if next != value {
                again |= store.replace_lease(&next, &etag).await? == WriteOutcome::Conflict;
            }
        }
        if !again {
            break;
        }
    }
    Ok(())
}

/// The error of operations on a processor that has never been started.
pub(super) fn never_started_error(name: &str) -> Error {
    let message = format!(
        "the processor {name} has never been started on this container: check the name and the lease container"
    );
    Error::new(ErrorKind::NotFound, message)
}
