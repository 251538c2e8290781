//! The throughput of checkout and checkin, uncontended and under contention.
//!
//! `cargo bench -p perihelion-http --bench checkout` prints, for each case, pairs of checkout and checkin per second of
//! processor time, the ratio to the uncontended case, and pairs per second of elapsed time. The last is lower on a
//! machine that runs other processes as well, and where threads wait for each other. With `-- --enforce` it fails below
//! five million pairs per second of processor time in the uncontended case, or below a quarter of that rate with 64
//! tasks.
//!
//! Processor time comes from `/proc`; without it, elapsed time is used.
#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a bench reads the clock and prints")]

use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

use perihelion_http::origin::{Origin, Scheme};
use perihelion_http::pool::{ConnectionPool, HostPool, PoolConfig, Poolable};

/// Pairs between two reads of the clock, or two yields to the scheduler.
const BATCH: u64 = 64;
const TASKS: usize = 64;
const PAIRS_PER_SECOND_MIN: f64 = 5e6;
const CONTENDED_RATIO_MIN: f64 = 0.25;

/// About as large as a connection of the client.
struct Connection([u64; 8]);

impl Poolable for Connection {
    fn is_open(&self) -> bool {
        self.0[0] == 0
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    // `cargo test --benches` passes no `--bench`: a short run is enough to see that it works.
    let measured = arguments.iter().any(|argument| argument == "--bench");
    let time = Duration::from_millis(if measured { 1_000 } else { 5 });
    let rounds = if measured { 5 } else { 1 };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);

    // Interleaved, so that a slower machine affects all cases equally.
    let mut rates: [Vec<Rate>; 4] = Default::default();
    for _ in 0..rounds {
        rates[0].push(measure(|| uncontended(time)));
        rates[1].push(measure(|| by_origin(time)));
        rates[2].push(measure(|| contended_tasks(time, cores)));
        rates[3].push(measure(|| contended_threads(time)));
    }
    let rates = rates.map(median);
    let uncontended_rate = rates[0].per_core_second;
    println!("{:<44} {:>16} {:>8} {:>16}", "case", "pairs/core-s", "ratio", "pairs/s");
    let names = [
        "one thread, host pool kept".to_owned(),
        "one thread, host looked up each time".to_owned(),
        format!("{TASKS} tasks on {cores} workers, one host"),
        format!("{TASKS} threads on {cores} cores, one host"),
    ];
    for (name, Rate { per_core_second, per_second }) in names.iter().zip(rates) {
        let ratio = per_core_second / uncontended_rate;
        println!("{name:<44} {per_core_second:>16.0} {ratio:>8.2} {per_second:>16.0}");
    }

    if arguments.iter().any(|argument| argument == "--enforce") {
        let ratio = rates[2].per_core_second / uncontended_rate;
        assert!(
            uncontended_rate >= PAIRS_PER_SECOND_MIN,
            "{uncontended_rate:.0} pairs/s are fewer than {PAIRS_PER_SECOND_MIN}"
        );
        assert!(ratio >= CONTENDED_RATIO_MIN, "contention costs more than a factor of four");
    }
}

#[derive(Clone, Copy)]
struct Rate {
    per_core_second: f64,
    per_second: f64,
}

fn measure(run: impl FnOnce() -> u64) -> Rate {
    let (processor, start) = (processor_time(), Instant::now());
    let pairs = run() as f64;
    let elapsed = start.elapsed();
    let processor = match (processor, processor_time()) {
        (Some(before), Some(after)) if after > before => after - before,
        _ => elapsed,
    };
    Rate { per_core_second: pairs / processor.as_secs_f64(), per_second: pairs / elapsed.as_secs_f64() }
}

/// The processor time of this process, user and system, including threads that have ended, in ticks of 10 ms.
fn processor_time() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 10))
}

fn median(mut rates: Vec<Rate>) -> Rate {
    rates.sort_by(|one, other| one.per_core_second.total_cmp(&other.per_core_second));
    rates[rates.len() / 2]
}

fn host() -> (ConnectionPool<Connection>, HostPool<Connection>) {
    let pool = ConnectionPool::new(PoolConfig::default());
    let host = pool.host(&origin());
    let now = Instant::now();
    for _ in 0..5 {
        host.checkin(Connection([0; 8]), now);
    }
    (pool, host)
}

fn origin() -> Origin {
    Origin::new(Scheme::Https, "account-westus.documents.azure.com", 443)
}

/// One checkout and checkin. With many at once some find the pool empty and open a connection.
fn pair(host: &HostPool<Connection>, now: Instant) {
    let lease = host.checkout(now).unwrap_or_else(|| host.lease(Connection([0; 8]), now));
    black_box(&lease).host();
    lease.checkin(now);
}

fn uncontended(time: Duration) -> u64 {
    let (_pool, host) = host();
    let start = Instant::now();
    let mut pairs = 0;
    while start.elapsed() < time {
        let now = Instant::now();
        (0..BATCH).for_each(|_| pair(&host, now));
        pairs += BATCH;
    }
    pairs
}

fn by_origin(time: Duration) -> u64 {
    let (pool, _host) = host();
    let origin = origin();
    let start = Instant::now();
    let mut pairs = 0;
    while start.elapsed() < time {
        let now = Instant::now();
        (0..BATCH).for_each(|_| pair(&pool.host(black_box(&origin)), now));
        pairs += BATCH;
    }
    pairs
}

fn contended_tasks(time: Duration, cores: usize) -> u64 {
    let (_pool, host) = host();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(cores).build();
    let runtime = runtime.expect("a runtime needs only threads");
    let start = Instant::now();
    runtime.block_on(async {
        let mut tasks = Vec::new();
        for _ in 0..TASKS {
            let host = host.clone();
            tasks.push(tokio::spawn(async move {
                let mut pairs = 0_u64;
                while start.elapsed() < time {
                    let now = Instant::now();
                    (0..BATCH).for_each(|_| pair(&host, now));
                    pairs += BATCH;
                    tokio::task::yield_now().await;
                }
                pairs
            }));
        }
        let mut all = 0;
        for task in tasks {
            all += task.await.expect("no task panics");
        }
        all
    })
}

fn contended_threads(time: Duration) -> u64 {
    let (_pool, host) = host();
    let start = Instant::now();
    let work = || {
        let mut pairs = 0;
        while start.elapsed() < time {
            let now = Instant::now();
            (0..BATCH).for_each(|_| pair(&host, now));
            pairs += BATCH;
        }
        pairs
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..TASKS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).sum()
    })
}
