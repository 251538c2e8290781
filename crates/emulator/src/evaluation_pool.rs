//! Where requests run whose evaluation is not quick: a bounded number of threads that serve no connection.
//!
//! A request starts on the thread that serves its connection, with a limit of about a millisecond of
//! evaluation. When it reaches the limit it starts again here, first among evaluations of medium length, then
//! among long ones, so that a scan does not wait for queries that take a thousand times as long. The rest of
//! the machine is left to the connections, however many long queries there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::request::EvaluationClass;

/// Requests that may wait for a thread of one class. Each holds its body.
const WAITING_MAX: usize = 256;

/// The threads for evaluations that are not quick, shared by all regions of an account.
#[derive(Debug)]
pub(crate) struct EvaluationPool {
    medium: ClassQueue,
    long: ClassQueue,
}

/// The requests of one class: those that run, and those that wait.
#[derive(Debug)]
struct ClassQueue {
    threads: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Default for EvaluationPool {
    fn default() -> EvaluationPool {
        EvaluationPool::with_cores(std::thread::available_parallelism().map_or(1, usize::from))
    }
}

impl EvaluationPool {
    /// The pool of a machine with this many cores. One of several stays free for connections.
    fn with_cores(cores: usize) -> EvaluationPool {
        EvaluationPool { medium: ClassQueue::new(cores.saturating_sub(1)), long: ClassQueue::new(cores / 2) }
    }

    /// Waits for a thread that evaluates requests of this class. `None` if too many requests wait already.
    pub(crate) async fn acquire(&self, class: EvaluationClass) -> Option<OwnedSemaphorePermit> {
        self.queue(class).acquire().await
    }

    fn queue(&self, class: EvaluationClass) -> &ClassQueue {
        match class {
            EvaluationClass::Quick | EvaluationClass::Medium => &self.medium,
            EvaluationClass::Long => &self.long,
        }
    }
}

impl ClassQueue {
    fn new(threads: usize) -> ClassQueue {
        ClassQueue { threads: Arc::new(Semaphore::new(threads.max(1))), waiting: AtomicUsize::new(0) }
    }

    /// Waits for a thread, first come, first served.
    async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        // Relaxed: the count only bounds the queue, and publishes nothing.
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let _waiting = Waiting(&self.waiting);
        Arc::clone(&self.threads).acquire_owned().await.ok()
    }
}

/// Counts a request as waiting until it is dropped, also when its client disconnects.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_bounded_number_of_requests_runs_and_waits() {
        let queue = Arc::new(ClassQueue::new(1));
        let running = queue.acquire().await.unwrap();
        let waiting: Vec<_> = (0..WAITING_MAX)
            .map(|_| {
                let queue = Arc::clone(&queue);
                tokio::spawn(async move { queue.acquire().await.is_some() })
            })
            .collect();
        while queue.waiting.load(Ordering::Relaxed) < WAITING_MAX {
            tokio::task::yield_now().await;
        }
        assert!(queue.acquire().await.is_none());
        // A client that disconnects makes room, and the others get their turn.
        waiting[0].abort();
        drop(running);
        let mut served = 0;
        for waiting in waiting {
            served += usize::from(waiting.await.unwrap_or(false));
        }
        assert!(served >= WAITING_MAX - 1);
        assert_eq!(queue.waiting.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_core_stays_free_for_connections_where_there_are_several() {
        for (cores, medium, long) in [(1, 1, 1), (2, 1, 1), (4, 3, 2), (16, 15, 8)] {
            let pool = EvaluationPool::with_cores(cores);
            assert_eq!(pool.queue(EvaluationClass::Medium).threads.available_permits(), medium);
            assert_eq!(pool.queue(EvaluationClass::Long).threads.available_permits(), long);
        }
    }
}
