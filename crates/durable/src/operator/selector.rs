//! Which instances an operator means.

use perihelion::Query;
use serde_json::Value;

use super::InstanceSummary;
use super::instance_summary::PENDING;

/// The properties of [`InstanceSummary`], as a query selects them. Outputs may be large.
const COLUMNS: &str = "c.instanceId, c.orchestrationName, c.orchestrationVersion, c.status, c.currentExecutionId, \
    c.parentInstanceId, c.createdAt, c.updatedAt, c.completedAt, c.historyEvents, c.historyBytes, c.customStatus, \
    LEFT(c.output, 500) AS output";

/// Selects instances that meet all of its conditions; the default selects all of them. Times are milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceSelector {
    /// Statuses, of which an instance has one; empty for any. `Pending` is the status of instances that have not begun.
    pub statuses: Vec<String>,
    /// What the name of the orchestration begins with.
    pub name_prefix: Option<String>,
    /// What the id of the instance begins with.
    pub id_prefix: Option<String>,
    /// The ids of the instances; empty for any.
    pub ids: Vec<String>,
    /// The instance that has started these as sub-orchestrations.
    pub parent: Option<String>,
    /// Only instances that are no sub-orchestrations.
    pub roots_only: bool,
    /// Created at this time or later.
    pub created_since: Option<u64>,
    /// Changed at this time or later.
    pub updated_since: Option<u64>,
    /// Ended before this time.
    pub ended_before: Option<u64>,
    /// The largest number of instances, the newest first.
    pub limit: Option<usize>,
}

impl InstanceSelector {
    /// The instances with these ids.
    pub fn with_ids(ids: impl IntoIterator<Item = impl Into<String>>) -> InstanceSelector {
        InstanceSelector { ids: ids.into_iter().map(Into::into).collect(), ..InstanceSelector::default() }
    }

    /// Whether an instance meets all conditions. The limit is none.
    pub fn matches(&self, instance: &InstanceSummary) -> bool {
        let begins = |text: &str, prefix: &Option<String>| {
            prefix.as_ref().is_none_or(|prefix| text.starts_with(prefix.as_str()))
        };
        (self.statuses.is_empty() || self.statuses.contains(&instance.status))
            && begins(&instance.orchestration_name, &self.name_prefix)
            && begins(&instance.instance_id, &self.id_prefix)
            && (self.ids.is_empty() || self.ids.contains(&instance.instance_id))
            && (self.parent.is_none() || self.parent == instance.parent_instance_id)
            && !(self.roots_only && instance.parent_instance_id.is_some())
            && self.created_since.is_none_or(|since| instance.created_at >= since)
            && self.updated_since.is_none_or(|since| instance.updated_at >= since)
            && self.ended_before.is_none_or(|before| instance.completed_at.is_some_and(|at| at < before))
    }

    /// The query for the instances that have a document.
    pub(super) fn query(&self) -> Query {
        let top = self.limit.map(|limit| format!("TOP {limit} ")).unwrap_or_default();
        let mut text = format!("SELECT {top}{COLUMNS} FROM c WHERE c.type = 'instance'");
        let mut parameters: Vec<(&str, Value)> = Vec::new();
        if !self.statuses.is_empty() {
            let pending = self.statuses.iter().any(|status| status == PENDING);
            text += if pending {
                " AND (ARRAY_CONTAINS(@statuses, c.status) OR NOT IS_DEFINED(c.status))"
            } else {
                " AND ARRAY_CONTAINS(@statuses, c.status)"
            };
            parameters.push(("@statuses", self.statuses.clone().into()));
        }
        if !self.ids.is_empty() {
            text += " AND ARRAY_CONTAINS(@ids, c.instanceId)";
            parameters.push(("@ids", self.ids.clone().into()));
        }
        let texts = [
            ("@name", &self.name_prefix, " AND STARTSWITH(c.orchestrationName, @name)"),
            ("@id", &self.id_prefix, " AND STARTSWITH(c.instanceId, @id)"),
            ("@parent", &self.parent, " AND c.parentInstanceId = @parent"),
        ];
        for (name, value, condition) in texts {
            if let Some(value) = value {
                text += condition;
                parameters.push((name, value.as_str().into()));
            }
        }
        if self.roots_only {
            text += " AND NOT IS_DEFINED(c.parentInstanceId)";
        }
        let times = [
            ("@created", self.created_since, " AND c.createdAt >= @created"),
            ("@updated", self.updated_since, " AND c.updatedAt >= @updated"),
            ("@ended", self.ended_before, " AND c.completedAt < @ended"),
        ];
        for (name, value, condition) in times {
            if let Some(value) = value {
                text += condition;
                parameters.push((name, value.into()));
            }
        }
        text += " ORDER BY c.createdAt DESC";
        let query = Query::new(text);
        parameters.into_iter().fold(query, |query, (name, value)| query.with_parameter(name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_selected_if_it_meets_all_conditions() {
        let mut instance = InstanceSummary::not_started("order-1", "Order", 1_000);
        let all = InstanceSelector {
            statuses: vec!["Failed".to_owned(), PENDING.to_owned()],
            name_prefix: Some("Ord".to_owned()),
            id_prefix: Some("order-".to_owned()),
            roots_only: true,
            created_since: Some(1_000),
            ..InstanceSelector::default()
        };
        assert!(all.matches(&instance));
        assert!(!InstanceSelector { created_since: Some(1_001), ..all.clone() }.matches(&instance));
        assert!(!InstanceSelector { ended_before: Some(2_000), ..all.clone() }.matches(&instance));
        assert!(!InstanceSelector { ids: vec!["order-2".to_owned()], ..all.clone() }.matches(&instance));
        instance.parent_instance_id = Some("p".to_owned());
        assert!(!all.matches(&instance));
        let children = InstanceSelector { parent: Some("p".to_owned()), ..InstanceSelector::default() };
        assert!(children.matches(&instance));
    }
}
