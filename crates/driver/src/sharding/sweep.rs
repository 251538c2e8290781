//! The background task of sharding: looks after health and numbers, and gets ready what will be needed.
//!
//! It runs every [`health_check_interval`](super::ShardingConfig::health_check_interval), and at once when a
//! request finds the shards nearly full, so that the next connection is being made before anybody needs it.
//! It ends with the transport.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use azure_core::http::Url;
use futures::StreamExt;
use futures::future::{Either, select};
use futures::task::AtomicWaker;

use super::Inner;
use super::clients::SharedClient;
use super::processor;
use super::shards::EndpointShards;
use crate::background::Heartbeat;

/// How many endpoints get new connections at the same time.
const ENDPOINTS_CONNECTING_MAX: usize = 64;

/// How long one look at all endpoints may take before the task counts as lost: a few rounds of connecting.
const LOOK_MAX: Duration = Duration::from_secs(60);

/// Runs until the transport is gone.
pub(super) async fn run(heartbeat: Heartbeat, transport: Weak<Inner>) {
    let Some((clock, interval)) = transport.upgrade().map(|inner| (inner.clock.clone(), inner.interval()))
    else {
        return;
    };
    let mut used_before = None;
    let mut next_look = clock.after(heartbeat.next_round(clock.now(), interval));
    loop {
        let Some(common) = transport.upgrade().map(|inner| Arc::clone(&inner.common)) else { return };
        let asked = std::pin::pin!(common.wake.signalled_once());
        let now = clock.now();
        heartbeat.alive_for(now, next_look.saturating_duration_since(now));
        let look = match select(clock.sleep_until(next_look), asked).await {
            Either::Left(_) => true,
            Either::Right(_) => false,
        };
        let Some(inner) = transport.upgrade() else { return };
        heartbeat.alive_for(clock.now(), LOOK_MAX);
        if look {
            let used = processor::read(inner.now());
            let share =
                used_before.zip(used).and_then(|(then, now)| processor::share(then, now, processor::count()));
            used_before = used;
            inner.sweep(share).await;
            heartbeat.round_done(clock.now(), interval);
            next_look = clock.after(interval);
        } else {
            inner.grow().await;
        }
    }
}

impl Inner {
    fn interval(&self) -> Duration {
        self.common.config.health_check_interval
    }

    /// One look at every endpoint; `processor` is the share of the machine in use, if known.
    pub(super) async fn sweep(&self, processor: Option<f64>) {
        let endpoints = self.endpoints().into_iter();
        // All decisions come first, so that none waits for a connection of another endpoint.
        let plans: Vec<_> = endpoints
            .map(|shards| {
                let plan = shards.sweep(self.now(), processor);
                (shards, plan.add)
            })
            .collect();
        self.add(plans).await;
    }

    /// Adds the shards that the load of the moment calls for.
    pub(super) async fn grow(&self) {
        let endpoints = self.endpoints().into_iter();
        self.add(
            endpoints
                .map(|shards| {
                    let missing = shards.missing();
                    (shards, missing)
                })
                .collect(),
        )
        .await;
    }

    /// Adds shards to several endpoints at a time: one that does not respond takes as long as connecting may.
    async fn add(&self, missing: Vec<(Arc<EndpointShards>, u32)>) {
        let missing = missing.into_iter().filter(|(_, count)| *count > 0);
        futures::stream::iter(missing)
            .for_each_concurrent(ENDPOINTS_CONNECTING_MAX, async |(shards, count)| {
                shards.add(count, self.now(), |client, url| self.connect(client, url)).await;
            })
            .await;
    }

    /// Whether a connection stands, or the client makes its own with the first request.
    async fn connect(&self, client: Arc<SharedClient>, url: Url) -> bool {
        let deadline = self.clock.after(self.common.clients.config().connect_timeout);
        match self.clock.within(Some(deadline), client.transport().connect(&url)).await {
            Some(Ok(())) => true,
            Some(Err(error)) => {
                tracing::debug!(endpoint = url.as_str(), %error, "could not connect ahead");
                false
            }
            None => false,
        }
    }
}

/// Wakes the maintenance task. Signalling again before the task has woken changes nothing.
#[derive(Debug, Default)]
pub(super) struct WakeSignal {
    signalled: AtomicBool,
    waker: AtomicWaker,
}

impl WakeSignal {
    pub(super) fn signal(&self) {
        // Requests ask for as long as the response takes; most find the bell rung and only read.
        if !self.signalled.load(Ordering::Relaxed) && !self.signalled.swap(true, Ordering::AcqRel) {
            self.waker.wake();
        }
    }

    /// Ends with the next signal, or at once if there was one.
    async fn signalled_once(&self) {
        poll_fn(|context| {
            self.waker.register(context.waker());
            if self.signalled.swap(false, Ordering::AcqRel) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}
