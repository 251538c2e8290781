//! Steps that inject faults: rules that respond in the account's place, delay requests, or lose responses.

use perihelion_emulator::faults::{FaultRule, Faults};
use serde_json::{Value, json};

use crate::fixture::Fixture;
use crate::seeded_random::SeededRandom;

/// Whether rules may delay requests before they are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestDelay {
    /// Requests and responses may be delayed.
    Allowed,
    /// Only responses to writes may be delayed.
    Forbidden,
}

impl Fixture {
    /// Adds a rule, or replaces an earlier one. It applies to a few requests.
    pub(crate) fn add_fault_rule(&mut self, time: RequestDelay, rng: &mut SeededRandom) {
        let rules = if time == RequestDelay::Allowed { 2 } else { 1 };
        let mut rule = json!({
            "id": format!("r{}", rng.below(rules)),
            "count": rng.between(1, 4),
        });
        let mut filter = match rng.below(3) {
            0 => json!({"operations": ["write"]}),
            1 => json!({"operations": ["write", "read"]}),
            _ => json!({"resources": ["item"]}),
        };
        rule["effect"] = match rng.below(5) {
            0 | 1 => {
                let responses = [(429, 3200), (503, 0), (408, 0), (449, 0), (500, 0), (410, 21_005)];
                let (status, sub_status) = *rng.pick(&responses);
                json!({"status": status, "subStatus": sub_status})
            }
            2 | 3 => json!({"connection": *rng.pick(&["closeBefore", "closeAfter", "stall", "goAway"])}),
            _ => {
                let delay = format!("{}ms", rng.between(1, 60));
                if time == RequestDelay::Allowed && rng.chance(50) {
                    filter = json!({"operations": ["write", "read"]});
                    json!({"delay": delay})
                } else {
                    filter = json!({"operations": ["write"]});
                    json!({"delay": delay, "delayed": "answer"})
                }
            }
        };
        if rng.chance(30) {
            filter["regions"] = json!([rng.pick(&self.regions).name]);
        }
        if rng.chance(30) {
            rule["share"] = json!(0.5);
        }
        if rng.chance(30) {
            rule["for"] = format!("{}ms", rng.between(1, 200)).into();
        }
        rule["match"] = filter;
        self.log_line(format!("rule {rule}"));
        self.faults().add(parse_rule(rule)).unwrap();
    }

    /// Removes all fault rules.
    pub(crate) fn clear_faults(&mut self) {
        self.faults().clear().unwrap();
    }

    fn faults(&self) -> Faults {
        self.account.hosted.faults_without_ports(&self.account.clock)
    }
}

fn parse_rule(rule: Value) -> FaultRule {
    serde_json::from_value(rule).unwrap()
}
