//! What is to happen, as a file says it.
//!
//! In: TOML. Out: a [`Scenario`] that was checked, or what is wrong with it and where. What a fault does is a
//! [`FaultKind`], mostly [rules](FaultRule) as the account and the driver take them; the seed decides later what is
//! left open, such as the region and the time (`schedule`). Pure.

mod written;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use emulator::clock::Span;
use faults::FaultRule;
use serde::{Deserialize, Deserializer, Serialize};

use crate::workload::Load;

/// Why a scenario cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadScenario(String);

impl BadScenario {
    pub(crate) fn new(text: impl Into<String>) -> BadScenario {
        BadScenario(text.into())
    }
}

/// What is to happen.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Scenario {
    /// What it is called.
    pub name: String,
    /// What it shows, in a line.
    pub about: String,
    /// The kinds of account it is played on, one after the other.
    pub writes: Vec<Writes>,
    /// The regions of the account; the first one writes, and the client prefers them in this order.
    pub regions: Vec<String>,
    /// Physical partitions at the start.
    pub partitions: u32,
    /// How long commits take from one region to another.
    pub lag: Option<Drawn>,
    /// What is done all the time.
    pub load: Load,
    /// How long the load goes on after the last fault.
    pub calm: Duration,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

/// Where an account takes writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Writes {
    /// In its first region.
    One,
    /// In every region.
    All,
}

impl fmt::Display for Writes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Writes::One => "one region writes",
            Writes::All => "all regions write",
        })
    }
}

/// One fault that begins and ends again.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Fault {
    /// What the fault does.
    pub kind: FaultKind,
    /// The region that the fault is in.
    pub region: Place,
    /// When the fault begins, after the start of the run.
    pub at: Drawn,
    /// How long the fault lasts.
    pub lasting: Drawn,
    /// What must hold meanwhile, beside what always must.
    pub expect: Expect,
}

/// What a fault does to the account.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FaultKind {
    /// Puts rules in force.
    Rules(FaultRules),
    /// Makes the region the one that writes; afterwards the one before does again.
    Failover {
        /// Whether the region before is down meanwhile.
        outage: bool,
    },
    /// Splits partitions, one after the other.
    Splits {
        /// The time between two splits.
        every: Duration,
        /// How long requests for a range wait before it is split.
        hold: Duration,
    },
    /// Makes commits take this long to arrive in the region.
    Lag(Drawn),
}

/// Rules that are in force during one fault.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FaultRules {
    /// What the fault is called in the report.
    pub name: String,
    /// The rules, in the order in which they are added. Those that name no region get that of the fault.
    pub rules: Vec<FaultRule>,
    /// Whether the rules are about one physical partition that the seed chooses.
    pub any_partition: bool,
}

impl FaultKind {
    /// What the fault is called in the report.
    pub fn name(&self) -> &str {
        match self {
            FaultKind::Rules(rules) => &rules.name,
            FaultKind::Failover { outage: false } => "failover",
            FaultKind::Failover { outage: true } => "outage and failover",
            FaultKind::Splits { .. } => "splits",
            FaultKind::Lag(_) => "lag",
        }
    }
}

/// Which region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The one of this name.
    Named(String),
    /// Whichever the seed says.
    Any,
    /// Every one of them.
    Everywhere,
}

/// What must hold during a fault.
#[derive(Clone, Debug, PartialEq, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Expect {
    /// Whether reads may fail; they may not, unless this says so.
    pub reads: Allowed,
    /// Whether writes may fail; they may, unless this says otherwise.
    pub writes: Option<Allowed>,
    /// Reads are well again within this time after the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads_within: Option<Span>,
    /// Writes are well again within this time after the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes_within: Option<Span>,
}

/// Whether operations may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Allowed {
    /// None may.
    #[default]
    Succeed,
    /// Some may.
    MayFail,
}

/// A time, or two to draw one between: `2s`, `1s..3s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// The shortest.
    pub from: Duration,
    /// The longest.
    pub to: Duration,
}

impl Drawn {
    /// Always this.
    pub fn always(time: Duration) -> Drawn {
        Drawn { from: time, to: time }
    }

    /// The time of a draw, 0 to 1.
    pub(crate) fn at(self, share: f64) -> Duration {
        self.from + (self.to - self.from).mul_f64(share)
    }
}

impl FromStr for Drawn {
    type Err = String;

    fn from_str(text: &str) -> Result<Drawn, String> {
        let span = |text: &str| text.parse::<Span>().map(|span| span.0).map_err(|error| error.to_string());
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        let drawn = Drawn { from: span(from)?, to: span(to)? };
        if drawn.from > drawn.to { Err(format!("'{text}' is empty; swap the two")) } else { Ok(drawn) }
    }
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.from == self.to {
            Span(self.from).fmt(f)
        } else {
            write!(f, "{}..{}", Span(self.from), Span(self.to))
        }
    }
}

impl<'de> Deserialize<'de> for Drawn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Drawn, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

const PARTITIONS_MAX: u32 = 100;
const FAULTS_MAX: usize = 64;
const BYTES_MAX: usize = 1024 * 1024;

impl Scenario {
    /// Reads a scenario; `name` is what it is called unless it says so itself.
    pub fn read(name: &str, text: &str) -> Result<Scenario, BadScenario> {
        if text.len() > BYTES_MAX {
            return Err(BadScenario(format!("a scenario has at most {BYTES_MAX} bytes")));
        }
        let scenario = written::read(name, text)?;
        scenario.check()?;
        Ok(scenario)
    }

    fn check(&self) -> Result<(), BadScenario> {
        let bad = |text: &str| Err(BadScenario::new(text));
        if self.faults.is_empty() {
            return bad("nothing goes wrong in it; add a [[fault]]");
        }
        if self.faults.len() > FAULTS_MAX {
            return Err(BadScenario(format!("a scenario has at most {FAULTS_MAX} faults")));
        }
        if self.regions.is_empty() {
            return bad("an account has at least one region");
        }
        if self.writes.is_empty() {
            return bad("writes is a list of 'one', 'all' or both");
        }
        if !(1..=PARTITIONS_MAX).contains(&self.partitions) {
            return Err(BadScenario(format!(
                "partitions is {}; expected 1 to {PARTITIONS_MAX}",
                self.partitions
            )));
        }
        let fails_over = self.faults.iter().any(|fault| matches!(fault.kind, FaultKind::Failover { .. }));
        if fails_over && self.writes.contains(&Writes::All) {
            return bad("where all regions write there is nothing to fail over; leave 'all' out of writes");
        }
        if fails_over && self.regions.len() < 2 {
            return bad("a failover needs a second region");
        }
        self.load.check()
    }
}

/// Durations in files, as people write them.
pub(crate) mod span {
    use super::{Deserialize, Deserializer, Duration, Span};
    use serde::{Serialize as _, Serializer};

    pub(crate) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        Span(*time).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        Span::deserialize(deserializer).map(|span| span.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAULT: &str = "[[fault]]\nkind = \"drain\"\nat = \"1s\"\nfor = \"1s..3s\"\n";

    #[test]
    fn what_a_file_leaves_out_is_as_usual() {
        let scenario = Scenario::read("mine", FAULT).expect("valid");
        assert_eq!((scenario.name.as_str(), scenario.regions.len(), scenario.partitions), ("mine", 3, 4));
        assert_eq!((scenario.writes, scenario.load), (vec![Writes::One], Load::default()));
        let fault = &scenario.faults[0];
        assert_eq!((fault.kind.name(), &fault.region), ("drain", &Place::Any));
        assert_eq!(fault.lasting.to_string(), "1s..3s");
        assert_eq!(fault.expect, Expect::default());
    }

    /// The action of a scenario with one fault.
    fn action(words: &str) -> FaultKind {
        let text = format!("[[fault]]\nat = '1s'\nfor = '1s'\nregion = 'eastus'\n{words}");
        let scenario = Scenario::read("x", &text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(scenario.faults[0].region, Place::Named("East US".to_owned()));
        scenario.faults[0].kind.clone()
    }

    #[test]
    fn a_fault_is_a_rule_as_the_account_and_the_driver_take_it() {
        let json = br#"{"match": {"operations": ["read"], "container": "carts"}, "share": 0.5, "skip": 2, "count": 9,
                        "effect": {"status": 429, "subStatus": 3200, "retryAfter": "20ms"}}"#;
        let rule = FaultRule::from_json(json).expect("a rule");
        let flat = action(
            "share = 0.5\nskip = 2\ncount = 9\nmatch = { operations = ['read'], container = 'carts' }\n\
             effect = { status = 429, subStatus = 3200, retryAfter = '20ms' }",
        );
        let as_table = action(
            "kind = 'rule'\nrule = { share = 0.5, skip = 2, count = 9, match = { operations = ['read'], \
             container = 'carts' }, effect = { status = 429, subStatus = 3200, retryAfter = '20ms' } }",
        );
        for action in [flat, as_table] {
            let FaultKind::Rules(rules) = &action else { panic!("{action:?}") };
            assert_eq!((action.name(), &rules.rules[..]), ("rule", &[rule.clone()][..]));
        }
        assert_eq!(
            action("id = 'busy-region'\neveryNth = 2\neffect = { status = 503 }").name(),
            "busy region"
        );
    }

    #[test]
    fn every_kind_of_fault_is_read_with_what_it_takes() {
        let second = Duration::from_secs(1);
        for (text, name, json) in [
            ("kind = 'down'", "down", r#"[{"effect":{"connection":"refuse"}}]"#),
            ("kind = 'down'\nas = 'black-hole'", "black hole", r#"[{"effect":{"connection":"blackHole"}}]"#),
            ("kind = 'down'\nas = '503'", "503", r#"[{"effect":{"status":503}}]"#),
            ("kind = 'slow'\nby = '1s'", "slow", r#"[{"effect":{"delay":"1s"}}]"#),
            ("kind = 'drain'", "drain", r#"[{"effect":{"status":403,"subStatus":1008}}]"#),
            (
                "kind = 'partition'\nrange = 2\nstatus = 410\nsub-status = 1002",
                "bad partition",
                r#"[{"match":{"partitionKeyRange":2},"effect":{"status":410,"subStatus":1002}}]"#,
            ),
            (
                "kind = 'storm'\nshare = 0.5\nretry-after = '1s'",
                "throttle storm",
                r#"[{"share":0.5,"effect":{"status":429,"subStatus":3200,"retryAfter":"1s"}}]"#,
            ),
            (
                "kind = 'reset'",
                "resets",
                r#"[{"share":0.25,"effect":{"connection":"closeBefore"}},
                    {"share":0.3333333333333333,"effect":{"connection":"closeAfter"}}]"#,
            ),
            ("kind = 'rule'\nrule = { effect = { status = 503 } }", "rule", r#"[{"effect":{"status":503}}]"#),
        ] {
            let rules: Vec<FaultRule> = serde_json::from_str(json).expect("rules");
            let expected = FaultRules { name: name.to_owned(), rules, any_partition: false };
            assert_eq!(action(text), FaultKind::Rules(expected), "{text}");
        }
        for (text, expected) in [
            ("kind = 'failover'\noutage = true", FaultKind::Failover { outage: true }),
            ("kind = 'splits'\nevery = '1s'", FaultKind::Splits { every: second, hold: Duration::ZERO }),
            ("kind = 'lag'\nby = '1s'", FaultKind::Lag(Drawn::always(second))),
        ] {
            assert_eq!(action(text), expected);
        }
        let FaultKind::Rules(rules) = action("kind = 'partition'") else { panic!("rules") };
        assert!(rules.any_partition, "the seed chooses");
    }

    #[test]
    fn scenarios_that_cannot_be_played_are_refused_with_what_is_wrong() {
        let fault = |words: &str| format!("[[fault]]\nat = '1s'\nfor = '1s'\n{words}");
        for (text, part) in [
            (String::new(), "add a [[fault]]"),
            ("fault = 3".to_owned(), "fault"),
            (format!("colour = 'red'\n{FAULT}"), "colour"),
            (format!("writes = []\n{FAULT}"), "writes"),
            (format!("regions = []\n{FAULT}"), "region"),
            (format!("partitions = 0\n{FAULT}"), "partitions"),
            (format!("[load]\nworkers = 0\n{FAULT}"), "workers"),
            (format!("[load]\ndeadline = 'soon'\n{FAULT}"), "soon"),
            (fault("kind = 'flood'"), "there are down"),
            (fault("kind = 'drain'\nshare = 0.5"), "'share' means nothing"),
            (fault("kind = 'slow'"), "needs 'by'"),
            (fault("kind = 'slow'\nby = 'late'"), "late"),
            (fault("kind = 'down'\nas = 'tired'"), "tired"),
            (fault("kind = 'reset'\nshare = 1.5"), "1.5"),
            (fault("kind = 'rule'"), "needs 'rule'"),
            (fault(""), "'effect'"),
            (fault("effect = {}"), "effect is missing"),
            (fault("id = 'two words'\neffect = { status = 503 }"), "two words"),
            (fault("effect = { status = 200 }"), "200"),
            (fault("effect = { status = 503 }\nafter = '1s'"), "use 'at'"),
            (fault("effect = { status = 503 }\nby = '1s'"), "'by' means nothing"),
            (fault("kind = 'drain'\neffect = { status = 503 }"), "'effect' means nothing"),
            (fault("effect = { connection = 'failBeforeSending' }"), "'closeBefore'"),
            (fault("effect = { status = 503 }\nmatch = { regions = ['Mars'] }"), "West US"),
            (fault("kind = 'down'\nregion = 'Mars'"), "West US"),
            (fault("kind = 'splits'\nevery = '1ms'"), "10ms"),
            (fault("kind = 'failover'\nregion = 'all'"), "one region"),
            (format!("writes = ['all']\n{}", fault("kind = 'failover'")), "nothing to fail over"),
            (format!("regions = ['One']\n{}", fault("kind = 'failover'")), "second region"),
            ("[[fault]]\nkind = 'down'\nat = '3s..1s'\nfor = '1s'".to_owned(), "swap"),
            ("[[fault]]\nkind = 'down'\nat = '1s'\nfor = '0s'".to_owned(), "no time"),
            ("[[fault]]\nkind = 'down'\nat = '1s'".to_owned(), "for"),
            (" ".repeat(BYTES_MAX + 1), "bytes"),
        ] {
            let error = Scenario::read("x", &text).expect_err(part).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
