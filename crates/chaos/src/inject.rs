//! Making faults begin and end, through the control port.
//!
//! Each fault is a rule of its own, so that faults may overlap. A rule also ends by itself some time after
//! it should: a run that is cut short leaves no account broken for long.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use faults::{ConnectionEffect, FaultRule};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::control::{ControlError, ControlPort, escaped};
use crate::dice::Dice;
use crate::scenario::{Drawn, FaultKind};
use crate::schedule::Planned;

/// A rule ends by itself this long after it should have been ended.
const MARGIN: Duration = Duration::from_secs(30);
/// An outage is noticed by those who fail an account over after this share of it.
const NOTICED_AFTER: f64 = 0.25;

/// The faults in force, by their number in the schedule.
pub(crate) type Open = Arc<Mutex<BTreeSet<usize>>>;

/// What faults strike.
#[derive(Clone, Debug)]
pub(crate) struct Injector {
    /// What is yet to be ended, also if the run is cut short.
    pub(crate) open: Open,
    pub(crate) control: ControlPort,
    pub(crate) database: String,
    pub(crate) container: String,
    /// The region that writes when nothing is wrong.
    pub(crate) writer: String,
    /// The lag when nothing is wrong.
    pub(crate) lag: Drawn,
}

/// When a fault was in force, after the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InForce {
    pub(crate) began: Duration,
    pub(crate) ended: Duration,
}

impl Injector {
    /// Lets one fault happen, at its time.
    pub(crate) async fn play(
        &self,
        number: usize,
        fault: &Planned,
        start: Instant,
    ) -> Result<InForce, ControlError> {
        sleep_until(start + fault.begins).await;
        let began = start.elapsed();
        self.lock().insert(number);
        self.begin(number, fault).await?;
        match &fault.kind {
            FaultKind::Splits { every, hold } => self.split(fault, *every, *hold, start).await?,
            FaultKind::Failover { outage: true } => {
                let lasting = fault.ends - fault.begins;
                sleep_until(start + fault.begins + lasting.mul_f64(NOTICED_AFTER)).await;
                self.fail_over(&fault.regions[0]).await?;
            }
            _ => {}
        }
        sleep_until(start + fault.ends).await;
        let ended = start.elapsed();
        self.end(number, fault).await?;
        self.lock().remove(&number);
        Ok(InForce { began, ended })
    }

    /// Ends what is in force; all of it is tried, and the first that could not be ended is told.
    pub(crate) async fn end_all(&self, faults: &[Planned]) -> Result<(), ControlError> {
        let open = std::mem::take(&mut *self.lock());
        let mut result = Ok(());
        for number in open {
            let Some(fault) = faults.get(number) else { continue };
            match self.end(number, fault).await {
                // A rule that is not there had not begun.
                Err(error) if !error.was_answered() => result = result.and(Err(error)),
                _ => {}
            }
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn begin(&self, number: usize, fault: &Planned) -> Result<(), ControlError> {
        for (at, rule) in rules(fault, &self.writer, &self.database).into_iter().enumerate() {
            let rule = rule.lasting(fault.ends - fault.begins + MARGIN).named(&id(number, at));
            let rule = serde_json::to_value(&rule).expect("a rule has a JSON form");
            self.control.post("/faults", &rule).await?;
        }
        match &fault.kind {
            FaultKind::Failover { outage: false } => self.fail_over(&fault.regions[0]).await,
            FaultKind::Lag(lag) => self.set_lag(fault, *lag).await,
            _ => Ok(()),
        }
    }

    async fn end(&self, number: usize, fault: &Planned) -> Result<(), ControlError> {
        for at in 0..rules(fault, &self.writer, &self.database).len() {
            self.control.delete(&format!("/faults/{}", escaped(&id(number, at)))).await?;
        }
        match &fault.kind {
            FaultKind::Failover { .. } => self.fail_over(&self.writer).await,
            FaultKind::Lag(_) => self.set_lag(fault, self.lag).await,
            _ => Ok(()),
        }
    }

    async fn fail_over(&self, region: &str) -> Result<(), ControlError> {
        self.control.post(&format!("/regions/{}/failover", escaped(region)), &json!({})).await.map(drop)
    }

    async fn set_lag(&self, fault: &Planned, lag: Drawn) -> Result<(), ControlError> {
        for region in &fault.regions {
            let body = json!({"lag": lag.to_string(), "to": region});
            self.control.post("/regions/lag", &body).await?;
        }
        Ok(())
    }

    /// Splits one partition after the other, until the fault ends.
    async fn split(
        &self,
        fault: &Planned,
        every: Duration,
        hold: Duration,
        start: Instant,
    ) -> Result<(), ControlError> {
        let dice = Dice::new(fault.seed);
        for (number, at) in (0..).map(|number| (u64::from(number), start + fault.begins + every * number)) {
            if at >= start + fault.ends {
                break;
            }
            sleep_until(at).await;
            let ranges = self.ranges().await?;
            if ranges.is_empty() {
                continue;
            }
            let range = ranges[dice.of("split", number).below(ranges.len())];
            let path = format!(
                "/databases/{}/containers/{}/partitions/{range}/split",
                escaped(&self.database),
                escaped(&self.container)
            );
            let hold = u64::try_from(hold.as_millis()).unwrap_or(u64::MAX);
            // One that is being split already, or holds too little to be, is left alone.
            let _ = self.control.post(&path, &json!({"lockDurationMs": hold})).await;
        }
        Ok(())
    }

    async fn ranges(&self) -> Result<Vec<u64>, ControlError> {
        let path = format!(
            "/partitions?database={}&container={}",
            escaped(&self.database),
            escaped(&self.container)
        );
        let listed = self.control.get(&path).await?;
        let ranges = listed["partitions"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(ranges.iter().filter_map(|range| number(&range["id"])).collect())
    }
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn id(fault: usize, rule: usize) -> String {
    format!("chaos-{fault}-{rule}")
}

/// The rules of a fault, for the regions and the database of this run.
fn rules(fault: &Planned, writer: &str, database: &str) -> Vec<FaultRule> {
    let mut rules = match &fault.kind {
        FaultKind::Rules(rules) => rules.rules.clone(),
        FaultKind::Failover { outage: true } => {
            return vec![FaultRule::connection(ConnectionEffect::Refuse).in_region(writer)];
        }
        FaultKind::Failover { outage: false } | FaultKind::Splits { .. } | FaultKind::Lag(_) => {
            return Vec::new();
        }
    };
    for rule in &mut rules {
        if rule.filter.regions.is_empty() {
            rule.filter.regions.clone_from(&fault.regions);
        }
        // A physical partition is one of this run's container, unless the rule names another.
        if rule.filter.partition_key_range.is_some() && rule.filter.database.is_none() {
            rule.filter.database = Some(database.to_owned());
        }
    }
    rules
}
