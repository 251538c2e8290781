//! Metadata lookup: reads containers and partition ranges that the caches lack; the account has
//! `account_discovery`.
//!
//! Each lookup is one request for all operations that need it (`cache`), and continues for as long as one of them
//! waits, so it does not depend on the deadline of the operation that came first.

use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt;
use futures::future::BoxFuture;
use protocol::headers as names;
use protocol::status::Status;

use super::Inner;
use crate::cache::{
    Container, ContainerDefinition, PartitionRanges, RangeFeed, RangePage, parse_ranges, read_ranges,
};
use crate::error::{Error, ErrorKind, Result};
use crate::operation::{ContainerName, Operation, OperationKind, Precondition, Target};
use crate::response::Response;

impl Inner {
    /// A strong reference to itself.
    pub(super) fn shared(&self) -> Arc<Inner> {
        self.this.upgrade().expect("the caller holds a clone of the driver")
    }

    /// Carries out a metadata operation of the driver's own.
    async fn execute(&self, operation: &Operation) -> Result<Response> {
        self.execute_traced(operation, &self.settings.operation, self.clock.now()).await
    }

    /// Reads a container that is not cached.
    pub(super) async fn look_up_container(
        &self,
        name: &ContainerName,
        deadline: Instant,
    ) -> Result<Arc<Container>> {
        let fetch = || self.shared().fetch_container(name.clone());
        self.within(deadline, self.containers.get(name, fetch)).await
    }

    /// Reads again the container that the name of `known` leads to now.
    pub(super) async fn refreshed_container(
        &self,
        known: &Arc<Container>,
        deadline: Instant,
    ) -> Result<Arc<Container>> {
        let fetch = || self.shared().fetch_container(known.name().clone());
        self.within(deadline, self.containers.refresh(known, fetch)).await
    }

    fn fetch_container(
        self: Arc<Inner>,
        name: ContainerName,
    ) -> BoxFuture<'static, Result<ContainerDefinition>> {
        async move {
            let operation = Operation::new(OperationKind::Read, Target::container(&name));
            let response = self.execute(&operation).await?;
            ContainerDefinition::parse(response.body())
        }
        .boxed()
    }

    /// Reads the partition ranges of a container, which are not cached.
    pub(super) async fn look_up_ranges(
        &self,
        container: &Arc<Container>,
        deadline: Instant,
    ) -> Result<Arc<PartitionRanges>> {
        let read = || self.shared().read_ranges(container.name().clone(), None);
        self.within(deadline, container.ranges().get(read, |ranges| container.adopt_session(ranges))).await
    }

    /// Reads the partition ranges of a container again, unless they are newer than `known` already.
    pub(super) async fn refreshed_ranges(
        &self,
        container: &Arc<Container>,
        known: &Arc<PartitionRanges>,
        deadline: Instant,
    ) -> Result<Arc<PartitionRanges>> {
        let read = || self.shared().read_ranges(container.name().clone(), Some(Arc::clone(known)));
        let adopt = |ranges: &PartitionRanges| container.adopt_session(ranges);
        self.within(deadline, container.ranges().refresh(known, read, adopt)).await
    }

    fn read_ranges(
        self: Arc<Inner>,
        name: ContainerName,
        known: Option<Arc<PartitionRanges>>,
    ) -> BoxFuture<'static, Result<PartitionRanges>> {
        let feed = PartitionRangeFeed { inner: self, name };
        async move { read_ranges(known.as_deref(), &feed).await }.boxed()
    }

    /// The result of `work`, or an error once the deadline has passed.
    async fn within<T>(&self, deadline: Instant, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        match self.clock.within(Some(deadline), work).await {
            Some(result) => result,
            None => Err(Error::new(
                ErrorKind::DeadlineExceeded,
                "the deadline passed while the container was looked up",
            )),
        }
    }
}

/// The `pkranges` feed of one container.
struct PartitionRangeFeed {
    inner: Arc<Inner>,
    name: ContainerName,
}

impl RangeFeed for PartitionRangeFeed {
    async fn page(&self, etag: Option<&str>, continuation: Option<&str>) -> Result<RangePage> {
        let mut operation = Operation::new(OperationKind::ReadFeed, Target::partition_key_ranges(&self.name))
            .with_header(names::A_IM, names::A_IM_INCREMENTAL);
        if let Some(etag) = etag {
            operation = operation.with_precondition(Precondition::IfNoneMatch(etag.to_owned()));
        }
        if let Some(continuation) = continuation {
            operation = operation.with_header(names::CONTINUATION, continuation.to_owned());
        }
        let response = self.inner.execute(&operation).await?;
        if response.status() == Status::NOT_MODIFIED {
            return Ok(RangePage::NotModified);
        }
        Ok(RangePage::Ranges {
            ranges: parse_ranges(response.body())?,
            etag: response.etag().map(str::to_owned),
            continuation: response.continuation().map(str::to_owned),
        })
    }
}
