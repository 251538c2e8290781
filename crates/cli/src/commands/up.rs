//! `peri up`: start, say where, wait for a signal, stop.

use emulator::clock::Stopwatch;
use emulator::{AuthoritySource, DataDir, Emulator, EmulatorConfig};

use crate::arguments::Up;
use crate::exit::Failure;
use crate::home;
use crate::output::{self, Banner, ReadyLine};
use crate::shutdown::Signals;

/// Runs until a signal asks it to stop. `started` is when the program began.
pub(crate) fn run(up: &Up, started: Stopwatch) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other(format!("cannot start worker threads: {error}")))?;
    let result = runtime.block_on(serve(up, started));
    // Whatever still runs has had its grace already.
    runtime.shutdown_background();
    result
}

async fn serve(up: &Up, started: Stopwatch) -> Result<(), Failure> {
    // Before anything listens, so that no signal after the ready line can be missed.
    let mut signals =
        Signals::listen().map_err(|error| Failure::other(format!("cannot listen for signals: {error}")))?;
    let running = Emulator::start(config(up)).await?;
    tracing::info!(endpoint = running.endpoint(), "ready");
    if up.json {
        output::data(&ReadyLine::of(&running).to_string());
    } else {
        output::data(&Banner::of(&running, started.elapsed()).to_string());
    }
    signals.stop_requested().await;
    tracing::info!("stopping");
    signals.leave_at_once_on_the_next();
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
    config.regions.clone_from(&up.regions);
    config.multi_write = up.multi_write;
    config.partition_failover = up.partition_failover;
    config.consistency = up.consistency.into();
    config.lag = up.lag;
    config.data = up.data_dir.as_ref().map(|path| {
        let mut data = DataDir::new(path);
        data.fsync = up.fsync.into();
        data
    });
    match home::folder() {
        Some(folder) => config.authority = AuthoritySource::StoredIn(folder),
        None => tracing::warn!("{}; https uses a certificate authority that ends with it", home::MISSING),
    }
    config
}
