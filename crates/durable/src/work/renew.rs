//! Extends the lock on an activity.

use std::time::Duration;

use crate::clock;
use crate::core::Core;
use crate::error::Result;
use crate::held::work_lost;
use crate::retry;

/// How often a lost race is tried again. Errors that may pass are not given up while the lock lasts.
const TRIES: usize = 3;

impl Core {
    /// Extends the lock of an activity from now on. Fails if the activity was cancelled.
    pub(crate) async fn renew_work(&self, token: &str, extend_for: Duration) -> Result<()> {
        let mut held = self.held_work(token).await?;
        let mut tries = 0;
        loop {
            tries += 1;
            let now = clock::now();
            held.check_lock(now)?;
            let until = now + clock::millis(extend_for);
            let mut document = held.version.document.clone();
            document.locked_until = Some(until);
            document.visible_at = until;
            let (instance, id) = (&held.token.instance, &held.token.document);
            match self.store.replace(instance, id, &held.version.etag, &document).await {
                Ok(etag) => {
                    held.version = crate::store::Versioned { document, etag };
                    if let Some(known) = self.held_work.lock().get_mut(token) {
                        known.version = held.version.clone();
                    }
                    break;
                }
                Err(error) if tries < TRIES && (error.is_lost_race() || error.is_undecided()) => {
                    match self.read_held_work(held.token.clone()).await {
                        Err(error) if retry::is_transient(&error) => {
                            retry::wait(&error, tries, held.locked_until()).await;
                        }
                        current => held.version = current?.version,
                    }
                }
                Err(error) if error.is_lost_race() => return Err(work_lost(&held.token)),
                Err(error) if retry::is_transient(&error) => {
                    retry::wait(&error, tries, held.locked_until()).await;
                }
                Err(error) => return Err(error),
            }
        }
        if let Some(session) = &held.version.document.session_id {
            self.note_session_activity(session).await;
        }
        Ok(())
    }
}
