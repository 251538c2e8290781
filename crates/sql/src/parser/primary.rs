//! Parsing of operands: literals, names, paths, calls, constructors and subqueries.

use super::{Parser, within_depth};
use crate::ast::{Expression, ExpressionKind, FunctionName, MemberNotation, SubqueryKind};
use crate::error::SqlError;
use crate::token::{Span, Symbol, Token, is_reserved};
use crate::value::Value;

impl Parser {
    /// The `.name` and `[index]` after an operand.
    pub(super) fn postfix(&mut self, mut base: Expression) -> Result<Expression, SqlError> {
        loop {
            let start = base.span();
            let kind = if self.eat(Symbol::Dot) {
                // Reserved words need brackets: `c["order"]`.
                let name = self.expect_name("a property name")?;
                ExpressionKind::Member { base: Box::new(base), name, form: MemberNotation::Dot }
            } else if self.eat(Symbol::OpenBracket) {
                let index = self.expression()?;
                self.expect(Symbol::CloseBracket)?;
                match index.kind() {
                    ExpressionKind::Literal(Value::String(name)) => {
                        let name = name.clone();
                        ExpressionKind::Member { base: Box::new(base), name, form: MemberNotation::Bracket }
                    }
                    _ => ExpressionKind::Index { base: Box::new(base), index: Box::new(index) },
                }
            } else {
                return Ok(base);
            };
            base = within_depth(Expression::new(kind, start.to(self.span_before())))?;
        }
    }

    pub(super) fn primary(&mut self) -> Result<Expression, SqlError> {
        let start = self.span();
        let kind = match self.token() {
            Token::Number(number) => ExpressionKind::Literal(Value::Number(*number)),
            Token::String(text) => ExpressionKind::Literal(Value::String(text.clone())),
            Token::Parameter(name) => ExpressionKind::Parameter(name.clone()),
            Token::Word(_) => return self.word(),
            Token::Symbol(Symbol::OpenParenthesis) => return self.subquery(SubqueryKind::Scalar),
            Token::Symbol(Symbol::OpenBracket) => return self.array(),
            Token::Symbol(Symbol::OpenBrace) => return self.object(),
            Token::Symbol(_) | Token::End => return Err(self.no_operand()),
        };
        self.advance();
        Ok(Expression::new(kind, start))
    }

    fn no_operand(&mut self) -> SqlError {
        self.note_expected("an expression");
        self.unexpected()
    }

    /// A subquery in parentheses, `(SELECT …)`.
    fn subquery(&mut self, form: SubqueryKind) -> Result<Expression, SqlError> {
        let start = self.span();
        self.expect(Symbol::OpenParenthesis)?;
        let query = Box::new(self.nested(Parser::query)?);
        self.expect(Symbol::CloseParenthesis)?;
        let kind = ExpressionKind::Subquery { form, query };
        within_depth(Expression::new(kind, start.to(self.span_before())))
    }

    fn array(&mut self) -> Result<Expression, SqlError> {
        let start = self.span();
        self.expect(Symbol::OpenBracket)?;
        let elements = if self.is_symbol(Symbol::CloseBracket) { Vec::new() } else { self.expressions()? };
        self.expect(Symbol::CloseBracket)?;
        within_depth(Expression::new(ExpressionKind::Array(elements), start.to(self.span_before())))
    }

    fn object(&mut self) -> Result<Expression, SqlError> {
        let start = self.span();
        self.expect(Symbol::OpenBrace)?;
        let mut members = Vec::new();
        if !self.is_symbol(Symbol::CloseBrace) {
            loop {
                let name = match self.token() {
                    Token::String(name) | Token::Word(name) => name.clone(),
                    _ => {
                        self.note_expected("a property name");
                        return Err(self.unexpected());
                    }
                };
                self.advance();
                self.expect(Symbol::Colon)?;
                members.push((name, self.expression()?));
                if !self.eat(Symbol::Comma) {
                    break;
                }
            }
        }
        self.expect(Symbol::CloseBrace)?;
        within_depth(Expression::new(ExpressionKind::Object(members), start.to(self.span_before())))
    }

    /// A constant, a subquery with a keyword, a function call or a name.
    fn word(&mut self) -> Result<Expression, SqlError> {
        let start = self.span();
        let Token::Word(word) = self.token().clone() else { return Err(self.no_operand()) };
        let called = self.token_after(1).is(Symbol::OpenParenthesis);
        if called && let Some(form) = self.subquery_form(&word) {
            self.advance();
            return self.subquery(form);
        }
        if word == "udf" && self.token_after(1).is(Symbol::Dot) {
            self.advance();
            self.advance();
            let name = self.expect_word("the name of a user-defined function")?;
            return self.call(name, true, start);
        }
        if let Some(constant) = constant(&word) {
            self.advance();
            return Ok(Expression::new(ExpressionKind::Literal(constant), start));
        }
        if is_reserved(&word) {
            return Err(self.no_operand());
        }
        self.advance();
        if called {
            return self.call(word, false, start);
        }
        Ok(Expression::new(ExpressionKind::Name(word), start))
    }

    fn subquery_form(&self, word: &str) -> Option<SubqueryKind> {
        let forms = [
            ("EXISTS", SubqueryKind::Exists),
            ("ARRAY", SubqueryKind::Array),
            ("ALL", SubqueryKind::All),
            ("FIRST", SubqueryKind::First),
            ("LAST", SubqueryKind::Last),
        ];
        let form = forms.iter().find(|(name, _)| name.eq_ignore_ascii_case(word))?.1;
        // EXISTS and ARRAY always start a subquery; the other words might be functions.
        let certain = matches!(form, SubqueryKind::Exists | SubqueryKind::Array);
        (certain || self.is_keyword_after(2, "SELECT")).then_some(form)
    }

    /// The arguments of a function whose name has been parsed.
    fn call(
        &mut self,
        name: smol_str::SmolStr,
        user_defined: bool,
        start: Span,
    ) -> Result<Expression, SqlError> {
        self.expect(Symbol::OpenParenthesis)?;
        let arguments =
            if self.is_symbol(Symbol::CloseParenthesis) { Vec::new() } else { self.expressions()? };
        self.expect(Symbol::CloseParenthesis)?;
        let kind = ExpressionKind::Call { name: FunctionName(name), arguments, user_defined };
        within_depth(Expression::new(kind, start.to(self.span_before())))
    }
}

fn constant(word: &str) -> Option<Value> {
    let is = |name: &str| word.eq_ignore_ascii_case(name);
    if is("true") {
        Some(Value::Bool(true))
    } else if is("false") {
        Some(Value::Bool(false))
    } else if is("null") {
        Some(Value::Null)
    } else if is("undefined") {
        Some(Value::Undefined)
    } else {
        None
    }
}
