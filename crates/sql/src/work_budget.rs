//! The work budget: a limit on the work of one execution.
//!
//! A short query can cause a great deal of work: a few JOINs over one long array make billions of rows, and
//! a subquery that doubles its input makes a value larger than the memory. So every execution counts its
//! work and fails at a limit. One unit is roughly one row, one operator or sixteen bytes. The count depends
//! only on the query and the documents, never on a clock, so that the same query always has the same
//! outcome.

use std::cell::Cell;

use crate::error::{SqlError, code};
use crate::token::Span;
use crate::value::Value;

/// The work units of an execution before its first document: a fraction of a second, and some hundred
/// megabytes at worst.
pub(crate) const WORK_UNITS_MAX: u64 = 20_000_000;

/// The work units that each document adds, so that a query over many documents can read all of them.
const WORK_UNITS_PER_DOCUMENT: u64 = 200;

/// The work units of retaining one value, besides its size.
const RETAINED_VALUE_UNITS: u64 = 4;

/// The work units of a new group, besides its keys.
const GROUP_UNITS: u64 = 32;

/// The work budget of one execution.
#[derive(Debug)]
pub(crate) struct WorkBudget {
    left: Cell<u64>,
    spent: Cell<u64>,
    /// The work units that each document adds.
    per_document: u64,
}

impl WorkBudget {
    /// A budget of which nothing is used: this many units in all, or else those of a request.
    pub(crate) fn new(units_max: Option<u64>) -> WorkBudget {
        let per_document = if units_max.is_some() { 0 } else { WORK_UNITS_PER_DOCUMENT };
        let left = Cell::new(units_max.unwrap_or(WORK_UNITS_MAX));
        WorkBudget { left, spent: Cell::new(0), per_document }
    }

    /// Uses `units` of work and returns whether the budget allows it. An exhausted budget stays exhausted.
    pub(crate) fn spend(&self, units: u64) -> bool {
        let left = self.left.get().saturating_sub(units);
        self.left.set(left);
        self.spent.set(self.spent.get().saturating_add(units));
        left > 0
    }

    /// Uses the work of visiting all of `value`. Stops when the budget is exhausted.
    pub(crate) fn spend_on(&self, value: &Value) -> bool {
        let more = match value {
            Value::String(text) => self.spend(length_units(text.len())),
            Value::Array(elements) => self.spend(count_units(elements.len())),
            Value::Object(members) => self.spend(count_units(members.len())),
            Value::Undefined | Value::Null | Value::Bool(_) | Value::Number(_) => {
                return !self.is_exhausted();
            }
        };
        more && match value {
            Value::Array(elements) => elements.iter().all(|element| self.spend_on(element)),
            Value::Object(members) => members.iter().all(|(_, member)| self.spend_on(member)),
            _ => true,
        }
    }

    /// Uses the work of passing `value` to or from a function: its text or its elements, but not their
    /// contents. `weight` multiplies the work per element.
    pub(crate) fn spend_on_scan(&self, value: &Value, weight: u64) {
        match value {
            Value::String(text) => self.spend(length_units(text.len()).saturating_mul(weight)),
            Value::Array(elements) => self.spend(count_units(elements.len()).saturating_mul(weight)),
            _ => return,
        };
    }

    /// Uses the work of one more group.
    pub(crate) fn spend_on_group(&self) {
        self.spend(GROUP_UNITS);
    }

    /// Uses the work of comparing or concatenating two values.
    pub(crate) fn spend_on_operands(&self, left: &Value, right: &Value) {
        match (left, right) {
            (Value::String(left), Value::String(right)) => self.spend(length_units(left.len() + right.len())),
            // Values of different types are told apart without visiting them.
            (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => self.spend_on(left),
            _ => return,
        };
    }

    /// Uses the work of retaining `value`: storing it, and visiting it later.
    pub(crate) fn spend_on_retained(&self, value: &Value) -> bool {
        self.spend(RETAINED_VALUE_UNITS) && self.spend_on(value)
    }

    /// Adds the work units of one more document.
    pub(crate) fn allow_document(&self) {
        if !self.is_exhausted() {
            self.left.set(self.left.get().saturating_add(self.per_document));
        }
    }

    /// Limits the budget, for tests.
    #[cfg(test)]
    pub(crate) fn limit_to(&self, units: u64) {
        self.left.set(units);
    }

    /// Exhausts the budget, because a value is too large.
    pub(crate) fn exhaust(&self) {
        self.left.set(0);
    }

    /// The work units used so far.
    pub(crate) fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// Whether the budget is exhausted.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.left.get() == 0
    }

    /// Returns the error of an exhausted budget.
    pub(crate) fn check(&self) -> Result<(), SqlError> {
        if !self.is_exhausted() {
            return Ok(());
        }
        let message = "the query needs too much work: its JOINs, subqueries or functions make more rows \
                       or larger values than one request may; filter earlier, or split the query";
        Err(SqlError::new(code::TOO_MUCH_WORK, Span::default(), message))
    }
}

fn length_units(bytes: usize) -> u64 {
    bytes as u64 / 16
}

fn count_units(elements: usize) -> u64 {
    elements as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InputOrder, QueryContext, QueryExecution, QuerySchema, Statement};

    #[test]
    fn an_exhausted_budget_stays_exhausted() {
        let effort = WorkBudget::new(None);
        assert!(effort.spend(WORK_UNITS_MAX - 1));
        effort.allow_document();
        assert!(effort.spend(WORK_UNITS_PER_DOCUMENT));
        assert!(!effort.spend(1));
        effort.allow_document();
        assert!(effort.is_exhausted() && !effort.spend(0) && effort.check().is_err());
        assert_eq!(effort.spent(), WORK_UNITS_MAX + WORK_UNITS_PER_DOCUMENT);
    }

    #[test]
    fn a_shared_value_is_counted_each_time_it_occurs() {
        let mut value = Value::from(1);
        for _ in 0..60 {
            value = Value::array([value.clone(), value]);
        }
        assert!(!WorkBudget::new(None).spend_on(&value));
    }

    #[test]
    fn a_short_execution_gains_nothing_from_its_documents() {
        let budget = WorkBudget::new(Some(10));
        budget.allow_document();
        assert!(budget.spend(9) && !budget.spend(1));
    }

    fn rows(text: &str, document: &str) -> Result<usize, &'static str> {
        let document = crate::value::parse(document.as_bytes()).unwrap();
        let statement = Statement::prepare(text, &[], &QuerySchema::default()).map_err(|error| error.code)?;
        let mut run = QueryExecution::new(&statement, QueryContext::default(), InputOrder::Any);
        run.limit_work(1_000_000);
        run.push(&document).map_err(|error| error.code)?;
        run.finish().map(|rows| rows.len()).map_err(|error| error.code)
    }

    #[test]
    fn queries_that_exceed_the_work_budget_fail() {
        let elements = vec!["1"; 1000].join(",");
        let text = "x".repeat(1 << 16);
        let document = format!(r#"{{"a": [{elements}], "t": "{text}", "u": "{text}"}}"#);
        let doubling = |leaf: &str, step: &str| {
            (0..40).fold(format!("SELECT VALUE {leaf} FROM c"), |inner, _| {
                format!("SELECT VALUE {step} FROM ({inner}) x")
            })
        };
        let joins = "FROM c JOIN p IN c.a JOIN q IN c.a JOIN r IN c.a JOIN s IN c.a";
        for query in [
            format!("SELECT VALUE 1 {joins}"),
            format!("SELECT VALUE COUNT(1) {joins}"),
            format!("SELECT DISTINCT VALUE c {joins}"),
            format!("SELECT VALUE MAKELIST(p) {joins}"),
            format!("SELECT p, q {joins} ORDER BY c.t"),
            "SELECT VALUE 1 FROM c WHERE EXISTS(SELECT 1 FROM p IN c.a JOIN q IN c.a JOIN r IN c.a WHERE p + q + r < 0)".to_owned(),
            "SELECT VALUE 1 FROM c JOIN p IN c.a WHERE CONTAINS(c.t, 'y')".to_owned(),
            "SELECT VALUE 1 FROM c JOIN p IN c.a WHERE c.t != c.u".to_owned(),
            "SELECT VALUE 1 FROM c JOIN p IN c.a WHERE c.t LIKE '%a%b_c%'".to_owned(),
            "SELECT VALUE ARRAY(SELECT VALUE ARRAY(SELECT VALUE ARRAY(SELECT VALUE p FROM p IN c.a) FROM q IN c.a) FROM r IN c.a) FROM c".to_owned(),
            format!("SELECT VALUE [{}] FROM c", vec!["c"; 1000].join(",")),
            "SELECT VALUE 1 FROM c WHERE REGEXMATCH(c.t, '(x?){600}y{600}')".to_owned(),
            // An expression of its own for each row has to be compiled each time.
            "SELECT VALUE 1 FROM (SELECT VALUE [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25]) l \
             JOIN p IN l JOIN q IN l WHERE REGEXMATCH('x', CONCAT('^x', ToString(p), ToString(q), '$'))".to_owned(),
            doubling("'ab'", "x || x"),
            doubling("[1]", "[x, x]"),
            doubling("{\"a\": 1}", "{\"a\": x, \"b\": x}"),
        ] {
            assert_eq!(rows(&query, &document), Err("SC3003"), "{query}");
        }
        assert_eq!(
            rows("SELECT VALUE 1 FROM c JOIN p IN c.a JOIN q IN (SELECT VALUE [1,2,3,4,5])", &document),
            Ok(5_000)
        );
    }
}
