//! Extends the lock on an instance.

use std::time::Duration;

use crate::clock;
use crate::core::Core;
use crate::error::Result;
use crate::held::turn_lost;
use crate::retry;

/// How often a lost race is tried again. Errors that may pass are not given up while the lock lasts.
const TRIES: usize = 3;

impl Core {
    /// Extends the lock of a turn from now on.
    pub(crate) async fn renew_turn(&self, token: &str, extend_for: Duration) -> Result<()> {
        let held = self.held_turn(token).await?;
        let mut held = held.lock().await;
        let mut tries = 0;
        loop {
            tries += 1;
            let now = clock::now();
            held.check_lock(now)?;
            let mut document = held.version.document.clone();
            let until = now + clock::millis(extend_for);
            document.locked_until = Some(until);
            let id = document.id.clone();
            match self.store.replace(held.instance(), &id, &held.version.etag, &document).await {
                Ok(etag) => {
                    held.version.etag = etag;
                    held.version.document = document;
                    self.instances.ready.lock().locked(held.instance(), until);
                    return Ok(());
                }
                Err(error) if tries < TRIES && (error.is_lost_race() || error.is_undecided()) => {
                    match self.read_instance(held.instance()).await {
                        Err(error) if retry::is_transient(&error) => {
                            retry::wait(&error, tries, held.locked_until()).await;
                        }
                        current => held.refresh(current?)?,
                    }
                }
                Err(error) if error.is_lost_race() => return Err(turn_lost(&held.token)),
                Err(error) if retry::is_transient(&error) => {
                    retry::wait(&error, tries, held.locked_until()).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}
