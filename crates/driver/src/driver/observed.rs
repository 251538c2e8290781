//! The observer that is told of operations, and what it is told.

use std::sync::{Arc, Weak};
use std::time::Instant;

use super::{CosmosDriver, Inner};
use crate::error::Result;
use crate::operation::Operation;
use crate::options::{OperationSettings, ReadConsistencyStrategy};
use crate::response::Response;
use crate::routing::AccountState;
use crate::telemetry::{OperationEnded, OperationObserver};

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
    pub(super) fn consistency(&self, operation: &Operation, settings: &OperationSettings) -> &'static str {
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
