//! Perihelion and its peers side by side: one run, interleaved, printed as ratios.
//!
//! In: the options of `options`. Out: tables on stdout, progress on stderr, and an exit code: 0 when every
//! answer was right, 1 when one was not, 2 with `--enforce` when a bar was missed. A server that answers
//! errors fast does not win: it fails the run.

mod children; // what was started, and its end
mod client; // one request, one answer
mod clock;
mod figures;
mod generator; // the closed loop
mod item; // what is stored
mod lists;
mod memory;
mod options;
mod process; // memory and processor time
mod report;
mod request; // requests as bytes
mod response; // where an answer ends
mod scaling;
mod server; // the servers and how they are started
mod signature; // how requests are signed
mod snapshots;
mod startup;
mod subject; // a server with the comparison's data on it
mod throughput;
mod variants; // Perihelion against itself
mod workload; // what is asked

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use options::{Options, Part};
use report::Report;
use server::{Kind, Programs, RecordedAnswer};

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Err(error) => return fail(&error),
    };
    let recorded = RecordedAnswer::reserve();
    if let Err(error) = children::end_with_this_process(recorded.path().to_owned()) {
        return fail(&error);
    }
    let start = clock::now();
    match run(&options, &recorded) {
        Ok(report) => {
            let code = publish(&report, &options);
            eprintln!("took {} s", (clock::now() - start).as_secs());
            code
        }
        Err(error) => fail(&error),
    }
}

fn fail(error: &str) -> ExitCode {
    eprintln!("bench: {error}");
    ExitCode::FAILURE
}

/// All parts that were asked for, one after the other.
fn run(options: &Options, recorded: &RecordedAnswer) -> Result<Report, String> {
    let programs = find_programs(options, recorded.path())?;
    let budget = options.budget();
    let mut report = Report { scaling_counts: (budget.small, budget.large), ..Report::default() };
    let mut progress = |text: &str| eprintln!("· {text}");
    for part in &options.parts {
        match part {
            Part::Startup => {
                progress("starting each server a few times");
                report.startup = startup::measure(&programs, &options.servers, budget.starts)?;
            }
            Part::Memory => {
                for kind in options.servers.iter().copied().filter(|kind| kind.stores()) {
                    progress(&format!("memory of {}", kind.name()));
                    report.memory.insert(kind, memory::measure(&programs, kind, budget.idle)?);
                }
            }
            Part::Throughput => {
                let found = throughput::measure(&programs, options, recorded, &mut progress)?;
                (report.cells, report.others) = (found.cells, found.others);
                report.failures.extend(found.failures);
            }
            Part::Scaling if options.servers.contains(&Kind::Perihelion) => {
                match scaling::measure(&programs, budget, &mut progress) {
                    Ok(scaling) => report.scaling = scaling,
                    Err(error) => report.failures.push(format!("scaling: {error}")),
                }
            }
            Part::Lists if options.servers.contains(&Kind::Perihelion) => {
                match lists::measure(&programs, budget, &mut progress) {
                    Ok(lists) => report.lists = Some(lists),
                    Err(error) => report.failures.push(format!("lists: {error}")),
                }
            }
            Part::Regions if options.servers.contains(&Kind::Perihelion) => {
                report.variants.extend(variants::regions(&programs, budget, &mut progress)?);
            }
            Part::Snapshots if options.servers.contains(&Kind::Perihelion) => {
                report.snapshots = snapshots::measure(&programs, budget, &mut progress)?;
            }
            Part::Durability if options.servers.contains(&Kind::Perihelion) => {
                report.variants.extend(variants::durability(&programs, budget, &mut progress)?);
                progress(&format!("opening a directory of {} items", budget.large));
                report.opening = Some(variants::opening(&programs, budget.large)?);
            }
            Part::RequestUnits if options.servers.contains(&Kind::Perihelion) => {
                report.variants.extend(variants::request_units(&programs, budget, &mut progress)?);
            }
            Part::Faults if options.servers.contains(&Kind::Perihelion) => {
                report.variants.extend(variants::faults(&programs, budget, &mut progress)?);
            }
            Part::Scaling
            | Part::Lists
            | Part::Regions
            | Part::Snapshots
            | Part::Durability
            | Part::RequestUnits
            | Part::Faults => {}
        }
    }
    Ok(report)
}

fn publish(report: &Report, options: &Options) -> ExitCode {
    let text = report.render();
    println!("\n{text}");
    let bars = report.bars();
    for bar in &bars {
        println!("{} {}", if bar.kept { "kept  " } else { "MISSED" }, bar.text);
    }
    for failure in &report.failures {
        println!("FAILED {failure}");
    }
    if let Some(path) = &options.markdown
        && let Err(error) = std::fs::write(path, &text)
    {
        return fail(&format!("{}: {error}", path.display()));
    }
    if !report.failures.is_empty() {
        ExitCode::from(1)
    } else if options.enforce && bars.iter().any(|bar| !bar.kept) {
        ExitCode::from(2)
    } else {
        ExitCode::SUCCESS
    }
}

/// Finds or builds what the chosen servers need, and says what to do about what is missing.
fn find_programs(options: &Options, answer: &Path) -> Result<Programs, String> {
    let own = std::env::current_exe().map_err(|error| format!("where this program is: {error}"))?;
    let peers = own.parent().ok_or("this program is in no folder")?.to_owned();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the sources are in no folder")?;
    let vercel = folder.join("peers/vercel");
    let needs = |kind: Kind, path: PathBuf, how: &str| {
        let missing = options.servers.contains(&kind) && !path.exists();
        if missing { Err(format!("{} is missing; {how}", path.display())) } else { Ok(()) }
    };
    needs(Kind::InMemory, peers.join("in-memory-emulator"), "build the whole workspace of bench/")?;
    needs(Kind::Canned, peers.join("canned"), "build the whole workspace of bench/")?;
    needs(Kind::Vercel, vercel.join("node_modules"), "run `npm ci` in bench/peers/vercel")?;
    let peri = match std::env::var_os("PERI") {
        _ if !options.servers.contains(&Kind::Perihelion) => PathBuf::new(),
        Some(path) => PathBuf::from(path),
        None => build_peri(folder.parent().ok_or("bench/ is in no folder")?)?,
    };
    Ok(Programs { peri, peers, vercel, answer: answer.to_owned(), logs: options.logs })
}

/// Builds `peri` of this repository in release mode.
fn build_peri(root: &Path) -> Result<PathBuf, String> {
    eprintln!("· building peri");
    let built =
        Command::new("cargo").args(["build", "--release", "--bin", "peri"]).current_dir(root).status();
    match built {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("building peri ended with {status}")),
        Err(error) => return Err(format!("cargo could not be run: {error}; set PERI to a built peri")),
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("release/peri"))
}
