//! The provider of durable orchestrations beside the published ones: against one `peri up`, in one run.
//!
//! ```text
//! durable-bench [--quick] [--only perihelion,cdb,sqlite,pg] [--parts throughput,latency,cost,depth]
//! ```

mod cost;
mod load;
mod report;
mod subject;
mod timed;

use std::path::PathBuf;
use std::process::ExitCode;

use driver_bench::peri::{Peri, Program};

use crate::report::Report;
use crate::subject::Kind;

/// What to measure.
struct Options {
    quick: bool,
    only: Vec<Kind>,
    parts: Vec<String>,
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::FAILURE;
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    match runtime.block_on(run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        quick: false,
        only: Kind::ALL.to_vec(),
        parts: ["throughput", "latency", "cost", "depth"].map(str::to_owned).to_vec(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--quick" => options.quick = true,
            "--only" => {
                options.only = value()?.split(',').map(Kind::parse).collect::<Result<_, _>>()?;
            }
            "--parts" => options.parts = value()?.split(',').map(str::to_owned).collect(),
            _ => return Err(format!("{argument} is not known; see bench/README.md")),
        }
    }
    Ok(options)
}

async fn run(options: &Options) -> Result<(), String> {
    let path = PathBuf::from(std::env::var("PERI").unwrap_or("../target/release/peri".to_owned()));
    let peri = Peri::start(&Program { path, apart: false }, "1")?;
    let mut report = Report::default();
    for part in &options.parts {
        match part.as_str() {
            "throughput" => throughput(options, &peri, &mut report).await?,
            "latency" => latency(options, &peri, &mut report).await?,
            "cost" => cost(options, &peri, &mut report).await?,
            "depth" => depth(options, &peri, &mut report).await?,
            other => return Err(format!("there is no part {other}")),
        }
    }
    report.print();
    Ok(())
}

/// Orchestrations per second, with activities that return at once and with activities of 10 ms.
async fn throughput(options: &Options, peri: &Peri, report: &mut Report) -> Result<(), String> {
    let seconds = if options.quick { 3 } else { 10 };
    for shape in [load::Shape::FanOut(5), load::Shape::Sequence(10)] {
        for activity_ms in [0, 10] {
            for dispatchers in [2, 4, 16] {
                let name = format!("{shape}, activities of {activity_ms} ms, {dispatchers} + {dispatchers}");
                // 100 activities a second for each worker, if nothing else takes time.
                let possible = dispatchers as f64 * 1000.0 / activity_ms as f64 / shape.activities() as f64;
                if activity_ms > 0 {
                    report.add(&name, "what the workers allow", possible, "/s");
                }
                for kind in &options.only {
                    let plan = load::Plan { shape, activity_ms, dispatchers, in_flight: 10 * dispatchers.min(8) };
                    let subject = kind.create(peri).await?;
                    let result = match load::for_a_while(&subject, plan, seconds).await {
                        Ok(result) => result,
                        // A peer that fails under load has no figure; the others still have.
                        Err(message) => {
                            eprintln!("{name}: {} failed: {message}", kind.name());
                            report.add(&name, kind.name(), f64::NAN, "/s (failed)");
                            continue;
                        }
                    };
                    report.add(&name, kind.name(), result.per_second, "/s");
                    report.add(&format!("{name}: P50 of an orchestration"), kind.name(), result.p50_ms, "ms");
                    report.add(&format!("{name}: P99 of an orchestration"), kind.name(), result.p99_ms, "ms");
                    report.add(&format!("{name}: P50 of a turn"), kind.name(), result.turn_p50_ms, "ms");
                    report.add(&format!("{name}: P99 of a turn"), kind.name(), result.turn_p99_ms, "ms");
                    if activity_ms > 0 {
                        // A timer fires up to a millisecond late: that share is nobody's.
                        let share = result.per_second / possible * result.activity_ms / activity_ms as f64;
                        report.add(&format!("{name}: an activity lasts"), kind.name(), result.activity_ms, "ms");
                        report.add(&format!("{name}: the workers are busy"), kind.name(), 100.0 * share, "%");
                    }
                }
            }
        }
    }
    Ok(())
}

/// One orchestration at a time.
async fn latency(options: &Options, peri: &Peri, report: &mut Report) -> Result<(), String> {
    let count = if options.quick { 20 } else { 100 };
    for kind in &options.only {
        let plan =
            load::Plan { shape: load::Shape::FanOut(5), activity_ms: 0, dispatchers: 2, in_flight: 1 };
        let subject = kind.create(peri).await?;
        let result = load::so_many(&subject, plan, count).await?;
        report.add("one at a time, fan-out of 5: P50", kind.name(), result.p50_ms, "ms");
        report.add("one at a time, fan-out of 5: P99", kind.name(), result.p99_ms, "ms");
    }
    Ok(())
}

/// Request units and requests of an orchestration of five activities.
async fn cost(options: &Options, peri: &Peri, report: &mut Report) -> Result<(), String> {
    for (in_flight, name) in [(1, "one at a time"), (20, "20 at a time")] {
        for kind in options.only.iter().filter(|kind| kind.uses_account()) {
            let plan =
                load::Plan { shape: load::Shape::FanOut(5), activity_ms: 0, dispatchers: 2, in_flight };
            let subject = kind.create(peri).await?;
            let before = cost::read(peri)?;
            let count = if options.quick { 20 } else { 200 };
            load::so_many(&subject, plan, count).await?;
            let after = cost::read(peri)?;
            let each = |value: f64| value / count as f64;
            report.add(
                &format!("request units of five activities, {name}"),
                kind.name(),
                each(after.charge - before.charge),
                "RU",
            );
            report.add(
                &format!("HTTP requests of five activities, {name}"),
                kind.name(),
                each(after.requests - before.requests),
                "",
            );
        }
    }
    Ok(())
}

/// Orchestrations per second while so many wait.
async fn depth(options: &Options, peri: &Peri, report: &mut Report) -> Result<(), String> {
    let depths: &[usize] = if options.quick { &[10, 1_000, 20_000] } else { &[10, 1_000, 100_000] };
    for kind in options.only.iter().filter(|kind| **kind != Kind::Sqlite) {
        for depth in depths {
            // The peer searches its whole queue for every item.
            if *kind == Kind::Cdb && *depth > 1_000 {
                continue;
            }
            let subject = kind.create(peri).await?;
            let rate = load::with_backlog(&subject, *depth, if options.quick { 3 } else { 10 }).await?;
            report.add(&format!("with {depth} orchestrations waiting"), kind.name(), rate, "/s");
        }
    }
    Ok(())
}
