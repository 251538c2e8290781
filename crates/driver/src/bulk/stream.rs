//! The loop that sends: input, requests and timers on one side, `dispatch` and its decisions on the other.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, FuturesUnordered};
use futures::{FutureExt, Stream, StreamExt};
use protocol::headers as names;
use protocol::partition_range::RangeId;

use super::dispatch::{Dispatch, PartitionLayout, Request};
use super::operation::{BulkOperation, write_batch};
use super::options::BulkOptions;
use super::result::{BulkResult, BulkSummary};
use crate::clock::Sleep;
use crate::driver::CosmosDriver;
use crate::error::Result;
use crate::operation::{ContainerName, Operation, OperationKind, Scope, Target};
use crate::options::OperationOptions;

impl CosmosDriver {
    /// Carries out many operations on the items of a container, each by itself. See [`bulk`](crate::bulk).
    ///
    /// An `Err` of the input takes an index like any other and comes out as it is.
    pub fn bulk(
        &self,
        container: &ContainerName,
        operations: impl Stream<Item = Result<BulkOperation>> + Send + 'static,
        options: BulkOptions,
    ) -> BulkStream {
        let service = Service {
            driver: self.clone(),
            container: container.clone(),
            // The congestion window reacts to throttling, so the pipeline must not hide 429 by retrying.
            options: OperationOptions {
                retry: options.operation.retry.clone().with_throttling(0, std::time::Duration::ZERO),
                ..options.operation.clone()
            },
            returns_content: options.returns_content,
            session_token: options.session_token.clone(),
        };
        BulkStream {
            service,
            dispatch: Dispatch::new(options),
            input: Some(operations.boxed()),
            in_flight: FuturesUnordered::new(),
            timer: None,
        }
    }
}

/// The results of a bulk, in the order in which they come. Dropping it cancels what is in progress.
#[must_use = "nothing is sent before it is polled"]
pub struct BulkStream {
    service: Service,
    dispatch: Dispatch,
    /// None once it has ended.
    input: Option<BoxStream<'static, Result<BulkOperation>>>,
    in_flight: FuturesUnordered<BoxFuture<'static, Event>>,
    timer: Option<(Instant, Sleep)>,
}

/// An event that the stream waits for.
enum Event {
    Layout(Result<PartitionLayout>),
    Response(Request, Result<Bytes>),
}

impl BulkStream {
    /// The summary of the work so far.
    pub fn summary(&self) -> BulkSummary {
        self.dispatch.summary(self.service.driver.clock().now())
    }

    /// Does what can be done without waiting; returns whether that was anything.
    fn advance(&mut self, context: &mut Context<'_>) -> bool {
        let (driver, mut moved) = (self.service.driver.clone(), false);
        while let Poll::Ready(Some(arrival)) = self.in_flight.poll_next_unpin(context) {
            let (now, random) = (driver.clock().now(), fastrand::f64());
            match arrival {
                Event::Layout(layout) => self.dispatch.update_layout(layout, now, random),
                Event::Response(request, response) => self.dispatch.complete(request, response, now, random),
            }
            moved = true;
        }
        let now = driver.clock().now();
        while self.dispatch.has_room()
            && let Some(input) = &mut self.input
            && let Poll::Ready(next) = input.poll_next_unpin(context)
        {
            match next {
                Some(operation) => self.dispatch.accept(operation, now),
                None => {
                    self.input = None;
                    self.dispatch.end_input();
                }
            }
            moved = true;
        }
        if let Some(known) = self.dispatch.needs_layout(now) {
            let service = self.service.clone();
            self.in_flight.push(async move { Event::Layout(service.layout(known).await) }.boxed());
            moved = true;
        }
        while let Some(request) = self.dispatch.next_request(now) {
            let service = self.service.clone();
            let body = write_batch(request.operations.iter().map(|pending| &pending.operation));
            let rid = self.dispatch.container_rid().map(str::to_owned);
            let send = async move {
                let response = service.send(request.range, rid, body).await;
                Event::Response(request, response)
            };
            self.in_flight.push(send.boxed());
            moved = true;
        }
        moved
    }

    /// Whether the timer has fired.
    fn poll_timer(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.dispatch.wake_at() else {
            self.timer = None;
            return Poll::Pending;
        };
        if self.timer.as_ref().is_none_or(|(set_to, _)| *set_to != at) {
            self.timer = Some((at, self.service.driver.clock().sleep_until(at)));
        }
        let (_, sleep) = self.timer.as_mut().expect("it was just set");
        futures::ready!(sleep.poll_unpin(context));
        self.timer = None;
        Poll::Ready(())
    }
}

impl Stream for BulkStream {
    type Item = BulkResult;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<BulkResult>> {
        let this = self.get_mut();
        loop {
            if let Some(result) = this.dispatch.next_result() {
                return Poll::Ready(Some(result));
            }
            if this.dispatch.is_done() {
                return Poll::Ready(None);
            }
            if !this.advance(context) {
                futures::ready!(this.poll_timer(context));
            }
        }
    }
}

impl fmt::Debug for BulkStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let container = &self.service.container;
        f.debug_struct("BulkStream").field("container", container).field("summary", &self.summary()).finish()
    }
}

/// The container and options of the requests.
#[derive(Clone)]
struct Service {
    driver: CosmosDriver,
    container: ContainerName,
    options: OperationOptions,
    returns_content: bool,
    session_token: Option<String>,
}

impl Service {
    /// The partitions as they are now; if they are as `known`, they are listed again.
    async fn layout(self, known: Option<PartitionLayout>) -> Result<PartitionLayout> {
        let options = self.driver.call_deadline(&self.options)?.options()?;
        let container = self.driver.container(&self.container, &options).await?;
        let ranges = self.driver.partitions(&container, &options).await?;
        let ranges = match known {
            Some(known) if std::sync::Arc::ptr_eq(&known.ranges, &ranges) => {
                self.driver.refresh_partitions(&container, &ranges, &options).await?
            }
            _ => ranges,
        };
        Ok(PartitionLayout { container, ranges })
    }

    async fn send(self, range: RangeId, rid: Option<String>, body: Bytes) -> Result<Bytes> {
        let mut operation = Operation::new(OperationKind::Batch, Target::items(&self.container))
            .with_scope(Scope::Partition(range))
            .with_body(body)
            .with_header(names::BATCH_ATOMIC, "false")
            .with_header(names::BATCH_CONTINUE_ON_ERROR, "true");
        if !self.returns_content {
            operation = operation.with_header(names::PREFER, names::PREFER_MINIMAL);
        }
        if let Some(token) = self.session_token {
            operation = operation.with_session_token(token);
        }
        if let Some(rid) = rid {
            // A container that was created again under the name has other partitions.
            operation = operation.with_header(names::INTENDED_COLLECTION_RID, rid);
        }
        let response = self.driver.execute_in_task(operation, self.options).await?;
        Ok(response.into_body())
    }
}
