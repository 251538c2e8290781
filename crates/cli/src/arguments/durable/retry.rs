//! The command line of `peri durable retry`.

use super::{DurableOptions, SelectionOptions};

const EXAMPLES: &str = "\
Examples:
  peri durable retry --dry-run               show what is stuck
  peri durable retry                         give all of it another try, ten items per second
  peri durable retry --id order- --rate 1    only these instances, one item per second
  peri durable retry --failed --name Order   also start failed orders once more

What is stuck, and what is done about it:
  messages and activities that could not be read and were set aside go back into their queues
  activities whose lock expired, or that wait after a failed attempt, are offered to workers at once, with attempts at zero
  instances whose lock expired, or whose messages wait after a failed attempt, are offered to runtimes likewise
  messages to other instances that were left behind are delivered, and large turns that are half visible are made visible

None of this undoes or repeats what is committed, and nothing is done to what a runtime has locked. With --failed, each failed
instance that is no sub-orchestration and was not cancelled is started once more with its orchestration, version and input, under the
id ID:retry:1 (then ID:retry:2), once: its activities run again. The failed instance stays as it is.";

/// Give stuck work another try, and with --failed start failed instances once more
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DurableRetry {
    #[command(flatten)]
    pub(crate) selection: SelectionOptions,

    /// Also start failed instances once more, under new ids
    #[arg(long)]
    pub(crate) failed: bool,

    /// Number of items per second
    #[arg(long, value_name = "N", default_value = "10", value_parser = rate)]
    pub(crate) rate: f64,

    /// Largest number of items
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,

    /// Only show what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) options: DurableOptions,
}

/// A number of items per second, from one a day to a million.
fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (1e-5..=1e6).contains(&rate) => Ok(rate),
        _ => Err("expected a number of items per second, like 10 or 0.5".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_positive() {
        assert_eq!(rate("0.5"), Ok(0.5));
        for text in ["0", "-1", "inf", "NaN", "fast", ""] {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
