//! `peri up`: starts the account, prints its endpoints, waits for a signal and stops.

use emulator::access::{EntraTokens, JsonWebKeys};
use emulator::clock::Stopwatch;
use emulator::{AuthoritySource, DataDir, Emulator, EmulatorConfig};

use crate::arguments::{Entra, Up};
use crate::data_folder;
use crate::exit::CommandError;
use crate::exposure;
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
    for warning in exposure::check(up.bind, up.key.as_deref(), up.control_token.as_deref())? {
        output::message(&format!("warning: {warning}"));
    }
    // Before the account listens, so that no signal after the ready line is missed.
    let mut signals = Signals::listen()
        .map_err(|error| CommandError::other(format!("cannot listen for signals: {error}")))?;
    let running = Emulator::start(config(up)?).await?;
    tracing::info!(endpoint = running.endpoint(), "ready");
    if up.json {
        output::json_text(&ReadyLine::of(&running).to_string());
    } else {
        output::data(&Banner::of(&running, started.elapsed()).to_string());
    }
    signals.stop_requested().await;
    tracing::info!("stopping");
    signals.exit_on_next();
    running.stop().await;
    Ok(())
}

fn config(up: &Up) -> Result<EmulatorConfig, CommandError> {
    let mut config = EmulatorConfig::default();
    config.bind = up.bind;
    config.port = up.port;
    config.control_port = up.control_port;
    if let Some(key) = &up.key {
        key.trim().clone_into(&mut config.key);
    }
    config.secondary_key = up.secondary_key.as_deref().map(|key| key.trim().to_owned());
    config.read_only_keys = up.read_only_key.iter().map(|key| key.trim().to_owned()).collect();
    config.entra = up.entra.as_ref().map(entra).transpose()?;
    config.allowed_hosts.clone_from(&up.allow_host);
    config.control_token.clone_from(&up.control_token);
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
    match data_folder::path() {
        Some(folder) => config.authority = AuthoritySource::StoredIn(folder),
        None => tracing::warn!(
            "{}; until then https uses a certificate authority that is lost at the end of the process",
            data_folder::MISSING
        ),
    }
    Ok(config)
}

/// Which tokens of Microsoft Entra ID are accepted; reads the keys that sign them.
fn entra(option: &Entra) -> Result<EntraTokens, CommandError> {
    let file = match option {
        Entra::Off => return Ok(EntraTokens::Off),
        Entra::Accept => return Ok(EntraTokens::Accept),
        Entra::Jwks(file) => file,
    };
    let unusable = |error: &dyn std::fmt::Display| {
        CommandError::usage(format!("--entra: '{}' cannot be used: {error}", file.display()))
            .hint("the file holds the keys that an identity provider publishes at its jwks_uri")
    };
    let text = std::fs::read(file).map_err(|error| unusable(&error))?;
    JsonWebKeys::parse(&text).map(EntraTokens::Signed).map_err(|error| unusable(&error))
}
