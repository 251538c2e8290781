//! One lease at work: asks for changes, hands them to the handler, keeps the place.
//!
//! A worker ends when the instance stops, the lease is lost or asked for, or its range is divided. It never
//! hands out a batch under a lease that others may take for abandoned.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use driver::change_feed::{ChangeRequest, ChangeSource, Changes};
use driver::query::PageError;
use driver::{Error, ErrorKind};
use serde::Deserialize;

use super::crew::Crew;
use super::delivery::{Delivery, Step};
use super::handler::{BatchContext, DeadLetter, Held};
use super::held::{HeldLease, Kept};
use super::lease::{Lease, Position, Report, Stretch};
use super::store::{Stored, Written};

/// Why a worker is done with its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It is to let go of it.
    Release,
    /// It is in other hands, or gone.
    Lost,
}

/// Whether to go on.
type Flow<T = ()> = std::result::Result<T, End>;

/// A lease at work.
pub(super) struct Worker {
    crew: Arc<Crew>,
    held: Arc<HeldLease>,
    /// The generation that is being read, and where in it.
    generation: u64,
    position: Position,
    /// Failed requests in a row.
    faults: u32,
}

impl Worker {
    pub(super) fn new(crew: Arc<Crew>, held: Arc<HeldLease>) -> Worker {
        let Lease { generation, position, .. } = held.lease();
        Worker { crew, held, generation, position, faults: 0 }
    }

    /// Works until there is a reason not to.
    pub(super) async fn run(mut self) {
        let end = loop {
            if let Err(end) = self.turn().await {
                break end;
            }
        };
        if end == End::Release {
            // A lease that cannot be let go of runs out by itself.
            let _runs_out_otherwise = self.held.release().await;
        }
    }

    /// One look at the feed.
    async fn turn(&mut self) -> Flow {
        self.check().await?;
        let lease = self.held.lease();
        if lease.is_divided() {
            return self.finish_division(&lease).await;
        }
        if lease.generation != self.generation {
            (self.generation, self.position) = (lease.generation, lease.position.clone());
        }
        let request = ChangeRequest {
            range: lease.range(),
            mode: self.crew.settings.mode,
            since: self.position.since(),
            items_max: Some(self.crew.settings.page_items),
        };
        let asking = Box::pin(self.crew.source.changes(request));
        let Some(answer) = self.unless_changed(asking).await? else { return Ok(()) };
        match answer {
            Ok(changes) => match changes.items() {
                Ok(items) => {
                    self.faults = 0;
                    self.take_in(&lease, changes, items).await
                }
                Err(error) => self.trouble(&error).await,
            },
            Err(PageError::Gone) => self.divide(&lease).await,
            Err(PageError::Failed(error)) => self.trouble(&error).await,
        }
    }

    /// Whether to go on at all, and with a lease that is certain to be held.
    async fn check(&mut self) -> Flow {
        if self.held.is_lost() {
            return Err(End::Lost);
        }
        if self.crew.is_stopping() || self.held.is_wanted() {
            return Err(End::Release);
        }
        while !self.held.is_certain() {
            match self.held.renew().await {
                Ok(Kept::Written) => {}
                Ok(Kept::Rewound) => continue,
                Ok(Kept::Lost) => return Err(End::Lost),
                Err(error) => self.trouble(&error).await?,
            }
        }
        Ok(())
    }

    /// Hands out a page, if there is something on it, and keeps the place behind it.
    async fn take_in(&mut self, lease: &Lease, changes: Changes, items: Vec<Bytes>) -> Flow {
        let behind = Position::Etag(changes.etag.clone());
        if items.is_empty() {
            self.held.tell(|report| *report = Report { lag: Some(0), ..Default::default() });
            self.held.note_position(self.generation, behind.clone());
            self.position = behind;
            return self.pause(self.crew.settings.poll_interval).await;
        }
        let last = items.last().and_then(|item| lsn_of(item));
        let lag = changes.lsn.zip(last).map(|(all, last)| all.saturating_sub(last));
        let context = self.context(lease, &behind, lag);
        if !self.deliver(&items, context).await? {
            return Ok(());
        }
        self.held.tell(|report| *report = Report { lag, ..Default::default() });
        match self.held.checkpoint(self.generation, behind.clone()).await {
            Ok(Kept::Written) => {
                self.crew.count_handled(items.len());
                self.position = behind;
            }
            // Rewound while the handler was at work: what it did counts for nothing.
            Ok(Kept::Rewound) => {}
            Ok(Kept::Lost) => return Err(End::Lost),
            Err(error) => {
                // The changes were handled; the place is kept with the next write that succeeds. Until then
                // others would begin before them, which repeats some and skips none.
                self.held.note_position(self.generation, behind.clone());
                self.crew.count_handled(items.len());
                self.position = behind;
                return self.trouble(&error).await;
            }
        }
        Ok(())
    }

    fn context(&self, lease: &Lease, behind: &Position, lag: Option<u64>) -> BatchContext {
        let held = Arc::clone(&self.held);
        BatchContext {
            range: lease.range(),
            lease: lease.id.clone(),
            instance: self.crew.instance.clone(),
            continuation: behind.text(),
            lag,
            attempts: 0,
            held: Held(Arc::new(move || held.is_certain())),
        }
    }

    /// Brings every change to the handler or to the hook; says whether it did, and was not sent elsewhere.
    async fn deliver(&mut self, items: &[Bytes], context: BatchContext) -> Flow<bool> {
        let crew = Arc::clone(&self.crew);
        let mut delivery = Delivery::new(items.len(), crew.settings.failures);
        let mut last_error = String::new();
        loop {
            if delivery.step() == Step::Done {
                return Ok(true);
            }
            let Some(_turn) = self.unless_changed(crew.turn()).await? else { return Ok(false) };
            // It may have taken long to get here.
            self.check().await?;
            if self.held.generation() != self.generation {
                return Ok(false);
            }
            let context = BatchContext { attempts: delivery.attempts(), ..context.clone() };
            let outcome = match delivery.step() {
                Step::Done => return Ok(true),
                Step::Deliver(range) => {
                    crew.handle(&items[range], context).await.inspect_err(|(_, error)| {
                        last_error.clone_from(error);
                    })
                }
                Step::GiveUp { change, attempts } => {
                    let (change, error) = (items[change].clone(), last_error.clone());
                    crew.give_up(DeadLetter { change, error, attempts, context }).await
                }
            };
            match outcome {
                Ok(()) => delivery.succeeded(),
                Err((failure, error)) => {
                    self.report_failure(&error);
                    self.pause(delivery.failed(failure, crew.dice())).await?;
                }
            }
        }
    }

    fn report_failure(&self, error: &str) {
        self.crew.count_failure();
        self.held.tell(|report| {
            report.failures += 1;
            report.last_error = Some(short(error));
        });
    }

    /// Something did not answer: says so, and waits before the next try.
    async fn trouble(&mut self, error: &Error) -> Flow {
        self.faults = self.faults.saturating_add(1);
        self.report_failure(&error.to_string());
        let wait = self.crew.settings.poll_interval.saturating_mul(1 << self.faults.min(6));
        let wait = error.retry_after().unwrap_or(wait.min(FAULT_WAIT_MAX));
        let wait = self.crew.clock.sleep(wait.mul_f64(0.75 + self.crew.dice() * 0.5));
        // A rewind is no reason to ask sooner what does not answer.
        tokio::select! {
            end = self.reason(|| false) => end.map_or(Ok(()), Err),
            () = wait => Ok(()),
        }
    }

    /// Waits, unless there is a reason to end or to go elsewhere.
    async fn pause(&self, wait: Duration) -> Flow {
        self.unless_changed(self.crew.clock.sleep(wait)).await.map(|_| ())
    }

    /// What `work` gives; nothing when the lease is to be read from elsewhere before it is done, or an end when
    /// there is a reason for one. The work is then dropped.
    async fn unless_changed<F: Future>(&self, work: F) -> Flow<Option<F::Output>> {
        let elsewhere = || self.held.generation() != self.generation;
        tokio::select! {
            biased;
            end = self.reason(elsewhere) => end.map_or(Ok(None), Err),
            done = work => Ok(Some(done)),
        }
    }

    /// Waits for a reason to end, or for `enough`.
    async fn reason(&self, enough: impl Fn() -> bool) -> Option<End> {
        let (mut stopping, mut changes) = (self.crew.stopping(), self.held.changes());
        loop {
            if self.held.is_lost() {
                return Some(End::Lost);
            }
            if self.crew.is_stopping() || self.held.is_wanted() {
                return Some(End::Release);
            }
            if enough() {
                return None;
            }
            // Either ends only with whoever could change it.
            tokio::select! {
                _ = stopping.changed() => {}
                _ = changes.changed() => {}
            }
        }
    }

    /// The range belongs to several partitions now: a lease for each takes the place of this one.
    async fn divide(&mut self, lease: &Lease) -> Flow {
        let range = lease.range();
        let parts = match self.crew.source.divide(range.clone(), true).await {
            Ok(parts) => parts,
            Err(error) => return self.trouble(&error).await,
        };
        if parts == [range] {
            let message = "a partition says that it is gone and nothing has taken its place";
            return self.trouble(&Error::new(ErrorKind::Unavailable, message)).await;
        }
        let parts: Vec<Stretch> =
            parts.into_iter().map(|part| Stretch::new(part, self.position.clone())).collect();
        match self.held.divide(self.generation, &parts).await {
            Ok(Kept::Written | Kept::Rewound) => Ok(()),
            Ok(Kept::Lost) => Err(End::Lost),
            Err(error) => self.trouble(&error).await,
        }
    }

    /// Makes a lease for each part, then removes the whole. Whoever gets here after a crash finds the same
    /// parts and makes those that are missing; none of them is read before the whole is gone.
    async fn finish_division(&mut self, lease: &Lease) -> Flow {
        let mut mine = Vec::new();
        for part in &lease.parts {
            let mut part = Lease::new(&lease.processor, part, lease.generation);
            if self.crew.has_room_for(mine.len()) {
                part.owner = Some(self.crew.instance.clone());
                part.term = 1;
            }
            let began = self.crew.clock.now();
            match self.crew.store.create_lease(&part).await {
                Ok(Written::Done(etag)) if part.owner.is_some() => {
                    mine.push((Stored { value: part, etag }, began));
                }
                Ok(Written::Done(_) | Written::Changed | Written::Missing) => {}
                Err(error) => return self.trouble(&error).await,
            }
        }
        match self.held.remove().await {
            Ok(Kept::Written | Kept::Rewound) => {
                for (stored, began) in mine {
                    self.crew.clone().put_to_work(stored, began);
                }
                Err(End::Lost)
            }
            Ok(Kept::Lost) => Err(End::Lost),
            Err(error) => self.trouble(&error).await,
        }
    }
}

/// The longest wait after a request that failed.
const FAULT_WAIT_MAX: Duration = Duration::from_secs(30);

/// What is kept of an error.
const ERROR_BYTES_MAX: usize = 512;

fn short(text: &str) -> String {
    let end = (0..=ERROR_BYTES_MAX.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text[..end.unwrap_or(0)].to_owned()
}

/// The number of a change: of an item, or in the envelope of all versions and deletes.
pub(super) fn lsn_of(change: &[u8]) -> Option<u64> {
    stamp_of(change).0
}

/// The number of a change, and when it was made in seconds since 1970.
pub(super) fn stamp_of(change: &[u8]) -> (Option<u64>, Option<u64>) {
    #[derive(Deserialize)]
    struct Stamped {
        #[serde(rename = "_lsn")]
        lsn: Option<u64>,
        #[serde(rename = "_ts")]
        time: Option<u64>,
        // An item may well have a member of this name that is something else.
        metadata: Option<serde_json::Value>,
    }
    let Ok(stamped) = serde_json::from_slice::<Stamped>(change) else { return (None, None) };
    let told = |name: &str| stamped.metadata.as_ref()?.get(name)?.as_u64();
    (stamped.lsn.or_else(|| told("lsn")), stamped.time.or_else(|| told("crts")))
}
