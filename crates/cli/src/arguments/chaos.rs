//! The command line of `peri chaos`.

use emulator::clock::HumanDuration;

use super::control::CONTROL_URL;

const EXAMPLES: &str = "\
Examples:
  peri chaos                              run all variants of all built-in scenarios, in about seven minutes
  peri chaos --list                       list the built-in scenarios
  peri chaos region-down black-hole       run two of them
  peri chaos --seed 7                     use another seed; the same seed gives the same faults and operations
  peri chaos region-down --for 10m        repeat the scenario for ten minutes, each time with other random choices
  peri chaos black-hole --scale 15        make all times fifteen times as long: two minutes of outage
  peri chaos black-hole --hedging off --deadline 5s
                                          run the variants with these settings of the client
  peri chaos mine.toml --show             show the schedule of a file without running it
  peri chaos region-down --json           print a line of JSON for each run
  peri chaos mine.toml --attach           run on the account of a running `peri up`, in a new database

A scenario runs on an account in three regions in this process. The Perihelion client reads and writes steadily while
faults begin and end. A scenario with several variants runs once for each: one or all regions accept writes, the client
hedges or not, deadlines are short or long. The result shows, for each fault, how long operations took to recover, and
their latency before, during and after the fault in milliseconds. The exit code is 9 if a guarantee was violated: an
acknowledged write was lost, an operation ended after its deadline, or a read failed. docs/failure-playbook.md describes
scenario files.";

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

    /// Multiply all times of faults by this factor
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = scale)]
    pub(crate) scale: f64,

    /// Run only with hedging on or off [default: as the scenario says; on if it does not]
    #[arg(long, value_name = "WHEN")]
    pub(crate) hedging: Option<Switch>,

    /// Run only with this deadline of operations [default: as the scenario says]
    #[arg(long, value_name = "TIME", value_parser = deadline)]
    pub(crate) deadline: Option<HumanDuration>,

    /// Print a line of JSON for each run
    #[arg(long)]
    pub(crate) json: bool,

    /// Use the account of a running `peri up` instead of a new one
    #[arg(long)]
    pub(crate) attach: bool,

    /// Control port of the running `peri up`, for --attach
    #[arg(long, env = "PERI_CONTROL", default_value = CONTROL_URL, value_name = "URL", hide_env_values = true)]
    pub(crate) control: String,

    /// Token of that control port, if `peri up` was started with one
    #[arg(long, env = "PERI_CONTROL_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub(crate) control_token: Option<String>,

    #[command(flatten)]
    pub(crate) account: super::AccountOptions,
}

/// Whether something is on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

const SCALE_MIN: f64 = 0.01;
const SCALE_MAX: f64 = 1_000.0;

fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if (SCALE_MIN..=SCALE_MAX).contains(&factor) => Ok(factor),
        _ => Err(format!("expected a number from {SCALE_MIN} to {SCALE_MAX}, like 0.5 or 15")),
    }
}

fn deadline(text: &str) -> Result<HumanDuration, String> {
    match text.parse::<HumanDuration>() {
        Ok(deadline) if deadline.0.is_zero() => Err("a deadline of zero lets nothing succeed".to_owned()),
        parsed => parsed.map_err(|error| error.to_string()),
    }
}
