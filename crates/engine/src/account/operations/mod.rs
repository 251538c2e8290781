//! Splits and merges that can be watched, held half way, carried on and called off.
//!
//! In: what is to be split or merged, and who carries it on. Out: an [`Operation`] that says how far it
//! is. It belongs to the server: whoever began it may go away. While it is *swapping* its ranges are
//! held, so that requests that name them are told to wait (410/1007); a hold ends by itself, and with
//! it an operation that nobody carried on.

mod operation;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use thiserror::Error;
use tokio::task::JoinSet;

pub use operation::{Operation, OperationTarget, PartitionChange, Phase, ProgressionMode};

use crate::account::Account;
use crate::account::partitions::PartitionError;
use clock::Clock;

/// Operations that are remembered.
const KEPT_MAX: usize = 256;
/// Time a change may take after its hold, before its ranges are let go whatever became of it.
const CHANGE_MAX: Duration = Duration::from_secs(60);

/// Why an operation was not begun, or not changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OperationError {
    /// It is impossible.
    #[error(transparent)]
    Partitions(#[from] PartitionError),
    /// There is no such operation.
    #[error("there is no operation '{0}'; the last {KEPT_MAX} are remembered")]
    Unknown(String),
    /// Another one is at it.
    #[error("the range '{range}' is taken by operation '{operation}'; wait for it, or cancel it")]
    RangeBusy {
        /// Which range.
        range: u32,
        /// By which operation.
        operation: u64,
    },
    /// Nothing can be changed about it any more.
    #[error("operation '{0}' is over or about to be")]
    Finished(u64),
    /// It needs nobody.
    #[error("operation '{0}' advances by itself; begin it with progressionMode 'manual' to advance it")]
    Automatic(u64),
    /// Nobody ends them.
    #[error("{KEPT_MAX} operations are under way; advance or cancel some of them first")]
    TooMany,
}

/// The operations of an account. What is under way ends with this.
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
    pub fn new(account: Arc<Account>, clock: Clock) -> Operations {
        Operations { account, clock, register: Arc::default(), tasks: Mutex::default() }
    }

    /// Begins one, if it is possible. Without a hold an automatic one is over when this returns, which
    /// takes as long as it takes.
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
                // Whoever asks for what cannot be done is told so, and needs no operation to look at.
                self.register().take_refused(operation.id)?;
            }
            Some(hold) => {
                self.hold(&operation, now.saturating_add(hold).saturating_add(CHANGE_MAX));
                self.finish_at(operation.id, now.saturating_add(hold));
            }
        }
        self.get(&operation.id.to_string())
    }

    /// How one is.
    pub fn get(&self, id: &str) -> Result<Operation, OperationError> {
        self.register().find(id, self.clock.uptime()).cloned()
    }

    /// Carries a manual one on: from preparing to swapping, and from there to its end, which comes a
    /// moment after this returns.
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

    /// Calls one off.
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
        hold(&self.account, &operation.target, until);
    }

    /// Splits or merges at an uptime, on a thread that may take its time.
    fn finish_at(&self, id: u64, uptime: Duration) {
        let (account, register) = (Arc::downgrade(&self.account), Arc::downgrade(&self.register));
        let clock = self.clock.clone();
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            clock.wait_for_uptime(uptime).await;
            let upgraded = (Weak::upgrade(&account), Weak::upgrade(&register));
            let (Some(account), Some(register)) = upgraded else { return };
            let now = clock.uptime();
            let _ = tokio::task::spawn_blocking(move || finish(&account, &register, id, now)).await;
        });
    }
}

impl Register {
    /// Numbers an operation and takes it in, unless another one has its ranges.
    fn admit(&mut self, mut operation: Operation, now: Duration) -> Result<Operation, OperationError> {
        self.all.values_mut().for_each(|other| other.expire(now));
        for other in self.all.values().filter(|other| !other.is_over()) {
            if let Some(range) = other.target.shared_range(&operation.target) {
                return Err(OperationError::RangeBusy { range, operation: other.id });
            }
        }
        if self.all.len() >= KEPT_MAX {
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

    /// Forgets an operation that turned out to be impossible, and says why it is.
    fn take_refused(&mut self, id: u64) -> Result<(), OperationError> {
        let refused = self.all.get_mut(&id).and_then(|operation| operation.refused.take());
        match refused {
            None => Ok(()),
            Some(error) => {
                self.all.remove(&id);
                Err(error.into())
            }
        }
    }
}

/// Whether it could be done as things are.
fn check(account: &Account, subject: &OperationTarget) -> Result<(), PartitionError> {
    let OperationTarget { database, container, change } = subject;
    match change {
        PartitionChange::Split { range, at } => {
            account.check_split(database, container, *range, at.as_deref())
        }
        PartitionChange::Merge { ranges } => account.check_merge(database, container, ranges),
    }
}

/// Does it, and writes down how that went. Nothing if it was called off meanwhile.
fn finish(account: &Account, register: &Mutex<Register>, id: u64, now: Duration) {
    let subject = {
        let mut register = lock(register);
        let Some(operation) = register.all.get_mut(&id).filter(|operation| !operation.is_over()) else {
            return;
        };
        operation.finishing = true;
        operation.target.clone()
    };
    let OperationTarget { database, container, change } = &subject;
    let made = match change {
        PartitionChange::Split { range, at } => {
            account.split_partition(database, container, *range, at.as_deref(), now).map(Vec::from)
        }
        PartitionChange::Merge { ranges } => {
            account.merge_partitions(database, container, ranges, now).map(|made| vec![made])
        }
    };
    if made.is_err() {
        // Whatever kept it from being done, clients need not wait for it any longer.
        hold(account, &subject, Duration::ZERO);
    }
    if let Some(operation) = lock(register).all.get_mut(&id) {
        operation.finished(made);
    }
}

/// Holds its ranges until an uptime, as far as they are there.
fn hold(account: &Account, subject: &OperationTarget, until: Duration) {
    for range in subject.ranges() {
        // A range that is gone keeps nobody waiting.
        let _ = account.mark_splitting_until(&subject.database, &subject.container, range, until);
    }
}

fn lock(register: &Mutex<Register>) -> MutexGuard<'_, Register> {
    register.lock().unwrap_or_else(PoisonError::into_inner)
}
