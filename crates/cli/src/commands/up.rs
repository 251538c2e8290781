//! `peri up`: starts the account, prints its endpoints, waits for a signal and stops.

use emulator::clock::Stopwatch;
use emulator::{AuthoritySource, DataDir, Emulator, EmulatorConfig};

use crate::arguments::Up;
use crate::data_folder;
use crate::exit::CommandError;
use crate::output::{self, Banner, ReadyLine};
use crate::shutdown::Signals;

/// Runs until a signal asks it to stop. `started` is when the program began.
pub(crate) fn run(up: &Up, started: Stopwatch) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::other(format!("cannot start worker threads: {error}")))?;
    let result = runtime.block_on(serve(up, started));
    // Connections that are still open have had their grace period already.
    runtime.shutdown_background();
    result
}

async fn serve(up: &Up, started: Stopwatch) -> Result<(), CommandError> {
    // Before the account listens, so that no signal after the ready line is missed.
    let mut signals = Signals::listen()
        .map_err(|error| CommandError::other(format!("cannot listen for signals: {error}")))?;
    let running = Emulator::start(config(up)).await?;
    tracing::info!(endpoint = running.endpoint(), "ready");
    if up.json {
        output::data(&ReadyLine::of(&running).to_string());
    } else {
        output::data(&Banner::of(&running, started.elapsed()).to_string());
    }
    signals.stop_requested().await;
    tracing::info!("stopping");
    signals.exit_on_next();
    running.stop().await;
    Ok(())
}

fn config(up: &Up) -> EmulatorConfig {
    let mut config = EmulatorConfig::default();
    config.bind = up.bind;
    config.port = up.port;
    config.control_port = up.control_port;
    up.key.trim().clone_into(&mut config.key);
    config.partitions = up.partitions;
    config.partition_bytes_max = up.partition_size;
    config.request_log_capacity = up.keep_requests;
    config.request_units = up.ru.into();
    config.regions = up.regions.clone().unwrap_or_default();
    config.advertise.clone_from(&up.advertise);
    config.domain.clone_from(&up.domain);
    config.multi_write = up.multi_write;
    config.partition_failover = up.partition_failover;
    config.consistency = up.consistency.into();
    config.lag = up.lag;
    config.data = up.data_dir.as_ref().map(|path| {
        let mut data = DataDir::new(path);
        data.fsync = up.fsync.into();
        data
    });
    match data_folder::path() {
        Some(folder) => config.authority = AuthoritySource::StoredIn(folder),
        None => tracing::warn!(
            "{}; until then https uses a certificate authority that is lost at the end of the process",
            data_folder::MISSING
        ),
    }
    config
}
