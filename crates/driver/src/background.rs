//! Tasks that end with their owner.
//!
//! In: futures that would run for ever. Out: nothing; when the [`Background`] that started them is
//! dropped or stopped they are dropped at their next step, on whatever runtime `azure_core` has.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use azure_core::async_runtime::get_async_runtime;
use futures::future::{AbortHandle, abortable};

use crate::clock::Clock;

/// Owns tasks. Dropping it ends them.
#[derive(Debug, Default)]
pub struct Background(Arc<Mutex<Tasks>>);

#[derive(Debug, Default)]
struct Tasks {
    stopped: bool,
    next_id: u64,
    running: HashMap<u64, AbortHandle>,
}

impl Background {
    /// Creates a set without tasks.
    pub fn new() -> Background {
        Background::default()
    }

    /// Starts a task. After [`Background::stop`] it is dropped without a step; says whether it was started.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> bool {
        let (task, handle) = abortable(task);
        let running = {
            let mut tasks = lock(&self.0);
            if tasks.stopped {
                return false;
            }
            let id = tasks.next_id;
            tasks.next_id += 1;
            tasks.running.insert(id, handle);
            Running { tasks: Arc::clone(&self.0), id }
        };
        // The handle of the runtime is not kept: dropping it lets the task run on, and ending it is
        // the business of the abort handle, which works alike on every runtime.
        drop(get_async_runtime().spawn(Box::pin(async move {
            let _running = running;
            // The only error is that the task was aborted, which `stop` does on purpose.
            let _aborted_or_done = task.await;
        })));
        true
    }

    /// Does `work` for `owner` every `period`, the first time after one. Ends when the owner is gone.
    pub fn repeat<T, W, F>(&self, clock: &Clock, period: Duration, owner: Weak<T>, work: W) -> bool
    where
        T: Send + Sync + 'static,
        W: Fn(Arc<T>) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let clock = clock.clone();
        self.spawn(async move {
            loop {
                clock.sleep(period).await;
                let Some(owner) = owner.upgrade() else { return };
                work(owner).await;
            }
        })
    }

    /// Ends all tasks, now and to come.
    pub fn stop(&self) {
        let mut tasks = lock(&self.0);
        tasks.stopped = true;
        let running = std::mem::take(&mut tasks.running);
        // What a task drops when it ends may well take this lock.
        drop(tasks);
        running.values().for_each(AbortHandle::abort);
    }

    /// How many tasks have not ended.
    pub fn running(&self) -> usize {
        lock(&self.0).running.len()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A task's place in the list; given back however the task ends.
struct Running {
    tasks: Arc<Mutex<Tasks>>,
    id: u64,
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.tasks).running.remove(&self.id);
    }
}

fn lock(tasks: &Mutex<Tasks>) -> MutexGuard<'_, Tasks> {
    crate::sync::lock(tasks)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::channel::oneshot;

    use super::*;
    use crate::clock::ManualTime;

    /// A task that waits for ever and tells when it is dropped.
    fn waiting() -> (impl Future<Output = ()> + Send + 'static, oneshot::Receiver<()>) {
        let (sender, ended) = oneshot::channel::<()>();
        let task = async move {
            let _sender = sender;
            futures::future::pending::<()>().await;
        };
        (task, ended)
    }

    #[tokio::test]
    async fn tasks_end_when_their_owner_is_dropped() {
        let background = Background::new();
        let (task, ended) = waiting();
        assert!(background.spawn(task));
        assert_eq!(background.running(), 1);
        drop(background);
        assert!(ended.await.is_err(), "the sender was dropped, unused");
    }

    #[tokio::test]
    async fn nothing_starts_after_the_end() {
        let background = Background::new();
        let (first, first_ended) = waiting();
        assert!(background.spawn(first));
        background.stop();
        let (second, second_ended) = waiting();
        assert!(!background.spawn(second));
        assert!(first_ended.await.is_err() && second_ended.await.is_err());
        assert_eq!(background.running(), 0);
    }

    #[tokio::test]
    async fn a_task_that_finished_is_not_kept() {
        let background = Background::new();
        let (done, finished) = oneshot::channel();
        assert!(background.spawn(async move {
            let _ = done.send(());
        }));
        finished.await.expect("the task ran");
        while background.running() > 0 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn repeated_work_keeps_its_period_and_ends_with_its_owner() {
        let time = ManualTime::new();
        let background = Background::new();
        let owner = Arc::new(AtomicU32::new(0));
        let second = Duration::from_secs(1);
        background.repeat(&time.clock(), second, Arc::downgrade(&owner), |count| async move {
            count.fetch_add(1, Ordering::Relaxed);
        });
        for expected in 0..3 {
            while time.sleepers() == 0 {
                tokio::task::yield_now().await;
            }
            assert_eq!(owner.load(Ordering::Relaxed), expected);
            time.advance(second);
            while owner.load(Ordering::Relaxed) == expected {
                tokio::task::yield_now().await;
            }
        }
        drop(owner);
        while background.running() > 0 {
            time.advance(second);
            tokio::task::yield_now().await;
        }
    }
}
