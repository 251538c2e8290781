//! `peri clock`.

use emulator::clock::{HumanDuration, Ticks};

use super::Control;

const EXAMPLES: &str = "\
Examples:
  peri clock                            what time it is for the account
  peri clock freeze                     stop it, so that every write gets the same _ts
  peri clock advance 1h30m              items with a TTL of an hour are gone now
  peri clock set 2030-01-31T08:00:00Z   or a date, or seconds since 1970
  peri clock resume                     let it run again, from where it stands

The account's time is what _ts, TTL, leases and resource tokens live by. Signatures are still checked
against the machine's time, so clients keep working; replication lag, request-unit budgets and the
duration of faults pass at their own pace.";

/// Freeze and move the account's time, so that tests need not wait
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = false)]
pub(crate) struct Clock {
    #[command(subcommand)]
    pub(crate) action: Option<ClockAction>,

    #[command(flatten)]
    pub(crate) control: Control,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum ClockAction {
    /// Say what time it is (the default)
    Show,
    /// Stop the account's time where it is
    Freeze,
    /// Move it forward
    Advance {
        /// How far: 250ms, 30s, 1h30m, 7d
        duration: HumanDuration,
    },
    /// Set it, also to the past; what has been written keeps its _ts
    Set {
        /// When: 2030-01-31T08:00:00Z, 2030-01-31, or seconds since 1970
        time: Ticks,
    },
    /// Let it run again, from where it stands
    Resume,
}
