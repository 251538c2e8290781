//! The parser: tokens to AST.
//!
//! Input: the query text. Output: a [`Query`], or the first syntax error with what was found and what was
//! expected. Names, functions and argument counts are checked later, by `bind`.
//!
//! Nesting is limited (to [`NESTING_MAX`] here, and to [`DEPTH_MAX`] in everything that later walks the
//! AST), so that hostile text causes an error and not a stack overflow.

mod error;
mod expression;
mod from;
mod primary;
mod query;

use smol_str::SmolStr;

use crate::ast::{Expression, Query};
use crate::error::{SqlError, code};
use crate::lexer::{SpannedToken, tokenize};
use crate::token::{Span, Symbol, Token, is_reserved};

/// The deepest nesting of operations in a query: `a + b + c` is two levels deep.
pub const DEPTH_MAX: u16 = 200;

/// The deepest nesting of calls, brackets, braces and subqueries. Plain parentheses do not count.
pub const NESTING_MAX: u16 = 64;

/// Parses a whole query.
pub fn parse_query(text: &str) -> Result<Query, SqlError> {
    let parse = || {
        let mut cursor = Parser::new(text)?;
        let query = cursor.query()?;
        cursor.expect_end()?;
        Ok(query)
    };
    parse().map_err(|error: SqlError| error.located_in(text))
}

/// Parses `from c where …`, the form of a patch condition: an alias and a condition.
pub(crate) fn parse_condition(text: &str) -> Result<Query, SqlError> {
    let parse = || {
        let mut cursor = Parser::new(text)?;
        let query = cursor.condition()?;
        cursor.expect_end()?;
        Ok(query)
    };
    parse().map_err(|error: SqlError| error.located_in(text))
}

/// The position in the tokens, and what was expected since the last token.
struct Parser {
    tokens: Vec<SpannedToken>,
    at: usize,
    nesting: u16,
    expected: Vec<&'static str>,
}

impl Parser {
    fn new(text: &str) -> Result<Parser, SqlError> {
        Ok(Parser { tokens: tokenize(text)?, at: 0, nesting: 0, expected: Vec::new() })
    }

    fn token(&self) -> &Token {
        &self.tokens[self.at].token
    }

    fn token_after(&self, ahead: usize) -> &Token {
        let at = (self.at + ahead).min(self.tokens.len() - 1);
        &self.tokens[at].token
    }

    fn span(&self) -> Span {
        self.tokens[self.at].span
    }

    /// The span of the previous token.
    fn span_before(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    fn advance(&mut self) {
        // The last token is the end of the text, which is never passed.
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        self.expected.clear();
    }

    fn note_expected(&mut self, what: &'static str) {
        if !self.expected.contains(&what) {
            self.expected.push(what);
        }
    }

    fn is_keyword(&self, keyword: &str) -> bool {
        self.is_keyword_after(0, keyword)
    }

    fn is_keyword_after(&self, ahead: usize, keyword: &str) -> bool {
        matches!(self.token_after(ahead), Token::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    fn eat_keyword(&mut self, keyword: &'static str) -> bool {
        let found = self.is_keyword(keyword);
        if found {
            self.advance();
        } else {
            self.note_expected(keyword);
        }
        found
    }

    fn expect_keyword(&mut self, keyword: &'static str) -> Result<(), SqlError> {
        if self.eat_keyword(keyword) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn is_symbol(&self, symbol: Symbol) -> bool {
        self.token().is(symbol)
    }

    fn eat(&mut self, symbol: Symbol) -> bool {
        let found = self.is_symbol(symbol);
        if found {
            self.advance();
        } else {
            self.note_expected(symbol.quoted());
        }
        found
    }

    fn expect(&mut self, symbol: Symbol) -> Result<(), SqlError> {
        if self.eat(symbol) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn expect_end(&mut self) -> Result<(), SqlError> {
        if self.token().is_end() {
            return Ok(());
        }
        self.note_expected("the end of the query");
        Err(self.unexpected())
    }

    /// Any word: after a dot, AS or a brace, reserved words are names as well.
    fn expect_word(&mut self, what: &'static str) -> Result<SmolStr, SqlError> {
        match self.token() {
            Token::Word(word) => {
                let word = word.clone();
                self.advance();
                Ok(word)
            }
            _ => {
                self.note_expected(what);
                Err(self.unexpected())
            }
        }
    }

    /// A word that is not reserved.
    fn eat_name(&mut self, what: &'static str) -> Option<SmolStr> {
        match self.token() {
            Token::Word(word) if !is_reserved(word) => {
                let word = word.clone();
                self.advance();
                Some(word)
            }
            _ => {
                self.note_expected(what);
                None
            }
        }
    }

    fn expect_name(&mut self, what: &'static str) -> Result<SmolStr, SqlError> {
        match self.eat_name(what) {
            Some(name) => Ok(name),
            None => Err(self.unexpected()),
        }
    }

    /// Runs `parse` one nesting level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Parser) -> Result<T, SqlError>) -> Result<T, SqlError> {
        if self.nesting >= NESTING_MAX {
            return Err(too_deep(self.span()));
        }
        self.nesting += 1;
        let result = parse(self);
        self.nesting -= 1;
        result
    }
}

fn too_deep(span: Span) -> SqlError {
    let message = format!(
        "the query nests too deeply: at most {DEPTH_MAX} operations, {NESTING_MAX} calls, brackets and subqueries"
    );
    SqlError::new(code::SYNTAX, span, message)
}

/// Returns the expression unless it is nested too deeply.
fn within_depth(expression: Expression) -> Result<Expression, SqlError> {
    if expression.depth() > DEPTH_MAX { Err(too_deep(expression.span())) } else { Ok(expression) }
}

#[cfg(test)]
mod tests;
