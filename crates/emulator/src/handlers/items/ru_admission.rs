//! RU admission: whether a partition admits an operation, and which partition is charged for it.
//!
//! Every operation on items passes here twice. Before its work, its partition admits it or responds 429
//! ([`ItemRequest::admit`]). Afterwards that partition is charged what the response states
//! ([`ItemRequest::charge_outcome`]), on success and on error. Operations on several partitions charge each its
//! share ([`ItemRequest::charge_partition`]).

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use protocol::status::{Status, SubStatus};

use super::partition_response::PartitionResponse;
use crate::handlers::ItemRequest;
use crate::request::{Call, ItemOperation, consistency};
use crate::response::{Reply, ServiceError};
use engine::account::ThroughputSource;
use engine::charge::{self, Priority, RequestUnitMode};
use engine::query::{Continuation, Scope};
use engine::regions::RegionId;
use engine::store::{Partition, PartitionView};

/// What admission and charging of one operation need.
pub(crate) struct RuAdmission {
    mode: RequestUnitMode,
    region: RegionId,
    /// When the request arrived, by uptime.
    arrived_at: Duration,
    /// The factor by which the consistency level multiplies the charge of a read.
    read_factor: f64,
    /// The partition that is charged, if it is a single one.
    charged_partition: OnceCell<Arc<Partition>>,
}

impl fmt::Debug for RuAdmission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuAdmission")
            .field("mode", &self.mode)
            .field("factor", &self.read_factor)
            .finish_non_exhaustive()
    }
}

impl RuAdmission {
    /// The admission of an operation that begins now.
    pub(crate) fn new(call: &Call<'_>, operation: &ItemOperation<'_>) -> RuAdmission {
        let mode = call.account.request_units;
        let factor = if operation.is_read() { charge::read_factor(call.level) } else { 1.0 };
        RuAdmission {
            mode,
            region: call.read_context.region,
            arrived_at: call.uptime,
            read_factor: factor,
            charged_partition: OnceCell::new(),
        }
    }
}

impl ItemRequest<'_> {
    /// Admits the operation at its partition, which will be charged.
    pub(super) fn admit(&self, replica: &PartitionView) -> Result<(), ServiceError> {
        self.check_budget(replica)?;
        self.set_charged_partition(|| replica.partition());
        Ok(())
    }

    /// Admits a page at every partition that it may read: those that are not finished at `from`.
    pub(super) fn admit_page(&self, scope: &Scope, from: Option<&Continuation>) -> Result<(), ServiceError> {
        if let [replica] = scope.partitions.as_slice() {
            return self.admit(replica);
        }
        let done = |replica: &PartitionView| {
            from.is_some_and(|from| from.remaining(&scope.range_in(replica).0).is_empty())
        };
        let mut remaining = scope.partitions.iter().filter(|replica| !done(replica));
        remaining.try_for_each(|replica| self.check_budget(replica))
    }

    /// Sets the partition that is charged what the response states.
    pub(super) fn set_charged_partition(&self, partition: impl FnOnce() -> Arc<Partition>) {
        if self.ru_admission.mode != RequestUnitMode::Off {
            // The first partition that is set stays.
            self.ru_admission.charged_partition.get_or_init(partition);
        }
    }

    /// Returns 429 while a partition has used up its RU budget.
    pub(super) fn check_budget(&self, partition: &Partition) -> Result<(), ServiceError> {
        if self.ru_admission.mode != RequestUnitMode::Enforce {
            return Ok(());
        }
        let region = self.ru_admission.region;
        let priority = consistency::priority(self.call.headers);
        let Some(source) = ThroughputSource::of(self.call.account, self.container) else { return Ok(()) };
        let buckets = source.token_buckets(self.container, partition);
        buckets.admit(region, source.rate, priority, self.ru_admission.arrived_at).map_err(|wait| {
            partition.throughput.count_throttled(region);
            let partition_response = PartitionResponse::new(
                self.container,
                partition,
                partition.head(self.call.read_context).progress(),
            );
            partition_response.error(throttled(partition, priority, wait))
        })
    }

    /// Charges `units` to a partition.
    pub(super) fn charge_partition(&self, partition: &Partition, units: f64) {
        let RuAdmission { mode, region, arrived_at: at, read_factor: factor, .. } = self.ru_admission;
        let units = units * factor;
        match mode {
            RequestUnitMode::Off => {}
            RequestUnitMode::Account => partition.throughput.count(region, units, at),
            RequestUnitMode::Enforce => {
                partition.throughput.count(region, units, at);
                if let Some(source) = ThroughputSource::of(self.call.account, self.container) {
                    let units = match self.operation {
                        // The service deletes in the background, without throttling other requests.
                        ItemOperation::DeletePartition => charge::NOT_FOUND,
                        _ => units,
                    };
                    let buckets = source.token_buckets(self.container, partition);
                    buckets.charge(region, source.rate, units, at);
                }
            }
        }
    }

    /// Charges the partition, and multiplies the charge in the response by the factor of the consistency level.
    pub(super) fn charge_outcome(&self, outcome: Result<Reply, ServiceError>) -> Result<Reply, ServiceError> {
        if outcome.as_ref().is_err_and(|error| error.is_interruption) {
            return outcome;
        }
        if let Some(partition) = self.ru_admission.charged_partition.get() {
            let units = match &outcome {
                Ok(reply) => reply.charge,
                Err(error) => error.charge.unwrap_or(charge::NOT_FOUND),
            };
            self.charge_partition(partition, units);
        }
        if self.ru_admission.read_factor == 1.0 {
            return outcome;
        }
        match outcome {
            Ok(reply) => {
                let units = reply.charge * self.ru_admission.read_factor;
                Ok(reply.charge(units))
            }
            Err(error) if error.status == Status::TOO_MANY_REQUESTS => Err(error),
            Err(error) => {
                let units = error.charge.unwrap_or(charge::NOT_FOUND) * self.ru_admission.read_factor;
                Err(error.with_charge(units))
            }
        }
    }
}

/// 429/3200: the client has to retry after `wait`.
fn throttled(partition: &Partition, priority: Priority, wait: Duration) -> ServiceError {
    let who = match priority {
        Priority::High => "requests",
        Priority::Low => "requests of low priority",
    };
    let message = format!(
        "The request rate is too large: partition key range '{}' has spent the request units it has for {who}. \
         Retry after {} ms, raise the throughput, or spread the load over more partition keys.",
        partition.identity.id,
        wait.as_millis()
    );
    ServiceError {
        retry_after: Some(wait),
        ..ServiceError::backend(Status::TOO_MANY_REQUESTS, &message)
            .with_sub_status(SubStatus::REQUEST_RATE_TOO_LARGE)
            .with_charge(charge::THROTTLED)
    }
}
