//! Binding of FROM and JOIN: the frames of a query's rows.

use super::Binder;
use super::query::QueryPosition;
use crate::ast::{Collection, Expression, ExpressionKind, MemberNotation, PathStep, Query, Source};
use crate::bound::{BoundExpression, BoundSource, PipelineInput};
use crate::error::{SqlError, code};
use crate::token::Span;
use crate::value::Value;

impl Binder<'_> {
    /// Binds the sources of a query and adds one scope entry per frame.
    pub(super) fn sources(
        &mut self,
        query: &Query,
        position: QueryPosition,
    ) -> Result<(PipelineInput, Vec<BoundSource>), SqlError> {
        let base = self.scopes.len();
        let Some((first, joined)) = query.from.split_first() else {
            return Ok((PipelineInput::Outer, Vec::new()));
        };
        let mut sources = Vec::new();
        let origin = match position {
            QueryPosition::Nested => {
                sources.push(self.dependent(first, base)?);
                PipelineInput::Outer
            }
            QueryPosition::Top | QueryPosition::FirstSource => self.container(first, &mut sources)?,
        };
        for source in joined {
            sources.push(self.dependent(source, base)?);
        }
        Ok((origin, sources))
    }

    /// Binds the first source of a query over the container. The name of the container is arbitrary.
    fn container(
        &mut self,
        source: &Source,
        sources: &mut Vec<BoundSource>,
    ) -> Result<PipelineInput, SqlError> {
        let name = source.name().cloned();
        match &source.collection {
            Collection::Path { steps, .. } if steps.is_empty() && !source.iterate => {
                self.scopes.push_document(name);
                Ok(PipelineInput::Documents)
            }
            Collection::Path { root, steps } => {
                self.scopes.push_document(Some(root.clone()));
                let path = self.expression(&path_expression(root, steps, source.span))?;
                // The container itself has no name once a path into it was chosen.
                self.scopes.truncate(self.scopes.len() - 1);
                self.scopes.push_document(None);
                sources.push(if source.iterate {
                    BoundSource::Elements(path)
                } else {
                    BoundSource::Value(path)
                });
                self.scopes.push_value(name);
                Ok(PipelineInput::Documents)
            }
            // Nothing is in scope that its arguments could name.
            Collection::Value(value) => {
                let message =
                    "the first source of a query must be the container, a path into it or a subquery";
                Err(SqlError::new(code::SYNTAX, value.span(), message))
            }
            Collection::Subquery(query) => {
                self.check_subquery(query)?;
                let rows = self.query(query, QueryPosition::FirstSource)?;
                if source.iterate {
                    self.scopes.push_value(None);
                    sources.push(BoundSource::Elements(BoundExpression::Source { up: 0 }));
                }
                self.scopes.push_value(name);
                Ok(PipelineInput::Rows(Box::new(rows)))
            }
        }
    }

    /// Binds a source that starts from a visible name, or from a subquery.
    fn dependent(&mut self, source: &Source, base: usize) -> Result<BoundSource, SqlError> {
        let name = source.name().cloned();
        if let Some(name) = &name
            && self.scopes.is_taken(base, name)
        {
            let message = format!("the input alias '{name}' is specified more than once in the FROM clause");
            return Err(SqlError::new(code::DUPLICATE_ALIAS, source.span, message));
        }
        match &source.collection {
            Collection::Path { root, steps } => {
                let path = self.expression(&path_expression(root, steps, source.span))?;
                let is_document = !source.iterate
                    && matches!(path, BoundExpression::Source { up } if self.scopes.is_document(up));
                if is_document {
                    self.scopes.push_document(name);
                } else {
                    self.scopes.push_value(name);
                }
                Ok(if source.iterate { BoundSource::Elements(path) } else { BoundSource::Value(path) })
            }
            Collection::Value(value) => {
                let value = self.expression(value)?;
                self.scopes.push_value(name);
                Ok(if source.iterate { BoundSource::Elements(value) } else { BoundSource::Value(value) })
            }
            Collection::Subquery(query) => {
                self.check_subquery(query)?;
                let rows = Box::new(self.query(query, QueryPosition::Nested)?);
                self.scopes.push_value(name);
                Ok(if source.iterate { BoundSource::RowElements(rows) } else { BoundSource::Rows(rows) })
            }
        }
    }
}

/// A source path as an expression.
fn path_expression(root: &smol_str::SmolStr, steps: &[PathStep], span: Span) -> Expression {
    let root = Expression::new(ExpressionKind::Name(root.clone()), span);
    steps.iter().fold(root, |base, step| {
        let base = Box::new(base);
        let kind = match step {
            PathStep::Dot(name) => {
                ExpressionKind::Member { base, name: name.clone(), form: MemberNotation::Dot }
            }
            PathStep::Bracket(name) => {
                ExpressionKind::Member { base, name: name.clone(), form: MemberNotation::Bracket }
            }
            PathStep::Index(index) => {
                let index = ExpressionKind::Literal(Value::from(i64::try_from(*index).unwrap_or(i64::MAX)));
                ExpressionKind::Index { base, index: Box::new(Expression::new(index, span)) }
            }
        };
        Expression::new(kind, span)
    })
}
