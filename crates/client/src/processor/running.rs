//! An instance that runs.

use std::fmt;
use std::sync::Arc;

use driver::{Error, ErrorKind};

use super::crew::Crew;
use super::lag::Lag;
use super::status::{LeaseStatus, ProcessorStatus};
use super::{ChangeFeedProcessor, sharing};
use crate::Result;

/// An instance of a processor that runs. Dropping it ends its tasks at once, and its leases run out.
#[must_use = "a processor that is dropped ends at once"]
pub struct RunningProcessor {
    processor: ChangeFeedProcessor,
    crew: Arc<Crew>,
}

impl RunningProcessor {
    pub(super) fn start(processor: ChangeFeedProcessor, crew: Arc<Crew>) -> RunningProcessor {
        crew.spawn(sharing::share(Arc::clone(&crew)));
        crew.spawn_beside(sharing::renew(Arc::clone(&crew)));
        RunningProcessor { processor, crew }
    }

    /// What this instance is called in leases.
    pub fn instance(&self) -> &str {
        &self.crew.instance
    }

    /// The processor this is an instance of.
    pub fn processor(&self) -> &ChangeFeedProcessor {
        &self.processor
    }

    /// How this instance is doing: its leases, and what it has done with them.
    pub fn status(&self) -> ProcessorStatus {
        let leases = self.crew.held().iter().map(|held| LeaseStatus::of_held(held)).collect();
        ProcessorStatus::new(self.crew.instance.clone(), leases, self.crew.counts())
    }

    /// How many changes are yet to be handled, about, by this instance and all others.
    pub async fn lag(&self) -> Result<Lag> {
        self.processor.lag().await
    }

    /// Stops: batches in the hands of the handler are finished, their place is kept, and leases are free for
    /// others at once. What is not finished in time is dropped and will be handed out again.
    pub async fn stop(self) -> Result<()> {
        self.crew.begin_to_stop();
        let within = self.crew.settings.stop_timeout;
        let deadline = self.crew.clock.now() + within;
        if self.crew.clock.within(Some(deadline), self.crew.has_ended()).await.is_some() {
            return Ok(());
        }
        let message = format!(
            "handlers were still at work {within:?} after the processor was told to stop: their batches will be handed out again once the leases have run out"
        );
        Err(Error::new(ErrorKind::DeadlineExceeded, message))
    }
}

impl Drop for RunningProcessor {
    fn drop(&mut self) {
        self.crew.abort();
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
