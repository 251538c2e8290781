//! `peri durable purge`: deletes instances, after a confirmation.

use durable::operator::{InstanceSelector, InstanceSummary, PurgedInstances};
use serde_json::json;

use super::format::{counted, now};
use crate::arguments::DurablePurge;
use crate::confirmation::confirm;
use crate::exit::CommandError;
use crate::output::{self, Progress};

/// Selects, asks unless `--yes` was given, and deletes one instance after the other.
pub(super) async fn run(purge: &DurablePurge) -> Result<(), CommandError> {
    if purge.instances.is_empty() && purge.selection.is_empty() && !purge.all {
        return Err(CommandError::usage("nothing says which instances are to be deleted".to_owned())
            .hint("name instances, give a filter like --ended-before 30d, or --all"));
    }
    let operator = super::open(&purge.options).await?;
    let selector = InstanceSelector { ids: purge.instances.clone(), ..purge.selection.selector(now()) };
    let selected = operator.purgeable(&selector, purge.force).await.map_err(|error| super::failed(&error))?;
    let mut kept = not_selected(purge, &selected);
    if !purge.yes && !selected.is_empty() {
        let question = || {
            let path = format!("{}/{}", purge.options.database, purge.options.container);
            let count = counted(selected.len() as u64, "instance");
            Ok(format!("Delete {count}, with histories and sub-orchestrations, from {path}?"))
        };
        if !confirm("orchestrations", question)? {
            return Err(CommandError::other("nothing was deleted".to_owned()));
        }
    }
    let mut total = PurgedInstances::default();
    let mut progress = Progress::towards("purged", selected.len() as u64);
    for instance in &selected {
        match operator.purge(&instance.instance_id, purge.force).await {
            Ok(purged) => {
                total.instances += purged.instances;
                total.events += purged.events;
                total.messages += purged.messages;
            }
            Err(error @ durable::operator::OperatorError::Refused(_)) => {
                progress.line(&format!("not purged: {error}"));
                kept += 1;
            }
            Err(error) => return Err(super::failed(&error)),
        }
        progress.advance();
    }
    drop(progress);
    summarize(purge, &total);
    match kept {
        0 => Ok(()),
        kept => Err(CommandError::partial(format!("{} not purged", counted(kept, "instance")))
            .hint("--force also deletes instances that run")),
    }
}

/// Reports the named instances that are not selected. Returns how many.
fn not_selected(purge: &DurablePurge, selected: &[InstanceSummary]) -> u64 {
    let mut kept = 0;
    for id in &purge.instances {
        if !selected.iter().any(|instance| instance.instance_id == *id) {
            let reason = if purge.force { "there is no such instance" } else { "it runs, or does not exist" };
            output::message(&format!("not purged: {id}: {reason}"));
            kept += 1;
        }
    }
    kept
}

fn summarize(purge: &DurablePurge, total: &PurgedInstances) {
    if purge.options.json {
        output::json(&json!({
            "instances": total.instances,
            "events": total.events,
            "messages": total.messages,
        }));
        return;
    }
    output::data(&format!(
        "purged {}, {} and {}",
        counted(total.instances, "instance"),
        counted(total.events, "event"),
        counted(total.messages, "message"),
    ));
}
