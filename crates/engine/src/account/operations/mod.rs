//! Splits and merges as long-running operations: they can be observed, held between phases, advanced and
//! cancelled.
//!
//! In: the ranges to split or merge, and whether the operation advances by itself. Out: an [`Operation`] with
//! its phase. It does not depend on the client that started it. While it is *swapping*, its ranges are marked,
//! so that every request to them gets 410/1007; the mark ends by itself, and with it an operation that was not
//! advanced in time. An operation that is not held swaps its ranges without such a moment. In both cases the
//! list of ranges shows them as splitting before the new ones appear.

mod operation;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use thiserror::Error;
use tokio::task::JoinSet;

pub use operation::{Operation, OperationTarget, PartitionChange, Phase, ProgressionMode};

use crate::account::Account;
use crate::account::partitions::PartitionError;
use crate::store::SplitMark;
use clock::Clock;

/// How many operations are remembered.
const OPERATIONS_MAX: usize = 256;
/// Time the split or merge may take after the hold, before the mark on its ranges ends in any case.
const CHANGE_MAX: Duration = Duration::from_secs(60);

/// Why an operation was not started, or not changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OperationError {
    /// The split or merge is not possible.
    #[error(transparent)]
    Partitions(#[from] PartitionError),
    /// No operation has this id.
    #[error("there is no operation '{0}'; the last {OPERATIONS_MAX} are remembered")]
    Unknown(String),
    /// Another operation is working on the range.
    #[error("the range '{range}' is taken by operation '{operation}'; wait for it, or cancel it")]
    RangeBusy {
        /// The range that both name.
        range: u32,
        /// The id of the other operation.
        operation: u64,
    },
    /// The operation is over, or about to be.
    #[error("operation '{0}' is over or about to be")]
    Finished(u64),
    /// The operation advances by itself.
    #[error("operation '{0}' advances by itself; begin it with progressionMode 'manual' to advance it")]
    Automatic(u64),
    /// As many operations are under way as are remembered.
    #[error("{OPERATIONS_MAX} operations are under way; advance or cancel some of them first")]
    TooMany,
}

/// The operations of an account. Those under way end when this is dropped.
#[derive(Debug)]
pub struct Operations {
    account: Arc<Account>,
    clock: Clock,
    register: Arc<Mutex<Register>>,
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Debug, Default)]
struct Register {
    newest: u64,
    all: BTreeMap<u64, Operation>,
}

impl Operations {
    /// No operations yet, for `account`.
    pub fn new(account: Arc<Account>, clock: Clock) -> Operations {
        Operations { account, clock, register: Arc::default(), tasks: Mutex::default() }
    }

    /// Starts an operation, if it is possible. An automatic one without a hold is over when this returns,
    /// which takes as long as the split or merge.
    pub fn begin(
        &self,
        subject: OperationTarget,
        progression: ProgressionMode,
        hold: Option<Duration>,
    ) -> Result<Operation, OperationError> {
        check(&self.account, &subject)?;
        let now = self.clock.uptime();
        let operation = Operation::new(subject, progression, hold, now);
        let operation = self.register().admit(operation, now)?;
        match operation.hold_before_change() {
            None => {}
            Some(Duration::ZERO) => {
                finish(&self.account, &self.register, operation.id, now);
                // An impossible operation is reported as an error, and is not remembered.
                self.register().take_failure(operation.id)?;
            }
            Some(hold) => {
                self.hold(&operation, now.saturating_add(hold).saturating_add(CHANGE_MAX));
                self.finish_at(operation.id, now.saturating_add(hold));
            }
        }
        self.get(&operation.id.to_string())
    }

    /// The operation with this id, as it is now.
    pub fn get(&self, id: &str) -> Result<Operation, OperationError> {
        self.register().find(id, self.clock.uptime()).cloned()
    }

    /// Advances a manual operation: from preparing to swapping, and from there to its end, which follows
    /// shortly after this returns.
    pub fn advance(&self, id: &str) -> Result<Operation, OperationError> {
        let now = self.clock.uptime();
        let advanced = {
            let mut register = self.register();
            let operation = register.find(id, now)?;
            operation.advance(now)?;
            operation.clone()
        };
        if advanced.finishing {
            self.finish_at(advanced.id, now);
        } else {
            self.hold(&advanced, advanced.ends_at);
        }
        Ok(advanced)
    }

    /// Cancels the operation with this id.
    pub fn cancel(&self, id: &str) -> Result<Operation, OperationError> {
        let cancelled = {
            let mut register = self.register();
            let operation = register.find(id, self.clock.uptime())?;
            operation.cancel()?;
            operation.clone()
        };
        self.hold(&cancelled, Duration::ZERO);
        Ok(cancelled)
    }

    fn register(&self) -> MutexGuard<'_, Register> {
        lock(&self.register)
    }

    fn hold(&self, operation: &Operation, until: Duration) {
        mark(&self.account, &operation.target, SplitMark::Swapping, until);
    }

    /// Splits or merges at an uptime, on a blocking thread.
    fn finish_at(&self, id: u64, uptime: Duration) {
        let (account, register) = (Arc::downgrade(&self.account), Arc::downgrade(&self.register));
        let clock = self.clock.clone();
        let mut tasks = self.tasks.lock();
        // Frees the tasks that have ended.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            clock.wait_for_uptime(uptime).await;
            let upgraded = (Weak::upgrade(&account), Weak::upgrade(&register));
            let (Some(account), Some(register)) = upgraded else { return };
            let now = clock.uptime();
            // An error means that `finish` panicked, which the runtime has reported; the operation then expires.
            let _ = tokio::task::spawn_blocking(move || finish(&account, &register, id, now)).await;
        });
    }
}

impl Register {
    /// Gives an operation its id and remembers it, unless another one has its ranges.
    fn admit(&mut self, mut operation: Operation, now: Duration) -> Result<Operation, OperationError> {
        self.all.values_mut().for_each(|other| other.expire(now));
        for other in self.all.values().filter(|other| !other.is_over()) {
            if let Some(range) = other.target.shared_range(&operation.target) {
                return Err(OperationError::RangeBusy { range, operation: other.id });
            }
        }
        if self.all.len() >= OPERATIONS_MAX {
            let oldest = self.all.values().find(|other| other.is_over()).map(|other| other.id);
            self.all.remove(&oldest.ok_or(OperationError::TooMany)?);
        }
        self.newest += 1;
        operation.id = self.newest;
        self.all.insert(operation.id, operation.clone());
        Ok(operation)
    }

    fn find(&mut self, id: &str, now: Duration) -> Result<&mut Operation, OperationError> {
        let found = id.parse().ok().and_then(|id: u64| self.all.get_mut(&id));
        let operation = found.ok_or_else(|| OperationError::Unknown(id.to_owned()))?;
        operation.expire(now);
        Ok(operation)
    }

    /// Forgets an operation that turned out to be impossible, and returns why it is.
    fn take_failure(&mut self, id: u64) -> Result<(), OperationError> {
        let failure = self.all.get_mut(&id).and_then(|operation| operation.failure.take());
        match failure {
            None => Ok(()),
            Some(error) => {
                self.all.remove(&id);
                Err(error.into())
            }
        }
    }
}

/// Checks whether the operation is possible now.
fn check(account: &Account, subject: &OperationTarget) -> Result<(), PartitionError> {
    let OperationTarget { database, container, change } = subject;
    match change {
        PartitionChange::Split { range, at } => {
            account.check_split(database, container, *range, at.as_deref())
        }
        PartitionChange::Merge { ranges } => account.check_merge(database, container, ranges),
    }
}

/// Splits or merges, and records the outcome. Does nothing if the operation was cancelled meanwhile.
fn finish(account: &Account, register: &Mutex<Register>, id: u64, now: Duration) {
    let (subject, is_held) = {
        let mut register = lock(register);
        let Some(operation) = register.all.get_mut(&id).filter(|operation| !operation.is_over()) else {
            return;
        };
        operation.finishing = true;
        (operation.target.clone(), operation.is_held())
    };
    let OperationTarget { database, container, change } = &subject;
    if !is_held {
        mark(account, &subject, SplitMark::Announced, now.saturating_add(CHANGE_MAX));
    }
    let made = match change {
        PartitionChange::Split { range, at } => {
            account.split_partition(database, container, *range, at.as_deref(), now).map(Vec::from)
        }
        PartitionChange::Merge { ranges } => {
            account.merge_partitions(database, container, ranges, now).map(|made| vec![made])
        }
    };
    if made.is_err() {
        // It failed, so clients need not wait for it any longer.
        mark(account, &subject, SplitMark::Announced, Duration::ZERO);
    }
    if let Some(operation) = lock(register).all.get_mut(&id) {
        operation.finished(made);
    }
}

/// Marks its ranges as splitting until an uptime.
fn mark(account: &Account, subject: &OperationTarget, mark: SplitMark, until: Duration) {
    for range in subject.ranges() {
        // An error means that the range no longer exists, so no request can wait for it.
        let _ = account.set_split_mark(&subject.database, &subject.container, range, mark, until);
    }
}

fn lock(register: &Mutex<Register>) -> MutexGuard<'_, Register> {
    register.lock()
}
