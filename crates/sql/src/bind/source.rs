//! FROM and JOIN: which frames a query's rows have.

use super::Binder;
use super::query::Place;
use crate::ast::{Collection, Expression, ExpressionKind, MemberNotation, PathStep, Query, Source};
use crate::bound::{Code, Origin, SourceCode};
use crate::error::{SqlError, code};
use crate::token::Span;
use crate::value::Value;

impl Binder<'_> {
    /// Binds the sources of a query and leaves one scope entry per frame.
    pub(super) fn sources(
        &mut self,
        query: &Query,
        place: Place,
    ) -> Result<(Origin, Vec<SourceCode>), SqlError> {
        let base = self.scopes.len();
        let Some((first, joined)) = query.from.split_first() else { return Ok((Origin::Outer, Vec::new())) };
        let mut sources = Vec::new();
        let origin = match place {
            Place::Nested => {
                sources.push(self.dependent(first, base)?);
                Origin::Outer
            }
            Place::Top | Place::FromTop => self.container(first, &mut sources)?,
        };
        for source in joined {
            sources.push(self.dependent(source, base)?);
        }
        Ok((origin, sources))
    }

    /// The first source of a query over the container. The name it starts with is arbitrary.
    fn container(&mut self, source: &Source, sources: &mut Vec<SourceCode>) -> Result<Origin, SqlError> {
        let name = source.name().cloned();
        match &source.collection {
            Collection::Path { steps, .. } if steps.is_empty() && !source.iterate => {
                self.scopes.push_document(name);
                Ok(Origin::Documents)
            }
            Collection::Path { root, steps } => {
                self.scopes.push_document(Some(root.clone()));
                let path = self.expression(&path_expression(root, steps, source.span))?;
                // The container itself cannot be named once a part of it has been chosen.
                self.scopes.truncate(self.scopes.len() - 1);
                self.scopes.push_document(None);
                sources.push(if source.iterate { SourceCode::Each(path) } else { SourceCode::One(path) });
                self.scopes.push_value(name);
                Ok(Origin::Documents)
            }
            Collection::Subquery(query) => {
                self.check_subquery(query)?;
                let rows = self.query(query, Place::FromTop)?;
                if source.iterate {
                    self.scopes.push_value(None);
                    sources.push(SourceCode::Each(Code::Source { up: 0 }));
                }
                self.scopes.push_value(name);
                Ok(Origin::Rows(Box::new(rows)))
            }
        }
    }

    /// A source that starts from a name in view, or from a subquery.
    fn dependent(&mut self, source: &Source, base: usize) -> Result<SourceCode, SqlError> {
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
                let is_document =
                    !source.iterate && matches!(path, Code::Source { up } if self.scopes.is_document(up));
                if is_document {
                    self.scopes.push_document(name);
                } else {
                    self.scopes.push_value(name);
                }
                Ok(if source.iterate { SourceCode::Each(path) } else { SourceCode::One(path) })
            }
            Collection::Subquery(query) => {
                self.check_subquery(query)?;
                let rows = Box::new(self.query(query, Place::Nested)?);
                self.scopes.push_value(name);
                Ok(if source.iterate { SourceCode::EachOfRows(rows) } else { SourceCode::Rows(rows) })
            }
        }
    }
}

/// A source path, written as the expression it is.
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
