//! The options that select instances.

use std::str::FromStr;

use durable::operator::InstanceSelector;
use emulator::clock::{HumanDuration, Ticks};

/// Which instances a command is about.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct SelectionOptions {
    /// Only with this status; may be repeated
    #[arg(long = "status", value_name = "STATUS", value_enum, ignore_case = true)]
    statuses: Vec<Status>,

    /// Only orchestrations whose name begins so
    #[arg(long, value_name = "PREFIX")]
    name: Option<String>,

    /// Only instances whose id begins so
    #[arg(long, value_name = "PREFIX")]
    id: Option<String>,

    /// Only sub-orchestrations of this instance
    #[arg(long, value_name = "ID")]
    parent: Option<String>,

    /// Only created since then: a time, or a duration before now like 2h
    #[arg(long, value_name = "TIME")]
    created_since: Option<PastTime>,

    /// Only changed since then: a time, or a duration before now
    #[arg(long, value_name = "TIME")]
    updated_since: Option<PastTime>,

    /// Only ended before then: a time, or a duration before now
    #[arg(long, value_name = "TIME")]
    ended_before: Option<PastTime>,
}

impl SelectionOptions {
    /// Whether no option is given, so that all instances are meant.
    pub(crate) fn is_empty(&self) -> bool {
        self.selector(Ticks(0)) == InstanceSelector::default()
    }

    /// The selector, of which durations end now.
    pub(crate) fn selector(&self, now: Ticks) -> InstanceSelector {
        let time = |time: &Option<PastTime>| time.as_ref().map(|time| time.milliseconds(now));
        InstanceSelector {
            statuses: self.statuses.iter().map(|status| status.name().to_owned()).collect(),
            name_prefix: self.name.clone(),
            id_prefix: self.id.clone(),
            parent: self.parent.clone(),
            created_since: time(&self.created_since),
            updated_since: time(&self.updated_since),
            ended_before: time(&self.ended_before),
            ..InstanceSelector::default()
        }
    }
}

/// The status of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Status {
    Pending,
    Running,
    Completed,
    Failed,
    Deleting,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Status::Pending => "Pending",
            Status::Running => "Running",
            Status::Completed => "Completed",
            Status::Failed => "Failed",
            Status::Deleting => "Deleting",
        }
    }
}

/// A time in the past: a timestamp, or how long before now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PastTime {
    At(Ticks),
    Ago(HumanDuration),
}

impl PastTime {
    /// The time in milliseconds since 1970.
    fn milliseconds(self, now: Ticks) -> u64 {
        let milliseconds = |ticks: Ticks| u64::try_from(ticks.milliseconds()).unwrap_or_default();
        match self {
            PastTime::At(time) => milliseconds(time),
            PastTime::Ago(HumanDuration(time)) => {
                milliseconds(now).saturating_sub(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
            }
        }
    }
}

impl FromStr for PastTime {
    type Err = String;

    fn from_str(text: &str) -> Result<PastTime, String> {
        if let Ok(duration) = text.parse() {
            return Ok(PastTime::Ago(duration));
        }
        text.parse().map(PastTime::At).map_err(|_| {
            "expected a duration before now like 30m or 7d, or a time like 2030-01-31 or 2030-01-31T08:00:00Z"
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_timestamps_or_durations_before_now() {
        let now: Ticks = "2030-01-31T08:00:00Z".parse().unwrap();
        let at = |text: &str| text.parse::<PastTime>().map(|time| time.milliseconds(now));
        let hour = 3_600_000;
        let now = now.milliseconds() as u64;
        assert_eq!(at("2h"), Ok(now - 2 * hour));
        assert_eq!(at("2030-01-31"), Ok(now - 8 * hour));
        assert_eq!(at("2030-01-31T07:00:00Z"), Ok(now - hour));
        assert_eq!(at("900y"), Ok(0));
        assert!(at("yesterday").unwrap_err().contains("30m"));
    }
}
