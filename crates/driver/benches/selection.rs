//! What it costs to choose a shard, count a request on it and end it: with 1, 8 and 32 shards, idle and busy.
//!
//! `cargo bench -p perihelion-driver --bench selection` prints nanoseconds per request for
//! the whole of it, and nanoseconds for the pure choice alone. The cost grows with the number of shards: one
//! pass over their counters.
#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a bench reads the clock and prints")]

use perihelion_driver::testing::ShardedTransport;
use perihelion_driver::transport::{AzureCoreAdapter, HttpClientConfig, Transport, TransportFactory};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use azure_core::http::{AsyncRawResponse, HttpClient, Request, Url};
use perihelion_driver::Clock;
use perihelion_driver::ShardingConfig;
use perihelion_driver::testing::InFlight;
use perihelion_driver::testing::{Candidate, SelectionLimits, select};

/// A client that is never asked.
#[derive(Debug)]
struct Silent;

#[derive(Debug)]
struct Silents;

impl TransportFactory for Silents {
    fn create(&self, _: &HttpClientConfig) -> Arc<dyn Transport> {
        Arc::new(AzureCoreAdapter::new(Arc::new(Silent)))
    }
}

impl HttpClient for Silent {
    fn execute_request<'a, 'b, 'c>(
        &'a self,
        _: &'b Request,
    ) -> std::pin::Pin<Box<dyn Future<Output = azure_core::Result<AsyncRawResponse>> + Send + 'c>>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        Box::pin(std::future::pending())
    }
}

fn main() {
    // `cargo test --benches` passes no `--bench`: a moment is enough to see that it runs.
    let measured = std::env::args().any(|argument| argument == "--bench");
    let time = Duration::from_millis(if measured { 500 } else { 5 });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let _inside = runtime.enter();
    println!("{:<28} {:>14} {:>18}", "shards", "choice, ns", "with counting, ns");
    for shards in [1_u32, 8, 32] {
        for busy in [false, true] {
            let choice = choice(shards, busy, time);
            let counted = counted(shards, busy, time);
            let load = if busy { "nearly full" } else { "idle" };
            println!("{:<28} {choice:>14.1} {counted:>18.1}", format!("{shards}, {load}"));
        }
    }
}

/// The selection alone, without counting.
fn choice(shards: u32, busy: bool, time: Duration) -> f64 {
    let limits = SelectionLimits { streams_max: 16, suspect_at_failures: 5, active_per_mille: 500 };
    let load = if busy { 15 } else { 0 };
    let list: Vec<_> = (0..shards).map(|_| Candidate { in_flight: load, consecutive_failures: 0 }).collect();
    per_call(time, || {
        black_box(select(black_box(&list).iter().copied(), list.len(), &limits, None));
    })
}

/// Choosing, counting and ending, as every request does.
fn counted(shards: u32, busy: bool, time: Duration) -> f64 {
    let mut config = ShardingConfig::default();
    config.min_clients_per_endpoint = shards;
    config.max_clients_per_endpoint = shards.max(32);
    config.scale_up_threshold_ratio = 1.0;
    let client = HttpClientConfig::default();
    let transport =
        ShardedTransport::new(Arc::new(Silents), client, config, Clock::machine()).expect("valid");
    let endpoint = transport.new_shards(Url::parse("https://one.example/").expect("a URL"));
    let now = transport.now();
    let held: Vec<InFlight> =
        if busy { (0..shards * 15).map(|_| endpoint.acquire(None, now)).collect() } else { Vec::new() };
    let nanoseconds = per_call(time, || black_box(endpoint.acquire(None, now)).succeeded(now));
    drop(held);
    nanoseconds
}

/// Nanoseconds per call: the best of many short ranges, which a busy machine disturbs least.
fn per_call(time: Duration, mut call: impl FnMut()) -> f64 {
    const CALLS: u32 = 1_000;
    let end = Instant::now() + time;
    let mut best = f64::INFINITY;
    while Instant::now() < end {
        let start = Instant::now();
        (0..CALLS).for_each(|_| call());
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(CALLS));
    }
    best
}
