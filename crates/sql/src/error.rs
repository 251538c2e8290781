//! Errors of queries, with the service's codes and messages.
//!
//! Every error has the code that the service uses (`SC1001`, `SC2005`, …), a message, and the span of the
//! query text that it is about. Turning it into an HTTP response is left to the server.

use std::fmt;

use crate::token::Span;

/// The error of a query that cannot be prepared or executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// The code of the service, such as `SC1001`.
    pub code: &'static str,
    /// The message: what is wrong, what was found and what was expected.
    pub message: String,
    /// Where the span starts, in UTF-16 code units from the start of the query.
    pub start: usize,
    /// Where the span ends, exclusive.
    pub end: usize,
}

/// The error codes of the service, by name.
pub(crate) mod code {
    /// The query has a syntax error.
    pub(crate) const SYNTAX: &str = "SC1001";
    /// A name is not the alias of a source.
    pub(crate) const UNKNOWN_NAME: &str = "SC2001";
    /// A function does not exist.
    pub(crate) const UNKNOWN_FUNCTION: &str = "SC2005";
    /// `SELECT *` is combined with GROUP BY.
    pub(crate) const STAR_WITH_GROUP_BY: &str = "SC2041";
    /// `SELECT *` is used without exactly one source.
    pub(crate) const STAR_NEEDS_ONE_SOURCE: &str = "SC2040";
    /// Two items of a select list have the same name.
    pub(crate) const DUPLICATE_ALIAS: &str = "SC2011";
    /// A function has too few or too many arguments.
    pub(crate) const ARGUMENT_COUNT: &str = "SC2050";
    /// The row count of TOP is out of range.
    pub(crate) const TOP_RANGE: &str = "SC2060";
    /// The row count of LIMIT is out of range.
    pub(crate) const LIMIT_RANGE: &str = "SC2061";
    /// The row count of OFFSET is out of range.
    pub(crate) const OFFSET_RANGE: &str = "SC2062";
    /// An aggregate is inside another aggregate, or where none is allowed.
    pub(crate) const AGGREGATE_MISPLACED: &str = "SC2101";
    /// A property is neither grouped nor aggregated.
    pub(crate) const NEITHER_GROUPED_NOR_AGGREGATED: &str = "SC2102";
    /// A subquery has an ORDER BY clause.
    pub(crate) const SUBQUERY_ORDER_BY: &str = "SC2202";
    /// A subquery has a TOP clause.
    pub(crate) const SUBQUERY_TOP: &str = "SC2203";
    /// A subquery has an OFFSET LIMIT clause.
    pub(crate) const SUBQUERY_OFFSET_LIMIT: &str = "SC2204";
    /// ORDER BY has an expression that is not a document path.
    pub(crate) const ORDER_BY_NOT_A_PATH: &str = "SC2206";
    /// ORDER BY RANK has an expression that is not a score.
    pub(crate) const RANK_NEEDS_A_SCORE: &str = "SC2221";
    /// A score is used outside ORDER BY RANK.
    pub(crate) const SCORE_OUTSIDE_RANK: &str = "SC2240";
    /// The request does not define a parameter.
    pub(crate) const UNBOUND_PARAMETER: &str = "SC2002";
    /// The query needs a feature that is not supported.
    pub(crate) const UNSUPPORTED: &str = "SC3001";
    /// An error that the service reports without a code.
    pub(crate) const UNCODED: &str = "";
    /// A scalar subquery returned several rows.
    pub(crate) const SCALAR_SUBQUERY_ROWS: &str = "SC3002";
    /// The query exceeds its work budget.
    pub(crate) const TOO_MUCH_WORK: &str = "SC3003";
}

impl SqlError {
    pub(crate) fn new(code: &'static str, span: Span, message: impl Into<String>) -> SqlError {
        SqlError { code, message: message.into(), start: span.start, end: span.end }
    }

    /// Converts the byte offsets used inside this crate to UTF-16 offsets, which the service and most
    /// editors use.
    pub(crate) fn located_in(mut self, text: &str) -> SqlError {
        let units = |bytes: usize| {
            let whole = text.get(..bytes.min(text.len())).unwrap_or(text);
            whole.encode_utf16().count()
        };
        (self.start, self.end) = (units(self.start), units(self.end));
        self
    }

    /// Whether an execution ended because it used up its work budget.
    pub fn is_too_much_work(&self) -> bool {
        self.code == code::TOO_MUCH_WORK
    }

    /// The error in the form that the service embeds in its message:
    /// `{"errors":[{"severity","location","bound","message"}]}`, or `{"Errors":["message"]}` for errors
    /// without a code.
    pub fn errors_json(&self) -> String {
        if self.code == code::UNCODED {
            return serde_json::json!({ "Errors": [self.message] }).to_string();
        }
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        format!(
            "{{\"errors\":[{{\"severity\":\"Error\",\"location\":{{\"start\":{},\"end\":{}}},\"code\":{},\"message\":{}}}]}}",
            self.start,
            self.end,
            quoted(self.code),
            quoted(&self.message)
        )
    }
}

/// One line: code, position, message.
impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at {}..{}: {}",
            self.code,
            self.start,
            self.end,
            self.message.replace(['\r', '\n'], " ")
        )
    }
}

impl std::error::Error for SqlError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reads_as_one_line_and_as_the_services_json() {
        let error = SqlError::new(code::UNKNOWN_FUNCTION, Span { start: 7, end: 14 }, "no\nsuch function");
        assert_eq!(error.to_string(), "SC2005 at 7..14: no such function");
        assert_eq!(
            error.errors_json(),
            r#"{"errors":[{"severity":"Error","location":{"start":7,"end":14},"code":"SC2005","message":"no\nsuch function"}]}"#
        );
    }

    #[test]
    fn offsets_count_utf16_units() {
        let text = "é😀x";
        let error = SqlError::new(code::SYNTAX, Span { start: 6, end: 7 }, "").located_in(text);
        assert_eq!((error.start, error.end), (3, 4));
    }
}
