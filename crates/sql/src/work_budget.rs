//! How much one run may do.
//!
//! A short query can ask for a great deal: a few JOINs over one long array make billions of rows,
//! and a subquery that doubles its input makes a value larger than the machine. So every run counts
//! what it does and stops at a limit. One unit is roughly a row looked at, an operator applied or
//! sixteen bytes handled; the count depends on the query and the documents alone, never on a clock,
//! so the same query always gets the same answer.

use std::cell::Cell;

use crate::error::{SqlError, code};
use crate::token::Span;
use crate::value::Value;

/// What a run may do before it has seen any document: a fraction of a second, and some hundred
/// megabytes at the very worst.
pub(crate) const WORK_UNITS_MAX: u64 = 20_000_000;

/// What each document adds to that, so that a query over many documents may look at all of them.
const EFFORT_PER_DOCUMENT: u64 = 200;

/// What it takes to hold on to one value, before its size.
const KEPT_UNITS: u64 = 4;

/// What it takes to begin a group, before its keys.
const GROUP_UNITS: u64 = 32;

/// The effort of one run.
#[derive(Debug)]
pub(crate) struct WorkBudget {
    left: Cell<u64>,
    spent: Cell<u64>,
}

impl WorkBudget {
    /// The effort of a run that has done nothing.
    pub(crate) fn new() -> WorkBudget {
        WorkBudget { left: Cell::new(WORK_UNITS_MAX), spent: Cell::new(0) }
    }

    /// Notes `units` of work; says whether more may follow. Once it may not, it never may again.
    pub(crate) fn spend(&self, units: u64) -> bool {
        let left = self.left.get().saturating_sub(units);
        self.left.set(left);
        self.spent.set(self.spent.get().saturating_add(units));
        left > 0
    }

    /// Notes the work of going through all of `value`. Looks no further than the effort reaches.
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

    /// Notes the work of handing `value` to a function or getting it from one: its text or its
    /// elements, not what they hold. `weight` says how much more than a look each of them takes.
    pub(crate) fn spend_on_scan(&self, value: &Value, weight: u64) {
        match value {
            Value::String(text) => self.spend(length_units(text.len()).saturating_mul(weight)),
            Value::Array(elements) => self.spend(count_units(elements.len()).saturating_mul(weight)),
            _ => return,
        };
    }

    /// Notes the work of one more group.
    pub(crate) fn spend_on_group(&self) {
        self.spend(GROUP_UNITS);
    }

    /// Notes the work of comparing or joining two values.
    pub(crate) fn spend_on_operands(&self, left: &Value, right: &Value) {
        match (left, right) {
            (Value::String(left), Value::String(right)) => self.spend(length_units(left.len() + right.len())),
            // Only like compares with like; whatever else meets is told apart at once.
            (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => self.spend_on(left),
            _ => return,
        };
    }

    /// Notes the work of holding on to `value`: a place for it, and going through it later.
    pub(crate) fn spend_on_retained(&self, value: &Value) -> bool {
        self.spend(KEPT_UNITS) && self.spend_on(value)
    }

    /// Makes room for one more document.
    pub(crate) fn allow_document(&self) {
        if !self.is_exhausted() {
            self.left.set(self.left.get().saturating_add(EFFORT_PER_DOCUMENT));
        }
    }

    /// Leaves only so much, for tests that want to see the end.
    #[cfg(test)]
    pub(crate) fn limit_to(&self, units: u64) {
        self.left.set(units);
    }

    /// Allows nothing more: something is too large to be handled at all.
    pub(crate) fn exhaust(&self) {
        self.left.set(0);
    }

    /// What was spent.
    pub(crate) fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// Whether nothing more may be done.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.left.get() == 0
    }

    /// The error of a run that has done too much.
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
    fn exhaustion_is_for_good() {
        let effort = WorkBudget::new();
        assert!(effort.spend(WORK_UNITS_MAX - 1));
        effort.allow_document();
        assert!(effort.spend(EFFORT_PER_DOCUMENT));
        assert!(!effort.spend(1));
        effort.allow_document();
        assert!(effort.is_exhausted() && !effort.spend(0) && effort.check().is_err());
        assert_eq!(effort.spent(), WORK_UNITS_MAX + EFFORT_PER_DOCUMENT);
    }

    #[test]
    fn a_value_that_holds_itself_many_times_is_counted_as_often() {
        let mut value = Value::from(1);
        for _ in 0..60 {
            value = Value::array([value.clone(), value]);
        }
        assert!(!WorkBudget::new().spend_on(&value));
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
    fn queries_that_would_never_end_are_refused() {
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
