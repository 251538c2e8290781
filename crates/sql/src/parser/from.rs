//! Parsing of FROM and JOIN: `FROM a [AS] b JOIN c IN b.d`.

use super::Parser;
use crate::ast::{Collection, PathStep, Source};
use crate::error::{SqlError, code};
use crate::token::{Symbol, Token};

/// The largest number of JOINs that the service accepts.
const JOINS_MAX: usize = 10;

impl Parser {
    /// The sources after FROM.
    pub(super) fn sources(&mut self) -> Result<Vec<Source>, SqlError> {
        let mut sources = vec![self.source()?];
        while self.eat_keyword("JOIN") {
            sources.push(self.source()?);
            if sources.len() > JOINS_MAX + 1 {
                let message = format!("the query has more than {JOINS_MAX} JOINs");
                return Err(SqlError::new(code::SYNTAX, self.span_before(), message));
            }
        }
        Ok(sources)
    }

    fn source(&mut self) -> Result<Source, SqlError> {
        let start = self.span();
        if self.is_keyword_after(1, "IN") {
            let alias = self.expect_name("an alias")?;
            self.expect_keyword("IN")?;
            let collection = self.collection()?;
            let span = start.to(self.span_before());
            return Ok(Source { collection, iterate: true, alias: Some(alias), span });
        }
        let collection = self.collection()?;
        let alias = if self.eat_keyword("AS") {
            Some(self.expect_name("an alias")?)
        } else {
            self.eat_name("an alias")
        };
        Ok(Source { collection, iterate: false, alias, span: start.to(self.span_before()) })
    }

    fn collection(&mut self) -> Result<Collection, SqlError> {
        if self.eat(Symbol::OpenParenthesis) {
            let query = self.nested(Parser::query)?;
            self.expect(Symbol::CloseParenthesis)?;
            return Ok(Collection::Subquery(Box::new(query)));
        }
        let is_call = matches!(self.token(), Token::Word(_))
            && matches!(self.token_after(1), Token::Symbol(Symbol::OpenParenthesis));
        if is_call {
            let call = self.nested(Parser::primary)?;
            return self.postfix(call).map(Box::new).map(Collection::Value);
        }
        let root = self.expect_name("a container or alias")?;
        let mut steps = Vec::new();
        loop {
            if self.eat(Symbol::Dot) {
                steps.push(PathStep::Dot(self.expect_word("a property name")?));
            } else if self.eat(Symbol::OpenBracket) {
                steps.push(self.bracket_step()?);
                self.expect(Symbol::CloseBracket)?;
            } else {
                return Ok(Collection::Path { root, steps });
            }
        }
    }

    fn bracket_step(&mut self) -> Result<PathStep, SqlError> {
        let step = match self.token() {
            Token::String(name) => Some(PathStep::Bracket(name.clone())),
            Token::Number(number) => {
                number.as_i64().and_then(|index| u64::try_from(index).ok()).map(PathStep::Index)
            }
            _ => None,
        };
        match step {
            Some(step) => {
                self.advance();
                Ok(step)
            }
            None => {
                self.note_expected("a string");
                self.note_expected("a whole number");
                Err(self.unexpected())
            }
        }
    }
}
