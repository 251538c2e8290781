//! `peri durable retry`: gives stuck work another try.

use std::time::Duration;

use durable::operator::{InstanceSelector, RetryItem, RetryOutcome};
use serde_json::json;
use tokio::time::MissedTickBehavior;

use super::format::{counted, now};
use crate::arguments::DurableRetry;
use crate::exit::CommandError;
use crate::output::{self, Table};

const COLUMNS: [&str; 4] = ["ACTION", "INSTANCE", "SUBJECT", "RESULT"];
/// The widths of the columns: later cells are not known yet.
const WIDTHS: [u16; 4] = [20, 24, 34, 0];

/// Gives one thing after the other another try, at the rate of the options.
pub(super) async fn run(retry: &DurableRetry) -> Result<(), CommandError> {
    let operator = super::open(&retry.options).await?;
    let selector = InstanceSelector { limit: retry.limit, ..retry.selection.selector(now()) };
    let items = operator.retryable(&selector, retry.failed).await.map_err(|error| super::failed(&error))?;
    if !retry.options.json && !items.is_empty() {
        output::data(&Table::with_widths(&COLUMNS, &WIDTHS).to_string());
    }
    let mut ticks = tokio::time::interval(Duration::from_secs_f64(1.0 / retry.rate));
    // After an item that took long, the next ones keep their distance.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut done, mut failed) = (0, 0);
    for item in &items {
        if retry.dry_run {
            print(retry, item, "would be done");
            continue;
        }
        ticks.tick().await;
        match operator.retry(item).await {
            Ok(RetryOutcome::Skipped(reason)) => print(retry, item, &format!("skipped: {reason}")),
            Ok(_) => {
                done += 1;
                print(retry, item, "done");
            }
            Err(error @ durable::operator::OperatorError::Request(_)) => {
                return Err(super::failed(&error));
            }
            Err(error) => {
                failed += 1;
                print(retry, item, &format!("failed: {error}"));
            }
        }
    }
    let found = counted(items.len() as u64, "item");
    if retry.dry_run {
        output::message(&format!("{found} could be retried"));
    } else {
        output::message(&format!("{found} found, {done} retried"));
    }
    match failed {
        0 => Ok(()),
        failed => Err(CommandError::partial(format!("{} could not be retried", counted(failed, "item")))
            .hint("`peri durable why ID` says what is wrong with an instance")),
    }
}

fn print(retry: &DurableRetry, item: &RetryItem, result: &str) {
    if retry.options.json {
        let mut value = serde_json::to_value(item).unwrap_or_default();
        value["result"] = json!(result);
        output::json(&value);
        return;
    }
    let mut table = Table::with_widths(&COLUMNS, &WIDTHS);
    table.row(vec![
        item.action.name().to_owned(),
        item.instance_id.clone(),
        item.subject.clone(),
        result.to_owned(),
    ]);
    output::data(&table.rows());
}
