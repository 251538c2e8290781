//! Logging to stderr: warnings by default, more with `-v` or `RUST_LOG`.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::arguments::Command;

/// Starts logging at the level of the `-v` flags; `RUST_LOG` overrides them. Colors are for terminals only: a file of
/// escape codes helps nobody.
pub(crate) fn start(verbose: u8, command: &Command) {
    let is_colored =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let logs =
        tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).with_ansi(is_colored);
    match std::env::var("RUST_LOG") {
        Ok(filter) if !filter.is_empty() => logs.with_env_filter(EnvFilter::new(filter)).init(),
        _ => logs.with_max_level(level(verbose, command)).init(),
    }
}

fn level(verbose: u8, command: &Command) -> LevelFilter {
    match (verbose, command) {
        // The faults of a scenario are meant, and its result tells what they caused.
        (0, Command::Chaos(_)) => LevelFilter::ERROR,
        (0, _) => LevelFilter::WARN,
        (1, _) => LevelFilter::INFO,
        (2, _) => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    }
}
