//! The command line of `peri chaos`.

use emulator::clock::HumanDuration;

use super::control::CONTROL_URL;

const EXAMPLES: &str = "\
Examples:
  peri chaos                              run all built-in scenarios, in about two minutes
  peri chaos --list                       list the built-in scenarios
  peri chaos region-down black-hole       run two of them
  peri chaos --seed 7                     use another seed; the same seed gives the same faults and operations
  peri chaos region-down --for 10m        repeat the scenario for ten minutes, each time with other random choices
  peri chaos mine.toml --show             show the schedule of a file without running it
  peri chaos region-down --json           print a line of JSON for each run
  peri chaos mine.toml --attach           run on the account of a running `peri up`, in a new database

A scenario runs on an account in three regions in this process. The Perihelion client reads and writes steadily while
faults begin and end. The result shows, for each fault, how long operations took to recover, and their latency before,
during and after the fault in milliseconds. The exit code is 9 if a guarantee was violated: an acknowledged write was
lost, an operation ended after its deadline, or a read failed. docs/failure-playbook.md describes scenario files.";

/// Test an account under faults: a steady workload while regions, partitions and connections fail
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Chaos {
    /// Names of built-in scenarios (see --list), or TOML files [default: all built-in scenarios]
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenarios: Vec<String>,

    /// List the built-in scenarios
    #[arg(long)]
    pub(crate) list: bool,

    /// Show the schedule of each run without running it
    #[arg(long, conflicts_with = "list")]
    pub(crate) show: bool,

    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Repeat each scenario for this long
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) duration: Option<HumanDuration>,

    /// Print a line of JSON for each run
    #[arg(long)]
    pub(crate) json: bool,

    /// Use the account of a running `peri up` instead of a new one
    #[arg(long)]
    pub(crate) attach: bool,

    /// Control port of the running `peri up`, for --attach
    #[arg(long, env = "PERI_CONTROL", default_value = CONTROL_URL, value_name = "URL", hide_env_values = true)]
    pub(crate) control: String,

    #[command(flatten)]
    pub(crate) account: super::AccountOptions,
}
