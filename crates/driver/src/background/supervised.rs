//! A task that follows the runtimes of its users.
//!
//! A driver outlives runtimes: a `static` client and two `#[tokio::test]`s are enough. Its background tasks run on
//! the runtime of the call that started them, and are dropped with it, or stand still while nobody drives it. The
//! next call then starts the task again, on its own runtime ([`SupervisedTask::ensure_running`]).

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use futures::FutureExt;

use super::Background;
use crate::clock::Clock;

/// How late a task may be before it is started again.
const GRACE: Duration = Duration::from_secs(5);

/// How long one round of repeated work may take. A round that takes longer hangs, and is dropped by the next call.
const ROUND_MAX: Duration = Duration::from_secs(60);

/// A task that is started by the first call, and again by the next one after it ended, panicked or stood still.
#[derive(Debug)]
pub(crate) struct SupervisedTask {
    shared: Arc<Shared>,
    /// The task itself. Dropping it ends the task.
    task: Mutex<Option<Background>>,
}

#[derive(Debug)]
struct Shared {
    began: Instant,
    /// When the task counts as lost, in milliseconds since `began`; 0 while there is none.
    lost_at: AtomicU64,
    /// When the next round of work is due, in milliseconds since `began`; 0 before the first. It is kept from one task
    /// to the next, so that a task that is started again and again still does its work on time.
    due_at: AtomicU64,
    /// The number of the current task: an earlier one that is dropped late changes nothing.
    generation: AtomicU64,
}

impl SupervisedTask {
    /// A task that has not been started.
    pub(crate) fn new(began: Instant) -> SupervisedTask {
        let shared = Shared {
            began,
            lost_at: AtomicU64::new(0),
            due_at: AtomicU64::new(0),
            generation: AtomicU64::new(0),
        };
        SupervisedTask { shared: Arc::new(shared), task: Mutex::new(None) }
    }

    /// Starts the task on the caller's runtime, unless it runs. `now` is the time of the call.
    ///
    /// Cost while it runs: one relaxed load.
    pub(crate) fn ensure_running<F>(&self, now: Instant, start: impl FnOnce(Heartbeat) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        // Relaxed: a call that reads an old value starts nothing, because `start` looks again under the lock.
        if self.shared.at(now) >= self.shared.lost_at.load(Ordering::Relaxed) {
            self.start(now, start);
        }
    }

    #[cold]
    fn start<F>(&self, now: Instant, start: impl FnOnce(Heartbeat) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut task = crate::sync::lock(&self.task);
        let shared = &self.shared;
        if shared.at(now) < shared.lost_at.load(Ordering::Acquire) {
            return;
        }
        let generation = shared.generation.fetch_add(1, Ordering::AcqRel) + 1;
        shared.alive_for(now, Duration::ZERO);
        let background = Background::new();
        background.spawn(start(Heartbeat { shared: Arc::clone(shared), generation }));
        // Drops the task before it, if that stands still: it ends when its runtime goes on.
        *task = Some(background);
    }
}

impl Shared {
    fn at(&self, time: Instant) -> u64 {
        millis(time.saturating_duration_since(self.began))
    }

    fn alive_for(&self, now: Instant, time: Duration) {
        let lost_at = self.at(now).saturating_add(millis(time)).saturating_add(millis(GRACE));
        self.lost_at.store(lost_at, Ordering::Release);
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Shows that a supervised task is alive. When it is dropped with the task, the next call starts the task again.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    shared: Arc<Shared>,
    generation: u64,
}

impl Heartbeat {
    /// The task shows itself again within `time`.
    pub(crate) fn alive_for(&self, now: Instant, time: Duration) {
        if self.is_current() {
            self.shared.alive_for(now, time);
        }
    }

    /// How long to wait before the next round of work: what is left of the `period` that began before the task was
    /// started again, or a whole one.
    pub(crate) fn next_round(&self, now: Instant, period: Duration) -> Duration {
        let (at, due_at) = (self.shared.at(now), self.shared.due_at.load(Ordering::Acquire));
        if due_at == 0 {
            self.round_done(now, period);
            return period;
        }
        Duration::from_millis(due_at.saturating_sub(at)).min(period)
    }

    /// A round of work is done: the next one is due after `period`.
    pub(crate) fn round_done(&self, now: Instant, period: Duration) {
        if self.is_current() {
            let due_at = self.shared.at(now).saturating_add(millis(period)).max(1);
            self.shared.due_at.store(due_at, Ordering::Release);
        }
    }

    fn is_current(&self) -> bool {
        self.shared.generation.load(Ordering::Acquire) == self.generation
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!("background work panicked; the next operation starts it again");
        }
        if self.is_current() {
            self.shared.lost_at.store(0, Ordering::Release);
        }
    }
}

/// Does `work` for `owner` every `period`, the first time after one. Ends when the owner is gone. A round that panics
/// is logged, and the next one follows.
pub(crate) async fn repeat<T, W, F>(
    heartbeat: Heartbeat,
    clock: Clock,
    period: Duration,
    owner: Weak<T>,
    work: W,
) where
    T: Send + Sync + 'static,
    W: Fn(Arc<T>) -> F + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let mut wait = heartbeat.next_round(clock.now(), period);
    loop {
        heartbeat.alive_for(clock.now(), wait);
        clock.sleep(wait).await;
        let Some(owner) = owner.upgrade() else { return };
        heartbeat.alive_for(clock.now(), ROUND_MAX);
        let round = AssertUnwindSafe(async { work(owner).await });
        if round.catch_unwind().await.is_err() {
            tracing::error!("a round of background work panicked; the next one follows in {period:?}");
        }
        heartbeat.round_done(clock.now(), period);
        wait = period;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;
    use crate::clock::ManualTime;

    const SECOND: Duration = Duration::from_secs(1);

    /// Counts rounds of a task that runs every second.
    struct Fixture {
        time: ManualTime,
        task: SupervisedTask,
        rounds: Arc<AtomicU32>,
    }

    impl Fixture {
        fn new() -> Fixture {
            let time = ManualTime::new();
            let task = SupervisedTask::new(time.clock().now());
            Fixture { time, task, rounds: Arc::new(AtomicU32::new(0)) }
        }

        /// What every operation does.
        fn ensure_running(&self) {
            let (clock, owner) = (self.time.clock(), Arc::downgrade(&self.rounds));
            self.task.ensure_running(clock.now(), |heartbeat| {
                repeat(heartbeat, clock.clone(), SECOND, owner, |rounds| async move {
                    if rounds.fetch_add(1, Ordering::Relaxed) == 1 {
                        panic!("the second round of every test panics");
                    }
                })
            });
        }

        fn rounds(&self) -> u32 {
            self.rounds.load(Ordering::Relaxed)
        }

        async fn until_asleep(&self) {
            while self.time.sleepers() == 0 {
                tokio::task::yield_now().await;
            }
        }

        /// One period, and the round at its end.
        async fn next_round(&self) {
            let before = self.rounds();
            self.until_asleep().await;
            self.time.advance(SECOND);
            while self.rounds() == before {
                tokio::task::yield_now().await;
            }
            self.until_asleep().await;
        }
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime")
    }

    #[test]
    fn rounds_keep_their_period_and_go_on_after_a_panic_until_the_owner_is_gone() {
        let fixture = Fixture::new();
        runtime().block_on(async {
            fixture.ensure_running();
            for expected in 1..5 {
                fixture.next_round().await;
                assert_eq!(fixture.rounds(), expected);
            }
            let Fixture { time, task, rounds } = fixture;
            drop(rounds);
            while task.shared.lost_at.load(Ordering::Relaxed) != 0 {
                time.advance(SECOND);
                tokio::task::yield_now().await;
            }
        });
    }

    #[test]
    fn a_task_whose_runtime_is_gone_is_started_again_by_the_next_call() {
        let fixture = Fixture::new();
        for round in 0..3 {
            let runtime = runtime();
            runtime.block_on(async {
                fixture.ensure_running();
                fixture.ensure_running();
                fixture.next_round().await;
            });
            assert_eq!(fixture.rounds(), round + 1);
            drop(runtime);
            assert_eq!(fixture.time.sleepers(), 0, "the task went with its runtime");
        }
    }

    #[test]
    fn a_task_whose_runtime_stands_still_is_taken_over() {
        let fixture = Fixture::new();
        let (first, second) = (runtime(), runtime());
        first.block_on(async {
            fixture.ensure_running();
            fixture.until_asleep().await;
        });
        // The first runtime is there, and nobody drives it.
        fixture.time.advance(SECOND + GRACE);
        second.block_on(async {
            fixture.ensure_running();
            // The round was due long ago, so it is not waited for again.
            while fixture.rounds() == 0 {
                tokio::task::yield_now().await;
            }
            fixture.next_round().await;
        });
        let before = fixture.rounds();
        first.block_on(async {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        });
        assert_eq!(fixture.rounds(), before, "the first task ended when its runtime went on");
        assert_ne!(fixture.task.shared.lost_at.load(Ordering::Relaxed), 0, "and the second is still known");
    }

    #[test]
    fn a_task_that_is_started_again_and_again_still_does_its_work_on_time() {
        let fixture = Fixture::new();
        for _ in 0..8 {
            runtime().block_on(async {
                fixture.ensure_running();
                fixture.until_asleep().await;
                fixture.time.advance(SECOND / 4);
                tokio::task::yield_now().await;
                tokio::task::yield_now().await;
            });
        }
        assert!(fixture.rounds() >= 1, "two periods passed");
    }
}
