//! Documents in, rows out.
//!
//! A [`QueryExecution`] is pushed one document at a time and hands out rows as soon as they are certain:
//! filters and projections at once, sorted and grouped queries at the end. It never holds more than
//! it needs: a sorted query with TOP or LIMIT keeps a bounded number of rows, a grouped one its
//! groups. Which documents to push, and in what order, is decided by whoever holds the index; see
//! `access_path`.

mod group;
mod identity;
mod naive;
mod order;
mod rank;
mod rows;
mod stage;
mod subquery;
mod unmerged;

pub use identity::HashableValue;
pub use naive::run_reference;
pub(crate) use subquery::subquery_value;
pub(crate) use unmerged::row_origin;
pub use unmerged::{RowOrigin, UnmergedRow};

use crate::bound::{Origin, Pipeline};
use crate::context::QueryContext;
use crate::error::SqlError;
use crate::evaluate::{Frame, World};
use crate::statement::Statement;
use crate::value::Value;
use rank::Ranking;
use stage::Stage;

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputDemand {
    /// More documents may give more rows.
    More,
    /// No further document changes the result.
    Enough,
}

/// The order in which documents will be pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputOrder {
    /// Any; ties of ORDER BY keep it.
    Any,
    /// The order of the statement's ORDER BY.
    AlreadyOrdered,
}

/// A statement under way. Used by one thread at a time.
#[derive(Debug)]
pub struct QueryExecution<'a> {
    world: World<'a>,
    /// The query and the queries in its FROM clause, innermost first: rows go from one to the next.
    stages: Vec<Stage<'a>>,
    ranking: Option<Ranking<'a>>,
    statement: &'a Statement,
}

impl<'a> QueryExecution<'a> {
    /// A run that has seen no document.
    pub fn new(statement: &'a Statement, context: QueryContext, order: InputOrder) -> QueryExecution<'a> {
        let mut stages = Vec::new();
        let mut pipeline = Some(statement.pipeline());
        while let Some(current) = pipeline {
            let outermost = stages.is_empty();
            pipeline = inner(current);
            // The order of the documents is the order of the rows only if nothing stands between.
            let ordered = order == InputOrder::AlreadyOrdered && outermost && pipeline.is_none();
            stages.push(Stage::new(current, ordered));
        }
        stages.reverse();
        let ranking = statement.pipeline().rank.as_ref().map(|rank| Ranking::new(rank, statement.pipeline()));
        QueryExecution { world: World::new(context, statement.schema()), stages, ranking, statement }
    }

    /// A run that leaves DISTINCT, ORDER BY, OFFSET, LIMIT and TOP to whoever takes its rows, by
    /// [`QueryExecution::drain_unmerged`] and [`QueryExecution::finish_unmerged`]. Not for statements whose rows are
    /// [of everything](RowsOf::Everything).
    pub fn unmerged(statement: &'a Statement, context: QueryContext) -> QueryExecution<'a> {
        let mut run = QueryExecution::new(statement, context, InputOrder::Any);
        if let Some(last) = run.stages.last_mut() {
            last.leave_unmerged();
        }
        run
    }

    /// Takes one document. A statement without FROM needs none.
    pub fn push(&mut self, document: &Value) -> Result<InputDemand, SqlError> {
        if !self.statement.has_from() {
            return Ok(InputDemand::Enough);
        }
        self.world.effort().allow_document();
        let frame = Frame::with(&Frame::ROOT, document);
        let flow = match &mut self.ranking {
            Some(ranking) => {
                ranking.push(&frame, document, &self.world);
                InputDemand::More
            }
            None => {
                let flow = self.stages[0].feed(&frame, &self.world);
                // An inner query that has all its rows leaves nothing for the outer one to wait for.
                if self.pass_on(0) == InputDemand::Enough { InputDemand::Enough } else { flow }
            }
        };
        self.world.check()?;
        Ok(flow)
    }

    /// The work done so far, in units that depend on the statement and the documents alone. A run
    /// that would do far too much is refused; whoever can stop earlier, and go on in another run,
    /// should.
    pub fn work_done(&self) -> u64 {
        self.world.effort().spent()
    }

    /// Leaves only so much to be done.
    #[cfg(test)]
    pub(crate) fn limit_effort(&self, units: u64) {
        self.world.effort().limit_to(units);
    }

    /// Counts documents without looking at them. Only for statements of which
    /// [`Statement::counts_documents_only`] holds, and documents that WHERE accepts.
    pub fn push_count(&mut self, documents: u64) {
        debug_assert!(self.statement.counts_documents_only(), "this statement reads its documents");
        self.stages[0].feed_unread(documents);
    }

    /// Whether WHERE keeps a document, for statements over whole documents without JOIN.
    pub fn accepts(&self, document: &Value) -> Result<bool, SqlError> {
        let accepted = match &self.statement.pipeline().filter {
            Some(filter) => filter.is_true(&Frame::with(&Frame::ROOT, document), &self.world),
            None => true,
        };
        self.world.check()?;
        Ok(accepted)
    }

    /// The rows that are certain so far and have not been handed out.
    pub fn drain(&mut self) -> Vec<Value> {
        self.stages.last_mut().map(Stage::drain).unwrap_or_default()
    }

    /// After the last document: all rows that have not been handed out.
    pub fn finish(mut self) -> Result<Vec<Value>, SqlError> {
        if let Some(ranking) = self.ranking.take() {
            let rows = ranking.finish(&self.world);
            self.world.check()?;
            return Ok(rows);
        }
        if !self.statement.has_from() {
            self.stages[0].feed(&Frame::ROOT, &self.world);
        }
        self.end()?;
        Ok(self.drain())
    }

    /// The rows that the documents so far have given and that have not been handed out.
    pub fn drain_unmerged(&mut self) -> Vec<UnmergedRow> {
        self.stages.last_mut().map(Stage::drain_unmerged).unwrap_or_default()
    }

    /// After the last document: all rows that have not been handed out.
    pub fn finish_unmerged(mut self) -> Result<Vec<UnmergedRow>, SqlError> {
        self.end()?;
        Ok(self.drain_unmerged())
    }

    /// Lets each stage give what it held back.
    fn end(&mut self) -> Result<(), SqlError> {
        for at in 0..self.stages.len() {
            self.stages[at].finish(&Frame::ROOT, &self.world);
            self.pass_on(at);
        }
        self.world.check()
    }

    /// Moves rows from stage `at` on to the last one.
    fn pass_on(&mut self, at: usize) -> InputDemand {
        for at in at..self.stages.len() - 1 {
            let rows = self.stages[at].drain();
            for row in &rows {
                self.world.effort().spend_on_kept(row);
                if self.stages[at + 1].feed(&Frame::with(&Frame::ROOT, row), &self.world)
                    == InputDemand::Enough
                {
                    return InputDemand::Enough;
                }
            }
        }
        InputDemand::More
    }
}

/// The query in the FROM clause of `pipeline`.
fn inner(pipeline: &Pipeline) -> Option<&Pipeline> {
    match &pipeline.origin {
        Origin::Rows(inner) => Some(inner),
        Origin::Outer | Origin::Documents => None,
    }
}

/// Whether rows come out while documents still go in.
pub(crate) fn is_streaming(pipeline: &Pipeline, order: InputOrder) -> bool {
    let blocks = |pipeline: &Pipeline, ordered: bool| {
        pipeline.grouping.is_some() || pipeline.rank.is_some() || (!pipeline.order.is_empty() && !ordered)
    };
    match inner(pipeline) {
        Some(inner) => !blocks(pipeline, false) && is_streaming(inner, InputOrder::Any),
        None => !blocks(pipeline, order == InputOrder::AlreadyOrdered),
    }
}
