//! Steps that make requests fail: rules that answer in the account's place, hold requests up, or lose
//! what was answered.

use perihelion_emulator::faults::{FaultRule, Faults};
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::stage::Stage;

/// Whether time may pass between what a client knows and what it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// Requests may be held up before they are carried out.
    MayPass,
    /// Only answers to writes may be.
    StandsStill,
}

impl Stage {
    /// Adds a rule, in the place of an earlier one or beside it. It strikes a few times.
    pub(crate) fn make_trouble(&mut self, time: Time, dice: &mut Dice) {
        let rules = if time == Time::MayPass { 2 } else { 1 };
        let mut rule = json!({
            "id": format!("r{}", dice.below(rules)),
            "count": dice.between(1, 4),
        });
        let mut filter = match dice.below(3) {
            0 => json!({"operations": ["write"]}),
            1 => json!({"operations": ["write", "read"]}),
            _ => json!({"resources": ["item"]}),
        };
        rule["effect"] = match dice.below(5) {
            0 | 1 => {
                let answers = [(429, 3200), (503, 0), (408, 0), (449, 0), (500, 0), (410, 21_005)];
                let (status, sub_status) = *dice.pick(&answers);
                json!({"status": status, "subStatus": sub_status})
            }
            2 | 3 => json!({"connection": *dice.pick(&["closeBefore", "closeAfter", "stall", "goAway"])}),
            _ => {
                let delay = format!("{}ms", dice.between(1, 60));
                if time == Time::MayPass && dice.chance(50) {
                    filter = json!({"operations": ["write", "read"]});
                    json!({"delay": delay})
                } else {
                    filter = json!({"operations": ["write"]});
                    json!({"delay": delay, "delayed": "answer"})
                }
            }
        };
        if dice.chance(30) {
            filter["regions"] = json!([dice.pick(&self.regions).name]);
        }
        if dice.chance(30) {
            rule["share"] = json!(0.5);
        }
        if dice.chance(30) {
            rule["for"] = format!("{}ms", dice.between(1, 200)).into();
        }
        rule["match"] = filter;
        self.tell(format!("rule {rule}"));
        self.faults().add(read_rule(rule)).unwrap();
    }

    /// Ends all of them.
    pub(crate) fn end_trouble(&mut self) {
        self.faults().clear().unwrap();
    }

    fn faults(&self) -> Faults {
        Faults::without_ports(&self.account.account, &self.account.clock)
    }
}

fn read_rule(rule: Value) -> FaultRule {
    serde_json::from_value(rule).unwrap()
}
