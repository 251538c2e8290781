//! The comparison: every client in every cell, interleaved, round by round.

use std::process::{Command, ExitCode};

use http_bench::load;
use http_bench::options::{HELP, Options};
use http_bench::report::{self, Cell};
use http_bench::server::{self, SERVE, Server};
use http_bench::subject::{Kind, Protocol, Subject};

fn main() -> ExitCode {
    let arguments = std::env::args().skip(1);
    if std::env::args().nth(1).is_some_and(|first| first == SERVE) {
        return exit(server::serve().map(|()| true));
    }
    match Options::parse(arguments) {
        Ok(Some(options)) => exit(match options.profile {
            Some(kind) => profile(&options, kind),
            None => compare(&options),
        }),
        Ok(None) => {
            println!("{HELP}");
            ExitCode::SUCCESS
        }
        Err(message) => exit(Err(message)),
    }
}

/// Exits with 1 after an error, and with 2 if a limit was missed and `--enforce` was given.
fn exit(outcome: Result<bool, String>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(message) => {
            eprintln!("http-bench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn compare(options: &Options) -> Result<bool, String> {
    let server = Server::start()?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let mut cells = Vec::new();
    for &protocol in &options.protocols {
        for &in_flight in &options.in_flight {
            let cell = runtime.block_on(measure(options, protocol, in_flight, &server))?;
            eprintln!(
                "{}, {in_flight} in flight: {:.2} times the requests, {:.2} times the processor",
                protocol.name(),
                cell.rate_ratio(),
                cell.processor_ratio()
            );
            cells.push(cell);
        }
    }
    drop(runtime);
    let allocations = allocations(options)?;
    let tables = report::tables(&cells, &allocations);
    println!("{tables}");
    if let Some(path) = &options.markdown {
        std::fs::write(path, &tables).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let fewer = allocations.iter().all(|(_, [ours, _, hyper_util])| ours <= hyper_util);
    Ok(!options.enforce || (fewer && cells.iter().all(Cell::holds)))
}

/// Runs one client alone, for as long as a comparison would.
fn profile(options: &Options, kind: Kind) -> Result<bool, String> {
    let server = Server::start()?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    for &protocol in &options.protocols {
        let subject = Subject::new(kind, protocol, &server)?;
        for &in_flight in &options.in_flight {
            let time = options.slot * u32::try_from(options.rounds).unwrap_or(1);
            let rate = runtime.block_on(load::run(&subject, in_flight, time))?;
            println!("{}, {in_flight} in flight: {rate:?}", protocol.name());
        }
    }
    Ok(true)
}

async fn measure(
    options: &Options,
    protocol: Protocol,
    in_flight: usize,
    server: &Server,
) -> Result<Cell, String> {
    let mut subjects = Vec::new();
    for kind in Kind::ALL {
        let subject = Subject::new(kind, protocol, server)?;
        // Opens connections and fills caches before the measurement.
        load::run(&subject, in_flight, options.slot / 3).await?;
        subjects.push(subject);
    }
    let mut rounds = Vec::new();
    for round in 0..options.rounds {
        let mut rates = [None; 3];
        // Each client is first, second and last equally often.
        for position in 0..subjects.len() {
            let index = (round + position) % subjects.len();
            rates[index] = Some(load::run(&subjects[index], in_flight, options.slot).await?);
        }
        let [Some(first), Some(second), Some(third)] = rates else {
            return Err("a client was not measured".into());
        };
        rounds.push([first, second, third]);
    }
    Ok(Cell { protocol, in_flight, rounds })
}

/// Counts allocations with another program, because counting slows down the clients that allocate.
fn allocations(options: &Options) -> Result<Vec<(Protocol, [f64; 3])>, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let program = program.with_file_name("http-allocations");
    let output =
        Command::new(&program).output().map_err(|error| format!("{}: {error}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut counts = text.lines().map(|line| {
        let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        <[f64; 3]>::try_from(numbers).map_err(|_| format!("{line:?} is not three numbers"))
    });
    let mut all = Vec::new();
    for protocol in Protocol::ALL {
        let counted = counts.next().ok_or_else(|| {
            format!("the allocations were not counted: {}", String::from_utf8_lossy(&output.stderr))
        })??;
        if options.protocols.contains(&protocol) {
            all.push((protocol, counted));
        }
    }
    Ok(all)
}
