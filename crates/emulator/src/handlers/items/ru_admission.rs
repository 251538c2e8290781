//! Who is asked whether there is budget, and who pays.
//!
//! Every operation on items passes here twice. Before its work, the partition it goes to lets it in
//! or answers 429 ([`ItemRequest::admit`]). After it, that partition pays what the answer states
//! ([`ItemRequest::settle`]), success or refusal. Operations on several partitions pay each its
//! share ([`ItemRequest::pay`]).

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use protocol::status::{Status, SubStatus};

use super::partition_response::PartitionResponse;
use crate::handlers::ItemRequest;
use crate::request::{Call, ItemOperation, consistency};
use crate::response::{Reply, ServiceError};
use engine::account::Funding;
use engine::charge::{self, Priority, RequestUnits};
use engine::query::{Continuation, Scope};
use engine::regions::RegionId;
use engine::store::{Partition, Replica};

/// What is to be known for one operation to be let in and to pay.
pub(crate) struct RuAdmission {
    mode: RequestUnits,
    region: RegionId,
    /// When it arrived, by uptime.
    arrived_at: Duration,
    /// How many times the usual price a read costs.
    read_factor: f64,
    /// Who let it in, if one partition did.
    charged_partition: OnceCell<Arc<Partition>>,
}

impl fmt::Debug for RuAdmission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bill")
            .field("mode", &self.mode)
            .field("factor", &self.read_factor)
            .finish_non_exhaustive()
    }
}

impl RuAdmission {
    /// The bill of an operation that begins now.
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
    /// Lets the operation in at the one partition it is about, which then pays for it.
    pub(super) fn admit(&self, replica: &Replica) -> Result<(), ServiceError> {
        self.check_budget(replica)?;
        self.set_charged_partition(|| replica.partition());
        Ok(())
    }

    /// Lets a page in at every partition it may read: those that `from` is not beyond.
    pub(super) fn admit_page(&self, scope: &Scope, from: Option<&Continuation>) -> Result<(), ServiceError> {
        if let [replica] = scope.partitions.as_slice() {
            return self.admit(replica);
        }
        let done =
            |replica: &Replica| from.is_some_and(|from| from.remaining(&scope.part_of(replica).0).is_empty());
        let mut asked = scope.partitions.iter().filter(|replica| !done(replica));
        asked.try_for_each(|replica| self.check_budget(replica))
    }

    /// Makes a partition pay what the answer will state.
    pub(super) fn set_charged_partition(&self, partition: impl FnOnce() -> Arc<Partition>) {
        if self.ru_admission.mode != RequestUnits::Off {
            // The first one named pays.
            self.ru_admission.charged_partition.get_or_init(partition);
        }
    }

    /// Answers 429 while a partition has spent more than it may.
    pub(super) fn check_budget(&self, partition: &Partition) -> Result<(), ServiceError> {
        if self.ru_admission.mode != RequestUnits::Enforce {
            return Ok(());
        }
        let region = self.ru_admission.region;
        let priority = consistency::priority(self.call.headers);
        let Some(funding) = Funding::of(self.call.account, self.container) else { return Ok(()) };
        let purse = funding.purse(self.container, partition);
        purse.admit(region, funding.rate, priority, self.ru_admission.arrived_at).map_err(|wait| {
            partition.meter.count_throttled(region);
            let partition_response = PartitionResponse::new(
                self.container,
                partition,
                partition.peek(self.call.read_context).reach(),
            );
            partition_response.error(throttled(partition, priority, wait))
        })
    }

    /// Takes `units` from a partition that shares the bill with others.
    pub(super) fn charge_partition(&self, partition: &Partition, units: f64) {
        let RuAdmission { mode, region, arrived_at: at, read_factor: factor, .. } = self.ru_admission;
        let units = units * factor;
        match mode {
            RequestUnits::Off => {}
            RequestUnits::Account => partition.meter.count(region, units, at),
            RequestUnits::Enforce => {
                partition.meter.count(region, units, at);
                if let Some(funding) = Funding::of(self.call.account, self.container) {
                    let units = match self.operation {
                        // Deleted in the background, as far as others can tell: they are not held up.
                        ItemOperation::DeletePartition => charge::MISS,
                        _ => units,
                    };
                    let purse = funding.purse(self.container, partition);
                    purse.charge(region, funding.rate, units, at);
                }
            }
        }
    }

    /// Lets the answer state the price of its consistency level, and takes it from whoever pays.
    pub(super) fn charge_outcome(&self, answer: Result<Reply, ServiceError>) -> Result<Reply, ServiceError> {
        if let Some(partition) = self.ru_admission.charged_partition.get() {
            let units = match &answer {
                Ok(reply) => reply.charge,
                Err(error) => error.charge.unwrap_or(charge::MISS),
            };
            self.charge_partition(partition, units);
        }
        if self.ru_admission.read_factor == 1.0 {
            return answer;
        }
        match answer {
            Ok(reply) => {
                let units = reply.charge * self.ru_admission.read_factor;
                Ok(reply.charge(units))
            }
            Err(error) if error.status == Status::TOO_MANY_REQUESTS => Err(error),
            Err(error) => {
                let units = error.charge.unwrap_or(charge::MISS) * self.ru_admission.read_factor;
                Err(error.with_charge(units))
            }
        }
    }
}

/// 429/3200: come back when the debt is paid.
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
