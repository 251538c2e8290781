//! Sessions: all activities of a session are executed by one worker.

use std::sync::atomic::Ordering;
use std::time::Duration;

use duroxide::providers::SessionFetchConfig;
use perihelion::{Patch, Query};

use crate::clock;
use crate::core::Core;
use crate::documents::SessionDocument;
use crate::error::Result;
use crate::ids;
use crate::store::{Row, Versioned};

/// A session's document; none if it cannot be read, which must not hold up the others.
fn read_session(row: &Row) -> Option<SessionDocument> {
    row.read().inspect_err(|error| tracing::error!(%error, "a session is left alone")).ok()
}

impl Core {
    /// Claims a session for a worker, or confirms that it has it. False if another worker has it.
    pub(crate) async fn claim_session(&self, session: &str, config: &SessionFetchConfig) -> Result<bool> {
        let partition = ids::session_partition(session);
        let now = clock::now();
        let stored: Option<Versioned<SessionDocument>> =
            self.store.read(&partition, ids::SESSION_DOCUMENT).await?;
        if let Some(stored) = &stored
            && stored.document.owner_id != config.owner_id
            && stored.document.locked_until > now
        {
            return Ok(false);
        }
        let mut document = match &stored {
            Some(stored) => stored.document.clone(),
            None => SessionDocument::new(session, &config.owner_id, now),
        };
        document.owner_id.clone_from(&config.owner_id);
        document.locked_until = now + clock::millis(config.lock_timeout);
        document.last_activity = now;
        let written = match &stored {
            Some(stored) => {
                self.store.replace(&partition, ids::SESSION_DOCUMENT, &stored.etag, &document).await
            }
            None => self.store.create(&partition, &document).await,
        };
        self.claimed_sessions.store(true, Ordering::Relaxed);
        match written {
            Ok(_) => Ok(true),
            Err(error) if error.is_lost_race() => {
                // Another task of the same worker may have claimed it.
                let current: Option<Versioned<SessionDocument>> =
                    self.store.read(&partition, ids::SESSION_DOCUMENT).await?;
                Ok(current.is_some_and(|current| {
                    current.document.owner_id == config.owner_id && current.document.locked_until > now
                }))
            }
            Err(error) => Err(error),
        }
    }

    /// Notes that an activity of a session has ended or goes on. A failure only means that the session may count as idle
    /// earlier.
    pub(crate) async fn note_session_activity(&self, session: &str) {
        let now = clock::now();
        let patch =
            Patch::new().set("/lastActivity", now).only_if(format!("FROM c WHERE c.lockedUntil > {now}"));
        let partition = ids::session_partition(session);
        if let Err(error) = self.store.patch(&partition, ids::SESSION_DOCUMENT, patch).await {
            tracing::debug!(session, %error, "the last activity of a session was not noted");
        }
    }

    /// Extends the locks of sessions that these workers have and that are not idle. Returns how many.
    pub(crate) async fn renew_sessions(
        &self,
        owners: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize> {
        if owners.is_empty() || !self.claimed_sessions.load(Ordering::Relaxed) {
            return Ok(0);
        }
        let now = clock::now();
        let active_since = now - clock::millis(idle_timeout);
        let rows = self.store.query(|| {
            Query::new(
                "SELECT * FROM c WHERE c.type = 'session' AND ARRAY_CONTAINS(@owners, c.ownerId) AND c.lockedUntil > @now",
            )
            .with_parameter("@owners", owners)
            .with_parameter("@now", now)
        });
        let rows = rows.await?;
        if rows.is_empty() {
            // Nothing to renew before one is claimed.
            self.claimed_sessions.store(false, Ordering::Relaxed);
        }
        let mut renewed = 0;
        for row in rows {
            let Some(mut document) = read_session(&row) else { continue };
            if document.last_activity <= active_since {
                continue;
            }
            document.locked_until = now + clock::millis(extend_for);
            match self.store.replace(&document.instance_id, &document.id, &row.etag, &document).await {
                Ok(_) => renewed += 1,
                // The activity that was noted meanwhile, or a claim: the next renewal sees it.
                Err(error) if error.is_lost_race() => {
                    let patch = Patch::new().set("/lockedUntil", document.locked_until).only_if(format!(
                        "FROM c WHERE c.ownerId = {} AND c.lockedUntil > {now}",
                        serde_json::Value::from(document.owner_id.as_str())
                    ));
                    let renewal = self.store.patch(&document.instance_id, &document.id, patch).await;
                    renewed += usize::from(renewal.is_ok());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(renewed)
    }

    /// Deletes sessions that nobody has and that no activity waits for. Returns how many.
    pub(crate) async fn clean_up_sessions(&self) -> Result<usize> {
        let now = clock::now();
        let rows = self.store.query(|| {
            Query::new("SELECT * FROM c WHERE c.type = 'session' AND c.lockedUntil < @now")
                .with_parameter("@now", now)
        });
        let mut deleted = 0;
        for row in rows.await? {
            let Some(session) = read_session(&row) else { continue };
            let waiting: Vec<u64> = self
                .store
                .values(|| {
                    Query::new(
                        "SELECT VALUE COUNT(1) FROM c WHERE c.type = 'worker_queue' AND c.sessionId = @session",
                    )
                    .with_parameter("@session", &session.session_id)
                })
                .await?;
            if waiting.iter().sum::<u64>() > 0 {
                continue;
            }
            match self.store.delete_version(&session.instance_id, &session.id, &row.etag).await {
                Ok(()) => deleted += 1,
                Err(error) if error.is_lost_race() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(deleted)
    }
}
