//! What is wrong with a query, and where.
//!
//! Every error carries the code the service uses (`SC1001`, `SC2005`, …), a sentence for a person and
//! the span of the text it is about. Turning it into an HTTP answer is the emulator's business.

use std::fmt;

use crate::token::Span;

/// A query that cannot be prepared or cannot finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// The service's code, such as `SC1001`.
    pub code: &'static str,
    /// What is wrong, what was found and what would fit.
    pub message: String,
    /// Where the offending text starts, in UTF-16 code units from the start of the query.
    pub start: usize,
    /// Where it ends, exclusive.
    pub end: usize,
}

/// The codes of the service, by name.
pub(crate) mod code {
    /// The text does not follow the grammar.
    pub(crate) const SYNTAX: &str = "SC1001";
    /// A name that no FROM source introduces.
    pub(crate) const UNKNOWN_NAME: &str = "SC2001";
    /// No built-in function of that name.
    pub(crate) const UNKNOWN_FUNCTION: &str = "SC2005";
    /// `SELECT *` beside GROUP BY.
    pub(crate) const STAR_WITH_GROUP_BY: &str = "SC2041";
    /// `SELECT *` without exactly one source.
    pub(crate) const STAR_NEEDS_ONE_SOURCE: &str = "SC2040";
    /// Two columns of one name.
    pub(crate) const DUPLICATE_ALIAS: &str = "SC2011";
    /// Too few or too many arguments.
    pub(crate) const ARGUMENT_COUNT: &str = "SC2050";
    /// TOP is not a number the service can count to.
    pub(crate) const TOP_RANGE: &str = "SC2060";
    /// LIMIT is not a number the service can count to.
    pub(crate) const LIMIT_RANGE: &str = "SC2061";
    /// OFFSET is not a number the service can count to.
    pub(crate) const OFFSET_RANGE: &str = "SC2062";
    /// An aggregate inside an aggregate, or where none can be.
    pub(crate) const AGGREGATE_MISPLACED: &str = "SC2101";
    /// A property that is neither grouped nor aggregated.
    pub(crate) const NEITHER_GROUPED_NOR_AGGREGATED: &str = "SC2102";
    /// ORDER BY inside a subquery.
    pub(crate) const SUBQUERY_ORDER_BY: &str = "SC2202";
    /// TOP inside a subquery.
    pub(crate) const SUBQUERY_TOP: &str = "SC2203";
    /// OFFSET LIMIT inside a subquery.
    pub(crate) const SUBQUERY_OFFSET_LIMIT: &str = "SC2204";
    /// ORDER BY something that is not a document path.
    pub(crate) const ORDER_BY_NOT_A_PATH: &str = "SC2206";
    /// ORDER BY RANK over something that is not a score.
    pub(crate) const RANK_NEEDS_A_SCORE: &str = "SC2221";
    /// A score outside ORDER BY RANK.
    pub(crate) const SCORE_OUTSIDE_RANK: &str = "SC2240";
    /// A parameter the request does not define.
    pub(crate) const UNBOUND_PARAMETER: &str = "SC2002";
    /// The query needs something this implementation or the caller does not have.
    pub(crate) const UNSUPPORTED: &str = "SC3001";
    /// What the service reports without a code.
    pub(crate) const UNCODED: &str = "";
    /// A scalar subquery with several rows.
    pub(crate) const SCALAR_SUBQUERY_ROWS: &str = "SC3002";
    /// More rows or larger values than one request may make.
    pub(crate) const TOO_MUCH_WORK: &str = "SC3003";
}

impl SqlError {
    pub(crate) fn new(code: &'static str, span: Span, message: impl Into<String>) -> SqlError {
        SqlError { code, message: message.into(), start: span.start, end: span.end }
    }

    /// Turns the byte offsets used inside this crate into UTF-16 offsets, which is how the service
    /// and most editors count.
    pub(crate) fn located_in(mut self, text: &str) -> SqlError {
        let units = |bytes: usize| {
            let whole = text.get(..bytes.min(text.len())).unwrap_or(text);
            whole.encode_utf16().count()
        };
        (self.start, self.end) = (units(self.start), units(self.end));
        self
    }

    /// The error in the form the service embeds in its message:
    /// `{"errors":[{"severity","location","bound","message"}]}`, or `{"Errors":["message"]}` for the few
    /// that have no code.
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

/// One line: code, place, sentence.
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
