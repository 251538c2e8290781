//! What the runtime has of this provider: locked instances and locked activities.

use std::sync::Arc;

use duroxide::Event;

use crate::clock::Millis;
use crate::documents::{InstanceDocument, WorkDocument};
use crate::error::{Failure, Result};
use crate::ids::{TurnToken, WorkToken};
use crate::key_values::KeyValues;
use crate::store::Versioned;

/// A turn that the runtime has: a locked instance.
#[derive(Clone, Debug)]
pub(crate) struct HeldTurn {
    pub(crate) token: TurnToken,
    /// The document with the lock.
    pub(crate) version: Versioned<InstanceDocument>,
    /// The history of the current execution; none if it cannot be read.
    pub(crate) history: Option<Arc<Vec<Event>>>,
    pub(crate) key_values: Arc<KeyValues>,
    /// When the instance was locked.
    pub(crate) locked_at: Millis,
    /// Whether the turn was committed or given back.
    pub(crate) ended: bool,
}

impl HeldTurn {
    /// Checks that the turn still has its lock.
    pub(crate) fn check_lock(&self, now: Millis) -> Result<()> {
        if self.ended || self.locked_until() <= now { Err(turn_lost(&self.token)) } else { Ok(()) }
    }

    pub(crate) fn instance(&self) -> &str {
        &self.token.instance
    }

    pub(crate) fn locked_until(&self) -> Millis {
        self.version.document.locked_until.unwrap_or(0.0)
    }

    /// Takes over the document as the container has it now, if this turn still has the lock.
    pub(crate) fn refresh(&mut self, current: Option<Versioned<InstanceDocument>>) -> Result<()> {
        match current {
            Some(current) if current.document.lock_token.as_deref() == Some(self.token.text.as_str()) => {
                self.version = current;
                Ok(())
            }
            _ => Err(turn_lost(&self.token)),
        }
    }
}

/// The error of a turn whose lock is gone.
pub(crate) fn turn_lost(token: &TurnToken) -> Failure {
    Failure::invalid(format!(
        "Invalid lock token: the lock on instance {:?} expired, was released or is somebody else's",
        token.instance
    ))
}

/// An activity that the runtime has: a locked work item.
#[derive(Clone, Debug)]
pub(crate) struct HeldWork {
    pub(crate) token: WorkToken,
    /// The document with the lock.
    pub(crate) version: Versioned<WorkDocument>,
    /// When the runtime got it; none if another provider gave it out.
    pub(crate) started_at: Option<Millis>,
}

impl HeldWork {
    /// Checks that the lock has not expired.
    pub(crate) fn check_lock(&self, now: Millis) -> Result<()> {
        match self.version.document.locked_until {
            Some(until) if until > now => Ok(()),
            _ => Err(work_lost(&self.token)),
        }
    }
}

/// The error of a work item whose lock is gone.
pub(crate) fn work_lost(token: &WorkToken) -> Failure {
    Failure::invalid(format!(
        "Activity was cancelled or lock expired: this worker no longer has the lock on an activity of instance {:?}",
        token.instance
    ))
}
