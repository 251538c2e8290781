//! The handle of a processor instance that runs.

use std::fmt;
use std::sync::Arc;

use driver::{Error, ErrorKind};

use super::lag::Lag;
use super::status::{LeaseStatus, ProcessorStatus};
use super::worker_context::WorkerContext;
use super::{ChangeFeedProcessor, lease_manager};
use crate::Result;

/// A processor instance that runs. Dropping it cancels its tasks at once; its leases then expire.
#[must_use = "a processor that is dropped stops at once"]
pub struct RunningProcessor {
    processor: ChangeFeedProcessor,
    context: Arc<WorkerContext>,
}

impl RunningProcessor {
    pub(super) fn start(processor: ChangeFeedProcessor, context: Arc<WorkerContext>) -> RunningProcessor {
        context.spawn(lease_manager::acquire_until_stopped(Arc::clone(&context)));
        context.spawn_unawaited(lease_manager::renew_periodically(Arc::clone(&context)));
        RunningProcessor { processor, context }
    }

    /// The unique name of this instance, as leases show it.
    pub fn instance(&self) -> &str {
        &self.context.instance
    }

    /// The processor that this is an instance of.
    pub fn processor(&self) -> &ChangeFeedProcessor {
        &self.processor
    }

    /// The status of this instance: its leases and its counters.
    pub fn status(&self) -> ProcessorStatus {
        let leases = self.context.owned_leases().iter().map(|lease| LeaseStatus::of_owned(lease)).collect();
        ProcessorStatus::new(self.context.instance.clone(), leases, self.context.counters())
    }

    /// An estimate of how many changes this instance and all others have not handled yet.
    pub async fn lag(&self) -> Result<Lag> {
        self.processor.lag().await
    }

    /// Stops the instance: batches that are being handled are finished, their checkpoints are written, and the leases
    /// are released. Batches that are not finished within the [stop timeout](ChangeFeedProcessor::stop_timeout) are
    /// cancelled and will be delivered again.
    pub async fn stop(self) -> Result<()> {
        self.context.request_stop();
        let within = self.context.settings.stop_timeout;
        let deadline = self.context.clock.after(within);
        if self.context.clock.within(Some(deadline), self.context.wait_stopped()).await.is_some() {
            return Ok(());
        }
        let message = format!(
            "handlers were still running {within:?} after the stop of the processor: their batches will be delivered again once the leases have expired"
        );
        Err(Error::new(ErrorKind::DeadlineExceeded, message))
    }
}

impl Drop for RunningProcessor {
    fn drop(&mut self) {
        self.context.abort();
    }
}

impl fmt::Debug for RunningProcessor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningProcessor")
            .field("processor", &self.processor.name)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
