//! Ends an activity: its work item becomes a message with its result to its instance.

use duroxide::providers::WorkItem;

use crate::clock;
use crate::core::Core;
use crate::documents::MessageDocument;
use crate::error::{Failure, Result};
use crate::held::work_lost;
use crate::retry;
use crate::telemetry::LockKind;

/// How often a lost race is tried again. Errors that may pass are not given up while the lock lasts.
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
                let mut message = MessageDocument::new(instance, item, self.timestamps.next(), None)?;
                message.id.clone_from(&held.token.document);
                Some(message)
            }
            Some(_) => return Err(Failure::invalid("Invalid completion type for worker ack")),
            None => None,
        };
        let mut tries = 0;
        // Whether an earlier try had no response, and it is not known what became of it.
        let mut in_doubt = false;
        loop {
            tries += 1;
            if let Err(lost) = held.check_lock(clock::now()) {
                self.work_ended(token, clock::now());
                self.options.telemetry.lock_lost(LockKind::Activity);
                return Err(lost);
            }
            let (instance, document) = (&held.token.instance, &held.token.document);
            let etag = &held.version.etag;
            let written = match &message {
                // The document of the activity becomes the message: one write, all or nothing.
                Some(message) => self.store.replace(instance, document, etag, message).await.map(drop),
                None => self.store.delete_version(instance, document, etag).await,
            };
            let error = match written {
                Ok(()) => break,
                Err(error) => error,
            };
            let passes = retry::is_transient(&error);
            if !passes && (!error.is_lost_race() || tries >= TRIES) {
                return Err(error);
            }
            // The lock was renewed meanwhile, it is lost, or there was no response.
            match self.read_held_work(held.token.clone()).await {
                Ok(current) => held.version = current.version,
                // Without a response, an item that is gone was most likely deleted by this very batch.
                Err(Failure::Invalid(_)) if error.is_undecided() || in_doubt => break,
                Err(unread) if retry::is_transient(&unread) => in_doubt |= error.is_undecided(),
                Err(lost) => {
                    self.work_ended(token, clock::now());
                    self.options.telemetry.lock_lost(LockKind::Activity);
                    return Err(match lost {
                        Failure::Invalid(_) => work_lost(&held.token),
                        other => other,
                    });
                }
            }
            if passes {
                retry::wait(&error, tries, held.locked_until()).await;
            }
        }
        self.work_ended(token, clock::now());
        if let Some(message) = message {
            self.announce_result(message);
        }
        if let Some(session) = &held.version.document.session_id {
            self.note_session_activity(session).await;
        }
        Ok(())
    }
}
