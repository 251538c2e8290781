//! `peri up`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use emulator::config::PARTITION_BYTES_MAX;
use emulator::regions::Lag;
use emulator::{
    Bind, ConsistencyLevel, Fsync, REQUEST_LOG_CAPACITY_DEFAULT, RequestUnitMode, WELL_KNOWN_KEY,
};

const EXAMPLES: &str = "\
Examples:
  peri up                               the account on port 8081, with the well-known emulator key
  peri up --port 0 --control-port 0     any free ports, beside another one that runs
  peri up --json                        one line of JSON on stdout once it is ready, for scripts
  peri up --bind 0.0.0.0                reachable from other machines and from containers
  peri up --regions 'West US'           one region instead of three
  peri up --data-dir ./account          keep everything, also through kill -9
  peri up --data-dir ./account --fsync always   …and through loss of power, at the disk's pace
  peri up --multi-write --lag 100ms     every region writes, and is 100 ms from the others
  peri up --ru enforce                  429 for whoever spends more than the throughput, as in the service

The account speaks http and https on the same port. The endpoint in --json is the http one, which no
client has to trust a certificate for; put https in its place to use TLS (see `peri cert`).";

/// Run the local cloud until it is told to stop
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Up {
    /// Port of the first region, the others follow; 0 means any for each
    #[arg(long, default_value_t = 8081)]
    pub(crate) port: u16,

    /// Regions of the account, by name; the first one writes
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "West US,East US,North Europe")]
    pub(crate) regions: Vec<String>,

    /// Let every region write
    #[arg(long)]
    pub(crate) multi_write: bool,

    /// Let single partitions move their writes to another region (`peri partition failover`)
    #[arg(long, conflicts_with = "multi_write")]
    pub(crate) partition_failover: bool,

    /// What a read may miss unless it asks for less
    #[arg(long, value_enum, default_value_t = Consistency::Session)]
    pub(crate) consistency: Consistency,

    /// How long commits take from one region to another: a time, or a range to draw from
    #[arg(long, value_name = "TIME", default_value = "20ms..50ms")]
    pub(crate) lag: Lag,

    /// Address to listen on; 0.0.0.0 means every interface
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    pub(crate) bind: Bind,

    /// Account key, in base64 [default: the well-known emulator key]
    #[arg(
        long,
        env = "PERI_KEY",
        default_value = WELL_KNOWN_KEY,
        hide_default_value = true,
        hide_env_values = true,
        allow_hyphen_values = true,
    )]
    pub(crate) key: String,

    /// Physical partitions of each new container [default: one per 10,000 RU/s]
    #[arg(long, value_name = "N")]
    pub(crate) partitions: Option<NonZeroU32>,

    /// What becomes of the request units that operations cost
    #[arg(long, value_enum, default_value_t = Ru::Account, value_name = "MODE")]
    pub(crate) ru: Ru,

    /// Bytes a physical partition holds before it is split in two
    #[arg(long, value_name = "BYTES", default_value_t = PARTITION_BYTES_MAX)]
    pub(crate) partition_size: u64,

    /// Port of health and control; 0 means any
    #[arg(long, default_value_t = 1234, value_name = "PORT")]
    pub(crate) control_port: u16,

    /// Keep the account in this directory, and go on with what is in it [default: in memory]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// When a write is acknowledged; each choice survives the end of the process, kill -9 included
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = WhenToSync::Interval, requires = "data_dir")]
    pub(crate) fsync: WhenToSync,

    /// How many of the last requests `peri requests` can show
    #[arg(long, value_name = "N", default_value_t = REQUEST_LOG_CAPACITY_DEFAULT)]
    pub(crate) keep_requests: usize,

    /// Print one line of JSON on stdout once it is ready, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// What becomes of request units. Every answer states its charge in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Ru {
    /// Stated in answers and forgotten
    Off,
    /// Counted per partition; nobody is throttled
    Account,
    /// Counted, and 429 beyond the throughput of the container or database
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

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WhenToSync {
    /// Once it is on the disk: loss of power costs nothing
    Always,
    /// Once the system has it; the disk follows every 100 ms: loss of power costs that much
    Interval,
    /// Once the system has it; the disk follows when the system sees fit
    Never,
}

impl From<WhenToSync> for Fsync {
    fn from(when: WhenToSync) -> Fsync {
        match when {
            WhenToSync::Always => Fsync::Always,
            WhenToSync::Interval => Fsync::Interval,
            WhenToSync::Never => Fsync::Never,
        }
    }
}

/// The account's consistency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Consistency {
    /// The newest, everywhere; writes wait for most regions
    Strong,
    /// Never staler than 100,000 writes or 5 minutes
    BoundedStaleness,
    /// One's own writes
    Session,
    /// Writes in order
    ConsistentPrefix,
    /// Whatever the region has
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
