//! `peri`: the local cloud in one binary.
//!
//! What was typed (`arguments`) → what is done (`commands`) → what is shown (`output`) → how it ends
//! (`exit`). Commands about a running `peri up` ask its control port (`control`); those
//! that move items (`fixtures`) ask an account, through the client that any program has (`account`). Data goes to stdout, everything else to stderr.

mod account;
mod arguments;
mod commands;
mod control;
mod exit;
mod fixtures;
mod home;
mod logging;
mod output;
mod port_holder;
mod shutdown;

use std::process::ExitCode;

use clap::Parser as _;
use emulator::clock::Stopwatch;

use arguments::{Arguments, Command};

/// Answers are built from many short-lived allocations on a few threads, which this is made for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let started = Stopwatch::start();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(answer) => return exit::after_usage(&answer),
    };
    logging::start(arguments.verbose);
    let result = match arguments.command {
        Command::Up(up) => commands::up::run(&up, started),
        Command::Cert(cert) => commands::cert::run(&cert),
        Command::Status(status) => commands::status::run(&status),
        Command::Requests(requests) => commands::requests::run(&requests),
        Command::Region(region) => commands::region::run(&region),
        Command::Fault(fault) => commands::fault::run(&fault),
        Command::Partition(partition) => commands::partition::run(&partition),
        Command::Snapshot(snapshot) => commands::snapshot::run(&snapshot),
        Command::Clock(clock) => commands::clock::run(&clock),
        Command::Import(import) => commands::import::run(&import),
        Command::Export(export) => commands::export::run(&export),
        Command::Chaos(chaos) => commands::chaos::run(&chaos),
    };
    exit::after(result)
}
