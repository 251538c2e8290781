//! The binder: AST to bound pipeline, with every name, function and parameter resolved.
//!
//! Input: a parsed query, the values of its parameters and the container's schema. Output: a [`Pipeline`],
//! or the first error. Constant expressions are evaluated here, once.

mod aggregate;
mod call;
mod expression;
mod query;
mod rank;
mod scope;
mod source;
mod vector;

use std::collections::HashMap;

use smol_str::SmolStr;

use crate::ast::{Collection, Expression, OrderBy, Query, Selection};
use crate::bound::{BoundExpression, Pipeline};
use crate::context::{ComputedProperty, QueryContext, QuerySchema};
use crate::error::{SqlError, code};
use crate::evaluate::EvaluationContext;
use crate::parser::parse_query;
use crate::token::Span;
use crate::value::Value;
use query::QueryPosition;
use scope::Scopes;

/// How the binder treats a parameter that the request does not define.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingParameter {
    /// The query is an error.
    Reject,
    /// The query can be planned, but its execution fails.
    Defer,
}

/// The work units of all constant expressions of a query, which are evaluated while it is bound.
const CONSTANT_UNITS_MAX: u64 = 1_000_000;

/// The longest list of parameters that is searched for each use of one.
const SEARCHED_PARAMETERS_MAX: usize = 16;

fn plain_name(parameter: &str) -> &str {
    parameter.strip_prefix('@').unwrap_or(parameter)
}

/// Binds a query that is not a subquery.
pub(crate) fn bind(
    query: &Query,
    parameters: &[(SmolStr, Value)],
    schema: &QuerySchema,
    unbound: MissingParameter,
) -> Result<Pipeline, SqlError> {
    let mut binder = Binder::new(parameters, schema, unbound)?;
    let pipeline = binder.query(query, QueryPosition::Top)?;
    // Constant expressions are evaluated here, and count towards the work budget.
    binder.context.budget().check()?;
    Ok(pipeline)
}

/// The state of binding one query.
struct Binder<'a> {
    parameters: &'a [(SmolStr, Value)],
    /// The values of a long list of parameters, by name without `@`; empty for a short one.
    parameters_by_name: HashMap<&'a str, &'a Value>,
    schema: &'a QuerySchema,
    unbound: MissingParameter,
    /// The context in which constant expressions are evaluated.
    context: EvaluationContext<'a>,
    computed: Vec<Computed>,
    scopes: Scopes,
}

/// A parsed computed property.
struct Computed {
    name: SmolStr,
    /// The alias of the document in its query.
    alias: SmolStr,
    value: Expression,
}

impl<'a> Binder<'a> {
    fn new(
        parameters: &'a [(SmolStr, Value)],
        schema: &'a QuerySchema,
        unbound: MissingParameter,
    ) -> Result<Binder<'a>, SqlError> {
        let computed = schema.computed_properties.iter().map(parse_computed).collect::<Result<_, _>>()?;
        let limit = QueryContext { work_units_max: Some(CONSTANT_UNITS_MAX), ..QueryContext::default() };
        let context = EvaluationContext::new(limit, schema);
        let mut parameters_by_name = HashMap::new();
        if parameters.len() > SEARCHED_PARAMETERS_MAX {
            // Of two parameters with one name, the first counts.
            parameters_by_name.extend(parameters.iter().rev().map(|(name, value)| (plain_name(name), value)));
        }
        let scopes = Scopes::default();
        Ok(Binder { parameters, parameters_by_name, schema, unbound, context, computed, scopes })
    }

    /// The value of a parameter; names are compared with and without the `@`.
    fn parameter(&self, name: &str) -> Option<&'a Value> {
        if !self.parameters_by_name.is_empty() {
            return self.parameters_by_name.get(name).copied();
        }
        self.parameters.iter().find(|(given, _)| plain_name(given) == name).map(|(_, value)| value)
    }

    fn unbound_parameter(&self, name: &str, span: Span) -> SqlError {
        let message = format!("the query uses the parameter '@{name}', which the request does not define");
        SqlError::new(code::UNBOUND_PARAMETER, span, message)
    }

    /// Binds a parameter used as an expression.
    fn bind_parameter(&self, name: &str, span: Span) -> Result<BoundExpression, SqlError> {
        match (self.parameter(name), self.unbound) {
            (Some(value), _) => Ok(BoundExpression::Constant(value.clone())),
            (None, MissingParameter::Reject) => Err(self.unbound_parameter(name, span)),
            (None, MissingParameter::Defer) => {
                Ok(BoundExpression::Failure(Box::new(self.unbound_parameter(name, span))))
            }
        }
    }
}

/// Checks that a container may define this computed property: its query must be `SELECT VALUE expression
/// FROM alias`, and its name must not be a system property.
pub fn check_computed_property(property: &ComputedProperty) -> Result<(), SqlError> {
    const SYSTEM: &[&str] = &["id", "_rid", "_ts", "_self", "_etag", "_attachments"];
    if property.name.is_empty() || SYSTEM.contains(&property.name.as_str()) {
        let message = format!("'{}' cannot be the name of a computed property", property.name);
        return Err(SqlError::new(code::SYNTAX, Span::default(), message));
    }
    let parsed = parse_computed(property)?;
    let schema = QuerySchema::default();
    let mut binder = Binder::new(&[], &schema, MissingParameter::Reject)?;
    binder.scopes.push_document(Some(parsed.alias.clone()));
    binder.expression(&parsed.value).map(drop).map_err(|error| error.located_in(&property.query))
}

fn parse_computed(property: &ComputedProperty) -> Result<Computed, SqlError> {
    let invalid = |what: &str| {
        let message = format!(
            "the computed property '{}' must have the form SELECT VALUE expression FROM alias: {what}",
            property.name
        );
        SqlError::new(code::SYNTAX, Span::default(), message)
    };
    let query = parse_query(&property.query).map_err(|error| invalid(&error.message))?;
    let [source] = &query.from[..] else { return Err(invalid("it needs exactly one source")) };
    let plain = !query.distinct
        && query.top.is_none()
        && query.filter.is_none()
        && query.group_by.is_empty()
        && query.order_by == OrderBy::None
        && query.offset_limit.is_none();
    if !plain {
        return Err(invalid("no other clause is allowed"));
    }
    let whole =
        !source.iterate && matches!(&source.collection, Collection::Path { steps, .. } if steps.is_empty());
    let (true, Some(alias)) = (whole, source.name().cloned()) else {
        return Err(invalid("its source must be the container"));
    };
    let Selection::Value(value) = query.selection else { return Err(invalid("it must select one VALUE")) };
    Ok(Computed { name: property.name.clone(), alias, value })
}

#[cfg(test)]
mod tests;
