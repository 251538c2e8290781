//! Binding of the clauses of a query, in the order in which rows pass them.

use smol_str::SmolStr;

use super::Binder;
use super::aggregate::contains_aggregate;
use super::vector::is_distance;
use crate::ast::{
    Direction, OrderBy, OrderByItem, Query, RowCount, RowCountKind, SelectItem, Selection, item_names,
};
use crate::bound::{BoundExpression, Grouping, Pipeline, SortKey};
use crate::error::{SqlError, code};
use crate::value::Value;

/// The position of a query within the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueryPosition {
    /// The outermost query of the statement.
    Top,
    /// The first source of a query over the container; it reads the container.
    FirstSource,
    /// Inside an expression or a JOIN; it sees the outer row.
    Nested,
}

impl Binder<'_> {
    pub(super) fn query(&mut self, query: &Query, position: QueryPosition) -> Result<Pipeline, SqlError> {
        let base = self.scopes.len();
        let group_around = self.scopes.group_at.take();
        let (origin, sources) = self.sources(query, position)?;
        let filter = query.filter.as_ref().map(|filter| self.expression(filter)).transpose()?;
        let keys = query.group_by.iter().map(|key| self.expression(key)).collect::<Result<Vec<_>, _>>()?;
        let order_keys: &[OrderByItem] = if let OrderBy::Keys(keys) = &query.order_by { keys } else { &[] };
        let rank = match &query.order_by {
            OrderBy::Rank(score) => Some(self.rank(score, query)?),
            OrderBy::None | OrderBy::Keys(_) => None,
        };
        let grouped = !query.group_by.is_empty()
            || query.selection.expressions().any(contains_aggregate)
            || order_keys.iter().any(|key| contains_aggregate(&key.expression));
        // A single row needs no order: the sort keys are validated and dropped.
        let one_row = grouped && query.group_by.is_empty();
        let (order_keys, dropped): (Vec<_>, Vec<_>) =
            order_keys.iter().partition(|key| !one_row || contains_aggregate(&key.expression));
        for key in dropped {
            self.order_key(key)?;
        }
        if grouped {
            self.scopes.group(base, query.group_by.clone());
        }
        let projection = self.selection(query, grouped)?;
        let order = order_keys.into_iter().map(|key| self.order_key(key)).collect::<Result<Vec<_>, _>>()?;
        let grouping = grouped.then(|| Grouping {
            keys,
            aggregates: self.scopes.ungroup(base),
            single: query.group_by.is_empty(),
        });
        self.scopes.truncate(base);
        self.scopes.group_at = group_around;
        let (top, offset_limit) = (self.top(query)?, self.offset_limit(query)?);
        Ok(Pipeline {
            input: origin,
            sources,
            filter,
            grouping,
            distinct: query.distinct,
            order,
            rank,
            projection,
            top,
            offset_limit,
        })
    }

    /// Checks that a subquery has no clause that the service does not allow there.
    pub(super) fn check_subquery(&self, query: &Query) -> Result<(), SqlError> {
        let invalid = |code, what: &str| {
            let message = format!("{what} is not supported in a subquery");
            Err(SqlError::new(code, query.span, message))
        };
        if query.order_by != OrderBy::None {
            invalid(code::SUBQUERY_ORDER_BY, "ORDER BY")
        } else if query.top.is_some() {
            invalid(code::SUBQUERY_TOP, "TOP")
        } else if query.offset_limit.is_some() {
            invalid(code::SUBQUERY_OFFSET_LIMIT, "OFFSET LIMIT")
        } else {
            Ok(())
        }
    }

    fn selection(&mut self, query: &Query, grouped: bool) -> Result<BoundExpression, SqlError> {
        match &query.selection {
            Selection::Star => {
                if grouped {
                    let message = "'SELECT *' is not allowed together with GROUP BY";
                    return Err(SqlError::new(code::STAR_WITH_GROUP_BY, query.span, message));
                }
                if query.from.len() != 1 {
                    let message = "'SELECT *' is only valid with a single input set";
                    return Err(SqlError::new(code::STAR_NEEDS_ONE_SOURCE, query.span, message));
                }
                Ok(BoundExpression::Source { up: 0 })
            }
            Selection::Value(value) => self.expression(value),
            Selection::List(items) => self.select_list(items),
        }
    }

    fn select_list(&mut self, items: &[SelectItem]) -> Result<BoundExpression, SqlError> {
        let names = item_names(items);
        let mut members: Vec<(SmolStr, BoundExpression)> = Vec::with_capacity(items.len());
        for (name, item) in names.into_iter().zip(items) {
            if members.iter().any(|(taken, _)| *taken == name) {
                let message =
                    format!("the property name '{name}' is specified more than once in the SELECT clause");
                return Err(SqlError::new(code::DUPLICATE_ALIAS, item.expression.span(), message));
            }
            members.push((name, self.expression(&item.expression)?));
        }
        Ok(self.folded(BoundExpression::Object(members.into())))
    }

    fn order_key(&mut self, key: &OrderByItem) -> Result<SortKey, SqlError> {
        let code = self.expression(&key.expression)?;
        if key.direction.is_some() && is_distance(&key.expression) {
            let message =
                "Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported.";
            return Err(SqlError::new(code::UNCODED, key.expression.span(), message));
        }
        // Distances have a direction of their own; everything else is ascending.
        let implied = || self.nearest_first(&code).unwrap_or(Direction::Ascending);
        let direction = key.direction.unwrap_or_else(implied);
        Ok(SortKey { key: code, direction })
    }

    fn top(&self, query: &Query) -> Result<Option<u64>, SqlError> {
        query.top.as_ref().map(|top| self.count(top, "TOP", code::TOP_RANGE)).transpose()
    }

    fn offset_limit(&self, query: &Query) -> Result<Option<(u64, u64)>, SqlError> {
        let Some(clause) = &query.offset_limit else { return Ok(None) };
        let offset = self.count(&clause.offset, "OFFSET", code::OFFSET_RANGE)?;
        let limit = self.count(&clause.limit, "LIMIT", code::LIMIT_RANGE)?;
        Ok(Some((offset, limit)))
    }

    /// Binds a row count: a whole number, not negative, at most 32 bits.
    fn count(&self, count: &RowCount, clause: &str, code: &'static str) -> Result<u64, SqlError> {
        let value = match &count.kind {
            RowCountKind::Literal(value) => value,
            RowCountKind::Parameter(name) => {
                self.parameter(name).ok_or_else(|| self.unbound_parameter(name, count.span))?
            }
        };
        let whole = match value {
            Value::Number(number) => number.as_i64().and_then(|number| u32::try_from(number).ok()),
            _ => None,
        };
        whole.map(u64::from).ok_or_else(|| {
            let found = if value.is_defined() { value.to_string() } else { "undefined".to_owned() };
            let message =
                format!("the {clause} value must be a whole number from 0 to {}, found {found}", u32::MAX);
            SqlError::new(code, count.span, message)
        })
    }
}
