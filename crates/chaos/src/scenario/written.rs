//! The form of a scenario's file, and what it leaves out.

use std::time::Duration;

use emulator::clock::Span;
use faults::{
    Applier, ConnectionEffect, DownMode, FaultEffect, FaultRule, Probability, RegionFault, RequestFilter,
};
use serde::Deserialize;

use super::{BadScenario, Drawn, Expect, Fault, FaultKind, FaultRules, Place, Scenario, Writes};
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

/// A fault as it is written: one form for rules and all kinds, so that a word too much can be named.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenFault {
    kind: Option<String>,
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
    // The fields of a rule, in the spelling of rules.
    id: Option<String>,
    #[serde(rename = "match")]
    filter: Option<RequestFilter>,
    skip: Option<u64>,
    #[serde(rename = "everyNth")]
    every_nth: Option<u64>,
    count: Option<u64>,
    after: Option<Span>,
    effect: Option<FaultEffect>,
    #[serde(default)]
    expect: Expect,
}

/// What a fault without a kind may say: the fields of a rule.
const RULE_WORDS: &[&str] = &["id", "match", "share", "skip", "everyNth", "count", "effect"];

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
        let kind = self.fault_kind()?;
        if region == Place::Everywhere && matches!(kind, FaultKind::Failover { .. }) {
            return Err(BadScenario::new("a failover goes to one region"));
        }
        if let FaultKind::Rules(FaultRules { rules, .. }) = &kind {
            rules.iter().try_for_each(|rule| check_rule(rule, regions))?;
        }
        Ok(Fault { kind, region, at: self.at, lasting: self.lasting, expect: self.expect })
    }

    /// Refuses words that a fault of another kind has.
    fn check_words(&self) -> Result<(), BadScenario> {
        if self.after.is_some() {
            return Err(BadScenario::new("'after' belongs to rules of the account; use 'at' in a scenario"));
        }
        let words = match &self.kind {
            None => RULE_WORDS,
            Some(name) => match KINDS.iter().find(|(kind, _)| kind == name) {
                Some((_, words)) => words,
                None => {
                    let known: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
                    return Err(BadScenario(format!(
                        "'{name}' is no kind; there are {}, and rules without a kind",
                        known.join(", ")
                    )));
                }
            },
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
            ("id", self.id.is_some()),
            ("match", self.filter.is_some()),
            ("skip", self.skip.is_some()),
            ("everyNth", self.every_nth.is_some()),
            ("count", self.count.is_some()),
            ("effect", self.effect.is_some()),
        ];
        match said.iter().find(|(word, is_said)| *is_said && !words.contains(word)) {
            Some((word, _)) => Err(BadScenario(match &self.kind {
                Some(kind) => format!("'{word}' means nothing to a fault of kind '{kind}'"),
                None => format!("'{word}' means nothing to a rule; it takes {}", RULE_WORDS.join(", ")),
            })),
            None => Ok(()),
        }
    }

    fn fault_kind(&self) -> Result<FaultKind, BadScenario> {
        let Some(kind) = self.kind.as_deref() else { return self.rule_of_fields() };
        let missing = |word: &str| BadScenario(format!("a fault of kind '{kind}' needs '{word}'"));
        let bad = |error: String| BadScenario(error);
        let by = || self.by.as_deref().ok_or_else(|| missing("by"));
        let millis = Duration::from_millis;
        let region_fault = |name: &str, fault: RegionFault| named(name, vec![FaultRule::new(fault.effect())]);
        Ok(match kind {
            "down" => {
                let outage = self.how.as_deref().unwrap_or("refused").parse().map_err(bad)?;
                let name = match outage {
                    DownMode::BlackHole => "black hole",
                    DownMode::Unavailable => "503",
                    _ => "down",
                };
                region_fault(name, RegionFault::Down(outage))
            }
            "slow" => region_fault("slow", RegionFault::Slow(by()?.parse().map_err(bad)?)),
            "drain" => region_fault("drain", RegionFault::Drain),
            "storm" => {
                let retry_after = self.retry_after.map_or(millis(20), |span| span.0);
                let mut rule = FaultRule::throttle(retry_after);
                rule.probability = self.share.map(Probability);
                named("throttle storm", vec![rule])
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
            "reset" => named("resets", resets(self.share.unwrap_or(0.5))?),
            "lag" => FaultKind::Lag(by()?.parse().map_err(bad)?),
            "failover" => FaultKind::Failover { outage: self.outage.unwrap_or(false) },
            "splits" => {
                let every = self.every.map_or(millis(500), |span| span.0);
                if every < millis(10) {
                    return Err(BadScenario::new("'every' is at least 10ms"));
                }
                FaultKind::Splits { every, hold: self.hold.map_or(Duration::ZERO, |span| span.0) }
            }
            _ => named("rule", vec![self.rule.clone().ok_or_else(|| missing("rule"))?]),
        })
    }

    /// The rule of a fault without a kind.
    fn rule_of_fields(&self) -> Result<FaultKind, BadScenario> {
        let Some(effect) = self.effect.clone() else {
            return Err(BadScenario::new("a fault needs an 'effect', as a rule has it, or a 'kind'"));
        };
        let mut rule = FaultRule::new(effect);
        rule.id.clone_from(&self.id);
        rule.filter = self.filter.clone().unwrap_or_default();
        rule.probability = self.share.map(Probability);
        rule.schedule.skip = self.skip;
        rule.schedule.every_nth = self.every_nth;
        rule.schedule.hits_max = self.count;
        // An id has no spaces; the report shows words.
        Ok(named(&self.id.as_deref().unwrap_or("rule").replace('-', " "), vec![rule]))
    }
}

fn named(name: &str, rules: Vec<FaultRule>) -> FaultKind {
    FaultKind::Rules(FaultRules { name: name.to_owned(), rules, any_partition: false })
}

/// Closes the connections of a share of the requests: half of them before the operation is carried out, half after.
fn resets(share: f64) -> Result<Vec<FaultRule>, BadScenario> {
    let close = |connection, share| FaultRule::connection(connection).share(share);
    // Checked as a whole: half of an impossible share may be possible.
    let whole = close(ConnectionEffect::CloseBefore, share);
    whole.validate().map_err(|error| BadScenario::new(error.to_string()))?;
    let before = share / 2.0;
    // Only the requests that the first rule leaves alone get to the second.
    let after = before / (1.0 - before);
    Ok(vec![close(ConnectionEffect::CloseBefore, before), close(ConnectionEffect::CloseAfter, after)])
}

/// Refuses a rule that contradicts itself, that the account cannot apply, or whose regions do not exist.
fn check_rule(rule: &FaultRule, regions: &[String]) -> Result<(), BadScenario> {
    let checked = rule.validate().and_then(|()| rule.supported_by(Applier::Account));
    checked.map_err(|error| BadScenario::new(error.to_string()))?;
    rule.filter.regions.iter().try_for_each(|name| place(Some(name), regions).map(drop))
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
