//! What telemetry costs when nobody listens: the driver with its spans and events, and the driver without any.
//!
//! Both are one small program, `telemetry-bench`, compiled twice: the second time every span and event is removed by a
//! feature of `tracing`. A program is compiled one way or the other, so they cannot be one.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::instructions::per_read;
use crate::options::Options;

/// Instructions of a point read in memory without a subscriber.
#[derive(Clone, Copy, Debug)]
pub struct TelemetryCosts {
    /// Of the driver as it is.
    pub unheard: f64,
    /// Of the driver from which telemetry was removed.
    pub removed: f64,
}

impl TelemetryCosts {
    /// The first as a multiple of the second.
    pub fn ratio(&self) -> f64 {
        self.unheard / self.removed
    }
}

/// Builds both programs and counts.
pub fn measure(options: &Options) -> Result<TelemetryCosts, String> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from);
    let reads = if options.quick { 500 } else { 2_000 };
    let count = |program: &Path| {
        per_read(program, &[], reads).ok_or("instructions are counted by valgrind, which could not be run")
    };
    let unheard = build(&target, &[])?;
    let removed = build(&target.join("without-telemetry"), &["--features", "without-telemetry"])?;
    Ok(TelemetryCosts { unheard: count(&unheard)?, removed: count(&removed)? })
}

fn workspace() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn build(target: &Path, arguments: &[&str]) -> Result<PathBuf, String> {
    eprintln!("building telemetry-bench {}", arguments.join(" "));
    let mut command = Command::new("cargo");
    command.args(["build", "--release", "-p", "telemetry-bench", "--target-dir"]).arg(target).args(arguments);
    match command.current_dir(workspace()).status() {
        Ok(status) if status.success() => Ok(target.join("release/telemetry-bench")),
        Ok(status) => Err(format!("building telemetry-bench ended with {status}")),
        Err(error) => Err(format!("cargo could not be run: {error}")),
    }
}
