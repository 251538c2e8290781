//! The driver as the loop over regions sees it.

use crate::gateway::{AttemptLimits, GatewayRequest, GatewayResult};
use std::sync::Arc;
use std::time::Instant;

use protocol::status::{Status, SubStatus};

use super::Inner;
use crate::cache::Container;
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result};
use crate::hedging::budget::Budget;
use crate::operation::{Operation, Plane};
use crate::options::OperationSettings;
use crate::pipeline::{Location, Placed, Surroundings, needs_ranges, place};
use crate::routing::{AccountState, PartitionId, PartitionState, StateCell};

impl Surroundings for Inner {
    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn draw(&self) -> f64 {
        self.random()
    }

    fn account(&self) -> &StateCell<AccountState> {
        &self.account
    }

    fn partitions(&self) -> &StateCell<PartitionState> {
        &self.partitions
    }

    fn hedges(&self) -> &Budget {
        &self.hedges
    }

    async fn send(&self, request: GatewayRequest<'_>, settings: &OperationSettings) -> GatewayResult {
        let limits = AttemptLimits::of(settings, request.operation.plane());
        self.gateway.execute(request, &limits).await
    }

    async fn locate(&self, operation: &Operation, deadline: Instant) -> Result<Option<Location>> {
        let Some(name) = operation.target().container_name().filter(|_| operation.plane() == Plane::Data)
        else {
            return Ok(None);
        };
        let container = self.container(name, deadline).await?;
        let scope = operation.scope();
        if !needs_ranges(scope) {
            return Ok(Some(Location { container, ranges: None, partition: None, bounds: None }));
        }
        let ranges = self.ranges(&container, deadline).await?;
        let (partition, bounds) = match place(scope, container.partition_key(), ranges.map()) {
            Placed::Anywhere => (None, None),
            Placed::In(range, bounds) => {
                (Some(PartitionId { container: Arc::clone(container.identity()), range }), bounds)
            }
            Placed::Divided => return Err(divided()),
        };
        Ok(Some(Location { container, ranges: Some(ranges), partition, bounds }))
    }

    async fn refresh_account(&self, deadline: Instant) {
        if self.may_ask_account() {
            // Too late is as good as never: the operation ends at its deadline either way.
            let _in_time = self.clock.within(Some(deadline), self.ask_account()).await;
        }
    }

    async fn refresh_partitions(&self, known: &Location, deadline: Instant) {
        if let Some(ranges) = &known.ranges {
            // Without an answer the next attempt is told again that the ranges are out of date.
            let _newer = self.refreshed_ranges(&known.container, ranges, deadline).await;
        }
    }

    fn forget_container(&self, known: &Arc<Container>) {
        self.forget(known);
    }
}

/// What the service would answer to a request for a partition that is no longer one.
fn divided() -> Error {
    Error::new(ErrorKind::Unavailable, "the stretch of the ring lies in several partitions; divide it anew")
        .with_status(Status::GONE, SubStatus::PARTITION_KEY_RANGE_GONE)
}
