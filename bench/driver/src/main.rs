//! The comparison, part by part.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use driver_bench::load::{ITEMS, Work};
use driver_bench::options::{HELP, Options, Part};
use driver_bench::peri::{Indexing, Peri, Program, on_core};
use driver_bench::points::{self, READS};
use driver_bench::report::{self, Bar, Results};
use driver_bench::subject::{Kind, Shape};
use driver_bench::{distance, memory, ordered, slow_region, telemetry};

/// What would handicap somebody, and what keeps the published driver from asking the network where it runs.
const UNWANTED: [&str; 2] = ["RUST_BACKTRACE", "RUST_LIB_BACKTRACE"];
const NO_METADATA_SERVICE: &str = "COSMOS_DISABLE_IMDS";

/// Says that this process has the client's core already.
const PLACED: &str = "DRIVER_BENCH_PLACED";

/// Where the client runs when server and client have a core each.
const CLIENT_CORE: usize = 1;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == memory::IN_MEMORY) && is_fair() {
        return exit(memory::run(&arguments[1..]).map(|()| true));
    }
    let options = match Options::parse(arguments.iter().cloned()) {
        _ if !is_fair() => return again(&arguments, None),
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(message) => return exit(Err(message)),
    };
    if options.apart && std::env::var_os(PLACED).is_none() {
        return again(&arguments, Some(CLIENT_CORE));
    }
    exit(match options.profile {
        Some(kind) => profile(&options, kind),
        None => compare(&options),
    })
}

/// Whether nobody is handicapped by the environment.
fn is_fair() -> bool {
    UNWANTED.iter().all(|name| std::env::var_os(name).is_none())
        && std::env::var_os(NO_METADATA_SERVICE).is_some()
}

/// This program in an environment that is fair, on a core of its own if one is named.
fn again(arguments: &[String], core: Option<usize>) -> ExitCode {
    let run = || -> Result<bool, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = on_core(&program, core);
        for name in UNWANTED {
            command.env_remove(name);
        }
        if core.is_some() {
            command.env(PLACED, "1");
        }
        let status = command.args(arguments).env(NO_METADATA_SERVICE, "1").status();
        match status.map_err(|error| format!("{command:?}: {error}"))?.code() {
            Some(0) => Ok(true),
            Some(2) => Ok(false),
            code => Err(format!("it ended with {code:?}")),
        }
    };
    exit(run())
}

/// 1 when something went wrong, 2 when a bar was missed and that matters.
fn exit(outcome: Result<bool, String>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(message) => {
            eprintln!("driver-bench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn compare(options: &Options) -> Result<bool, String> {
    let wanted = |part: Part| options.parts.contains(&part);
    let mut results = Results::default();
    if wanted(Part::Memory) {
        eprintln!("the drivers alone, in memory");
        results.memory = Some(memory::measure(options)?);
    }
    if wanted(Part::Telemetry) {
        eprintln!("telemetry that nobody listens to");
        results.telemetry = Some(telemetry::measure(options)?);
    }
    if options.parts.iter().any(|part| part.needs_server()) {
        against_server(options, &mut results)?;
    }
    let tables = report::tables(&results);
    println!("{tables}");
    if let Some(path) = &options.markdown {
        std::fs::write(path, &tables).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let bars = report::bars(&results);
    eprint!("{}", report::missed(&bars));
    Ok(!options.enforce || bars.iter().all(Bar::holds))
}

/// The parts that are measured against `peri`.
fn against_server(options: &Options, results: &mut Results) -> Result<(), String> {
    let wanted = |part: Part| options.parts.contains(&part);
    let program = Program { path: peri()?, apart: options.apart };
    if wanted(Part::Points) || wanted(Part::Distance) || wanted(Part::Ordered) {
        let peri = filled(&program)?;
        if wanted(Part::Points) {
            all_points(options, &peri, results)?;
        }
        if wanted(Part::Distance) {
            eprintln!("a server that takes {}", distance::TAKES);
            results.distance = Some(distance::measure(options, &peri)?);
        }
        if wanted(Part::Ordered) {
            eprintln!("a cross-partition ORDER BY");
            results.ordered = Some(ordered::measure(options, &peri)?);
        }
    }
    if wanted(Part::Hedging) {
        eprintln!("a slow region");
        results.outages = slow_region::measure(options, &program)?;
    }
    Ok(())
}

fn all_points(options: &Options, peri: &Peri, results: &mut Results) -> Result<(), String> {
    for shape in shapes(options) {
        let container = container(shape, peri)?;
        let cell = points::measure(options, shape, peri, &container)?;
        eprintln!(
            "{}, {}, {} in flight: {:.2} and {:.2} times the operations, {:.2} and {:.2} times the processor",
            shape.work.name(),
            shape.wire.name(),
            shape.in_flight,
            cell.ratio(1, |rate| rate.per_second),
            cell.ratio(2, |rate| rate.per_second),
            cell.ratio(1, |rate| rate.processor_us),
            cell.ratio(2, |rate| rate.processor_us),
        );
        results.points.push(cell);
    }
    Ok(())
}

/// One subject alone, for as long as a comparison would give it.
fn profile(options: &Options, kind: Kind) -> Result<bool, String> {
    let peri = filled(&Program { path: peri()?, apart: options.apart })?;
    for shape in shapes(options) {
        let container = container(shape, &peri)?;
        println!("{shape:?}: {:?}", points::profile(options, kind, shape, &peri, &container)?);
    }
    Ok(true)
}

fn shapes(options: &Options) -> Vec<Shape> {
    let mut shapes = Vec::new();
    for &work in &options.works {
        for &wire in &options.wires {
            shapes.extend(options.in_flight.iter().map(|&in_flight| Shape { work, wire, in_flight }));
        }
    }
    shapes
}

/// Where a cell works: creates in a container that is empty when they begin, and not indexed: drivers are
/// measured, and the less the server does the more of them is seen.
fn container(shape: Shape, peri: &Peri) -> Result<String, String> {
    match shape.work {
        Work::Read => Ok(READS.to_owned()),
        Work::Create => {
            let name = "creates".to_owned();
            block_on(peri.new_container(&name, Indexing::None))?;
            Ok(name)
        }
    }
}

/// One region, with the items that are read.
fn filled(program: &Program) -> Result<Peri, String> {
    let peri = Peri::start(program, "West US")?;
    block_on(ordered::fill(&peri, READS, ITEMS))?;
    Ok(peri)
}

fn block_on<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    tokio::runtime::Runtime::new().map_err(|error| error.to_string())?.block_on(work)
}

/// `peri`, from `PERI` or built from the repository.
fn peri() -> Result<PathBuf, String> {
    if let Some(program) = std::env::var_os("PERI") {
        return Ok(program.into());
    }
    eprintln!("building peri");
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let built =
        Command::new("cargo").args(["build", "--release", "--bin", "peri"]).current_dir(&root).status();
    match built {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("building peri ended with {status}")),
        Err(error) => return Err(format!("cargo could not be run: {error}; set PERI to a built peri")),
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("release/peri"))
}
