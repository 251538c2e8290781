//! Messages to other instances. A turn writes them into its own partition; then they are delivered to that of the target.

mod reconciler;

pub(crate) use reconciler::run as run_reconciler;

use std::sync::Arc;

use futures::future::join_all;

use crate::clock;
use crate::core::Core;
use crate::documents::IntentDocument;
use crate::error::Result;

impl Core {
    /// Delivers the messages of a turn. What cannot be delivered now is left to the reconciler.
    pub(crate) async fn deliver(self: &Arc<Core>, source: &str, intents: Vec<IntentDocument>) {
        if intents.is_empty() {
            return;
        }
        let deliveries = intents.iter().map(|intent| self.deliver_one(intent));
        let results = join_all(deliveries).await;
        let mut delivered = Vec::new();
        for (intent, result) in intents.into_iter().zip(results) {
            match result {
                Ok(()) => delivered.push(intent.id),
                Err(error) => {
                    tracing::warn!(
                        source,
                        target = intent.target_instance_id,
                        %error,
                        "a message to another instance is left to the reconciler"
                    );
                }
            }
        }
        // The messages are there; nobody has to wait until the intents are gone.
        let (core, source) = (Arc::clone(self), source.to_owned());
        tokio::spawn(async move {
            if let Err(error) = core.delete_documents(&source, delivered).await {
                tracing::debug!(source, %error, "delivered intents are left to the reconciler");
            }
        });
    }

    /// Delivers one message. One that was delivered before has an effect only once: its id is taken.
    pub(crate) async fn deliver_one(&self, intent: &IntentDocument) -> Result<()> {
        let created = self.store.create_own(&intent.target_instance_id, &intent.payload).await?;
        self.options.telemetry.delivered(clock::now() - intent.created_at as f64);
        if created.is_some() {
            self.announce_messages([intent.payload.clone()]);
        }
        Ok(())
    }
}
