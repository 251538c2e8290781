//! Tasks that end with their owner, and tasks that outlive the runtime they were started on.
//!
//! In: futures that would run for ever. Out: nothing; when the [`Background`] that started them is
//! dropped or stopped they are dropped at their next step, on whatever runtime `azure_core` has. `supervised` has the
//! tasks that are started again when their runtime is gone.

mod supervised;

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};

use azure_core::async_runtime::get_async_runtime;
use futures::future::{AbortHandle, abortable};

pub(crate) use self::supervised::{Heartbeat, SupervisedTask, repeat};

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

/// Identifies the runtime that polls the caller; `None` outside of tokio. Timers and sockets belong to a runtime, and
/// end or stand still with it.
pub(crate) fn current_runtime() -> Option<tokio::runtime::Id> {
    tokio::runtime::Handle::try_current().ok().map(|runtime| runtime.id())
}

fn lock(tasks: &Mutex<Tasks>) -> MutexGuard<'_, Tasks> {
    crate::sync::lock(tasks)
}

#[cfg(test)]
mod tests {
    use futures::channel::oneshot;

    use super::*;

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
}
