//! Query plans: what the client sends to each partition, and how it merges the rows.
//!
//! Input: a prepared statement, the container's partition key definition and the features of the client.
//! Output: the plan in the service's format, with the query rewritten so that each row carries what merging
//! needs. Executing a plan is left to the client.

mod aggregate;
mod distinct_count;
mod features;
mod hybrid;
mod order_by;
mod ranges;
mod rewrite;

use std::fmt;

use protocol::container::PartitionKeyDefinition;
use protocol::query::{DistinctType, QueryInfo, QueryPlan, SortOrder};

pub use features::{Feature, SupportedFeatures};

use crate::ast::{Direction, ExpressionKind, OrderBy, Selection, print_expression};
use crate::bound::PipelineInput;
use crate::error::{SqlError, code};
use crate::statement::Statement;
use rewrite::RewrittenQuery;

/// The error of a query without a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanError {
    /// The query is invalid, or cannot be executed across partitions.
    Query(SqlError),
    /// The client does not support features that the query needs.
    UnsupportedFeatures(Vec<Feature>),
}

impl PlanError {
    /// The message of the service: the errors as JSON, or the names of the features.
    pub fn service_message(&self) -> String {
        match self {
            PlanError::Query(error) => error.errors_json(),
            PlanError::UnsupportedFeatures(_) => self.to_string(),
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Query(error) => error.fmt(f),
            PlanError::UnsupportedFeatures(features) => {
                let names: Vec<&str> = features.iter().map(|feature| feature.name()).collect();
                write!(
                    f,
                    "Query contains the following features, which the calling client does not support: {}",
                    names.join(", ")
                )
            }
        }
    }
}

impl std::error::Error for PlanError {}

impl From<SqlError> for PlanError {
    fn from(error: SqlError) -> PlanError {
        PlanError::Query(error)
    }
}

impl Statement {
    /// The plan for a client with these features over a container with this partition key definition.
    pub fn gateway_plan(
        &self,
        definition: &PartitionKeyDefinition,
        features: &SupportedFeatures,
    ) -> Result<QueryPlan, PlanError> {
        let missing = features.missing(&features::needed(self));
        if !missing.is_empty() {
            return Err(PlanError::UnsupportedFeatures(missing));
        }
        let ranges = ranges::of(self, definition);
        if let OrderBy::Rank(score) = &self.query().order_by {
            return Ok(QueryPlan::hybrid(hybrid::info(self, score)?, ranges));
        }
        Ok(QueryPlan::new(info(self)?, ranges))
    }
}

/// The plan of any query but a hybrid search.
fn info(statement: &Statement) -> Result<QueryInfo, SqlError> {
    let (query, pipeline) = (statement.query(), statement.pipeline());
    if let Some(count) = distinct_count::info(statement) {
        return Ok(count);
    }
    check_source(statement)?;
    let mut info = QueryInfo {
        distinct_type: distinct_type(statement),
        top: pipeline.top,
        offset: pipeline.offset_limit.map(|(offset, _)| offset),
        limit: pipeline.offset_limit.map(|(_, limit)| limit),
        has_select_value: matches!(query.selection, Selection::Value(_)),
        ..QueryInfo::default()
    };
    if pipeline.grouping.is_some() {
        aggregate::complete(&mut info, query)?;
    } else if let OrderBy::Keys(keys) = &query.order_by {
        order_by::complete(&mut info, statement, keys)?;
    } else {
        info.rewritten_query = rewritten_offset_limit(statement);
    }
    Ok(info)
}

/// Checks that no query in FROM groups or deduplicates rows: each partition would do so for itself, and no
/// client can merge the results.
fn check_source(statement: &Statement) -> Result<(), SqlError> {
    match &statement.pipeline().input {
        PipelineInput::Rows(inner) if inner.grouping.is_some() || inner.distinct => {
            let message = "a subquery in FROM with GROUP BY, DISTINCT or an aggregate cannot be merged across partitions";
            Err(SqlError::new(code::UNSUPPORTED, statement.query().span, message))
        }
        _ => Ok(()),
    }
}

fn distinct_type(statement: &Statement) -> DistinctType {
    let query = statement.query();
    if !query.distinct || query.from.is_empty() {
        return DistinctType::None;
    }
    let ordered = match (&query.selection, &query.order_by) {
        (Selection::Value(value), OrderBy::Keys(keys)) => {
            let is_path = matches!(value.kind(), ExpressionKind::Member { .. } | ExpressionKind::Name(_));
            is_path && matches!(&keys[..], [key] if key.expression == *value)
        }
        _ => false,
    };
    if ordered { DistinctType::Ordered } else { DistinctType::Unordered }
}

/// The query with OFFSET left to the client, which needs the skipped rows of every partition. Rows that are
/// still to be deduplicated cannot be limited. Empty if the original query will do.
fn rewritten_offset_limit(statement: &Statement) -> String {
    let (query, pipeline) = (statement.query(), statement.pipeline());
    if query.distinct && !query.from.is_empty() && (pipeline.top.is_some() || pipeline.offset_limit.is_some())
    {
        return RewrittenQuery::of(query).without_top().without_offset_limit().to_string();
    }
    match pipeline.offset_limit {
        Some((offset, limit)) => {
            RewrittenQuery::of(query).with_offset_limit(offset.saturating_add(limit)).to_string()
        }
        None => String::new(),
    }
}

fn sort_order(direction: Direction) -> SortOrder {
    match direction {
        Direction::Ascending => SortOrder::Ascending,
        Direction::Descending => SortOrder::Descending,
    }
}

/// The ORDER BY values of a row, `[{"item": a}, {"item": b}]`.
fn items<'e>(expressions: impl Iterator<Item = &'e crate::ast::Expression>) -> String {
    let items: Vec<String> =
        expressions.map(|expression| format!("{{\"item\": {}}}", print_expression(expression))).collect();
    format!("[{}]", items.join(", "))
}

#[cfg(test)]
mod tests;
