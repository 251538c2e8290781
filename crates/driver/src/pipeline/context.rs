//! The pipeline context: what the loop over attempts needs of the driver around it.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use super::location::Location;
use crate::cache::Container;
use crate::clock::Clock;
use crate::error::Result;
use crate::gateway::{GatewayRequest, GatewayResult};
use crate::hedging::HedgingBudget;
use crate::operation::Operation;
use crate::options::OperationSettings;
use crate::routing::{AccountState, Endpoint, PartitionState, StateCell};

/// State, time and metadata that the pipeline uses. The driver implements it; in tests, a script does.
pub(crate) trait PipelineContext: Send + Sync {
    /// The source of time.
    fn clock(&self) -> &Clock;

    /// A random value in `0.0..1.0`, for jitter.
    fn random(&self) -> f64;

    /// The regions of the account.
    fn account(&self) -> &StateCell<AccountState>;

    /// The circuit breakers of the partitions.
    fn partitions(&self) -> &StateCell<PartitionState>;

    /// The limit on concurrent hedged attempts.
    fn hedging_budget(&self) -> &HedgingBudget;

    /// Sends one attempt. Ends at the request's deadline at the latest.
    fn send(
        &self,
        request: GatewayRequest<'_>,
        settings: &OperationSettings,
    ) -> impl Future<Output = GatewayResult> + Send;

    /// Whether an endpoint responds to anything before `until`: asked while an attempt there has had no response.
    fn probe(&self, endpoint: &Endpoint, until: Instant) -> impl Future<Output = bool> + Send;

    /// Finds the container and partition of an operation on data, nearly always in a cache. None for metadata.
    fn locate(
        &self,
        operation: &Operation,
        deadline: Instant,
    ) -> impl Future<Output = Result<Option<Location>>> + Send;

    /// Reads the account's properties again, unless that was done a moment ago.
    fn refresh_account(&self, deadline: Instant) -> impl Future<Output = ()> + Send;

    /// Reads the partition ranges of a container again, unless they are newer than those of `known`.
    fn refresh_partitions(&self, known: &Location, deadline: Instant) -> impl Future<Output = ()> + Send;

    /// Removes a container from the cache, because its name no longer leads to it.
    fn forget_container(&self, known: &Arc<Container>);
}
