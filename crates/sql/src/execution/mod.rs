//! Execution of a prepared statement: documents in, rows out.
//!
//! A [`QueryExecution`] takes one document at a time and returns rows as soon as they are final: filters
//! and projections at once, sorted and grouped queries at the end. Memory is limited to what the query
//! needs: a sorted query with TOP or LIMIT holds a bounded number of rows, a grouped one its groups. The
//! caller chooses which documents to push, and in which order, with the help of `access_path`.

mod reference; // the same semantics without streaming, for tests

pub use reference::run_reference;

use crate::bound::InputOrder;
use crate::context::QueryContext;
use crate::error::SqlError;
use crate::evaluate::{EvaluationContext, Frame, InputDemand, PipelineState, Ranking, UnmergedRow};
use crate::statement::Statement;
use crate::value::Value;

/// The execution of one statement. Used by one thread at a time.
#[derive(Debug)]
pub struct QueryExecution<'a> {
    context: EvaluationContext<'a>,
    /// The query and the queries in its FROM clause, innermost first: rows go from one to the next.
    stages: Vec<PipelineState<'a>>,
    ranking: Option<Ranking<'a>>,
    statement: &'a Statement,
}

impl<'a> QueryExecution<'a> {
    /// An execution to which no document has been pushed.
    pub fn new(statement: &'a Statement, context: QueryContext, order: InputOrder) -> QueryExecution<'a> {
        let mut stages = Vec::new();
        let mut pipeline = Some(statement.pipeline());
        while let Some(current) = pipeline {
            let outermost = stages.is_empty();
            pipeline = current.inner();
            // The order of the documents is the order of the rows only if there is no query in FROM.
            let ordered = order == InputOrder::AlreadyOrdered && outermost && pipeline.is_none();
            stages.push(PipelineState::new(current, ordered));
        }
        stages.reverse();
        let ranking = statement.pipeline().rank.as_ref().map(|rank| Ranking::new(rank, statement.pipeline()));
        QueryExecution {
            context: EvaluationContext::new(context, statement.schema()),
            stages,
            ranking,
            statement,
        }
    }

    /// An execution that leaves DISTINCT, ORDER BY, OFFSET, LIMIT and TOP to the caller, who takes its rows
    /// with [`QueryExecution::drain_unmerged`] and [`QueryExecution::finish_unmerged`]. Not for statements
    /// whose [row origin](Statement::row_origin) is all documents.
    pub fn unmerged(statement: &'a Statement, context: QueryContext) -> QueryExecution<'a> {
        let mut run = QueryExecution::new(statement, context, InputOrder::Any);
        if let Some(last) = run.stages.last_mut() {
            last.leave_unmerged();
        }
        run
    }

    /// Processes one document. A statement without FROM needs none.
    pub fn push(&mut self, document: &Value) -> Result<InputDemand, SqlError> {
        if !self.statement.has_from() {
            return Ok(InputDemand::Enough);
        }
        self.context.budget().allow_document();
        let frame = Frame::with(&Frame::ROOT, document);
        let demand = match &mut self.ranking {
            Some(ranking) => {
                ranking.push(&frame, document, &self.context);
                InputDemand::More
            }
            None => {
                let demand = self.stages[0].push(&frame, &self.context);
                // An inner query that has all its rows needs no more input for the outer one.
                if self.forward_rows(0) == InputDemand::Enough { InputDemand::Enough } else { demand }
            }
        };
        self.context.check()?;
        Ok(demand)
    }

    /// The work done so far, in units that depend only on the statement and the documents. An execution
    /// that exceeds its budget fails; a caller that can continue in another execution should stop before.
    pub fn work_done(&self) -> u64 {
        self.context.budget().spent()
    }

    /// Limits the remaining work to `units`.
    #[cfg(test)]
    pub(crate) fn limit_work(&self, units: u64) {
        self.context.budget().limit_to(units);
    }

    /// Counts documents without reading them. Only for statements with
    /// [`Statement::counts_documents_only`], and documents that WHERE accepts.
    pub fn push_count(&mut self, documents: u64) {
        debug_assert!(self.statement.counts_documents_only(), "this statement reads its documents");
        self.stages[0].push_count(documents);
    }

    /// Whether WHERE accepts a document, for statements over whole documents without JOIN.
    pub fn accepts(&self, document: &Value) -> Result<bool, SqlError> {
        let accepted = match &self.statement.pipeline().filter {
            Some(filter) => filter.is_true(&Frame::with(&Frame::ROOT, document), &self.context),
            None => true,
        };
        self.context.check()?;
        Ok(accepted)
    }

    /// Takes the rows that are final so far.
    pub fn drain(&mut self) -> Vec<Value> {
        self.stages.last_mut().map(PipelineState::drain).unwrap_or_default()
    }

    /// Ends the input and returns all remaining rows.
    pub fn finish(mut self) -> Result<Vec<Value>, SqlError> {
        if let Some(ranking) = self.ranking.take() {
            let rows = ranking.finish(&self.context);
            self.context.check()?;
            return Ok(rows);
        }
        if !self.statement.has_from() {
            self.stages[0].push(&Frame::ROOT, &self.context);
        }
        self.end()?;
        Ok(self.drain())
    }

    /// Takes the unmerged rows of the documents so far.
    pub fn drain_unmerged(&mut self) -> Vec<UnmergedRow> {
        self.stages.last_mut().map(PipelineState::drain_unmerged).unwrap_or_default()
    }

    /// Ends the input and returns all remaining unmerged rows.
    pub fn finish_unmerged(mut self) -> Result<Vec<UnmergedRow>, SqlError> {
        self.end()?;
        Ok(self.drain_unmerged())
    }

    /// Ends the input of each stage, which then returns its remaining rows.
    fn end(&mut self) -> Result<(), SqlError> {
        for at in 0..self.stages.len() {
            self.stages[at].finish(&Frame::ROOT, &self.context);
            self.forward_rows(at);
        }
        self.context.check()
    }

    /// Moves rows from stage `at` through the following stages to the last one.
    fn forward_rows(&mut self, at: usize) -> InputDemand {
        for at in at..self.stages.len() - 1 {
            let rows = self.stages[at].drain();
            for row in &rows {
                self.context.budget().spend_on_retained(row);
                if self.stages[at + 1].push(&Frame::with(&Frame::ROOT, row), &self.context)
                    == InputDemand::Enough
                {
                    return InputDemand::Enough;
                }
            }
        }
        InputDemand::More
    }
}
