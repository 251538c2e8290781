//! Enqueues messages and activities from outside of turns.

use std::time::Duration;

use duroxide::Event;
use duroxide::providers::WorkItem;

use crate::clock;
use crate::core::Core;
use crate::documents::{InstanceDocument, MessageDocument, WorkDocument};
use crate::error::{Failure, Result};
use crate::ids;
use crate::store::Versioned;
use crate::turn::{count_events, history_documents, target_instance};

impl Core {
    /// Enqueues a message to an instance, visible after a delay.
    pub(crate) async fn enqueue_message(&self, item: &WorkItem, delay: Option<Duration>) -> Result<()> {
        let instance = target_instance(item)?;
        ids::check_instance_id(instance)?;
        let enqueued_at = self.timestamps.next();
        let visible_at = match (delay, item) {
            (Some(delay), _) => Some(enqueued_at + clock::millis(delay)),
            (None, WorkItem::TimerFired { fire_at_ms, .. }) => Some(*fire_at_ms as f64),
            (None, _) => None,
        };
        let message = MessageDocument::new(instance, item, enqueued_at, visible_at)?;
        self.store.create_own(instance, &message).await?;
        self.announce_messages([message]);
        Ok(())
    }

    /// Enqueues an activity for any worker.
    pub(crate) async fn enqueue_work(&self, item: &WorkItem) -> Result<()> {
        let document = WorkDocument::new(item, self.timestamps.next())?;
        if document.instance_id.is_empty() {
            return Err(Failure::invalid("only activities can be enqueued for workers"));
        }
        ids::check_instance_id(&document.instance_id)?;
        match self.store.create_own(&document.instance_id, &document).await? {
            Some(etag) => self.announce_work([Versioned { document, etag }]),
            None => self.work.polls.lock().hurry(clock::now()),
        }
        Ok(())
    }

    /// Appends events to the history of an execution, outside of a turn.
    pub(crate) async fn append_events(
        &self,
        instance: &str,
        execution_id: u64,
        events: &[Event],
    ) -> Result<()> {
        ids::check_instance_id(instance)?;
        let stored = self.read_instance(instance).await?;
        let mut document = match &stored {
            Some(stored) => stored.document.clone(),
            None => InstanceDocument::new(instance, clock::now()),
        };
        let documents = history_documents(instance, execution_id, events)?;
        if document.history_events == 0 && execution_id > document.current_execution_id {
            document.current_execution_id = execution_id;
        }
        let is_current = execution_id == document.current_execution_id;
        if is_current {
            count_events(&mut document, events, &documents)?;
        }
        for document in &documents {
            self.store.create(instance, document).await?;
        }
        self.cache.remove(instance);
        match &stored {
            Some(stored) if is_current => {
                self.store.replace(instance, &document.id, &stored.etag, &document).await?;
            }
            None => {
                self.store.create(instance, &document).await?;
            }
            Some(_) => {}
        }
        Ok(())
    }
}
