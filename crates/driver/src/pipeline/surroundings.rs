//! What the loop needs of the driver around it: state, time, chance, and three ways to ask.

use crate::gateway::{GatewayRequest, GatewayResult};
use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use super::location::Location;
use crate::cache::Container;
use crate::clock::Clock;
use crate::error::Result;
use crate::hedging::budget::Budget;
use crate::operation::Operation;
use crate::options::OperationSettings;
use crate::routing::{AccountState, PartitionState, StateCell};

/// The driver, as the loop sees it; in tests, a script.
pub(crate) trait Surroundings: Send + Sync {
    /// Time.
    fn clock(&self) -> &Clock;

    /// Chance: a value in `0.0..1.0`.
    fn draw(&self) -> f64;

    /// Where the account is.
    fn account(&self) -> &StateCell<AccountState>;

    /// Which partitions are in trouble where.
    fn partitions(&self) -> &StateCell<PartitionState>;

    /// How many races are open.
    fn hedges(&self) -> &Budget;

    /// Sends one attempt. Never later than the request's deadline.
    fn send(
        &self,
        request: GatewayRequest<'_>,
        settings: &OperationSettings,
    ) -> impl Future<Output = GatewayResult> + Send;

    /// Finds the container and partition of an operation on data: from memory nearly always. None for
    /// metadata.
    fn locate(
        &self,
        operation: &Operation,
        deadline: Instant,
    ) -> impl Future<Output = Result<Option<Location>>> + Send;

    /// Asks the account again, unless that was done a moment ago.
    fn refresh_account(&self, deadline: Instant) -> impl Future<Output = ()> + Send;

    /// Lists the ranges of a container again, unless somebody has since `known` was found.
    fn refresh_partitions(&self, known: &Location, deadline: Instant) -> impl Future<Output = ()> + Send;

    /// Forgets a container that its name no longer leads to.
    fn forget_container(&self, known: &Arc<Container>);
}
