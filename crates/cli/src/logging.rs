//! Logging to stderr: warnings by default, more with `-v` or `RUST_LOG`.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Starts logging at the level of the `-v` flags; `RUST_LOG` overrides them.
pub(crate) fn start(verbose: u8) {
    let logs = tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false);
    match std::env::var("RUST_LOG") {
        Ok(filter) if !filter.is_empty() => logs.with_env_filter(EnvFilter::new(filter)).init(),
        _ => logs.with_max_level(level(verbose)).init(),
    }
}

fn level(verbose: u8) -> LevelFilter {
    match verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    }
}
