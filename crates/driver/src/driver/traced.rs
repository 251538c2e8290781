//! Operations in their spans, and the observer that is told of them.

use std::sync::{Arc, Weak};
use std::time::Instant;

use super::{CosmosDriver, Inner};
use crate::error::Result;
use crate::operation::Operation;
use crate::options::{OperationSettings, ReadConsistencyStrategy};
use crate::pipeline;
use crate::response::Response;
use crate::routing::AccountState;
use crate::telemetry::{OperationEnded, OperationObserver, OperationSpan};

impl CosmosDriver {
    /// Sets the observer that is told of every operation that ends from now on. A driver has one observer: `false` if
    /// it has one already.
    pub fn set_observer(&self, observer: Arc<dyn OperationObserver>) -> bool {
        self.0.observer.set(observer).is_ok()
    }

    /// A reference that does not keep the driver alive.
    pub fn downgrade(&self) -> WeakDriver {
        WeakDriver(self.0.this.clone())
    }
}

impl Inner {
    /// Carries out an operation, in a span if a subscriber wants one. The span is on the heap with everything in it, so
    /// that an operation without a span pays nothing for it.
    pub(super) async fn execute_traced(
        &self,
        operation: &Operation,
        settings: &OperationSettings,
        started: Instant,
    ) -> Result<Response> {
        let consistency = || self.consistency(operation, settings);
        match OperationSpan::start(operation, &self.identity, consistency) {
            None => self.discover_and_execute(operation, settings, started).await,
            Some(span) => {
                let work = self.discover_and_execute(operation, settings, started);
                Box::pin(span.around(operation, work)).await
            }
        }
    }

    /// Carries out an operation, after the account was discovered.
    async fn discover_and_execute(
        &self,
        operation: &Operation,
        settings: &OperationSettings,
        started: Instant,
    ) -> Result<Response> {
        if !self.account.peek(AccountState::is_known) {
            // Before the first request: a mistake of the caller is not a reason to send anything.
            pipeline::check(operation)?;
            self.discover_account(settings.timeouts.deadline_from(started)).await?;
        }
        pipeline::execute(self, operation, settings, started).await
    }

    /// Tells the observer, if there is one, that an operation has ended.
    pub(super) fn tell_observer(
        &self,
        operation: &Operation,
        settings: &OperationSettings,
        started: Instant,
        result: &Result<Response>,
    ) {
        if let Some(observer) = self.observer.get() {
            observer.operation_ended(&OperationEnded {
                operation,
                result,
                elapsed: self.clock.now().saturating_duration_since(started),
                client: &self.identity,
                consistency: self.consistency(operation, settings),
            });
        }
    }

    /// The consistency of an operation: that of its reads if they have one of their own, or else the account's.
    fn consistency(&self, operation: &Operation, settings: &OperationSettings) -> &'static str {
        let own = match settings.consistency.read_strategy {
            ReadConsistencyStrategy::Default => None,
            strategy => strategy.header_value().filter(|_| operation.is_read_only()),
        };
        own.unwrap_or_else(|| self.account.peek(AccountState::consistency).name())
    }
}

/// A reference to a driver that does not keep it alive, for gauges that are asked now and then.
#[derive(Clone, Debug)]
pub struct WeakDriver(Weak<Inner>);

impl WeakDriver {
    /// The driver, unless its last clone was dropped.
    pub fn upgrade(&self) -> Option<CosmosDriver> {
        self.0.upgrade().map(CosmosDriver)
    }
}
