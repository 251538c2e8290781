//! Searches the container for activities that this process does not know of.

use duroxide::providers::TagFilter;

use crate::clock;
use crate::core::Core;
use crate::dispatch::WorkFilter;
use crate::documents::WorkDocument;
use crate::error::Result;
use crate::queries;
use crate::store::Versioned;

/// How many activities the first query asks for.
const ITEMS: usize = 64;
/// How many activities at most are looked at for one that this process can use.
const ITEMS_MAX: usize = 4096;

impl Core {
    /// Searches for activities, if that is due or has to be. Returns whether any were found.
    pub(super) async fn poll_work(&self, must: bool, filter: &WorkFilter) -> Result<bool> {
        let is_due = || self.work.polls.lock().next() <= clock::now();
        let _polling = if must {
            self.work.polling.lock().await
        } else {
            match self.work.polling.try_lock() {
                Ok(polling) if is_due() => polling,
                _ => return Ok(false),
            }
        };
        let found = self.find_work(filter).await;
        let now = clock::now();
        let overflowed = self.work.ready.lock().take_overflow();
        let mut polls = self.work.polls.lock();
        polls.polled(found.as_ref().is_ok_and(|count| *count > 0), now);
        if overflowed {
            polls.hurry(now);
        }
        drop(polls);
        for _ in 1..*found.as_ref().unwrap_or(&0) {
            self.work.wake.notify_one();
        }
        Ok(found? > 0)
    }

    async fn find_work(&self, filter: &WorkFilter) -> Result<usize> {
        let slots = self.slots().await;
        if slots.is_empty() {
            return Ok(0);
        }
        let condition = condition(filter);
        let mut limit = ITEMS;
        loop {
            let now = clock::now();
            let until = now + self.poll_ahead();
            let rows = self.store.query(|| queries::waiting_work(until, &condition, slots, limit)).await?;
            let found = rows.len();
            let mut added = 0;
            // Whether all items that were found are visible, so that there may be others behind them.
            let mut all_visible = true;
            for row in rows {
                let document: WorkDocument = match row.read() {
                    Ok(document) => document,
                    Err(error) => {
                        self.quarantine(&row.instance_id, &row.id, &error.to_string()).await?;
                        continue;
                    }
                };
                let version = Versioned { document, etag: row.etag };
                all_visible &= version.document.visible_at <= now;
                let token = version.document.lock_token.as_ref();
                let is_held = token.is_some_and(|token| self.held_work.lock().contains_key(token));
                if is_held && version.document.visible_at > now {
                    continue;
                }
                added += usize::from(self.work.ready.lock().add_found(version, now));
            }
            // Activities of sessions that other workers have may hide others, so the search goes on behind them.
            if added > 0 || !all_visible || found < limit || limit >= ITEMS_MAX {
                return Ok(added);
            }
            limit *= 8;
        }
    }
}

/// The condition of a query for activities that a worker takes.
fn condition(filter: &WorkFilter) -> String {
    let quoted = |tag: &String| serde_json::Value::from(tag.as_str()).to_string();
    let list =
        |tags: &std::collections::HashSet<String>| tags.iter().map(quoted).collect::<Vec<_>>().join(", ");
    let tags = match &filter.tags {
        TagFilter::Any | TagFilter::None => String::new(),
        TagFilter::DefaultOnly => " AND NOT IS_DEFINED(c.tag)".to_owned(),
        TagFilter::Tags(tags) => format!(" AND c.tag IN ({})", list(tags)),
        TagFilter::DefaultAnd(tags) => format!(" AND (NOT IS_DEFINED(c.tag) OR c.tag IN ({}))", list(tags)),
    };
    let sessions = if filter.sessions { "" } else { " AND NOT IS_DEFINED(c.sessionId)" };
    tags + sessions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_quoted() {
        let filter = WorkFilter { tags: TagFilter::tags(["a\"b"]), sessions: false };
        assert_eq!(condition(&filter), r#" AND c.tag IN ("a\"b") AND NOT IS_DEFINED(c.sessionId)"#);
    }
}
