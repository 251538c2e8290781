//! An activity: fetch it, and report its result to its instance.

mod abandon;
mod ack;
mod fetch;
mod poll;
mod renew;

use crate::clock::Millis;
use crate::core::Core;
use crate::documents::WorkDocument;
use crate::error::Result;
use crate::held::{HeldWork, work_lost};
use crate::ids::WorkToken;
use crate::store::Versioned;

impl Core {
    /// The work item of a lock token: of this provider, or of another one as its document describes it.
    async fn held_work(&self, token: &str) -> Result<HeldWork> {
        let held = self.held_work.lock().get(token).cloned();
        match held {
            Some(held) => Ok(held),
            None => self.read_held_work(WorkToken::parse(token)?).await,
        }
    }

    /// The work item of a lock token as the container has it.
    async fn read_held_work(&self, token: WorkToken) -> Result<HeldWork> {
        let stored: Option<Versioned<WorkDocument>> =
            self.store.read(&token.instance, &token.document).await?;
        match stored {
            Some(version) if version.document.lock_token.as_deref() == Some(token.text.as_str()) => {
                Ok(HeldWork { token, version, started_at: None })
            }
            _ => Err(work_lost(&token)),
        }
    }

    /// Notes that the runtime no longer has a work item.
    fn work_ended(&self, token: &str, now: Millis) {
        let held = self.held_work.lock().remove(token);
        if let Some(HeldWork { token, started_at: Some(started_at), .. }) = held {
            self.work.ready.lock().finished(&token.instance, now - started_at);
            self.options.telemetry.activity_ended(now - started_at);
        }
    }
}
