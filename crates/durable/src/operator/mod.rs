//! What operators ask about instances, and do to them: the commands of `peri durable` are calls of this module.
//!
//! An [`Operator`] uses a container that exists and never creates one, so that a misspelled name is an error. It runs no
//! orchestrations: what it enqueues is processed by the runtimes that use the container.
//!
//! ```no_run
//! use perihelion_durable::operator::{InstanceSelector, Operator, OperatorError};
//!
//! # async fn run(client: &perihelion::CosmosClient) -> Result<(), OperatorError> {
//! let operator = Operator::open(client, "duroxide", "duroxide").await?;
//! let failed = InstanceSelector { statuses: vec!["Failed".to_owned()], ..InstanceSelector::default() };
//! for instance in operator.list(&failed).await? {
//!     println!("{}: {}", instance.instance_id, instance.output.unwrap_or_default());
//! }
//! # Ok(())
//! # }
//! ```

mod changes;
mod details;
mod diagnosis;
mod error;
mod history;
mod instance_summary;
mod list;
mod messages;
mod open;
mod partition;
mod purge;
mod restart;
mod retry;
mod selector;
mod timeline;
mod waiting;

use std::sync::Arc;

use crate::core::Core;

pub use changes::{ChangeFollower, ChangeKind, InstanceChange};
pub use details::{ExecutionSummary, InstanceDetails, KeyValueSize};
pub use diagnosis::{Diagnosis, Finding, HistoryError, Lock};
pub use error::OperatorError;
pub use history::{History, HistoryEntry};
pub use instance_summary::{InstanceSummary, PENDING};
pub use purge::PurgedInstances;
pub use retry::{RetryAction, RetryItem, RetryOutcome};
pub use selector::InstanceSelector;
pub use timeline::{Outcome, Timeline, TimelineSpan, WaitKind};
pub use waiting::{QuarantinedItem, UndeliveredMessage, UnreleasedTurn, WaitingActivity, WaitingMessage};

/// Looks at the instances of a container, and changes what operators may change.
#[derive(Debug)]
pub struct Operator {
    core: Arc<Core>,
}

impl Operator {
    /// The number of requests of this operator so far, and the request units they have cost.
    pub fn usage(&self) -> (u64, f64) {
        self.core.store.usage()
    }
}
