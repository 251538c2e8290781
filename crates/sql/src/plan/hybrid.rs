//! Plans of ORDER BY RANK: one query per score, and one for the statistics on which scores depend.

use protocol::query::{HybridSearchQueryInfo, QueryInfo, SortOrder};

use super::order_by::{payload, root_alias};
use super::rewrite::RewrittenQuery;
use crate::ast::{Expression, ExpressionKind, print_expression};
use crate::bound::RankComponent;
use crate::error::{SqlError, code};
use crate::statement::Statement;
use crate::value::Value;

const DOCUMENT_COUNT: &str = "{documentdb-formattablehybridsearchquery-totaldocumentcount}";

/// The smallest TOP of a component query, so that rank fusion has enough rows.
const COMPONENT_ROWS_MIN: u64 = 120;

/// One score as query text.
struct Score {
    /// The expression, with placeholders for the statistics.
    expression: String,
    /// The value for a document without a score, which sorts last.
    fallback: &'static str,
    order: SortOrder,
    /// The direction after the expression in ORDER BY.
    direction: &'static str,
}

/// The statistics expression of one full-text score.
struct Statistics(String);

pub(super) fn info(statement: &Statement, rank: &Expression) -> Result<HybridSearchQueryInfo, SqlError> {
    let (query, pipeline) = (statement.query(), statement.pipeline());
    let compiled = pipeline.rank.as_ref().expect("a query ordered by rank has a compiled rank");
    let (mut scores, mut statistics) = (Vec::new(), Vec::new());
    for (at, (component, written)) in compiled.components.iter().zip(written_scores(rank)).enumerate() {
        let is_inverted = compiled.weights.get(at).is_some_and(|weight| *weight < 0.0);
        match component {
            RankComponent::Text { terms, .. } => {
                let terms: Option<Vec<String>> =
                    terms.iter().map(|term| term.as_constant().and_then(quoted)).collect();
                let Some(terms) = terms else {
                    let message = "the search terms of FullTextScore must be strings";
                    return Err(SqlError::new(code::RANK_NEEDS_A_SCORE, written.span(), message));
                };
                let (score, counts) = text_score(written, &terms, statistics.len(), is_inverted);
                scores.push(score);
                statistics.push(counts);
            }
            RankComponent::Vector { .. } => scores.push(vector_score(written, is_inverted)),
        }
    }
    let (skip, take) = match (pipeline.offset_limit, pipeline.top) {
        (Some((offset, limit)), top) => (Some(offset), Some(top.map_or(limit, |top| top.min(limit)))),
        (None, top) => (None, top),
    };
    let needs_statistics = !statistics.is_empty();
    let statistics: Vec<String> = statistics.into_iter().map(|Statistics(text)| text).collect();
    let statistics_query = RewrittenQuery::over(query).with_selection(format!(
        "COUNT(1) AS documentCount, [{}] AS fullTextStatistics",
        statistics.join(", ")
    ));
    Ok(HybridSearchQueryInfo {
        global_statistics_query: statistics_query.to_string(),
        component_query_infos: (0..scores.len()).map(|at| component_info(statement, &scores, at)).collect(),
        component_without_payload_query_infos: Vec::new(),
        projection_query_info: None,
        component_weights: compiled.weights.iter().map(|weight| weight.abs()).collect(),
        skip,
        take,
        requires_global_statistics: needs_statistics,
    })
}

/// The scores in the query, without the weights.
fn written_scores(rank: &Expression) -> Vec<&Expression> {
    match rank.kind() {
        ExpressionKind::Call { name, arguments, .. } if name.0.eq_ignore_ascii_case("RRF") => {
            arguments.iter().collect()
        }
        _ => vec![rank],
    }
}

fn arguments_of(call: &Expression) -> &[Expression] {
    match call.kind() {
        ExpressionKind::Call { arguments, .. } => arguments,
        _ => &[],
    }
}

fn quoted(term: &Value) -> Option<String> {
    term.as_str().map(|_| term.to_string())
}

fn text_score(written: &Expression, terms: &[String], at: usize, is_inverted: bool) -> (Score, Statistics) {
    let path = arguments_of(written).first().map(print_expression).unwrap_or_default();
    let expression = format!(
        "_FullTextScore({path}, [{}], {DOCUMENT_COUNT}, \
         {{documentdb-formattablehybridsearchquery-totalwordcount-{at}}}, \
         {{documentdb-formattablehybridsearchquery-hitcountsarray-{at}}})",
        terms.join(", ")
    );
    let hits: Vec<String> =
        terms.iter().map(|term| format!("COUNTIF(FullTextContains({path}, {term}))")).collect();
    let statistics = format!(
        "{{\"totalWordCount\": SUM(_FullTextWordCount({path})), \"hitCounts\": [{}]}}",
        hits.join(", ")
    );
    // Full-text scores are never negative, and have no upper bound.
    let (fallback, order, direction) = if is_inverted {
        ("1.79769e+308", SortOrder::Ascending, " ASC")
    } else {
        ("-1", SortOrder::Descending, " DESC")
    };
    (Score { expression, fallback, order, direction }, Statistics(statistics))
}

/// A distance, inverted if needed so that the nearest is the largest.
fn vector_score(written: &Expression, is_inverted: bool) -> Score {
    let arguments: Vec<String> = arguments_of(written).iter().map(print_expression).collect();
    let expression = format!("_VectorScore({})", arguments.join(", "));
    if is_inverted {
        Score { expression, fallback: "1.79769e+308", order: SortOrder::Ascending, direction: " ASC" }
    } else {
        Score { expression, fallback: "-1.79769e+308", order: SortOrder::Descending, direction: "" }
    }
}

/// The query that orders by the score at `at` and returns all scores.
fn component_info(statement: &Statement, scores: &[Score], at: usize) -> QueryInfo {
    let (query, pipeline) = (statement.query(), statement.pipeline());
    let own = &scores[at];
    let all: Vec<String> =
        scores.iter().map(|score| format!("({} ?? {})", score.expression, score.fallback)).collect();
    let selection = format!(
        "{}._rid, [{{\"item\": {}}}] AS orderByItems, {{\"payload\": {}, \"componentScores\": [{}]}} AS payload",
        root_alias(query),
        own.expression,
        payload(query),
        all.join(", ")
    );
    let mut text = RewrittenQuery::over(query)
        .with_selection(selection)
        .filtered_by(query.filter.as_ref())
        .resumable()
        .keeping_defined(&query.selection)
        .ordered_by(format!("{}{}", own.expression, own.direction));
    let mut info = QueryInfo {
        order_by: vec![own.order],
        order_by_expressions: vec![own.expression.clone()],
        has_non_streaming_order_by: true,
        ..QueryInfo::default()
    };
    if let Some((offset, limit)) = pipeline.offset_limit {
        let rows = offset.saturating_add(limit).saturating_mul(2);
        text = text.with_offset_limit(rows);
        info.limit = Some(rows);
    } else if let Some(top) = pipeline.top {
        let rows = top.saturating_mul(2).max(COMPONENT_ROWS_MIN);
        text = text.with_top(Some(rows));
        info.top = Some(rows);
    }
    info.rewritten_query = text.to_string();
    info
}
