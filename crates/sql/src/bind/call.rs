//! Binding of function calls: names and argument counts.

use smol_str::SmolStr;

use super::vector::VECTOR_SCORE;
use super::{Binder, MissingParameter};
use crate::ast::Expression;
use crate::bound::BoundExpression;
use crate::context::FullTextLanguage;
use crate::error::{SqlError, code};
use crate::functions::aggregate::Aggregate;
use crate::functions::{self, Family, Function};
use crate::token::Span;

impl Binder<'_> {
    pub(super) fn call(
        &mut self,
        (name, user_defined): (&SmolStr, bool),
        arguments: &[Expression],
        span: Span,
    ) -> Result<BoundExpression, SqlError> {
        if user_defined {
            let message = format!("user-defined functions are not supported: 'udf.{name}'");
            let error = SqlError::new(code::UNSUPPORTED, span, message);
            // Nothing here runs it, but a query that calls one can be planned: it reads its arguments, and
            // says nothing about where the items are.
            self.all(arguments)?;
            return match self.unbound {
                MissingParameter::Defer => Ok(BoundExpression::Failure(Box::new(error))),
                MissingParameter::Reject => Err(error),
            };
        }
        if let Some(aggregate) = Aggregate::find(name) {
            return self.aggregate((name, aggregate), arguments, span);
        }
        if name.eq_ignore_ascii_case(VECTOR_SCORE) {
            return self.vector_score(arguments, span);
        }
        let mut function = find(name, span)?;
        check_count(function, arguments.len(), span)?;
        if function.family == Family::Rank {
            let message = format!("{name} is only allowed in an ORDER BY RANK clause");
            return Err(SqlError::new(code::SCORE_OUTSIDE_RANK, span, message));
        }
        let mut arguments = self.all(arguments)?.into_vec();
        if function.family == Family::Vector {
            self.complete_vector_options(&mut arguments);
        }
        if function.family == Family::FullText
            && let Some(language) = arguments.first().and_then(|text| self.text_language(text))
        {
            function = functions::in_language(function, language);
        }
        Ok(self.folded(BoundExpression::Call { function, arguments: arguments.into() }))
    }

    /// The language that the container's full-text policy gives to the path `text`.
    pub(super) fn text_language(&self, text: &BoundExpression) -> Option<FullTextLanguage> {
        self.schema.full_text_language_of(&self.policy_path(text)?)
    }
}

/// The built-in function called `name`.
pub(super) fn find(name: &SmolStr, span: Span) -> Result<&'static Function, SqlError> {
    functions::find(name).ok_or_else(|| {
        let message = format!("'{name}' is not a recognized built-in function name.");
        let span = Span { start: span.start, end: span.start + name.len() };
        SqlError::new(code::UNKNOWN_FUNCTION, span, message)
    })
}

/// Checks that a function takes this many arguments.
pub(super) fn check_count(function: &Function, count: usize, span: Span) -> Result<(), SqlError> {
    if count >= function.min_args && function.max_args.is_none_or(|max| count <= max) {
        return Ok(());
    }
    let wanted = match function.max_args {
        Some(max) if max == function.min_args => max.to_string(),
        Some(max) => format!("{} to {max}", function.min_args),
        None => format!("at least {}", function.min_args),
    };
    let message = format!("The {} function requires {wanted} argument(s).", function.name);
    Err(SqlError::new(code::ARGUMENT_COUNT, span, message))
}
