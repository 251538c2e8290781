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

use super::served::Served;
use crate::handlers::ItemRequest;
use crate::request::{Call, ItemOperation, consistency};
use crate::response::{Reply, ServiceError};
use engine::account::ThroughputSource;
use engine::charge::{self, Priority, RequestUnitMode};
use engine::query::{Continuation, Scope};
use engine::regions::RegionId;
use engine::store::{Partition, PartitionView};

/// What is to be known for one operation to be let in and to pay.
pub(crate) struct Bill {
    mode: RequestUnitMode,
    region: RegionId,
    /// When it arrived, by uptime.
    at: Duration,
    /// How many times the usual price a read costs.
    factor: f64,
    /// Who let it in, if one partition did.
    payer: OnceCell<Arc<Partition>>,
}

impl fmt::Debug for Bill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bill").field("mode", &self.mode).field("factor", &self.factor).finish_non_exhaustive()
    }
}

impl Bill {
    /// The bill of an operation that begins now.
    pub(crate) fn new(call: &Call<'_>, operation: &ItemOperation<'_>) -> Bill {
        let mode = call.account.request_units;
        let factor = if operation.is_read() { charge::read_factor(call.level) } else { 1.0 };
        Bill { mode, region: call.vantage.region, at: call.uptime, factor, payer: OnceCell::new() }
    }
}

impl ItemRequest<'_> {
    /// Lets the operation in at the one partition it is about, which then pays for it.
    pub(super) fn admit(&self, replica: &PartitionView) -> Result<(), ServiceError> {
        self.check_budget(replica)?;
        self.charge_to(|| replica.partition());
        Ok(())
    }

    /// Lets a page in at every partition it may read: those that `from` is not beyond.
    pub(super) fn admit_page(&self, scope: &Scope, from: Option<&Continuation>) -> Result<(), ServiceError> {
        if let [replica] = scope.partitions.as_slice() {
            return self.admit(replica);
        }
        let done = |replica: &PartitionView| {
            from.is_some_and(|from| from.remaining(&scope.range_in(replica).0).is_empty())
        };
        let mut asked = scope.partitions.iter().filter(|replica| !done(replica));
        asked.try_for_each(|replica| self.check_budget(replica))
    }

    /// Makes a partition pay what the answer will state.
    pub(super) fn charge_to(&self, partition: impl FnOnce() -> Arc<Partition>) {
        if self.bill.mode != RequestUnitMode::Off {
            // The first one named pays.
            self.bill.payer.get_or_init(partition);
        }
    }

    /// Answers 429 while a partition has spent more than it may.
    pub(super) fn check_budget(&self, partition: &Partition) -> Result<(), ServiceError> {
        if self.bill.mode != RequestUnitMode::Enforce {
            return Ok(());
        }
        let region = self.bill.region;
        let priority = consistency::priority(self.call.headers);
        let Some(funding) = ThroughputSource::of(self.call.account, self.container) else { return Ok(()) };
        let purse = funding.token_buckets(self.container, partition);
        purse.admit(region, funding.rate, priority, self.bill.at).map_err(|wait| {
            partition.throughput.count_throttled(region);
            let served = Served::by(self.container, partition, partition.head(self.call.vantage).progress());
            served.refusal(throttled(partition, priority, wait))
        })
    }

    /// Takes `units` from a partition that shares the bill with others.
    pub(super) fn pay(&self, partition: &Partition, units: f64) {
        let Bill { mode, region, at, factor, .. } = self.bill;
        let units = units * factor;
        match mode {
            RequestUnitMode::Off => {}
            RequestUnitMode::Account => partition.throughput.count(region, units, at),
            RequestUnitMode::Enforce => {
                partition.throughput.count(region, units, at);
                if let Some(funding) = ThroughputSource::of(self.call.account, self.container) {
                    let units = match self.operation {
                        // Deleted in the background, as far as others can tell: they are not held up.
                        ItemOperation::DeletePartition => charge::NOT_FOUND,
                        _ => units,
                    };
                    let purse = funding.token_buckets(self.container, partition);
                    purse.charge(region, funding.rate, units, at);
                }
            }
        }
    }

    /// Lets the answer state the price of its consistency level, and takes it from whoever pays.
    pub(super) fn settle(&self, answer: Result<Reply, ServiceError>) -> Result<Reply, ServiceError> {
        if let Some(partition) = self.bill.payer.get() {
            let units = match &answer {
                Ok(reply) => reply.charge,
                Err(refusal) => refusal.charge.unwrap_or(charge::NOT_FOUND),
            };
            self.pay(partition, units);
        }
        if self.bill.factor == 1.0 {
            return answer;
        }
        match answer {
            Ok(reply) => {
                let units = reply.charge * self.bill.factor;
                Ok(reply.charge(units))
            }
            Err(refusal) if refusal.status == Status::TOO_MANY_REQUESTS => Err(refusal),
            Err(refusal) => {
                let units = refusal.charge.unwrap_or(charge::NOT_FOUND) * self.bill.factor;
                Err(refusal.with_charge(units))
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
        ..ServiceError::listed(Status::TOO_MANY_REQUESTS, &message)
            .with_sub_status(SubStatus::REQUEST_RATE_TOO_LARGE)
            .with_charge(charge::THROTTLED)
    }
}
