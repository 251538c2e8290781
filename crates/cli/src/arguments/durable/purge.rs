//! The command line of `peri durable purge`.

use super::{DurableOptions, SelectionOptions};

const EXAMPLES: &str = "\
Examples:
  peri durable purge order-17                               delete one instance, after a question
  peri durable purge --status completed --ended-before 7d --yes
  peri durable purge --name Test --force --yes              also those that run
  peri durable purge --all --yes                            everything that has ended

Each instance goes with its sub-orchestrations, history, messages and activities. A sub-orchestration is purged with its parent.
Without --force, an instance that runs, or whose sub-orchestration does, stays. Interrupting a purge is safe: the next one
continues it. The exit code is 7 if some instances stayed.";

/// Delete instances with everything that belongs to them
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DurablePurge {
    /// Ids of the instances
    #[arg(value_name = "ID")]
    pub(crate) instances: Vec<String>,

    #[command(flatten)]
    pub(crate) selection: SelectionOptions,

    /// All instances that have ended
    #[arg(long, conflicts_with = "instances")]
    pub(crate) all: bool,

    /// Also delete instances that run
    #[arg(long)]
    pub(crate) force: bool,

    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) options: DurableOptions,
}
