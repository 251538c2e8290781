//! The format of a scenario file, and its defaults.

use std::time::Duration;

use emulator::clock::HumanDuration;
use faults::{
    Applier, ConnectionEffect, DownMode, FaultEffect, FaultRule, Probability, RegionFault, RequestFilter,
};
use serde::Deserialize;

use super::{Expectation, Fault, FaultKind, FaultRules, RegionSelector, Scenario, WriteRegions};
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
    #[serde(default)]
    hedging: Vec<bool>,
    #[serde(default)]
    deadlines: Vec<HumanDuration>,
    attempt_timeout: Option<HumanDuration>,
    #[serde(default)]
    first_runtime_ends: bool,
    #[serde(default)]
    unlimited_windows: bool,
    #[serde(default)]
    https: bool,
    regions: Option<Vec<String>>,
    partitions: Option<u32>,
    lag: Option<DurationRange>,
    #[serde(default)]
    load: Workload,
    calm: Option<HumanDuration>,
    #[serde(default)]
    fault: Vec<FaultEntry>,
}

/// A fault in a file. One type for rules and all kinds, so that an error can name a property that does not apply.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FaultEntry {
    kind: Option<String>,
    at: DurationRange,
    #[serde(rename = "for")]
    duration: DurationRange,
    region: Option<String>,
    #[serde(rename = "as")]
    how: Option<String>,
    by: Option<String>,
    share: Option<f64>,
    retry_after: Option<HumanDuration>,
    every: Option<HumanDuration>,
    hold: Option<HumanDuration>,
    outage: Option<bool>,
    range: Option<u32>,
    status: Option<u16>,
    sub_status: Option<u32>,
    rule: Option<FaultRule>,
    // The properties of a rule, in the spelling of rules.
    id: Option<String>,
    #[serde(rename = "match")]
    filter: Option<RequestFilter>,
    skip: Option<u64>,
    #[serde(rename = "everyNth")]
    every_nth: Option<u64>,
    count: Option<u64>,
    after: Option<HumanDuration>,
    effect: Option<FaultEffect>,
    #[serde(default)]
    expect: Expectation,
}

/// The properties of a fault without a kind, which is a rule, besides those that all faults have.
const RULE_PROPERTIES: &[&str] = &["id", "match", "share", "skip", "everyNth", "count", "effect"];

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
        hedging: file.hedging,
        deadlines: file.deadlines.into_iter().map(|deadline| deadline.0).collect(),
        attempt_timeout: file.attempt_timeout.map(|timeout| timeout.0),
        first_runtime_ends: file.first_runtime_ends,
        unlimited_windows: file.unlimited_windows,
        https: file.https,
        partitions: file.partitions.unwrap_or(PARTITIONS_DEFAULT),
        lag: file.lag,
        workload: file.load,
        calm: file.calm.map_or(CALM_DEFAULT, |duration| duration.0),
        faults: faults.collect::<Result<_, _>>()?,
        regions,
    })
}

impl FaultEntry {
    fn read(self, regions: &[String]) -> Result<Fault, InvalidScenario> {
        self.check_properties()?;
        if self.duration.from.is_zero() {
            return Err(InvalidScenario::new("a fault of zero duration does nothing; set a longer 'for'"));
        }
        let region = region_selector(self.region.as_deref(), regions)?;
        let kind = self.fault_kind()?;
        if region == RegionSelector::All && matches!(kind, FaultKind::Failover { .. }) {
            return Err(InvalidScenario::new("a failover needs one region; name it, or use 'any'"));
        }
        if let FaultKind::Rules(FaultRules { rules, .. }) = &kind {
            rules.iter().try_for_each(|rule| check_rule(rule, regions))?;
        }
        Ok(Fault { kind, region, at: self.at, duration: self.duration, expect: self.expect })
    }

    /// Fails if there is a property that only faults of other kinds have.
    fn check_properties(&self) -> Result<(), InvalidScenario> {
        if self.after.is_some() {
            return Err(InvalidScenario::new("'after' is a property of rules alone; use 'at' in a scenario"));
        }
        let properties = match &self.kind {
            None => RULE_PROPERTIES,
            Some(name) => match KINDS.iter().find(|(kind, _)| kind == name) {
                Some((_, properties)) => properties,
                None => {
                    let known: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
                    return Err(InvalidScenario::new(format!(
                        "'{name}' is not a kind of fault; there are {}, and rules without a kind",
                        known.join(", ")
                    )));
                }
            },
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
            ("id", self.id.is_some()),
            ("match", self.filter.is_some()),
            ("skip", self.skip.is_some()),
            ("everyNth", self.every_nth.is_some()),
            ("count", self.count.is_some()),
            ("effect", self.effect.is_some()),
        ];
        match present.iter().find(|(property, is_present)| *is_present && !properties.contains(property)) {
            Some((property, _)) => Err(InvalidScenario::new(match &self.kind {
                Some(kind) => format!("'{property}' does not apply to a fault of kind '{kind}'"),
                None => {
                    format!("'{property}' does not apply to a rule; it has {}", RULE_PROPERTIES.join(", "))
                }
            })),
            None => Ok(()),
        }
    }

    fn fault_kind(&self) -> Result<FaultKind, InvalidScenario> {
        let Some(kind) = self.kind.as_deref() else { return self.rule_kind() };
        let missing =
            |property: &str| InvalidScenario::new(format!("a fault of kind '{kind}' needs '{property}'"));
        let bad = |error: String| InvalidScenario::new(error);
        let by = || self.by.as_deref().ok_or_else(|| missing("by"));
        let millis = Duration::from_millis;
        let region_fault =
            |name: &str, fault: RegionFault| rules_kind(name, vec![FaultRule::new(fault.effect())]);
        Ok(match kind {
            "down" => {
                let mode = self.how.as_deref().unwrap_or("refused").parse().map_err(bad)?;
                let name = match mode {
                    DownMode::BlackHole => "black hole",
                    DownMode::Unavailable => "503",
                    _ => "down",
                };
                region_fault(name, RegionFault::Down(mode))
            }
            "slow" => region_fault("slow", RegionFault::Slow(by()?.parse().map_err(bad)?)),
            "drain" => region_fault("drain", RegionFault::Drain),
            "storm" => {
                let retry_after = self.retry_after.map_or(millis(20), |duration| duration.0);
                let mut rule = FaultRule::throttle(retry_after);
                rule.probability = self.share.map(Probability);
                rules_kind("throttle storm", vec![rule])
            }
            "partition" => {
                let mut rule = FaultRule::status(self.status.unwrap_or(503), self.sub_status.unwrap_or(0));
                rule.filter.partition_key_range = self.range;
                FaultKind::Rules(FaultRules {
                    name: "bad partition".to_owned(),
                    rules: vec![rule],
                    any_partition: self.range.is_none(),
                })
            }
            "reset" => rules_kind("resets", resets(self.share.unwrap_or(0.5))?),
            "lag" => FaultKind::Lag(by()?.parse().map_err(bad)?),
            "failover" => FaultKind::Failover { outage: self.outage.unwrap_or(false) },
            "splits" => {
                let every = self.every.map_or(millis(500), |duration| duration.0);
                if every < millis(10) {
                    return Err(InvalidScenario::new("'every' is at least 10ms"));
                }
                FaultKind::Splits { every, hold: self.hold.map_or(Duration::ZERO, |duration| duration.0) }
            }
            _ => rules_kind("rule", vec![self.rule.clone().ok_or_else(|| missing("rule"))?]),
        })
    }

    /// The kind of a fault that is a rule: it has the rule's properties and no kind.
    fn rule_kind(&self) -> Result<FaultKind, InvalidScenario> {
        let Some(effect) = self.effect.clone() else {
            return Err(InvalidScenario::new("a fault needs an 'effect', as a rule has it, or a 'kind'"));
        };
        let mut rule = FaultRule::new(effect);
        rule.id.clone_from(&self.id);
        rule.filter = self.filter.clone().unwrap_or_default();
        rule.probability = self.share.map(Probability);
        rule.schedule.skip = self.skip;
        rule.schedule.every_nth = self.every_nth;
        rule.schedule.hits_max = self.count;
        // An id has no spaces; a report shows words.
        Ok(rules_kind(&self.id.as_deref().unwrap_or("rule").replace('-', " "), vec![rule]))
    }
}

fn rules_kind(name: &str, rules: Vec<FaultRule>) -> FaultKind {
    FaultKind::Rules(FaultRules { name: name.to_owned(), rules, any_partition: false })
}

/// Rules that close the connections of a share of the requests: half of them before the operation, half after it.
fn resets(share: f64) -> Result<Vec<FaultRule>, InvalidScenario> {
    let close = |connection, share| FaultRule::connection(connection).share(share);
    // Checked as a whole: half of an invalid share may be valid.
    let whole = close(ConnectionEffect::CloseBefore, share);
    whole.validate().map_err(|error| InvalidScenario::new(error.to_string()))?;
    let before = share / 2.0;
    // The second rule sees only the requests that the first one did not hit.
    let after = before / (1.0 - before);
    Ok(vec![close(ConnectionEffect::CloseBefore, before), close(ConnectionEffect::CloseAfter, after)])
}

/// Rejects a rule that contradicts itself, that the account cannot apply, or whose regions do not exist.
fn check_rule(rule: &FaultRule, regions: &[String]) -> Result<(), InvalidScenario> {
    let checked = rule.validate().and_then(|()| rule.supported_by(Applier::Account));
    checked.map_err(|error| InvalidScenario::new(error.to_string()))?;
    rule.filter.regions.iter().try_for_each(|name| region_selector(Some(name), regions).map(drop))
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
