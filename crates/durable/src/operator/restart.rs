//! Starts failed instances once more, under new ids.

use duroxide::providers::WorkItem;
use duroxide::{AppErrorKind, ErrorDetails, EventKind};
use perihelion::ErrorKind;

use super::retry::RetryOutcome;
use super::{InstanceSummary, Operator, OperatorError};
use crate::clock;
use crate::documents::MessageDocument;
use crate::error::Result;
use crate::ids;

/// What stands between the id of an instance and the number of its restart.
const SEPARATOR: &str = ":retry:";
/// The id of the message that starts a successor: there is one such message, however often it is asked for.
const START: &str = "retry:start";

/// The id of the instance that is started in place of one that failed.
pub(super) fn successor(instance: &str) -> String {
    let numbered = instance
        .rsplit_once(SEPARATOR)
        .and_then(|(first, number)| number.parse::<u64>().ok().map(|number| (first, number)));
    match numbered {
        Some((first, number)) => format!("{first}{SEPARATOR}{}", number.saturating_add(1)),
        None => format!("{instance}{SEPARATOR}1"),
    }
}

impl Operator {
    /// Whether a failed instance may be started once more: nobody waits for its result, and it has no successor yet.
    pub(super) async fn can_restart(&self, instance: &InstanceSummary) -> Result<bool> {
        if instance.status != "Failed" || instance.parent_instance_id.is_some() {
            return Ok(false);
        }
        let successor = successor(&instance.instance_id);
        if ids::check_instance_id(&successor).is_err() {
            return Ok(false);
        }
        Ok(self.summary(&successor).await?.is_none())
    }

    /// Starts the successor of a failed instance: same orchestration, version and input.
    pub(super) async fn restart(&self, instance: &str) -> Result<RetryOutcome, OperatorError> {
        let history = self.history(instance, None).await?;
        let cancelled = history.events().any(|event| {
            matches!(
                &event.kind,
                EventKind::OrchestrationFailed {
                    details: ErrorDetails::Application { kind: AppErrorKind::Cancelled { .. }, .. }
                }
            )
        });
        if cancelled {
            return Ok(RetryOutcome::Skipped("it was cancelled".to_owned()));
        }
        let started = history.events().find_map(|event| match &event.kind {
            EventKind::OrchestrationStarted { name, version, input, .. } => Some((name, version, input)),
            _ => None,
        });
        let Some((name, version, input)) = started else {
            return Ok(RetryOutcome::Skipped("its history does not say how it was started".to_owned()));
        };
        let successor = successor(instance);
        ids::check_instance_id(&successor)?;
        let item = WorkItem::StartOrchestration {
            instance: successor.clone(),
            orchestration: name.clone(),
            input: input.clone(),
            version: Some(version.clone()),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: duroxide::INITIAL_EXECUTION_ID,
        };
        let mut message = MessageDocument::new(&successor, &item, clock::now(), None)?;
        message.id = START.to_owned();
        match self.core.store.create(&successor, &message).await {
            Ok(_) => Ok(RetryOutcome::Done),
            Err(error) if error.kind() == Some(ErrorKind::Conflict) => {
                Ok(RetryOutcome::Skipped(format!("{successor} is already to be started")))
            }
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failed_instance_has_one_successor() {
        assert_eq!(successor("order-1"), "order-1:retry:1");
        assert_eq!(successor("order-1:retry:1"), "order-1:retry:2");
        assert_eq!(successor("order:retry:x"), "order:retry:x:retry:1");
    }
}
