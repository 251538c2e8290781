//! The format of a scenario file, and its defaults.

use std::time::Duration;

use emulator::clock::Span;
use emulator::faults::Rule;
use serde::Deserialize;

use super::{Expectation, Fault, FaultKind, RegionSelector, Scenario, WriteRegions};
use crate::duration::DurationRange;
use crate::invalid_scenario::InvalidScenario;
use crate::workload::Workload;

/// A scenario file: every property may be missing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ScenarioFile {
    name: Option<String>,
    #[serde(default)]
    about: String,
    writes: Option<Vec<WriteRegions>>,
    regions: Option<Vec<String>>,
    partitions: Option<u32>,
    lag: Option<DurationRange>,
    #[serde(default)]
    load: Workload,
    calm: Option<Span>,
    #[serde(default)]
    fault: Vec<FaultEntry>,
}

/// A fault in a file. One type for all kinds, so that an error can name a property that does not apply.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FaultEntry {
    kind: String,
    at: DurationRange,
    #[serde(rename = "for")]
    lasting: DurationRange,
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
    rule: Option<Rule>,
    #[serde(default)]
    expect: Expectation,
}

/// The properties of each kind of fault, besides those that all kinds have.
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

/// Reads a file. The limits of the values are checked later.
pub(super) fn read(name: &str, text: &str) -> Result<Scenario, InvalidScenario> {
    let file: ScenarioFile =
        toml::from_str(text).map_err(|error| InvalidScenario::new(error.to_string().trim_end()))?;
    let regions =
        file.regions.unwrap_or_else(|| REGIONS_DEFAULT.iter().map(|&name| name.to_owned()).collect());
    let faults = file.fault.into_iter().enumerate().map(|(at, fault)| {
        fault.read(&regions).map_err(|error| InvalidScenario::new(format!("fault {}: {error}", at + 1)))
    });
    Ok(Scenario {
        name: file.name.unwrap_or_else(|| name.to_owned()),
        about: file.about,
        writes: file.writes.unwrap_or_else(|| vec![WriteRegions::One]),
        partitions: file.partitions.unwrap_or(PARTITIONS_DEFAULT),
        lag: file.lag,
        workload: file.load,
        calm: file.calm.map_or(CALM_DEFAULT, |span| span.0),
        faults: faults.collect::<Result<_, _>>()?,
        regions,
    })
}

impl FaultEntry {
    fn read(self, regions: &[String]) -> Result<Fault, InvalidScenario> {
        self.check_properties()?;
        if self.lasting.from.is_zero() {
            return Err(InvalidScenario::new("a fault of zero duration does nothing; set a longer 'for'"));
        }
        let region = region_selector(self.region.as_deref(), regions)?;
        let kind = self.fault_kind()?;
        if region == RegionSelector::All && matches!(kind, FaultKind::Failover { .. }) {
            return Err(InvalidScenario::new("a failover needs one region; name it, or use 'any'"));
        }
        Ok(Fault { kind, region, at: self.at, duration: self.lasting, expect: self.expect })
    }

    /// Fails if there is a property that only faults of other kinds have.
    fn check_properties(&self) -> Result<(), InvalidScenario> {
        let Some((_, properties)) = KINDS.iter().find(|(kind, _)| *kind == self.kind) else {
            let known: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
            return Err(InvalidScenario::new(format!(
                "'{}' is not a kind of fault; there are {}",
                self.kind,
                known.join(", ")
            )));
        };
        let present = [
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
        match present.iter().find(|(property, is_present)| *is_present && !properties.contains(property)) {
            Some((property, _)) => {
                let message = format!("'{property}' does not apply to a fault of kind '{}'", self.kind);
                Err(InvalidScenario::new(message))
            }
            None => Ok(()),
        }
    }

    fn fault_kind(&self) -> Result<FaultKind, InvalidScenario> {
        let missing = |property: &str| {
            InvalidScenario::new(format!("a fault of kind '{}' needs '{property}'", self.kind))
        };
        let bad = |error: String| InvalidScenario::new(error);
        let share = |default: f64| match self.share.unwrap_or(default) {
            share if share > 0.0 && share <= 1.0 => Ok(share),
            share => Err(InvalidScenario::new(format!(
                "the share {share} is invalid; use more than 0 and at most 1"
            ))),
        };
        let millis = Duration::from_millis;
        Ok(match self.kind.as_str() {
            "down" => FaultKind::Down(self.how.as_deref().unwrap_or("refused").parse().map_err(bad)?),
            "slow" => FaultKind::Slow(self.by.as_deref().ok_or_else(|| missing("by"))?.parse().map_err(bad)?),
            "lag" => FaultKind::Lag(self.by.as_deref().ok_or_else(|| missing("by"))?.parse().map_err(bad)?),
            "drain" => FaultKind::Drain,
            "failover" => FaultKind::Failover { outage: self.outage.unwrap_or(false) },
            "partition" => FaultKind::Partition {
                range: self.range,
                status: self.status.unwrap_or(503),
                sub_status: self.sub_status.unwrap_or(0),
            },
            "storm" => FaultKind::Storm {
                share: share(1.0)?,
                retry_after: self.retry_after.map_or(millis(20), |span| span.0),
            },
            "splits" => {
                let every = self.every.map_or(millis(500), |span| span.0);
                if every < millis(10) {
                    return Err(InvalidScenario::new("'every' is at least 10ms"));
                }
                FaultKind::Splits { every, hold: self.hold.map_or(Duration::ZERO, |span| span.0) }
            }
            "reset" => FaultKind::Reset { share: share(0.5)? },
            _ => FaultKind::Rule(Box::new(self.rule.clone().ok_or_else(|| missing("rule"))?)),
        })
    }
}

fn region_selector(property: Option<&str>, regions: &[String]) -> Result<RegionSelector, InvalidScenario> {
    let normalized = |name: &str| name.to_lowercase().replace(' ', "");
    match property {
        None | Some("any") => Ok(RegionSelector::Any),
        Some("all") => Ok(RegionSelector::All),
        Some(name) => match regions.iter().find(|region| normalized(region) == normalized(name)) {
            Some(region) => Ok(RegionSelector::Named(region.clone())),
            None => Err(InvalidScenario::new(format!(
                "there is no region '{name}'; there are {}, 'any' and 'all'",
                regions.join(", ")
            ))),
        },
    }
}
