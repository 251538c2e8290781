//! The plan a gateway gives to a client: what to ask each partition, and how to merge the answers.
//!
//! In: a prepared statement, the container's partition key and the features the client has. Out: the
//! plan in the shape the service's clients read, with the query rewritten so that each partition's
//! rows carry what merging needs. Running a plan is the client's business.

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

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanError {
    /// The query has no meaning, or none across partitions.
    Query(SqlError),
    /// The client lacks what merging this query takes.
    UnsupportedFeatures(Vec<Feature>),
}

impl PlanError {
    /// The text of the service's answer: the errors as JSON, or the features by name.
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
    /// The plan for a client with these features over a container with this key.
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

/// Everything but hybrid search.
fn info(statement: &Statement) -> Result<QueryInfo, SqlError> {
    let (query, pipeline) = (statement.query(), statement.pipeline());
    if let Some(count) = distinct_count::info(statement) {
        return Ok(count);
    }
    check_source(statement)?;
    let mut info = QueryInfo {
        distinct_type: distinct_type(statement),
        top: pipeline.top,
        offset: pipeline.window.map(|(offset, _)| offset),
        limit: pipeline.window.map(|(_, limit)| limit),
        has_select_value: matches!(query.selection, Selection::Value(_)),
        ..QueryInfo::default()
    };
    if pipeline.grouping.is_some() {
        aggregate::complete(&mut info, query)?;
    } else if let OrderBy::Keys(keys) = &query.order_by {
        order_by::complete(&mut info, statement, keys)?;
    } else {
        info.rewritten_query = rewritten_window(statement);
    }
    Ok(info)
}

/// A query in FROM that groups or tells apart rows sees one partition only; its rows cannot be merged
/// by anything a client does.
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

/// OFFSET moves to the client, which needs the skipped rows of every partition to know what to skip.
/// Rows that are yet to be told apart cannot be cut at all. Empty when the original will do.
fn rewritten_window(statement: &Statement) -> String {
    let (query, pipeline) = (statement.query(), statement.pipeline());
    if query.distinct && !query.from.is_empty() && (pipeline.top.is_some() || pipeline.window.is_some()) {
        return RewrittenQuery::of(query).without_top().without_window().to_string();
    }
    match pipeline.window {
        Some((offset, limit)) => {
            RewrittenQuery::of(query).with_window(offset.saturating_add(limit)).to_string()
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

/// `[{"item": a}, {"item": b}]`
fn items<'e>(expressions: impl Iterator<Item = &'e crate::ast::Expression>) -> String {
    let items: Vec<String> =
        expressions.map(|expression| format!("{{\"item\": {}}}", print_expression(expression))).collect();
    format!("[{}]", items.join(", "))
}

#[cfg(test)]
mod tests;
