//! Ends an activity: its work item goes, and its result becomes a message to its instance.

use duroxide::providers::WorkItem;
use perihelion::Batch;

use crate::clock;
use crate::core::Core;
use crate::documents::MessageDocument;
use crate::error::{Failure, Result};
use crate::held::work_lost;
use crate::telemetry::LockKind;

/// How often a lost race is tried again.
const TRIES: usize = 4;

impl Core {
    /// Ends an activity. Without a completion, its instance is not told.
    pub(crate) async fn ack_work(&self, token: &str, completion: Option<WorkItem>) -> Result<()> {
        let mut held = self.held_work(token).await?;
        let message = match &completion {
            Some(
                item @ (WorkItem::ActivityCompleted { instance, .. }
                | WorkItem::ActivityFailed { instance, .. }),
            ) => {
                if *instance != held.token.instance {
                    return Err(Failure::invalid(format!(
                        "an activity of instance {:?} cannot be completed for {instance:?}",
                        held.token.instance
                    )));
                }
                Some(MessageDocument::new(instance, item, self.timestamps.next(), None)?)
            }
            Some(_) => return Err(Failure::invalid("Invalid completion type for worker ack")),
            None => None,
        };
        let mut tries = 0;
        loop {
            tries += 1;
            if let Err(lost) = held.check_lock(clock::now()) {
                self.work_ended(token, clock::now());
                self.options.telemetry.lock_lost(LockKind::Activity);
                return Err(lost);
            }
            let (instance, document) = (&held.token.instance, &held.token.document);
            let mut batch = Batch::new(instance.as_str()).delete(document).if_match(&held.version.etag);
            if let Some(message) = &message {
                batch = batch.create(message);
            }
            let error = match self.store.execute(batch).await {
                Ok(_) => break,
                Err(error) => error,
            };
            if tries == TRIES || !(error.is_lost_race() || error.is_retryable()) {
                return Err(error);
            }
            // The lock was renewed meanwhile, it is lost, or there was no response.
            match self.read_held_work(held.token.clone()).await {
                Ok(current) => held.version = current.version,
                // Without a response, an item that is gone was most likely deleted by this very batch.
                Err(Failure::Invalid(_)) if error.is_undecided() => break,
                Err(lost) => {
                    self.work_ended(token, clock::now());
                    self.options.telemetry.lock_lost(LockKind::Activity);
                    return Err(match lost {
                        Failure::Invalid(_) => work_lost(&held.token),
                        other => other,
                    });
                }
            }
            if let Some(delay) = error.retry_after() {
                tokio::time::sleep(delay).await;
            }
        }
        self.work_ended(token, clock::now());
        self.announce_messages(message);
        if let Some(session) = &held.version.document.session_id {
            self.note_session_activity(session).await;
        }
        Ok(())
    }
}
