//! The form of a scenario's file, and what it leaves out.

use std::time::Duration;

use emulator::clock::Span;
use emulator::faults::FaultRule;
use serde::Deserialize;

use super::{BadScenario, Drawn, Expect, Fault, Place, Scenario, Trouble, Writes};
use crate::workload::Load;

/// A file as it is written: everything may be missing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    name: Option<String>,
    #[serde(default)]
    about: String,
    writes: Option<Vec<Writes>>,
    regions: Option<Vec<String>>,
    partitions: Option<u32>,
    lag: Option<Drawn>,
    #[serde(default)]
    load: Load,
    calm: Option<Span>,
    #[serde(default)]
    fault: Vec<WrittenFault>,
}

/// A fault as it is written: one form for all kinds, so that a word too much can be named.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenFault {
    kind: String,
    at: Drawn,
    #[serde(rename = "for")]
    lasting: Drawn,
    region: Option<String>,
    #[serde(rename = "as")]
    how: Option<String>,
    by: Option<String>,
    share: Option<f64>,
    retry_after: Option<Span>,
    every: Option<Span>,
    hold: Option<Span>,
    outage: Option<bool>,
    range: Option<u32>,
    status: Option<u16>,
    sub_status: Option<u32>,
    rule: Option<FaultRule>,
    #[serde(default)]
    expect: Expect,
}

/// What a fault of each kind may say beside when, where and what is expected.
const KINDS: &[(&str, &[&str])] = &[
    ("down", &["as"]),
    ("slow", &["by"]),
    ("drain", &[]),
    ("failover", &["outage"]),
    ("partition", &["range", "status", "sub-status"]),
    ("storm", &["share", "retry-after"]),
    ("splits", &["every", "hold"]),
    ("reset", &["share"]),
    ("lag", &["by"]),
    ("rule", &["rule"]),
];

const REGIONS_DEFAULT: [&str; 3] = ["West US", "East US", "North Europe"];
const PARTITIONS_DEFAULT: u32 = 4;
const CALM_DEFAULT: Duration = Duration::from_millis(1_500);

/// Reads a file; what it says is understood and not yet weighed.
pub(super) fn read(name: &str, text: &str) -> Result<Scenario, BadScenario> {
    let written: Written =
        toml::from_str(text).map_err(|error| BadScenario(error.to_string().trim_end().to_owned()))?;
    let regions =
        written.regions.unwrap_or_else(|| REGIONS_DEFAULT.iter().map(|&name| name.to_owned()).collect());
    let faults = written.fault.into_iter().enumerate().map(|(at, fault)| {
        fault.read(&regions).map_err(|error| BadScenario(format!("fault {}: {error}", at + 1)))
    });
    Ok(Scenario {
        name: written.name.unwrap_or_else(|| name.to_owned()),
        about: written.about,
        writes: written.writes.unwrap_or_else(|| vec![Writes::One]),
        partitions: written.partitions.unwrap_or(PARTITIONS_DEFAULT),
        lag: written.lag,
        load: written.load,
        calm: written.calm.map_or(CALM_DEFAULT, |span| span.0),
        faults: faults.collect::<Result<_, _>>()?,
        regions,
    })
}

impl WrittenFault {
    fn read(self, regions: &[String]) -> Result<Fault, BadScenario> {
        self.check_words()?;
        if self.lasting.from.is_zero() {
            return Err(BadScenario::new("a fault that lasts no time does nothing; give 'for' some"));
        }
        let region = place(self.region.as_deref(), regions)?;
        let trouble = self.trouble()?;
        if region == Place::Everywhere && matches!(trouble, Trouble::Failover { .. }) {
            return Err(BadScenario::new("a failover goes to one region"));
        }
        Ok(Fault { trouble, region, at: self.at, lasting: self.lasting, expect: self.expect })
    }

    /// Refuses words that a fault of another kind has.
    fn check_words(&self) -> Result<(), BadScenario> {
        let Some((_, words)) = KINDS.iter().find(|(kind, _)| *kind == self.kind) else {
            let known: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
            return Err(BadScenario(format!("'{}' is no kind; there are {}", self.kind, known.join(", "))));
        };
        let said = [
            ("as", self.how.is_some()),
            ("by", self.by.is_some()),
            ("share", self.share.is_some()),
            ("retry-after", self.retry_after.is_some()),
            ("every", self.every.is_some()),
            ("hold", self.hold.is_some()),
            ("outage", self.outage.is_some()),
            ("range", self.range.is_some()),
            ("status", self.status.is_some()),
            ("sub-status", self.sub_status.is_some()),
            ("rule", self.rule.is_some()),
        ];
        match said.iter().find(|(word, is_said)| *is_said && !words.contains(word)) {
            Some((word, _)) => {
                Err(BadScenario(format!("'{word}' means nothing to a fault of kind '{}'", self.kind)))
            }
            None => Ok(()),
        }
    }

    fn trouble(&self) -> Result<Trouble, BadScenario> {
        let missing = |word: &str| BadScenario(format!("a fault of kind '{}' needs '{word}'", self.kind));
        let bad = |error: String| BadScenario(error);
        let share = |usual: f64| match self.share.unwrap_or(usual) {
            share if share > 0.0 && share <= 1.0 => Ok(share),
            share => Err(BadScenario(format!("a share of {share} is impossible; more than 0, at most 1"))),
        };
        let millis = Duration::from_millis;
        Ok(match self.kind.as_str() {
            "down" => Trouble::Down(self.how.as_deref().unwrap_or("refused").parse().map_err(bad)?),
            "slow" => Trouble::Slow(self.by.as_deref().ok_or_else(|| missing("by"))?.parse().map_err(bad)?),
            "lag" => Trouble::Lag(self.by.as_deref().ok_or_else(|| missing("by"))?.parse().map_err(bad)?),
            "drain" => Trouble::Drain,
            "failover" => Trouble::Failover { outage: self.outage.unwrap_or(false) },
            "partition" => Trouble::Partition {
                range: self.range,
                status: self.status.unwrap_or(503),
                sub_status: self.sub_status.unwrap_or(0),
            },
            "storm" => Trouble::Storm {
                share: share(1.0)?,
                retry_after: self.retry_after.map_or(millis(20), |span| span.0),
            },
            "splits" => {
                let every = self.every.map_or(millis(500), |span| span.0);
                if every < millis(10) {
                    return Err(BadScenario::new("'every' is at least 10ms"));
                }
                Trouble::Splits { every, hold: self.hold.map_or(Duration::ZERO, |span| span.0) }
            }
            "reset" => Trouble::Reset { share: share(0.5)? },
            _ => Trouble::Rule(Box::new(self.rule.clone().ok_or_else(|| missing("rule"))?)),
        })
    }
}

fn place(word: Option<&str>, regions: &[String]) -> Result<Place, BadScenario> {
    let plain = |name: &str| name.to_lowercase().replace(' ', "");
    match word {
        None | Some("any") => Ok(Place::Any),
        Some("all") => Ok(Place::Everywhere),
        Some(name) => match regions.iter().find(|region| plain(region) == plain(name)) {
            Some(region) => Ok(Place::Named(region.clone())),
            None => Err(BadScenario(format!(
                "there is no region '{name}'; there are {}, 'any' and 'all'",
                regions.join(", ")
            ))),
        },
    }
}
