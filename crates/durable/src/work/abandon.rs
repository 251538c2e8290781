//! Releases the lock on an activity.

use std::time::Duration;

use crate::clock;
use crate::core::Core;
use crate::dispatch::LockedWork;
use crate::error::Result;
use crate::held::work_lost;

/// How often a lost race is tried again.
const TRIES: usize = 3;

impl Core {
    /// Releases activities that were locked ahead and that no worker has started.
    pub(crate) async fn release_locked(&self, locked: Vec<LockedWork>) {
        for LockedWork { token, mut version, .. } in locked {
            let document = &mut version.document;
            document.unlock(document.enqueued_at, true);
            match self.store.replace(&token.instance, &token.document, &version.etag, &version.document).await
            {
                Ok(etag) => {
                    version.etag = etag;
                    self.announce_work([version]);
                }
                Err(error) => {
                    tracing::debug!(instance = token.instance, %error, "the lock on an activity will expire");
                }
            }
        }
    }

    /// Gives an activity back: it becomes visible again after a delay.
    pub(crate) async fn abandon_work(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<()> {
        let mut held = self.held_work(token).await?;
        let mut tries = 0;
        loop {
            tries += 1;
            let visible_at = match delay {
                Some(delay) => clock::now() + clock::millis(delay),
                None => held.version.document.enqueued_at,
            };
            let mut document = held.version.document.clone();
            document.unlock(visible_at, ignore_attempt);
            let (instance, id) = (&held.token.instance, &held.token.document);
            match self.store.replace(instance, id, &held.version.etag, &document).await {
                Ok(etag) => {
                    self.work_ended(token, clock::now());
                    self.announce_work([crate::store::Versioned { document, etag }]);
                    return Ok(());
                }
                Err(error) if tries < TRIES && (error.is_lost_race() || error.is_undecided()) => {
                    match self.read_held_work(held.token.clone()).await {
                        Ok(current) => held.version = current.version,
                        Err(lost) => {
                            self.work_ended(token, clock::now());
                            return Err(lost);
                        }
                    }
                }
                Err(error) if error.is_lost_race() => return Err(work_lost(&held.token)),
                Err(error) => return Err(error),
            }
        }
    }
}
