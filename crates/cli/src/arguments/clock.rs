//! The command line of `peri clock`.

use emulator::clock::{HumanDuration, Ticks};

use super::ControlOptions;

const EXAMPLES: &str = "\
Examples:
  peri clock                            show the time of the account
  peri clock freeze                     stop the clock, so that every write gets the same _ts
  peri clock advance 1h30m              move the clock forward; items with a TTL of an hour expire
  peri clock set 2030-01-31T08:00:00Z   set the clock; also a date, or seconds since 1970
  peri clock resume                     let the clock run again from its current time
  peri clock reset                      let the clock run with the time of the machine again

The account's clock decides _ts, TTL, leases and resource tokens. Signatures are checked against the time of the
machine, so clients keep working. Replication lag, request-unit budgets and the duration of faults do not use the
account's clock.";

/// Freeze and move the account's clock, so that tests need not wait
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = false)]
pub(crate) struct Clock {
    #[command(subcommand)]
    pub(crate) action: Option<ClockAction>,

    #[command(flatten)]
    pub(crate) control: ControlOptions,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum ClockAction {
    /// Show the time of the account (the default)
    Show,
    /// Stop the clock at its current time
    Freeze,
    /// Move the clock forward
    Advance {
        /// By how much: 250ms, 30s, 1h30m, 7d
        duration: HumanDuration,
    },
    /// Set the clock, also to the past; stored items keep their _ts
    Set {
        /// New time: 2030-01-31T08:00:00Z, 2030-01-31, or seconds since 1970
        time: Ticks,
    },
    /// Let the clock run again from its current time
    Resume,
    /// Let the clock run with the time of the machine again
    Reset,
}
