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

#[cfg(test)]
mod tests {
    use protocol::authorization::EMULATOR_KEY;
    use protocol::partition::PartitionKey;

    use super::*;
    use crate::account::Account;
    use crate::operation::ContainerName;
    use crate::options::{DriverOptions, OperationOptions};
    use crate::pipeline;
    use crate::runtime::CosmosRuntime;
    use crate::sharding::testing::Factory;

    #[test]
    fn a_span_that_nobody_wants_takes_no_room_in_the_future_of_an_operation() {
        let account = Account::with_key("https://one.example/", EMULATOR_KEY).expect("valid");
        let runtime = CosmosRuntime::builder(Arc::new(Factory::default())).build().expect("valid");
        let driver = runtime.driver(&account, DriverOptions::new()).expect("valid");
        let name = ContainerName::new("shop", "orders");
        let read = Operation::read_item(&name, PartitionKey::single("ada"), "1");
        let (inner, options) = (&*driver.0, OperationOptions::new());
        let settings = OperationSettings::default();
        let attempts = size_of_val(&pipeline::execute(inner, &read, &settings, inner.clock.now()));
        let all = size_of_val(&driver.execute_operation(&read, &options));
        assert!(all < attempts + 1024, "{all} bytes, of which {attempts} are the attempts");
    }
}
