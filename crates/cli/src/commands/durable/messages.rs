//! `peri durable cancel` and `raise`: messages to instances.

use crate::arguments::{DurableCancel, DurableRaise};
use crate::exit::CommandError;
use crate::output;

/// Asks instances to end.
pub(super) async fn cancel(cancel: &DurableCancel) -> Result<(), CommandError> {
    let operator = super::open(&cancel.options).await?;
    for instance in &cancel.instances {
        operator.cancel(instance, &cancel.reason).await.map_err(|error| super::failed(&error))?;
        done(cancel.options.json, instance, "cancellation requested");
    }
    Ok(())
}

/// Raises an event, or puts a message into a queue.
pub(super) async fn raise(raise: &DurableRaise) -> Result<(), CommandError> {
    let operator = super::open(&raise.options).await?;
    let (instance, name, data) = (&raise.instance, &raise.event, &raise.data);
    let sent = match raise.queue {
        true => operator.enqueue_event(instance, name, data).await,
        false => operator.raise_event(instance, name, data).await,
    };
    sent.map_err(|error| super::failed(&error))?;
    done(raise.options.json, instance, if raise.queue { "message enqueued" } else { "event raised" });
    Ok(())
}

fn done(json: bool, instance: &str, what: &str) {
    match json {
        true => output::json(&serde_json::json!({ "instanceId": instance, "done": what })),
        false => output::data(&output::printable(&format!("{instance}: {what}"))),
    }
}
