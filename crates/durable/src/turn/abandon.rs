//! Releases the lock on an instance without committing anything.

use std::time::Duration;

use perihelion::{Batch, Patch};

use crate::clock::{self, Millis};
use crate::core::Core;
use crate::error::Result;
use crate::held::{HeldTurn, turn_lost};

/// How often a lost race is tried again.
const TRIES: usize = 3;

impl Core {
    /// Gives a turn back: its messages become visible again after a delay.
    pub(crate) async fn abandon_turn(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<()> {
        let held = self.held_turn(token).await?;
        let mut held = held.lock().await;
        if held.ended {
            return Err(turn_lost(&held.token));
        }
        let visible_at = delay.map(|delay| clock::now() + clock::millis(delay));
        let released = self.release_turn(&mut held, visible_at, ignore_attempt).await;
        held.ended = true;
        self.turns.lock().remove(token);
        self.instances.ready.lock().released(held.instance(), visible_at, clock::now());
        self.instances.wake.notify_one();
        released
    }

    /// Writes the document without the lock, and when the messages become visible if that is later.
    pub(super) async fn release_turn(
        &self,
        held: &mut HeldTurn,
        visible_at: Option<Millis>,
        ignore_attempt: bool,
    ) -> Result<()> {
        let mut tries = 0;
        loop {
            tries += 1;
            let mut document = held.version.document.clone();
            let messages = document.locked_messages.clone();
            document.unlock(ignore_attempt);
            let (instance, id) = (held.instance(), document.id.clone());
            let mut batch = Batch::new(instance).replace(&id, &document).if_match(&held.version.etag);
            if let Some(visible_at) = visible_at {
                for message in &messages {
                    batch = batch.patch(message, Patch::new().set("/visibleAt", visible_at));
                }
            }
            self.cache.remove(instance);
            match self.store.execute(batch).await {
                Ok(_) => return Ok(()),
                Err(error) if tries < TRIES && (error.is_lost_race() || error.is_undecided()) => {
                    let current = self.read_instance(instance).await?;
                    held.refresh(current)?;
                }
                Err(error) if error.is_lost_race() => return Err(turn_lost(&held.token)),
                Err(error) => return Err(error),
            }
        }
    }
}
