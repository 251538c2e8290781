//! Parsing of the clauses of a query.

use super::Parser;
use crate::ast::{
    Direction, OffsetLimit, OrderBy, OrderByItem, Query, RowCount, RowCountKind, SelectItem, Selection,
};
use crate::error::{SqlError, code};
use crate::token::{Symbol, Token, is_reserved};
use crate::value::Value;

impl Parser {
    pub(super) fn query(&mut self) -> Result<Query, SqlError> {
        let start = self.span();
        self.expect_keyword("SELECT")?;
        let distinct = self.eat_keyword("DISTINCT");
        let top = if self.eat_keyword("TOP") { Some(self.count()?) } else { None };
        let selection = self.selection()?;
        let from = if self.eat_keyword("FROM") { self.sources()? } else { Vec::new() };
        let filter = if self.eat_keyword("WHERE") { Some(self.expression()?) } else { None };
        let group_by = if self.eat_keyword("GROUP") {
            self.expect_keyword("BY")?;
            self.expressions()?
        } else {
            Vec::new()
        };
        let order_by = if self.eat_keyword("ORDER") {
            self.expect_keyword("BY")?;
            self.order_by()?
        } else {
            OrderBy::None
        };
        let offset_limit = if self.eat_keyword("OFFSET") {
            let offset = self.count()?;
            self.expect_keyword("LIMIT")?;
            Some(OffsetLimit { offset, limit: self.count()? })
        } else {
            None
        };
        let span = start.to(self.span_before());
        Ok(Query { distinct, top, selection, from, filter, group_by, order_by, offset_limit, span })
    }

    /// A patch condition, `from c where …`.
    pub(super) fn condition(&mut self) -> Result<Query, SqlError> {
        let start = self.span();
        self.expect_keyword("FROM")?;
        let from = self.sources()?;
        self.expect_keyword("WHERE")?;
        let filter = Some(self.expression()?);
        Ok(Query {
            distinct: false,
            top: None,
            selection: Selection::Star,
            from,
            filter,
            group_by: Vec::new(),
            order_by: OrderBy::None,
            offset_limit: None,
            span: start.to(self.span_before()),
        })
    }

    fn selection(&mut self) -> Result<Selection, SqlError> {
        if self.eat(Symbol::Star) {
            return Ok(Selection::Star);
        }
        if self.eat_keyword("VALUE") {
            return Ok(Selection::Value(self.expression()?));
        }
        let mut items = vec![self.select_item()?];
        while self.eat(Symbol::Comma) {
            items.push(self.select_item()?);
        }
        Ok(Selection::List(items))
    }

    fn select_item(&mut self) -> Result<SelectItem, SqlError> {
        let expression = self.expression()?;
        let alias = if self.eat_keyword("AS") {
            Some(self.expect_word("an alias")?)
        } else {
            self.eat_name("an alias")
        };
        Ok(SelectItem { expression, alias })
    }

    fn count(&mut self) -> Result<RowCount, SqlError> {
        let span = self.span();
        let kind = match self.token() {
            Token::Number(number) => RowCountKind::Literal(Value::Number(*number)),
            Token::Parameter(name) => RowCountKind::Parameter(name.clone()),
            _ => {
                self.note_expected("a number");
                self.note_expected("a parameter");
                return Err(self.unexpected());
            }
        };
        self.advance();
        Ok(RowCount { kind, span })
    }

    fn order_by(&mut self) -> Result<OrderBy, SqlError> {
        // `rank` may also be the name of a source: it is the keyword if a function follows.
        if self.is_keyword("RANK") && matches!(self.token_after(1), Token::Word(word) if !is_reserved(word)) {
            self.advance();
            let score = self.expression()?;
            if self.is_keyword("ASC") || self.is_keyword("DESC") {
                let message =
                    "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed.";
                return Err(SqlError::new(code::UNCODED, self.span(), message));
            }
            return Ok(OrderBy::Rank(score));
        }
        let mut keys = vec![self.order_key()?];
        while self.eat(Symbol::Comma) {
            keys.push(self.order_key()?);
        }
        Ok(OrderBy::Keys(keys))
    }

    fn order_key(&mut self) -> Result<OrderByItem, SqlError> {
        let expression = self.expression()?;
        let direction = if self.eat_keyword("ASC") {
            Some(Direction::Ascending)
        } else if self.eat_keyword("DESC") {
            Some(Direction::Descending)
        } else {
            None
        };
        Ok(OrderByItem { expression, direction })
    }
}
