//! Rewriting of queries, clause by clause, as text.

use std::fmt;

use protocol::query::ORDER_BY_FILTER;

use crate::ast::{Expression, OrderBy, Query, Selection, print_expression, print_query, print_sources};

/// A query being rewritten; clauses are separated by newlines.
#[derive(Clone, Debug, Default)]
pub(super) struct RewrittenQuery {
    distinct: bool,
    top: Option<String>,
    selection: String,
    from: Option<String>,
    filter: Option<String>,
    group_by: Option<String>,
    order_by: Option<String>,
    offset_limit: Option<String>,
}

impl RewrittenQuery {
    /// The original query in canonical form.
    pub(super) fn of(query: &Query) -> RewrittenQuery {
        // Everything but the selection and the sources is printed clause by clause.
        let bare = Query {
            distinct: false,
            top: None,
            filter: None,
            group_by: Vec::new(),
            order_by: OrderBy::None,
            offset_limit: None,
            from: Vec::new(),
            ..query.clone()
        };
        let selection = print_query(&bare);
        RewrittenQuery {
            distinct: query.distinct,
            top: query.top.as_ref().map(crate::ast::print_row_count),
            selection: selection.strip_prefix("SELECT ").unwrap_or(&selection).to_owned(),
            filter: query.filter.as_ref().map(print_expression),
            offset_limit: query.offset_limit.as_ref().map(|clause| {
                let (offset, limit) = (&clause.offset, &clause.limit);
                format!(
                    "OFFSET {} LIMIT {}",
                    crate::ast::print_row_count(offset),
                    crate::ast::print_row_count(limit)
                )
            }),
            ..RewrittenQuery::over(query)
        }
    }

    /// A query with the same sources and nothing else.
    pub(super) fn over(query: &Query) -> RewrittenQuery {
        let from = (!query.from.is_empty()).then(|| print_sources(&query.from));
        RewrittenQuery { from, ..RewrittenQuery::default() }
    }

    pub(super) fn without_top(self) -> RewrittenQuery {
        RewrittenQuery { top: None, ..self }
    }

    pub(super) fn with_top(self, top: Option<u64>) -> RewrittenQuery {
        RewrittenQuery { top: top.map(|top| top.to_string()), ..self }
    }

    pub(super) fn without_offset_limit(self) -> RewrittenQuery {
        RewrittenQuery { offset_limit: None, ..self }
    }

    /// Adds the clause `OFFSET 0 LIMIT rows`.
    pub(super) fn with_offset_limit(self, rows: u64) -> RewrittenQuery {
        RewrittenQuery { offset_limit: Some(format!("OFFSET 0 LIMIT {rows}")), ..self }
    }

    pub(super) fn with_selection(self, selection: String) -> RewrittenQuery {
        RewrittenQuery { selection, ..self }
    }

    /// Sets the filter of the query.
    pub(super) fn filtered_by(self, filter: Option<&Expression>) -> RewrittenQuery {
        RewrittenQuery { filter: filter.map(print_expression), ..self }
    }

    /// Adds a placeholder to the filter, which the client replaces by a resume condition.
    pub(super) fn resumable(self) -> RewrittenQuery {
        let filter = match self.filter {
            None => format!("({ORDER_BY_FILTER})"),
            Some(filter) => format!("({filter} AND ({ORDER_BY_FILTER}))"),
        };
        RewrittenQuery { filter: Some(filter), ..self }
    }

    /// Keeps only rows with a value: the payload is a property, and an undefined property would not drop
    /// the row as an undefined VALUE does.
    pub(super) fn keeping_defined(self, selection: &Selection) -> RewrittenQuery {
        let Selection::Value(value) = selection else { return self };
        let defined = format!("IS_DEFINED({})", print_expression(value));
        let filter = match self.filter {
            None => defined,
            Some(filter) => format!("({filter} AND {defined})"),
        };
        RewrittenQuery { filter: Some(filter), ..self }
    }

    pub(super) fn grouped_by(self, keys: &[Expression]) -> RewrittenQuery {
        let printed: Vec<String> = keys.iter().map(print_expression).collect();
        RewrittenQuery { group_by: (!keys.is_empty()).then(|| printed.join(", ")), ..self }
    }

    pub(super) fn ordered_by(self, order: String) -> RewrittenQuery {
        RewrittenQuery { order_by: Some(order), ..self }
    }
}

impl fmt::Display for RewrittenQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SELECT ")?;
        if self.distinct {
            f.write_str("DISTINCT ")?;
        }
        if let Some(top) = &self.top {
            write!(f, "TOP {top} ")?;
        }
        f.write_str(&self.selection)?;
        let clauses = [
            ("FROM ", &self.from),
            ("WHERE ", &self.filter),
            ("GROUP BY ", &self.group_by),
            ("ORDER BY ", &self.order_by),
            ("", &self.offset_limit),
        ];
        for (word, clause) in clauses {
            if let Some(clause) = clause {
                write!(f, "\n{word}{clause}")?;
            }
        }
        Ok(())
    }
}
