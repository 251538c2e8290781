//! Prepared statements, which can be executed, planned and routed.
//!
//! Preparing parses and binds the query text. The result is immutable and can be shared and cached by text,
//! parameters and container.

use protocol::container::PartitionKeyDefinition;
use smol_str::SmolStr;

use crate::access_path::{self, AccessPath, DocPath, PartitionKeyFilter};
use crate::ast::{Direction, OrderBy, Query, Selection};
use crate::bind::{MissingParameter, bind};
use crate::bound::{BoundExpression, InputOrder, Pipeline, PipelineInput, RowOrigin};
use crate::context::{QueryContext, QuerySchema};
use crate::error::{SqlError, code};
use crate::evaluate::{EvaluationContext, Frame};
use crate::functions::aggregate::Aggregate;
use crate::parser::{parse_condition, parse_query};
use crate::value::Value;

/// A parsed and bound query, ready for execution.
#[derive(Debug)]
pub struct Statement {
    query: Query,
    pipeline: Pipeline,
    access: AccessPath,
    schema: QuerySchema,
}

impl Statement {
    /// Parses and binds `text`. Parameter names may be given with or without `@`; each parameter that the
    /// query uses must be given.
    pub fn prepare(
        text: &str,
        parameters: &[(SmolStr, Value)],
        schema: &QuerySchema,
    ) -> Result<Statement, SqlError> {
        Statement::with(text, parameters, schema, MissingParameter::Reject)
    }

    /// Like [`Statement::prepare`], for a statement that is only planned: parameters outside TOP, OFFSET
    /// and LIMIT may be missing. Executing such a statement fails.
    pub fn prepare_plan(
        text: &str,
        parameters: &[(SmolStr, Value)],
        schema: &QuerySchema,
    ) -> Result<Statement, SqlError> {
        Statement::with(text, parameters, schema, MissingParameter::Defer)
    }

    fn with(
        text: &str,
        parameters: &[(SmolStr, Value)],
        schema: &QuerySchema,
        unbound: MissingParameter,
    ) -> Result<Statement, SqlError> {
        let query = parse_query(text)?;
        let pipeline = bind(&query, parameters, schema, unbound).map_err(|error| error.located_in(text))?;
        let access = AccessPath::of(&pipeline);
        Ok(Statement { query, pipeline, access, schema: schema.clone() })
    }

    /// The AST of the query.
    pub fn query(&self) -> &Query {
        &self.query
    }

    pub(crate) fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    pub(crate) fn schema(&self) -> &QuerySchema {
        &self.schema
    }

    /// What an index can do for the statement.
    pub fn access_path(&self) -> &AccessPath {
        &self.access
    }

    /// The logical partitions that can match in a container with this partition key definition.
    pub fn partition_key_filter(&self, definition: &PartitionKeyDefinition) -> PartitionKeyFilter {
        PartitionKeyFilter::of(&self.access.filter, definition)
    }

    /// Whether the statement reads documents. Without FROM there is exactly one row.
    pub fn has_from(&self) -> bool {
        !self.query.from.is_empty()
    }

    /// Whether rows of several partitions must be merged rather than concatenated.
    pub fn needs_merge(&self) -> bool {
        let merges = |pipeline: &Pipeline| pipeline.grouping.is_some() || pipeline.distinct;
        let inner = match &self.pipeline.input {
            PipelineInput::Rows(inner) => merges(inner),
            PipelineInput::Outer | PipelineInput::Documents => false,
        };
        inner
            || merges(&self.pipeline)
            || self.query.order_by != OrderBy::None
            || self.query.top.is_some()
            || self.query.offset_limit.is_some()
    }

    /// What each row is made of.
    pub fn row_origin(&self) -> RowOrigin {
        match &self.pipeline.input {
            PipelineInput::Outer => RowOrigin::AllDocuments,
            PipelineInput::Documents | PipelineInput::Rows(_) => self.pipeline.row_origin(),
        }
    }

    /// Whether WHERE or ORDER BY decide on rows, so that an index is used for them.
    pub fn has_conditions(&self) -> bool {
        let uses_index = |pipeline: &Pipeline| pipeline.filter.is_some() || !pipeline.order.is_empty();
        let inner = match &self.pipeline.input {
            PipelineInput::Rows(inner) => uses_index(inner),
            PipelineInput::Outer | PipelineInput::Documents => false,
        };
        inner || uses_index(&self.pipeline)
    }

    /// Whether rows have aggregates that SELECT VALUE does not return as they are.
    pub fn has_aggregate_without_value(&self) -> bool {
        let has_aggregate =
            self.pipeline.grouping.as_ref().is_some_and(|grouping| !grouping.aggregates.is_empty());
        has_aggregate && !matches!(self.query.selection, Selection::Value(_))
    }

    /// Whether the rows have an order.
    pub fn is_ordered(&self) -> bool {
        !self.pipeline.order.is_empty()
    }

    /// The document paths that functions in the SELECT clause read, for index metrics.
    pub fn selected_function_paths(&self) -> Vec<DocPath> {
        match self.pipeline.input {
            PipelineInput::Documents => access_path::function_paths(&self.pipeline),
            PipelineInput::Outer | PipelineInput::Rows(_) => Vec::new(),
        }
    }

    /// Whether ORDER BY states that its first column is descending. A distance without a direction is sorted by
    /// its own meaning.
    pub fn is_stated_descending(&self) -> bool {
        match &self.query.order_by {
            OrderBy::Keys(keys) => {
                keys.first().is_some_and(|key| key.direction == Some(Direction::Descending))
            }
            OrderBy::None | OrderBy::Rank(_) => false,
        }
    }

    /// The direction of each ORDER BY column.
    pub fn directions(&self) -> impl Iterator<Item = Direction> {
        self.pipeline.order.iter().map(|key| key.direction)
    }

    /// Whether rows are returned before the last document has been pushed.
    pub fn is_streaming(&self, order: InputOrder) -> bool {
        self.pipeline.is_streaming(order)
    }

    /// Whether each row is a stored document, unchanged: `SELECT *` or `SELECT VALUE alias` over the
    /// container itself. Stored bytes can then be returned as they are.
    pub fn returns_whole_documents(&self) -> bool {
        self.reads_documents_directly()
            && !self.pipeline.distinct
            && self.pipeline.grouping.is_none()
            && matches!(self.pipeline.projection, BoundExpression::Source { up: 0 })
    }

    /// Whether the result depends only on how many documents WHERE accepts. If an index knows their number,
    /// they need not be read; see [`QueryExecution::push_count`](crate::QueryExecution::push_count).
    pub fn counts_documents_only(&self) -> bool {
        let Some(grouping) = &self.pipeline.grouping else { return false };
        self.reads_documents_directly()
            && grouping.single
            && grouping.aggregates.iter().all(|(aggregate, argument)| {
                let always_defined = match argument {
                    BoundExpression::Source { .. } => true,
                    BoundExpression::Constant(value) => value.is_defined(),
                    _ => false,
                };
                *aggregate == Aggregate::Count && always_defined
            })
    }

    /// Whether FROM names only the container, so that there is one row per document.
    fn reads_documents_directly(&self) -> bool {
        matches!(self.pipeline.input, PipelineInput::Documents) && self.pipeline.sources.is_empty()
    }

    /// The number of rows that OFFSET skips.
    pub fn offset(&self) -> u64 {
        self.pipeline.offset()
    }

    /// The largest number of rows that TOP and LIMIT return.
    pub fn limit(&self) -> Option<u64> {
        self.pipeline.limit()
    }

    /// Whether OFFSET, LIMIT or TOP restrict the rows.
    pub fn is_limited(&self) -> bool {
        self.offset() > 0 || self.limit().is_some()
    }
}

/// The work units of a patch condition, which is evaluated while writes to its partition wait.
const CONDITION_UNITS_MAX: u64 = 100_000;

/// The condition of a patch request, `from c where …`.
#[derive(Debug)]
pub struct PatchCondition {
    filter: BoundExpression,
    schema: QuerySchema,
}

impl PatchCondition {
    /// Parses `from alias where expression`.
    pub fn parse(text: &str) -> Result<PatchCondition, SqlError> {
        let query = parse_condition(text)?;
        let schema = QuerySchema::default();
        let pipeline =
            bind(&query, &[], &schema, MissingParameter::Reject).map_err(|error| error.located_in(text))?;
        let whole = matches!(pipeline.input, PipelineInput::Documents) && pipeline.sources.is_empty();
        match pipeline.filter {
            Some(filter) if whole => Ok(PatchCondition { filter, schema }),
            _ => {
                let message = "a condition has one source, the document: from c where …";
                Err(SqlError::new(code::SYNTAX, query.span, message).located_in(text))
            }
        }
    }

    /// Whether `document` satisfies the condition. A condition that cannot be evaluated is not satisfied.
    pub fn is_met_by(&self, document: &Value, context: &QueryContext) -> bool {
        let limit = Some(CONDITION_UNITS_MAX);
        let context =
            EvaluationContext::new(QueryContext { work_units_max: limit, ..*context }, &self.schema);
        let holds = self.filter.is_true(&Frame::with(&Frame::ROOT, document), &context);
        holds && context.check().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(text: &str) -> Statement {
        Statement::prepare(text, &[], &QuerySchema::default()).unwrap()
    }

    #[test]
    fn properties_of_statements() {
        // text, streams in any order, streams when ordered, whole documents, counts only, merges
        for (text, any, ordered, whole, counts, merges) in [
            ("SELECT * FROM c", true, true, true, false, false),
            ("SELECT VALUE p FROM c p WHERE p.a = 1", true, true, true, false, false),
            ("SELECT c.a FROM c", true, true, false, false, false),
            ("SELECT * FROM c.a", true, true, false, false, false),
            ("SELECT VALUE c FROM c JOIN t IN c.tags", true, true, false, false, false),
            ("SELECT * FROM c ORDER BY c.a", false, true, true, false, true),
            ("SELECT TOP 5 * FROM c", true, true, true, false, true),
            ("SELECT * FROM c OFFSET 1 LIMIT 2", true, true, true, false, true),
            ("SELECT DISTINCT VALUE c.a FROM c", true, true, false, false, true),
            ("SELECT VALUE COUNT(1) FROM c", false, false, false, true, true),
            ("SELECT VALUE COUNT(c) FROM c WHERE c.a = 1", false, false, false, true, true),
            ("SELECT VALUE [{\"item\": COUNT(1)}] FROM c", false, false, false, true, true),
            ("SELECT VALUE COUNT(undefined) FROM c", false, false, false, false, true),
            ("SELECT VALUE COUNT(c.a) FROM c", false, false, false, false, true),
            ("SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags", false, false, false, false, true),
            ("SELECT COUNT(1), SUM(c.a) FROM c", false, false, false, false, true),
            ("SELECT VALUE COUNT(1) FROM c GROUP BY c.a", false, false, false, false, true),
            ("SELECT VALUE x FROM (SELECT VALUE c.a FROM c) x", true, true, false, false, false),
            ("SELECT VALUE x FROM (SELECT DISTINCT VALUE c.a FROM c) x", true, true, false, false, true),
            ("SELECT VALUE x FROM (SELECT VALUE c.a FROM c) x ORDER BY x", false, false, false, false, true),
            ("SELECT VALUE 1", true, true, false, false, false),
        ] {
            let statement = statement(text);
            assert_eq!(statement.is_streaming(InputOrder::Any), any, "streaming: {text}");
            assert_eq!(statement.is_streaming(InputOrder::AlreadyOrdered), ordered, "ordered: {text}");
            assert_eq!(statement.returns_whole_documents(), whole, "whole: {text}");
            assert_eq!(statement.counts_documents_only(), counts, "counts: {text}");
            assert_eq!(statement.needs_merge(), merges, "merge: {text}");
            assert_eq!(statement.has_from(), text.contains("FROM"), "from: {text}");
        }
    }

    #[test]
    fn a_statement_can_be_shared_between_threads() {
        fn shared<T: Send + Sync>(_: &T) {}
        shared(&statement("SELECT * FROM c"));
    }

    #[test]
    fn push_count_counts_documents_without_reading_them() {
        let statement = statement("SELECT VALUE {\"n\": COUNT(1)} FROM c");
        let mut run = crate::QueryExecution::new(&statement, QueryContext::default(), InputOrder::Any);
        run.push_count(41);
        run.push(&Value::Null).unwrap();
        assert_eq!(run.finish().unwrap()[0].member("n"), &Value::from(42));
    }

    #[test]
    fn a_limit_ends_a_streaming_execution_early() {
        let statement = statement("SELECT TOP 2 * FROM c");
        let mut run = crate::QueryExecution::new(&statement, QueryContext::default(), InputOrder::Any);
        assert_eq!(run.push(&Value::from(1)), Ok(crate::InputDemand::More));
        assert_eq!(run.drain().len(), 1);
        assert_eq!(run.push(&Value::from(2)), Ok(crate::InputDemand::Enough));
        assert_eq!(run.push(&Value::from(3)), Ok(crate::InputDemand::Enough));
        assert_eq!(run.finish().unwrap(), [Value::from(2)]);
    }

    #[test]
    fn a_patch_condition_is_met_or_not() {
        let document = crate::value::parse(br#"{"a": 1, "b": {"c": "x"}}"#).unwrap();
        for (text, expected) in [
            ("from c where c.a = 1", true),
            ("FROM root r WHERE r.b.c LIKE 'x%' AND r.a > 0", true),
            ("from c where c.a = 2", false),
            ("from c where c.missing", false),
            ("from c where c.a", false),
            ("from c where IS_DEFINED(c.b)", true),
        ] {
            assert_eq!(
                PatchCondition::parse(text).unwrap().is_met_by(&document, &QueryContext::default()),
                expected,
                "{text}"
            );
        }
        for text in [
            "",
            "where c.a = 1",
            "from c",
            "from c where",
            "from c join t in c.b where true",
            "from c.b where true",
        ] {
            assert!(PatchCondition::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_deepest_queries_that_parse_can_be_executed() {
        let (depth, nesting) = (usize::from(crate::DEPTH_MAX), usize::from(crate::NESTING_MAX));
        let wrap = |start: &str, middle: &str, end: &str, times: usize| {
            format!("{}{middle}{}", start.repeat(times), end.repeat(times))
        };
        let inside = nesting - 2;
        for text in [
            format!("SELECT VALUE {} FROM c", wrap("NOT ", "c.a", "", depth - 2)),
            format!("SELECT VALUE {} FROM c", wrap("- ", "c.a", "", depth - 2)),
            format!("SELECT VALUE {} FROM c", wrap("", "c.a", " + c.a", depth - 2)),
            format!("SELECT VALUE {} FROM c", wrap("c.a + (", "c.a", ")", depth - 2)),
            format!(
                "SELECT * FROM c WHERE {}",
                wrap("c.a = 1 AND (c.b = 2 OR (", "c.a", "))", depth / 2 - 2)
            ),
            format!("SELECT VALUE {} FROM c", wrap("c.a ? 1 : (", "c.a", ")", depth - 2)),
            format!("SELECT VALUE {} FROM c", wrap("c.a ?? (", "c.a", ")", depth - 2)),
            format!("SELECT VALUE {} FROM c", wrap("[", "c.a", "]", inside)),
            format!("SELECT VALUE {} FROM c", wrap("{a: ", "c.a", "}", inside)),
            format!("SELECT VALUE {} FROM c", wrap("IS_DEFINED(", "c.a", ")", inside)),
            format!("SELECT VALUE {} FROM c", wrap("(SELECT VALUE ", "c.a", ")", inside / 2)),
            format!(
                "SELECT * FROM c WHERE {}",
                wrap("EXISTS(SELECT VALUE c FROM c WHERE ", "c.a", ")", inside / 2)
            ),
            format!("SELECT VALUE x FROM {} AS x", wrap("(SELECT VALUE x FROM ", "c", " AS x)", inside)),
            format!("SELECT VALUE c{} FROM c", ".a".repeat(depth - 1)),
        ] {
            let statement = Statement::prepare(&text, &[], &QuerySchema::default())
                .unwrap_or_else(|error| panic!("{error}"));
            let document = crate::value::parse(br#"{"a": true, "b": 2}"#).unwrap();
            crate::run_reference(&statement, [&document], QueryContext::default()).unwrap();
            let mut run = crate::QueryExecution::new(&statement, QueryContext::default(), InputOrder::Any);
            run.push(&document).unwrap();
            run.finish().unwrap();
            let printed = crate::ast::print_query(statement.query());
            assert_eq!(&crate::parse_query(&printed).unwrap(), statement.query());
        }
    }

    #[test]
    fn a_statement_with_missing_parameters_cannot_be_executed() {
        let statement =
            Statement::prepare_plan("SELECT * FROM c WHERE c.a = @a", &[], &QuerySchema::default()).unwrap();
        let mut run = crate::QueryExecution::new(&statement, QueryContext::default(), InputOrder::Any);
        assert_eq!(run.push(&Value::Null).unwrap_err().code, "SC2002");
    }
}
