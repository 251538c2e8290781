//! One batch on its way: sent, sent again where it was throttled, and sent elsewhere where partitions
//! have split or merged meanwhile.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use protocol::partition_range::RangeId;

use super::batches::{Batch, Numbered};
use crate::account_client::{AccountClient, AccountError, Fate, Ranges, Upsert};

/// How long nothing at all may be stored before an item counts as refused.
const STANDSTILL_MAX: Duration = Duration::from_secs(60);
/// What follows an attempt that the account gave no time for.
const DELAY_DEFAULT: Duration = Duration::from_millis(100);
/// The same while partitions split or merge.
const DELAY_ELSEWHERE: Duration = Duration::from_millis(20);

/// What became of one item: where it was, and why it failed.
pub(super) type Sent = (u64, Result<(), String>);

/// What all batches share. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    client: AccountClient,
    ranges: Arc<Mutex<Arc<Ranges>>>,
    /// Items that are stored, of all batches.
    stored: Arc<AtomicU64>,
}

impl Sender {
    /// Reads which partitions there are.
    pub(super) async fn new(client: AccountClient) -> Result<Sender, AccountError> {
        let ranges = client.ranges().await?;
        let ranges = Arc::new(Mutex::new(Arc::new(ranges)));
        Ok(Sender { client, ranges, stored: Arc::default() })
    }

    /// The partitions there are, as far as is known.
    pub(super) fn ranges(&self) -> Arc<Ranges> {
        Arc::clone(&self.ranges.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sends until each item is stored or refused; an error is one that other items would meet too.
    pub(super) async fn send(self, batch: Batch) -> Result<Vec<Sent>, AccountError> {
        let mut settled = Vec::with_capacity(batch.items.len());
        let mut left = batch.items;
        let mut patience = Patience::default();
        loop {
            let ranges = self.ranges();
            let round = self.round(left, &ranges, &mut settled).await?;
            if round.again.is_empty() {
                return Ok(settled);
            }
            if !patience.allows(round.wait, self.stored.load(Ordering::Relaxed)) {
                let reason = format!("nothing could be stored for {} s", STANDSTILL_MAX.as_secs());
                settled.extend(round.again.into_iter().map(|item| (item.line, Err(reason.clone()))));
                return Ok(settled);
            }
            tokio::time::sleep(round.wait).await;
            if round.elsewhere {
                self.look_again(&ranges).await?;
            }
            left = round.again;
        }
    }

    /// Sends every item once.
    async fn round(
        &self,
        items: Vec<Numbered>,
        ranges: &Ranges,
        settled: &mut Vec<Sent>,
    ) -> Result<Round, AccountError> {
        let mut round = Round::default();
        for (range, items) in by_range(items, ranges) {
            let fates = match range {
                Some(range) => self.attempt(range, &items).await?,
                None => vec![Fate::Elsewhere; items.len()],
            };
            for (item, fate) in items.into_iter().zip(fates) {
                match fate {
                    Fate::Stored => {
                        self.stored.fetch_add(1, Ordering::Relaxed);
                        settled.push((item.line, Ok(())));
                    }
                    Fate::Refused(reason) => settled.push((item.line, Err(reason))),
                    Fate::Later(after) => round.repeat(item, after.unwrap_or(DELAY_DEFAULT)),
                    Fate::Elsewhere => {
                        round.elsewhere = true;
                        round.repeat(item, DELAY_ELSEWHERE);
                    }
                }
            }
        }
        Ok(round)
    }

    /// Items of one partition, in one request. Where an account does not take that as a whole, each in a
    /// request of its own.
    async fn attempt(&self, range: RangeId, items: &[Numbered]) -> Result<Vec<Fate>, AccountError> {
        let upserts: Vec<&Upsert> = items.iter().map(|numbered| &numbered.item).collect();
        match self.client.bulk(range, &upserts).await {
            Err(AccountError::Refused { status: 400 | 413, .. }) => {}
            other => return other,
        }
        let mut fates = Vec::with_capacity(items.len());
        for item in upserts {
            fates.push(match self.client.upsert(item).await {
                Ok(()) => Fate::Stored,
                // Too large, a unique key, a bad property: other items may be good.
                Err(error @ AccountError::Refused { status: 400 | 409 | 413, .. }) => {
                    Fate::Refused(error.to_string())
                }
                Err(error) => return Err(error),
            });
        }
        Ok(fates)
    }

    /// Asks for the partitions anew, unless somebody else did since they were `known` like this.
    async fn look_again(&self, known: &Arc<Ranges>) -> Result<(), AccountError> {
        if Arc::ptr_eq(&self.ranges(), known) {
            let ranges = Arc::new(self.client.ranges().await?);
            *self.ranges.lock().unwrap_or_else(PoisonError::into_inner) = ranges;
        }
        Ok(())
    }
}

/// What is left after every item was sent once.
#[derive(Debug, Default)]
struct Round {
    again: Vec<Numbered>,
    wait: Duration,
    /// Whether partitions are not where they were.
    elsewhere: bool,
}

impl Round {
    fn repeat(&mut self, item: Numbered, after: Duration) {
        self.again.push(item);
        self.wait = self.wait.max(after);
    }
}

/// How long a batch goes on trying: while anything at all is stored, its own turn will come.
#[derive(Debug, Default)]
struct Patience {
    stored: u64,
    waited: Duration,
}

impl Patience {
    /// Whether to wait that long once more, `stored` items being stored in all.
    fn allows(&mut self, wait: Duration, stored: u64) -> bool {
        if stored != self.stored {
            *self = Patience { stored, waited: Duration::ZERO };
        }
        self.waited += wait;
        self.waited <= STANDSTILL_MAX
    }
}

fn by_range(items: Vec<Numbered>, ranges: &Ranges) -> BTreeMap<Option<RangeId>, Vec<Numbered>> {
    let mut grouped: BTreeMap<_, Vec<Numbered>> = BTreeMap::new();
    for item in items {
        grouped.entry(ranges.of(&item.item.place)).or_default().push(item);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_when_nothing_moves() {
        let mut patience = Patience::default();
        for round in 0..10 {
            assert!(patience.allows(Duration::from_secs(50), round), "something was stored");
        }
        assert!(patience.allows(Duration::from_secs(10), 9));
        assert!(!patience.allows(Duration::from_millis(1), 9));
        assert!(patience.allows(Duration::from_secs(60), 10));
    }
}
