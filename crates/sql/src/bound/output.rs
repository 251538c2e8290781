//! Properties of a compiled query's output: what each row is made of, and when rows are known.

use super::{Pipeline, PipelineInput};

/// What each row of a statement is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOrigin {
    /// Each row comes from one document.
    Documents,
    /// Each row is a distinct value (DISTINCT) or a group (GROUP BY), which several documents may share.
    Values,
    /// Each row comes from a row of a query in FROM that returns values; equal rows can only be counted.
    Rows,
    /// Each row depends on all documents: there is one row (an aggregate), or the position of a row depends
    /// on all others (ORDER BY RANK). Progress through such a result can only be expressed as a row count.
    AllDocuments,
}

/// The order in which documents are pushed into an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputOrder {
    /// Any order; rows that tie in ORDER BY keep it.
    Any,
    /// The order of the statement's ORDER BY.
    AlreadyOrdered,
}

impl Pipeline {
    /// The query in the FROM clause of this one.
    pub(crate) fn inner(&self) -> Option<&Pipeline> {
        match &self.input {
            PipelineInput::Rows(inner) => Some(inner),
            PipelineInput::Outer | PipelineInput::Documents => None,
        }
    }

    /// What each row is made of. Queries in the FROM clause have no order and no limit.
    pub(crate) fn row_origin(&self) -> RowOrigin {
        let one_row = self.grouping.as_ref().is_some_and(|grouping| grouping.single);
        if self.rank.is_some() || one_row {
            RowOrigin::AllDocuments
        } else if self.merges_documents() {
            RowOrigin::Values
        } else if self.reads_values() {
            RowOrigin::Rows
        } else {
            RowOrigin::Documents
        }
    }

    /// Whether several documents may share a row.
    fn merges_documents(&self) -> bool {
        self.grouping.is_some() || self.distinct
    }

    /// Whether a query in the FROM clause, at any depth, returns values rather than documents.
    pub(crate) fn reads_values(&self) -> bool {
        std::iter::successors(self.inner(), |inner| inner.inner()).any(Pipeline::merges_documents)
    }

    /// Whether rows are returned before the last document has been pushed.
    pub(crate) fn is_streaming(&self, order: InputOrder) -> bool {
        let blocks = |pipeline: &Pipeline, ordered: bool| {
            pipeline.grouping.is_some() || pipeline.rank.is_some() || (!pipeline.order.is_empty() && !ordered)
        };
        match self.inner() {
            Some(inner) => !blocks(self, false) && inner.is_streaming(InputOrder::Any),
            None => !blocks(self, order == InputOrder::AlreadyOrdered),
        }
    }
}
