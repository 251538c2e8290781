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

use crate::core::Core;
use crate::documents::InstanceDocument;
use crate::error::Result;
use crate::held::{HeldTurn, turn_lost};
use crate::ids::{self, TurnToken};
use crate::store::Versioned;

pub(crate) use ack::Ack;
pub(crate) use plan::{count_events, history_documents, target_instance};
pub(crate) use staged::release;

impl Core {
    /// The turn of a lock token: of this provider, or of another one as its document describes it.
    async fn held_turn(&self, token: &str) -> Result<Arc<tokio::sync::Mutex<HeldTurn>>> {
        if let Some(held) = self.turns.lock().get(token) {
            return Ok(Arc::clone(held));
        }
        let token = TurnToken::parse(token)?;
        ids::check_instance_id(&token.instance)?;
        let Some(version) = self.read_instance(&token.instance).await? else { return Err(turn_lost(&token)) };
        if version.document.lock_token.as_deref() != Some(token.text.as_str()) {
            return Err(turn_lost(&token));
        }
        let (history, key_values) = self.read_state(&version.document).await?;
        let held = HeldTurn {
            token,
            version,
            history: history.ok(),
            key_values,
            locked_at: crate::clock::now(),
            ended: false,
        };
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
