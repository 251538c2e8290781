//! Messages of operators to instances: cancellations and events.

use duroxide::providers::WorkItem;

use super::{InstanceSummary, Operator, OperatorError};
use crate::documents::DELETING;
use crate::error::Result;
use crate::ids;

impl Operator {
    /// Asks an instance to end, which then fails with this reason; its sub-orchestrations are cancelled as well. It ends
    /// when a runtime processes the request.
    pub async fn cancel(&self, instance: &str, reason: &str) -> Result<(), OperatorError> {
        self.check_running(instance).await?;
        let item = WorkItem::CancelInstance { instance: instance.to_owned(), reason: reason.to_owned() };
        Ok(self.core.enqueue_message(&item, None).await?)
    }

    /// Raises an event that an instance waits for, or will wait for.
    pub async fn raise_event(&self, instance: &str, name: &str, data: &str) -> Result<(), OperatorError> {
        self.check_running(instance).await?;
        let item = WorkItem::ExternalRaised {
            instance: instance.to_owned(),
            name: name.to_owned(),
            data: data.to_owned(),
        };
        Ok(self.core.enqueue_message(&item, None).await?)
    }

    /// Puts a message into a queue of an instance, where it stays until the instance takes it.
    pub async fn enqueue_event(&self, instance: &str, queue: &str, data: &str) -> Result<(), OperatorError> {
        self.check_running(instance).await?;
        let item = WorkItem::QueueMessage {
            instance: instance.to_owned(),
            name: queue.to_owned(),
            data: data.to_owned(),
        };
        Ok(self.core.enqueue_message(&item, None).await?)
    }

    /// Checks that an instance exists, or is to be started, and has not ended: a message to any other would be ignored.
    async fn check_running(&self, instance: &str) -> Result<(), OperatorError> {
        ids::check_instance_id(instance)?;
        let summary = match self.summary(instance).await? {
            Some(summary) => summary,
            // It may be about to start: there are messages to it then.
            None => {
                self.read_partition(instance).await?;
                InstanceSummary::not_started(instance, "", 0)
            }
        };
        if summary.has_ended() || summary.status == DELETING {
            return Err(OperatorError::Refused(format!(
                "instance {instance:?} is no longer running: its status is {}",
                summary.status
            )));
        }
        Ok(())
    }
}
