//! `peri`: a local Cosmos DB account and its tools in one binary.
//!
//! The command line (`arguments`) selects a command (`commands`), which prints its result (`output`) and ends with an
//! exit code (`exit`). Commands for a running `peri up` use its control port (`control`); commands that import and
//! export items (`fixtures`) use an account through the Perihelion client (`account`). Data goes to stdout, everything
//! else to stderr.

mod account;
mod arguments;
mod commands;
mod confirmation;
mod control;
mod data_folder;
mod exit;
mod exposure;
mod fixtures;
mod listening_process;
mod logging;
mod output;
mod shutdown;

use std::process::ExitCode;

use clap::Parser as _;
use emulator::clock::Stopwatch;

use arguments::{Arguments, Command};

/// Responses consist of many short-lived allocations on a few threads, which this allocator is fast at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let started = Stopwatch::start();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(output) => return exit::usage_exit_code(&output),
    };
    logging::start(arguments.verbose, &arguments.command);
    let result = match arguments.command {
        Command::Up(up) => commands::up::run(&up, started),
        Command::Cert(cert) => commands::cert::run(&cert),
        Command::Status(status) => commands::status::run(&status),
        Command::Requests(requests) => commands::requests::run(&requests),
        Command::Events(events) => commands::events::run(&events),
        Command::Region(region) => commands::region::run(&region),
        Command::Fault(fault) => commands::fault::run(&fault),
        Command::Partition(partition) => commands::partition::run(&partition),
        Command::Snapshot(snapshot) => commands::snapshot::run(&snapshot),
        Command::Clock(clock) => commands::clock::run(&clock),
        Command::Import(import) => commands::import::run(&import),
        Command::Export(export) => commands::export::run(&export),
        Command::Query(query) => commands::query::run(&query),
        Command::Reset(reset) => commands::reset::run(&reset),
        Command::Chaos(chaos) => commands::chaos::run(&chaos),
        Command::Durable(durable) => commands::durable::run(&durable),
        Command::Completions(completions) => commands::completions::run(&completions),
        Command::Version => {
            output::data(&format!("peri {}", env!("CARGO_PKG_VERSION")));
            Ok(())
        }
    };
    exit::exit_code(result)
}
