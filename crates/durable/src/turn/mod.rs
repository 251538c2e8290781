//! An orchestration turn: fetch an instance with its messages and history, and commit what the turn has done.

mod abandon;
mod ack;
mod batch;
mod fetch;
mod lock;
mod plan;
mod poll;
mod renew;
mod staged;

use std::sync::Arc;

use duroxide::Event;

use crate::clock::Millis;
use crate::core::Core;
use crate::documents::InstanceDocument;
use crate::error::{Failure, Result};
use crate::ids::{self, TurnToken};
use crate::key_values::KeyValues;
use crate::store::Versioned;

pub(crate) use ack::Ack;
pub(crate) use plan::{count_events, history_documents, target_instance};
pub(crate) use staged::release;

/// A turn that the runtime has: a locked instance.
#[derive(Clone, Debug)]
pub(crate) struct HeldTurn {
    pub(crate) token: TurnToken,
    /// The document with the lock.
    pub(crate) version: Versioned<InstanceDocument>,
    /// The history of the current execution; none if it cannot be read.
    pub(crate) history: Option<Arc<Vec<Event>>>,
    pub(crate) key_values: Arc<KeyValues>,
    /// Whether the turn was committed or given back.
    pub(crate) ended: bool,
}

impl HeldTurn {
    /// Checks that the turn still has its lock.
    fn check_lock(&self, now: Millis) -> Result<()> {
        if self.ended || self.locked_until() <= now { Err(lock_lost(&self.token)) } else { Ok(()) }
    }

    pub(crate) fn instance(&self) -> &str {
        &self.token.instance
    }

    fn locked_until(&self) -> Millis {
        self.version.document.locked_until.unwrap_or(0.0)
    }

    /// Takes over the document as the container has it now, if this turn still has the lock.
    fn refresh(&mut self, current: Option<Versioned<InstanceDocument>>) -> Result<()> {
        match current {
            Some(current) if current.document.lock_token.as_deref() == Some(self.token.text.as_str()) => {
                self.version = current;
                Ok(())
            }
            _ => Err(lock_lost(&self.token)),
        }
    }
}

/// The error of a turn whose lock is gone.
fn lock_lost(token: &TurnToken) -> Failure {
    Failure::invalid(format!(
        "Invalid lock token: the lock on instance {:?} expired, was released or is somebody else's",
        token.instance
    ))
}

impl Core {
    /// The turn of a lock token: of this provider, or of another one as its document describes it.
    async fn held_turn(&self, token: &str) -> Result<Arc<tokio::sync::Mutex<HeldTurn>>> {
        if let Some(held) = self.turns.lock().get(token) {
            return Ok(Arc::clone(held));
        }
        let token = TurnToken::parse(token)?;
        ids::check_instance_id(&token.instance)?;
        let Some(version) = self.read_instance(&token.instance).await? else { return Err(lock_lost(&token)) };
        if version.document.lock_token.as_deref() != Some(token.text.as_str()) {
            return Err(lock_lost(&token));
        }
        let (history, key_values) = self.read_state(&version.document).await?;
        let held = HeldTurn { token, version, history: history.ok(), key_values, ended: false };
        Ok(Arc::new(tokio::sync::Mutex::new(held)))
    }

    /// The document of an instance as the container has it.
    pub(crate) async fn read_instance(&self, instance: &str) -> Result<Option<Versioned<InstanceDocument>>> {
        let version: Option<Versioned<InstanceDocument>> =
            self.store.read(instance, &ids::instance_document(instance)).await?;
        if let Some(version) = &version {
            let what = format!("The document of instance {instance:?}");
            crate::documents::check_version(&what, version.document.schema_version)?;
        }
        Ok(version)
    }
}
