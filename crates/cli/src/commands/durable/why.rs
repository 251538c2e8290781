//! `peri durable why`: why an instance does not move.

use durable::operator::{Diagnosis, QuarantinedItem, WaitingActivity, WaitingMessage};

use super::format::timestamp;
use crate::arguments::DurableWhy;
use crate::exit::CommandError;
use crate::output::{self, Table};

/// Says why an instance does not move.
pub(super) async fn run(why: &DurableWhy) -> Result<(), CommandError> {
    let operator = super::open(&why.options).await?;
    let diagnosis = operator.diagnose(&why.instance).await.map_err(|error| super::failed(&error))?;
    match why.options.json {
        true => output::json(&serde_json::to_value(&diagnosis).unwrap_or_default()),
        false => output::data(&text(&diagnosis)),
    }
    Ok(())
}

fn text(diagnosis: &Diagnosis) -> String {
    let mut parts = vec![findings(diagnosis)];
    if let Some(lock) = &diagnosis.lock {
        let mut table = Table::new(&["LOCKED BY", "UNTIL", "ATTEMPT", "MESSAGES"]);
        let expired = if lock.expired { " (expired)" } else { "" };
        table.row(vec![
            lock.holder.clone(),
            format!("{}{expired}", timestamp(lock.until)),
            lock.attempts.to_string(),
            lock.messages.to_string(),
        ]);
        parts.push(table.to_string());
    }
    parts.extend(waiting(&diagnosis.messages, &diagnosis.activities, &diagnosis.quarantined));
    if !diagnosis.undelivered.is_empty() {
        let mut table = Table::new(&["MESSAGE TO", "KIND", "SENT", "FAILED ATTEMPTS", "LAST ATTEMPT"]);
        for message in &diagnosis.undelivered {
            table.row(vec![
                message.target.clone(),
                message.kind.clone(),
                timestamp(message.created_at),
                message.attempts.to_string(),
                message.last_attempt_at.map(timestamp).unwrap_or_default(),
            ]);
        }
        parts.push(table.to_string());
    }
    if let Some(error) = &diagnosis.last_error {
        let mut table = Table::new(&["LAST ERROR", "TIME", "EVENT", "MESSAGE"]);
        let cells =
            [error.what.clone(), timestamp(error.at), error.event_id.to_string(), error.message.clone()];
        table.row(cells.to_vec());
        parts.push(table.to_string());
    }
    parts.join("\n\n")
}

/// The findings, with what to do about each below it.
fn findings(diagnosis: &Diagnosis) -> String {
    let mut table = Table::new(&["", ""]);
    table.row(vec!["=".to_owned(), format!("{} is {}", diagnosis.instance_id, diagnosis.status)]);
    for finding in &diagnosis.findings {
        let mark = if finding.is_problem { "!" } else { "-" };
        table.row(vec![mark.to_owned(), finding.text.clone()]);
        if let Some(advice) = &finding.advice {
            table.row(vec![String::new(), format!("→ {advice}")]);
        }
    }
    table.rows()
}

/// Tables of what waits; none for what does not.
pub(super) fn waiting(
    messages: &[WaitingMessage],
    activities: &[WaitingActivity],
    quarantined: &[QuarantinedItem],
) -> Vec<String> {
    let mut tables = Vec::new();
    if !messages.is_empty() {
        let mut table = Table::new(&["MESSAGE", "ABOUT", "ENQUEUED", "VISIBLE", "ATTEMPTS", "STATE"]);
        for message in messages {
            table.row(vec![
                message.kind.clone(),
                message.subject.clone(),
                timestamp(message.enqueued_at),
                timestamp(message.visible_at),
                message.attempts.to_string(),
                if message.in_turn { "in a turn" } else { "waits" }.to_owned(),
            ]);
        }
        tables.push(table.to_string());
    }
    if !activities.is_empty() {
        let columns = ["ACTIVITY", "NAME", "ENQUEUED", "VISIBLE", "ATTEMPTS", "WORKER", "TAG", "SESSION"];
        let mut table = Table::new(&columns);
        for activity in activities {
            let session = match (&activity.session_id, &activity.session_owner) {
                (Some(session), Some(owner)) => format!("{session} (of {owner})"),
                (Some(session), None) => session.clone(),
                (None, _) => String::new(),
            };
            table.row(vec![
                activity.activity_id.to_string(),
                activity.name.clone(),
                timestamp(activity.enqueued_at),
                timestamp(activity.visible_at),
                activity.attempts.to_string(),
                activity.holder.clone().unwrap_or_default(),
                activity.tag.clone().unwrap_or_default(),
                session,
            ]);
        }
        tables.push(table.to_string());
    }
    if !quarantined.is_empty() {
        let mut table = Table::new(&["QUARANTINED", "DOCUMENT", "ERROR"]);
        for item in quarantined {
            table.row(vec![item.kind.clone(), item.id.clone(), item.error.clone()]);
        }
        tables.push(table.to_string());
    }
    tables
}
