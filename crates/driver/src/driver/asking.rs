//! The driver's own questions about containers and partition ranges; the account has `meeting`.
//!
//! Each is asked by one operation for all that need the answer (`cache`), and goes on for as long as one of
//! them waits, so none of them hangs on the deadline of whoever happened to come first.

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
use crate::error::Result;
use crate::operation::{ContainerName, Operation, OperationKind, Precondition, Target};
use crate::pipeline;
use crate::response::Response;

impl Inner {
    /// Itself. Whoever calls holds a driver, so it is there.
    pub(super) fn shared(&self) -> Arc<Inner> {
        self.this.upgrade().expect("whoever calls holds the driver")
    }

    /// Carries out an operation of the driver's own.
    async fn ask(&self, operation: &Operation) -> Result<Response> {
        pipeline::execute(self, operation, &self.settings.operation, self.clock.now()).await
    }

    /// The container a name leads to.
    pub(super) async fn container(&self, name: &ContainerName, deadline: Instant) -> Result<Arc<Container>> {
        if let Some(container) = self.containers.peek(name) {
            return Ok(container);
        }
        let fetch = || Arc::clone(&self.shared()).fetch_container(name.clone());
        self.within(deadline, self.containers.get(name, fetch)).await
    }

    fn fetch_container(
        self: Arc<Inner>,
        name: ContainerName,
    ) -> BoxFuture<'static, Result<ContainerDefinition>> {
        async move {
            let operation = Operation::new(OperationKind::Read, Target::container(&name));
            let response = self.ask(&operation).await?;
            ContainerDefinition::parse(response.body())
        }
        .boxed()
    }

    /// The container that the name of `known` leads to now.
    pub(super) async fn refreshed_container(
        &self,
        known: &Arc<Container>,
        deadline: Instant,
    ) -> Result<Arc<Container>> {
        let fetch = || Arc::clone(&self.shared()).fetch_container(known.name().clone());
        self.within(deadline, self.containers.refresh(known, fetch)).await
    }

    /// Forgets a container that its name no longer leads to.
    pub(super) fn forget(&self, known: &Arc<Container>) {
        self.containers.forget(known);
    }

    /// The physical partitions of a container.
    pub(super) async fn ranges(
        &self,
        container: &Arc<Container>,
        deadline: Instant,
    ) -> Result<Arc<PartitionRanges>> {
        if let Some(ranges) = container.ranges().peek() {
            return Ok(ranges);
        }
        let read = || self.shared().read_ranges(container.name().clone(), None);
        self.within(deadline, container.ranges().get(read)).await
    }

    /// The physical partitions of a container, newer than `known`.
    pub(super) async fn refreshed_ranges(
        &self,
        container: &Arc<Container>,
        known: &Arc<PartitionRanges>,
        deadline: Instant,
    ) -> Result<Arc<PartitionRanges>> {
        let read = || self.shared().read_ranges(container.name().clone(), Some(Arc::clone(known)));
        let ranges = self.within(deadline, container.ranges().refresh(known, read)).await?;
        if !Arc::ptr_eq(&ranges, known) {
            let live = ranges.map().partitions().iter();
            container.session().adopt(live.map(|partition| (partition.id, &*partition.parents)));
        }
        Ok(ranges)
    }

    fn read_ranges(
        self: Arc<Inner>,
        name: ContainerName,
        known: Option<Arc<PartitionRanges>>,
    ) -> BoxFuture<'static, Result<PartitionRanges>> {
        let feed = Ranges { inner: self, name };
        async move { read_ranges(known.as_deref(), &feed).await }.boxed()
    }
}

/// The `pkranges` feed of one container.
struct Ranges {
    inner: Arc<Inner>,
    name: ContainerName,
}

impl RangeFeed for Ranges {
    async fn page(&self, etag: Option<&str>, continuation: Option<&str>) -> Result<RangePage> {
        let mut operation = Operation::new(OperationKind::ReadFeed, Target::partition_key_ranges(&self.name))
            .with_header(names::A_IM, names::A_IM_INCREMENTAL);
        if let Some(etag) = etag {
            operation = operation.with_precondition(Precondition::IfNoneMatch(etag.to_owned()));
        }
        if let Some(continuation) = continuation {
            operation = operation.with_header(names::CONTINUATION, continuation.to_owned());
        }
        let response = self.inner.ask(&operation).await?;
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
