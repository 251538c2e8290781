//! A scenario: the account, the workload and the faults of a chaos run, read from a TOML file. Pure.
//!
//! Input: TOML. Output: a [`Scenario`] that was checked, or an error that says what is wrong and where. What a fault does
//! is its [`FaultKind`], mostly [rules](FaultRule) in the form that the account and the driver take. Times and regions that the file leaves open are chosen later, by the seed (`schedule`).

mod expectation;
mod file;
mod variant;

use std::time::Duration;

use faults::FaultRule;

use crate::duration::DurationRange;
use crate::invalid_scenario::InvalidScenario;
use crate::workload::Workload;

pub use expectation::{Expectation, FailureExpectation};
pub use variant::{Variant, WriteRegions};

/// The account, the workload and the faults of a chaos run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Scenario {
    /// The name of the scenario.
    pub name: String,
    /// What the scenario shows, in one line.
    pub about: String,
    /// The kinds of account that the scenario runs on, one after the other.
    pub writes: Vec<WriteRegions>,
    /// Whether the client hedges, one run for each value; it does if the list is empty.
    pub hedging: Vec<bool>,
    /// The deadlines of operations, one run for each; that of the workload if the list is empty.
    pub deadlines: Vec<Duration>,
    /// How long one attempt of the client may take; the driver's default if it is missing.
    pub attempt_timeout: Option<Duration>,
    /// Whether the first operations of the client run on a runtime of their own, which ends before the workload begins.
    pub first_runtime_ends: bool,
    /// Whether the client connects with TLS, and so with HTTP/2; otherwise with HTTP/1.1.
    pub https: bool,
    /// Whether the counter reset window and the failback interval of the client's circuit breakers are as long as a
    /// duration can be.
    pub unlimited_windows: bool,
    /// The regions of the account; the first one accepts writes, and the client prefers them in this order.
    pub regions: Vec<String>,
    /// The number of physical partitions at the start.
    pub partitions: u32,
    /// How long a commit takes to be replicated to another region.
    pub lag: Option<DurationRange>,
    /// The operations that run all the time.
    pub workload: Workload,
    /// How long the workload continues after the last fault.
    pub calm: Duration,
    /// The faults, in the order of the file.
    pub faults: Vec<Fault>,
}

/// A fault that begins and ends.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Fault {
    /// What the fault does.
    pub kind: FaultKind,
    /// The region that the fault affects.
    pub region: RegionSelector,
    /// When the fault begins, counted from the start of the run.
    pub at: DurationRange,
    /// How long the fault lasts.
    pub duration: DurationRange,
    /// What must hold during the fault, in addition to the guarantees that always hold.
    pub expect: Expectation,
}

/// What a fault does.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FaultKind {
    /// Fault rules are in force.
    Rules(FaultRules),
    /// The region becomes the write region; at the end the former write region becomes it again.
    Failover {
        /// Whether the former write region is down during the fault.
        outage: bool,
    },
    /// Partitions split, one after the other.
    Splits {
        /// The interval between two splits.
        every: Duration,
        /// How long requests for a range are held before it is split.
        hold: Duration,
    },
    /// Replication to the region takes this long.
    Lag(DurationRange),
}

/// The fault rules that are in force during one fault.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FaultRules {
    /// The name of the fault in reports.
    pub name: String,
    /// The rules, in the order in which they are added. Rules without a region get the region of the fault.
    pub rules: Vec<FaultRule>,
    /// Whether the rules are about one physical partition that the seed chooses.
    pub any_partition: bool,
}

impl FaultKind {
    /// A short name for reports.
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

/// Which region a fault affects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegionSelector {
    /// The region with this name.
    Named(String),
    /// One region, chosen by the seed.
    Any,
    /// Every region of the account.
    All,
}

const PARTITIONS_MAX: u32 = 100;
const FAULTS_MAX: usize = 64;
/// The regions that an operation used are the bits of one number.
const REGIONS_MAX: usize = 64;
const VARIANTS_MAX: usize = 32;
const BYTES_MAX: usize = 1024 * 1024;

impl Scenario {
    /// Reads a scenario from TOML; `name` is its name unless the file has one.
    pub fn read(name: &str, text: &str) -> Result<Scenario, InvalidScenario> {
        if text.len() > BYTES_MAX {
            return Err(InvalidScenario::new(format!("a scenario has at most {BYTES_MAX} bytes")));
        }
        let scenario = file::read(name, text)?;
        scenario.check()?;
        Ok(scenario)
    }

    /// The variants of the scenario: every kind of account with every setting of the client.
    pub fn variants(&self) -> Vec<Variant> {
        variant::combinations(&self.writes, &self.hedging, &self.deadlines)
    }

    fn check(&self) -> Result<(), InvalidScenario> {
        let bad = |text: &str| Err(InvalidScenario::new(text));
        if self.faults.is_empty() {
            return bad("the scenario has no fault; add a [[fault]]");
        }
        if self.faults.len() > FAULTS_MAX {
            return Err(InvalidScenario::new(format!("a scenario has at most {FAULTS_MAX} faults")));
        }
        if self.regions.is_empty() {
            return bad("an account has at least one region");
        }
        if self.regions.len() > REGIONS_MAX {
            return Err(InvalidScenario::new(format!("an account has at most {REGIONS_MAX} regions")));
        }
        if self.writes.is_empty() {
            return bad("writes is a list of 'one', 'all' or both");
        }
        if self.deadlines.iter().chain(&self.attempt_timeout).any(Duration::is_zero) {
            return bad("a deadline or attempt-timeout is zero; set a longer one");
        }
        if self.variants().len() > VARIANTS_MAX {
            return Err(InvalidScenario::new(format!(
                "a scenario has at most {VARIANTS_MAX} variants; shorten writes, hedging or deadlines"
            )));
        }
        self.faults.iter().try_for_each(|fault| fault.expect.check(fault.duration))?;
        if !(1..=PARTITIONS_MAX).contains(&self.partitions) {
            return Err(InvalidScenario::new(format!(
                "partitions is {}; expected 1 to {PARTITIONS_MAX}",
                self.partitions
            )));
        }
        let fails_over = self.faults.iter().any(|fault| matches!(fault.kind, FaultKind::Failover { .. }));
        if fails_over && self.writes.contains(&WriteRegions::All) {
            return bad(
                "an account with writes in all regions has nothing to fail over; remove 'all' from writes",
            );
        }
        if fails_over && self.regions.len() < 2 {
            return bad("a failover needs a second region");
        }
        self.workload.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAULT: &str = "[[fault]]\nkind = \"drain\"\nat = \"1s\"\nfor = \"1s..3s\"\n";

    #[test]
    fn missing_properties_have_defaults() {
        let scenario = Scenario::read("mine", FAULT).expect("valid");
        assert_eq!((scenario.name.as_str(), scenario.regions.len(), scenario.partitions), ("mine", 3, 4));
        let scenario_variants = scenario.variants();
        assert_eq!((scenario.writes, scenario.workload), (vec![WriteRegions::One], Workload::default()));
        let fault = &scenario.faults[0];
        assert_eq!((fault.kind.name(), &fault.region), ("drain", &RegionSelector::Any));
        assert_eq!(fault.duration.to_string(), "1s..3s");
        assert_eq!(fault.expect, Expectation::default());
        assert_eq!(scenario_variants, [Variant::from(WriteRegions::One)]);
    }

    /// The kind of the only fault of a scenario.
    fn kind_of(properties: &str) -> FaultKind {
        let text = format!("[[fault]]\nat = '1s'\nfor = '1s'\nregion = 'eastus'\n{properties}");
        let scenario = Scenario::read("x", &text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(scenario.faults[0].region, RegionSelector::Named("East US".to_owned()));
        scenario.faults[0].kind.clone()
    }

    #[test]
    fn a_fault_is_a_rule_as_the_account_and_the_driver_take_it() {
        let json = br#"{"match": {"operations": ["read"], "container": "carts"}, "share": 0.5, "skip": 2, "count": 9,
                        "effect": {"status": 429, "subStatus": 3200, "retryAfter": "20ms"}}"#;
        let rule = FaultRule::from_json(json).expect("a rule");
        let flat = kind_of(
            "share = 0.5\nskip = 2\ncount = 9\nmatch = { operations = ['read'], container = 'carts' }\n\
             effect = { status = 429, subStatus = 3200, retryAfter = '20ms' }",
        );
        let as_table = kind_of(
            "kind = 'rule'\nrule = { share = 0.5, skip = 2, count = 9, match = { operations = ['read'], \
             container = 'carts' }, effect = { status = 429, subStatus = 3200, retryAfter = '20ms' } }",
        );
        for kind in [flat, as_table] {
            let FaultKind::Rules(rules) = &kind else { panic!("{kind:?}") };
            assert_eq!((kind.name(), &rules.rules[..]), ("rule", &[rule.clone()][..]));
        }
        assert_eq!(
            kind_of("id = 'busy-region'\neveryNth = 2\neffect = { status = 503 }").name(),
            "busy region"
        );
    }

    #[test]
    fn every_kind_of_fault_is_read_with_its_properties() {
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
            assert_eq!(kind_of(text), FaultKind::Rules(expected), "{text}");
        }
        for (text, expected) in [
            ("kind = 'failover'\noutage = true", FaultKind::Failover { outage: true }),
            ("kind = 'splits'\nevery = '1s'", FaultKind::Splits { every: second, hold: Duration::ZERO }),
            ("kind = 'lag'\nby = '1s'", FaultKind::Lag(DurationRange::always(second))),
        ] {
            assert_eq!(kind_of(text), expected);
        }
        let FaultKind::Rules(rules) = kind_of("kind = 'partition'") else { panic!("rules") };
        assert!(rules.any_partition, "the seed chooses");
    }

    #[test]
    fn invalid_scenarios_are_errors_that_say_what_is_wrong() {
        let fault = |words: &str| format!("[[fault]]\nat = '1s'\nfor = '1s'\n{words}");
        for (text, part) in [
            (String::new(), "add a [[fault]]"),
            ("fault = 3".to_owned(), "fault"),
            (format!("colour = 'red'\n{FAULT}"), "colour"),
            (format!("writes = []\n{FAULT}"), "writes"),
            (format!("regions = []\n{FAULT}"), "region"),
            (format!("partitions = 0\n{FAULT}"), "partitions"),
            (format!("deadlines = ['0s']\n{FAULT}"), "zero"),
            (format!("hedging = {:?}\n{FAULT}", [true; 33]), "variants"),
            (format!("{FAULT}expect = {{ left-within = '1s' }}"), "make 'for' longer"),
            (format!("{FAULT}expect = {{ left-within = '1ms', reads-stay = true }}"), "contradict"),
            (format!("[load]\nworkers = 0\n{FAULT}"), "workers"),
            (format!("[load]\ndeadline = 'soon'\n{FAULT}"), "soon"),
            (fault("kind = 'flood'"), "there are down"),
            (fault("kind = 'drain'\nshare = 0.5"), "'share' does not apply"),
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
            (fault("effect = { status = 503 }\nby = '1s'"), "'by' does not apply"),
            (fault("kind = 'drain'\neffect = { status = 503 }"), "'effect' does not apply"),
            (fault("effect = { connection = 'failBeforeSending' }"), "'closeBefore'"),
            (fault("effect = { status = 503 }\nmatch = { regions = ['Mars'] }"), "West US"),
            (fault("kind = 'down'\nregion = 'Mars'"), "West US"),
            (fault("kind = 'splits'\nevery = '1ms'"), "10ms"),
            (fault("kind = 'failover'\nregion = 'all'"), "one region"),
            (format!("writes = ['all']\n{}", fault("kind = 'failover'")), "nothing to fail over"),
            (format!("regions = ['One']\n{}", fault("kind = 'failover'")), "second region"),
            ("[[fault]]\nkind = 'down'\nat = '3s..1s'\nfor = '1s'".to_owned(), "swap"),
            ("[[fault]]\nkind = 'down'\nat = '1s'\nfor = '0s'".to_owned(), "zero duration"),
            ("[[fault]]\nkind = 'down'\nat = '1s'".to_owned(), "for"),
            (" ".repeat(BYTES_MAX + 1), "bytes"),
        ] {
            let error = Scenario::read("x", &text).expect_err(part).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
