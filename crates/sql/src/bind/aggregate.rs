//! Binding of aggregates: their group and their arguments.

use smol_str::SmolStr;

use super::Binder;
use crate::ast::{Expression, ExpressionKind};
use crate::bound::BoundExpression;
use crate::error::{SqlError, code};
use crate::functions::aggregate::Aggregate;
use crate::token::Span;

/// Whether `expression` contains an aggregate outside its subqueries.
pub(super) fn contains_aggregate(expression: &Expression) -> bool {
    let mut found = matches!(
        expression.kind(),
        ExpressionKind::Call { name, user_defined: false, .. } if Aggregate::find(&name.0).is_some()
    );
    expression.kind().for_each_child(&mut |child| found = found || contains_aggregate(child));
    found
}

fn contains_subquery(expression: &Expression) -> bool {
    let mut found = matches!(expression.kind(), ExpressionKind::Subquery { .. });
    expression.kind().for_each_child(&mut |child| found = found || contains_subquery(child));
    found
}

impl Binder<'_> {
    pub(super) fn aggregate(
        &mut self,
        (name, aggregate): (&SmolStr, Aggregate),
        arguments: &[Expression],
        span: Span,
    ) -> Result<BoundExpression, SqlError> {
        let [argument] = arguments else {
            let message = format!("The {} function requires 1 argument(s).", name.to_ascii_uppercase());
            return Err(SqlError::new(code::ARGUMENT_COUNT, span, message));
        };
        let misplaced = |message: String| SqlError::new(code::AGGREGATE_MISPLACED, span, message);
        if contains_aggregate(argument) || contains_subquery(argument) {
            let message =
                format!("{name} cannot aggregate an expression that contains an aggregate or a subquery");
            return Err(misplaced(message));
        }
        let Some(at) = self.scopes.group_at else {
            let message = format!("the aggregate {name} is only allowed in the SELECT and ORDER BY clauses");
            return Err(misplaced(message));
        };
        let up = self.scopes.len() - 1 - at;
        let group = self.scopes.group_scope(at).expect("the group of the query being bound is in view");
        // Rewritten queries repeat aggregates; each is computed once.
        let known =
            group.aggregates.iter().position(|(known, over, _)| *known == aggregate && over == argument);
        if let Some(index) = known {
            return Ok(BoundExpression::Aggregate { up, index });
        }
        let inside = self.scopes.enter_rows(at);
        let bound = self.expression(argument);
        self.scopes.leave_rows(at, inside);
        let bound = bound?;
        let group = self.scopes.group_scope(at).expect("the group of the query being bound is in view");
        group.aggregates.push((aggregate, argument.clone(), bound));
        Ok(BoundExpression::Aggregate { up, index: group.aggregates.len() - 1 })
    }
}
