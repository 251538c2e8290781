//! `peri chaos`.

use emulator::clock::HumanDuration;

use super::control::CONTROL_URL;

const EXAMPLES: &str = "\
Examples:
  peri chaos                              every scenario that comes with it, in about two minutes
  peri chaos --list                       which they are
  peri chaos region-down black-hole       some of them
  peri chaos --seed 7                     other draws; the same seed makes the same faults and operations
  peri chaos region-down --for 10m        again and again for ten minutes, with draws of its own each time
  peri chaos mine.toml --show             what a file and a seed amount to, without doing it
  peri chaos region-down --json           a line of JSON for each run
  peri chaos mine.toml --attach           on the account of a running `peri up`, in a database of its own

A scenario is played on an account in three regions in this process, through the Perihelion client, while it
reads and writes steadily. Each fault is shown with how long operations took to recover from it and with
their latency before, during and after it, in milliseconds. The exit code is 9 when a promise was broken: an
acknowledged write lost, an operation past its deadline, a read that failed. docs/failure-playbook.md says
what a scenario file may contain.";

/// Prove that operations outlive faults: steady work while regions, partitions and connections fail
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Chaos {
    /// Names of scenarios (see --list), or TOML files; all that come with it if there are none
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenarios: Vec<String>,

    /// Show the scenarios that come with it
    #[arg(long)]
    pub(crate) list: bool,

    /// Show what would happen, and when, without doing it
    #[arg(long, conflicts_with = "list")]
    pub(crate) show: bool,

    /// What every draw comes from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Repeat each scenario for this long
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) lasting: Option<HumanDuration>,

    /// Print a line of JSON for each run
    #[arg(long)]
    pub(crate) json: bool,

    /// Use the account of a running `peri up` instead of one of its own
    #[arg(long)]
    pub(crate) attach: bool,

    /// With --attach: its control port
    #[arg(long, env = "PERI_CONTROL", default_value = CONTROL_URL, value_name = "URL", hide_env_values = true)]
    pub(crate) control: String,

    #[command(flatten)]
    pub(crate) account: super::Account,
}
