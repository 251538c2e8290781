//! Finishes what others have left behind: messages to other instances, large turns, deletions, and activities that were
//! locked ahead for no one.

use std::sync::{Arc, Weak};
use std::time::Duration;

use duroxide::providers::InstanceFilter;
use perihelion::Patch;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::clock;
use crate::core::Core;
use crate::documents::{DocumentType, IntentDocument, ReleaseDocument, check_version};
use crate::error::Result;
use crate::queries;
use crate::store::Row;
use crate::turn;

/// How many things one round finishes.
const ROUND: usize = 200;
/// How much rarer a process that writes nothing looks for what others left behind.
const IDLE_FACTOR: u32 = 15;
/// How often activities that were locked ahead are looked at.
const PREFETCH_INTERVAL: Duration = Duration::from_millis(500);

/// Runs until the provider is dropped.
pub(crate) async fn run(core: Weak<Core>, interval: Duration) {
    let mut next_round = clock::now() + clock::millis(interval);
    let mut idle_since = clock::now();
    loop {
        tokio::time::sleep(interval.min(PREFETCH_INTERVAL)).await;
        let Some(core) = core.upgrade() else { return };
        release_aged(&core).await;
        forget_expired(&core);
        core.options.telemetry.waiting(core.instances.ready.lock().len(), core.work.ready.lock().len());
        let now = clock::now();
        if now < next_round {
            continue;
        }
        next_round = now + clock::millis(interval);
        let is_idle = !core.take_activity();
        if is_idle && now - idle_since < clock::millis(interval * IDLE_FACTOR) {
            continue;
        }
        idle_since = now;
        match reconcile(&core).await {
            Ok(0) => {}
            Ok(finished) => {
                tracing::info!(finished, "finished what was left behind");
                core.note_activity();
            }
            Err(error) => {
                tracing::warn!(%error, "could not look for what was left behind");
                core.note_activity();
            }
        }
    }
}

/// One round: returns how much was finished.
pub(crate) async fn reconcile(core: &Arc<Core>) -> Result<usize> {
    let before = (clock::now() - clock::millis(core.options.reconciler_age)).max(0.0) as u64;
    let mut finished = 0;
    for row in core.store.query(|| queries::left_behind(before, ROUND)).await? {
        match row.document_type {
            DocumentType::OutboxIntent => {
                if let Some(intent) = read_left_behind::<IntentDocument>(core, &row).await {
                    finished += usize::from(deliver_again(core, intent).await);
                }
            }
            _ => {
                let Some(release) = read_left_behind::<ReleaseDocument>(core, &row).await else { continue };
                match turn::release(core, &release).await {
                    Ok(()) => finished += 1,
                    Err(error) => tracing::warn!(
                        instance = release.instance_id,
                        %error,
                        "a committed turn cannot be made visible yet"
                    ),
                }
                core.instances.polls.lock().hurry(0.0);
                core.work.polls.lock().hurry(0.0);
                core.instances.wake.notify_one();
                core.work.wake.notify_one();
            }
        }
    }
    for instance in core.store.values::<String>(|| queries::half_deleted(before, ROUND)).await? {
        core.delete_partition(&instance).await?;
        finished += 1;
    }
    finished += remove_outdated(core).await?;
    Ok(finished)
}

/// Deletes instances whose retention has ended, with their descendants. Returns how many.
async fn remove_outdated(core: &Arc<Core>) -> Result<usize> {
    let Some(retention) = core.options.retention else { return Ok(0) };
    let filter = InstanceFilter {
        completed_before: Some((clock::now() - clock::millis(retention)).max(0.0) as u64),
        limit: Some(ROUND as u32),
        ..InstanceFilter::default()
    };
    Ok(core.delete_selected(&filter).await?.instances_deleted as usize)
}

/// Reads what was left behind. One that cannot be read is set aside, so that it does not hold up the others; one of a
/// newer release waits for that.
async fn read_left_behind<T: DeserializeOwned>(core: &Arc<Core>, row: &Row) -> Option<T> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Header {
        #[serde(default)]
        schema_version: u32,
    }
    let Row { id, instance_id, .. } = row;
    let version = row.read::<Header>().map_or(0, |header| header.schema_version);
    if let Err(error) = check_version(&format!("The document {id}"), version) {
        tracing::error!(instance = instance_id, %error, "a document is left alone");
        return None;
    }
    match row.read() {
        Ok(document) => Some(document),
        Err(error) => {
            if let Err(error) = core.quarantine(instance_id, id, &error.to_string()).await {
                tracing::warn!(instance = instance_id, id, %error, "a document cannot be set aside yet");
            }
            None
        }
    }
}

/// Delivers a message that was left behind. Returns whether it is delivered.
async fn deliver_again(core: &Arc<Core>, intent: IntentDocument) -> bool {
    let delivered = core.deliver_one(&intent).await;
    let ended = match &delivered {
        Ok(()) => core.store.delete(&intent.instance_id, &intent.id).await,
        Err(error) => {
            let retryable = error.is_retryable();
            tracing::warn!(intent = intent.id, %error, retryable, "a message to another instance cannot be delivered yet");
            let patch = Patch::new().increment("/attemptCount", 1).set("/lastAttemptAt", clock::now() as u64);
            core.store.patch(&intent.instance_id, &intent.id, patch).await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(intent = intent.id, %error, "an intent was not updated");
    }
    delivered.is_ok()
}

/// Releases activities that were locked for workers of this process that then did not take them.
async fn release_aged(core: &Arc<Core>) {
    let aged = core.work.ready.lock().take_aged(clock::now());
    core.release_locked(aged).await;
}

/// Forgets turns and activities whose locks expired long ago: the runtime has given them up.
fn forget_expired(core: &Core) {
    let expired_before = clock::now() - 60_000.0;
    core.held_work
        .lock()
        .retain(|_, held| held.version.document.locked_until.is_some_and(|until| until > expired_before));
    core.turns.lock().retain(|_, held| {
        // One that is locked is in use.
        held.try_lock().map_or(true, |held| {
            held.version.document.locked_until.is_some_and(|until| until > expired_before)
        })
    });
}
