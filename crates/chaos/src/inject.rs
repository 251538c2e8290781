//! Begins and ends the faults of a schedule through the control port.
//!
//! Each fault has rules of its own, so that faults may overlap. Every rule also expires some time after its end: a run
//! that is interrupted does not leave faults in the account for long.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use faults::{ConnectionEffect, FaultRule};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use control_client::{ControlClient, ControlError, ControlErrorKind, escape};

use crate::duration::DurationRange;
use crate::scenario::FaultKind;
use crate::schedule::ScheduledFault;
use crate::seed::{derive_seed, rng_for};

/// How long after its scheduled end a rule expires.
const EXPIRY_MARGIN: Duration = Duration::from_secs(30);
/// After which share of an outage the account fails over, as an operator would after some time.
const FAILOVER_AFTER: f64 = 0.25;

/// The faults that are active now, by their number in the schedule.
pub(crate) type ActiveFaults = Arc<Mutex<BTreeSet<usize>>>;

/// Injects faults into one account.
#[derive(Clone, Debug)]
pub(crate) struct Injector {
    /// The faults that must still be ended, also if the run is interrupted.
    pub(crate) active: ActiveFaults,
    pub(crate) control: ControlClient,
    pub(crate) database: String,
    pub(crate) container: String,
    /// The write region while there is no fault.
    pub(crate) write_region: String,
    /// The replication lag while there is no fault.
    pub(crate) lag: DurationRange,
}

/// When a fault was active, counted from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ActiveInterval {
    pub(crate) began: Duration,
    pub(crate) ended: Duration,
}

impl Injector {
    /// Begins one fault at its time and ends it at its time.
    pub(crate) async fn run_fault(
        &self,
        number: usize,
        fault: &ScheduledFault,
        start: Instant,
    ) -> Result<ActiveInterval, ControlError> {
        sleep_until(start + fault.begins).await;
        let began = start.elapsed();
        self.lock().insert(number);
        self.begin(number, fault).await?;
        match &fault.kind {
            FaultKind::Splits { every, hold } => self.split(fault, *every, *hold, start).await?,
            FaultKind::Failover { outage: true } => {
                let lasting = fault.ends - fault.begins;
                sleep_until(start + fault.begins + lasting.mul_f64(FAILOVER_AFTER)).await;
                self.fail_over(&fault.regions[0]).await?;
            }
            _ => {}
        }
        sleep_until(start + fault.ends).await;
        let ended = start.elapsed();
        self.end(number, fault).await?;
        self.lock().remove(&number);
        Ok(ActiveInterval { began, ended })
    }

    /// Ends all active faults. All are tried, also after one failed; the first error is returned.
    pub(crate) async fn end_active(&self, faults: &[ScheduledFault]) -> Result<(), ControlError> {
        let open = std::mem::take(&mut *self.lock());
        let mut result = Ok(());
        for number in open {
            let Some(fault) = faults.get(number) else { continue };
            match self.end(number, fault).await {
                // A rejected request means that the rule does not exist: the fault had not begun.
                Err(error) if error.kind() != ControlErrorKind::Rejected => result = result.and(Err(error)),
                _ => {}
            }
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn begin(&self, number: usize, fault: &ScheduledFault) -> Result<(), ControlError> {
        for (at, rule) in rules(fault, &self.write_region, &self.database).into_iter().enumerate() {
            let rule = rule.lasting(fault.ends - fault.begins + EXPIRY_MARGIN).named(&id(number, at));
            let rule = serde_json::to_value(&rule).expect("a rule has a JSON form");
            self.control.post("/faults", &rule).await?;
        }
        match &fault.kind {
            FaultKind::Failover { outage: false } => self.fail_over(&fault.regions[0]).await,
            FaultKind::Lag(lag) => self.set_lag(fault, *lag).await,
            _ => Ok(()),
        }
    }

    async fn end(&self, number: usize, fault: &ScheduledFault) -> Result<(), ControlError> {
        for at in 0..rules(fault, &self.write_region, &self.database).len() {
            self.control.delete(&format!("/faults/{}", escape(&id(number, at)))).await?;
        }
        match &fault.kind {
            FaultKind::Failover { .. } => self.fail_over(&self.write_region).await,
            FaultKind::Lag(_) => self.set_lag(fault, self.lag).await,
            _ => Ok(()),
        }
    }

    async fn fail_over(&self, region: &str) -> Result<(), ControlError> {
        self.control.post(&format!("/regions/{}/failover", escape(region)), &json!({})).await.map(drop)
    }

    async fn set_lag(&self, fault: &ScheduledFault, lag: DurationRange) -> Result<(), ControlError> {
        for region in &fault.regions {
            let body = json!({"lag": lag.to_string(), "to": region});
            self.control.post("/regions/lag", &body).await?;
        }
        Ok(())
    }

    /// Splits one partition after the other, until the fault ends.
    async fn split(
        &self,
        fault: &ScheduledFault,
        every: Duration,
        hold: Duration,
        start: Instant,
    ) -> Result<(), ControlError> {
        for (number, at) in (0..).map(|number| (u64::from(number), start + fault.begins + every * number)) {
            if at >= start + fault.ends {
                break;
            }
            sleep_until(at).await;
            let ranges = self.ranges().await?;
            if ranges.is_empty() {
                continue;
            }
            let range =
                ranges[rng_for(derive_seed(fault.seed, "split", number), "range").usize(0..ranges.len())];
            let path = format!(
                "/databases/{}/containers/{}/partitions/{range}/split",
                escape(&self.database),
                escape(&self.container)
            );
            let hold = u64::try_from(hold.as_millis()).unwrap_or(u64::MAX);
            // The account rejects a split of a range that is being split, or that has too few items; both are fine.
            let _rejected = self.control.post(&path, &json!({"lockDurationMs": hold})).await;
        }
        Ok(())
    }

    async fn ranges(&self) -> Result<Vec<u64>, ControlError> {
        let path =
            format!("/partitions?database={}&container={}", escape(&self.database), escape(&self.container));
        let listed = self.control.get(&path).await?;
        let ranges = listed["partitions"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(ranges.iter().filter_map(|range| number(&range["range"])).collect())
    }
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn id(fault: usize, rule: usize) -> String {
    format!("chaos-{fault}-{rule}")
}

/// The rules of a scheduled fault, with the regions and the database of this run.
fn rules(fault: &ScheduledFault, write_region: &str, database: &str) -> Vec<FaultRule> {
    let mut rules = match &fault.kind {
        FaultKind::Rules(rules) => rules.rules.clone(),
        FaultKind::Failover { outage: true } => {
            return vec![FaultRule::connection(ConnectionEffect::Refuse).in_region(write_region)];
        }
        FaultKind::Failover { outage: false } | FaultKind::Splits { .. } | FaultKind::Lag(_) => {
            return Vec::new();
        }
    };
    for rule in &mut rules {
        if rule.filter.regions.is_empty() {
            rule.filter.regions.clone_from(&fault.regions);
        }
        // A physical partition belongs to the container of this run, unless the rule names another database.
        if rule.filter.partition_key_range.is_some() && rule.filter.database.is_none() {
            rule.filter.database = Some(database.to_owned());
        }
    }
    rules
}
