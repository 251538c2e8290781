//! The command line of `peri up`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use emulator::config::PARTITION_BYTES_MAX;
use emulator::regions::Lag;
use emulator::{Bind, ConsistencyLevel, Fsync, REQUEST_LOG_CAPACITY_DEFAULT, RequestUnitMode};

const EXAMPLES: &str = "\
Examples:
  peri up                               run the account on port 8081, with the well-known emulator key
  peri up --port 0 --control-port 0     use any free ports, for example beside another account
  peri up --json                        print one line of JSON on stdout when it is ready, for scripts
  peri up --bind 0.0.0.0 --key KEY --control-token TOKEN
                                        accept connections from other machines and from containers
  peri up --regions 'West US'           use one region instead of three
  peri up --data-dir ./account          store the account on disk; it survives kill -9
  peri up --data-dir ./account --fsync always   it also survives loss of power; writes wait for the disk
  peri up --multi-write --lag 100ms     accept writes in every region, with a replication lag of 100 ms
  peri up --ru enforce                  throttle requests beyond the throughput with 429, as the service does

The account accepts http and https on the same port. The endpoint in --json uses http, so that clients need not trust
a certificate. Replace http by https to use TLS (see `peri cert`).";

/// Run a local account until a signal stops it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Up {
    /// Port of the first region; the other regions use the next ports; 0 means any free port for each
    #[arg(long, default_value_t = 8081)]
    pub(crate) port: u16,

    /// Names of the regions; the first one is the write region
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "West US,East US,North Europe")]
    pub(crate) regions: Vec<String>,

    /// Accept writes in every region
    #[arg(long)]
    pub(crate) multi_write: bool,

    /// Allow single partitions to fail over to another region (`peri partition failover`)
    #[arg(long, conflicts_with = "multi_write")]
    pub(crate) partition_failover: bool,

    /// Default consistency level of the account
    #[arg(long, value_enum, default_value_t = Consistency::Session)]
    pub(crate) consistency: Consistency,

    /// Replication lag between regions: a time, or a range to draw from
    #[arg(long, value_name = "TIME", default_value = "20ms..50ms")]
    pub(crate) lag: Lag,

    /// Address to listen on; 0.0.0.0 means every interface
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    pub(crate) bind: Bind,

    /// Host name that requests may be addressed to, beside localhost and the address of --bind; `.example.test` allows
    /// all names that end so
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,

    /// Account key, in base64 [default: the well-known emulator key]
    #[arg(long, env = "PERI_KEY", hide_env_values = true, allow_hyphen_values = true)]
    pub(crate) key: Option<String>,

    /// Second account key with the same rights, in base64
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) secondary_key: Option<String>,

    /// Account key that allows reading only, in base64; may be given twice, as an account of the service has two
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) read_only_key: Vec<String>,

    /// Which tokens of Microsoft Entra ID are accepted, for items only: `off`, `accept` (any that has not expired) or
    /// `jwks=FILE` (signed with a key of this file) [default: accept on loopback addresses, off otherwise]
    #[arg(long, value_name = "TOKENS")]
    pub(crate) entra: Option<Entra>,

    /// Physical partitions of each new container [default: one per 10,000 RU/s]
    #[arg(long, value_name = "N")]
    pub(crate) partitions: Option<NonZeroU32>,

    /// What happens with the request units of operations
    #[arg(long, value_enum, default_value_t = Ru::Account, value_name = "MODE")]
    pub(crate) ru: Ru,

    /// Size in bytes at which a physical partition is split
    #[arg(long, value_name = "BYTES", default_value_t = PARTITION_BYTES_MAX)]
    pub(crate) partition_size: u64,

    /// Control port, which also serves health checks; 0 means any free port
    #[arg(long, default_value_t = 1234, value_name = "PORT")]
    pub(crate) control_port: u16,

    /// Token that requests to the control port need, all but health and metrics
    #[arg(long, env = "PERI_CONTROL_TOKEN", value_name = "TOKEN", hide_env_values = true, value_parser = control_token)]
    pub(crate) control_token: Option<String>,

    /// Directory to store the account in, and to load it from [default: in memory]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// When a write is acknowledged; with each choice, it survives the end of the process, also by kill -9
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = FsyncMode::Interval, requires = "data_dir")]
    pub(crate) fsync: FsyncMode,

    /// Size of the request log that `peri requests` shows
    #[arg(long, value_name = "N", default_value_t = REQUEST_LOG_CAPACITY_DEFAULT)]
    pub(crate) keep_requests: usize,

    /// Print one line of JSON on stdout when the account is ready, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which tokens of Microsoft Entra ID are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entra {
    Off,
    Accept,
    /// Those that a key of this file signed.
    Jwks(PathBuf),
}

impl FromStr for Entra {
    type Err = String;

    fn from_str(text: &str) -> Result<Entra, String> {
        match text {
            "off" => Ok(Entra::Off),
            "accept" => Ok(Entra::Accept),
            _ => match text.strip_prefix("jwks=") {
                Some(file) if !file.is_empty() => Ok(Entra::Jwks(file.into())),
                _ => Err("expected off, accept or jwks=FILE".to_owned()),
            },
        }
    }
}

/// A token is sent in a header, so it consists of visible ASCII characters.
fn control_token(text: &str) -> Result<String, String> {
    match !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(text.to_owned()),
        false => Err("expected visible ASCII characters without spaces".to_owned()),
    }
}

/// What happens with request units. Every response contains its charge in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Ru {
    /// They are only reported in responses
    Off,
    /// They are counted per partition, and requests are not throttled
    Account,
    /// They are counted, and requests beyond the throughput are throttled with 429
    Enforce,
}

impl From<Ru> for RequestUnitMode {
    fn from(mode: Ru) -> RequestUnitMode {
        match mode {
            Ru::Off => RequestUnitMode::Off,
            Ru::Account => RequestUnitMode::Account,
            Ru::Enforce => RequestUnitMode::Enforce,
        }
    }
}

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FsyncMode {
    /// When it is on the disk; loss of power loses nothing
    Always,
    /// When the operating system has it; it is synced every 100 ms, which loss of power may lose
    Interval,
    /// When the operating system has it; the operating system decides when to sync
    Never,
}

impl From<FsyncMode> for Fsync {
    fn from(when: FsyncMode) -> Fsync {
        match when {
            FsyncMode::Always => Fsync::Always,
            FsyncMode::Interval => Fsync::Interval,
            FsyncMode::Never => Fsync::Never,
        }
    }
}

/// The default consistency level of the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Consistency {
    /// Reads see the newest write; writes wait for a majority of regions
    Strong,
    /// Reads lag at most 100,000 writes or 5 minutes
    BoundedStaleness,
    /// A client sees its own writes
    Session,
    /// Reads see writes in order
    ConsistentPrefix,
    /// Reads see the data of their region
    Eventual,
}

impl From<Consistency> for ConsistencyLevel {
    fn from(consistency: Consistency) -> ConsistencyLevel {
        match consistency {
            Consistency::Strong => ConsistencyLevel::Strong,
            Consistency::BoundedStaleness => ConsistencyLevel::BoundedStaleness,
            Consistency::Session => ConsistencyLevel::Session,
            Consistency::ConsistentPrefix => ConsistencyLevel::ConsistentPrefix,
            Consistency::Eventual => ConsistencyLevel::Eventual,
        }
    }
}
