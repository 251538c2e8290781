//! Long disjunctions, whose operands are found by the value of a path.
//!
//! A client that reads many items asks for them with one OR of a comparison, or a pair of comparisons, per
//! item. Evaluating every operand for every document would grow with the square of the list, so the operands
//! are kept in a table by the constant that they compare a path with.

use std::collections::{HashMap, HashSet};

use super::{BoundExpression, BoundStep};
use crate::ast::BinaryOperator;
use crate::value::{HashableValue, Value};

/// The shortest disjunction that gets a table. Below it, evaluating each operand costs less.
const OPERANDS_MIN: usize = 8;

/// A disjunction most of whose operands compare one path with a constant.
#[derive(Debug)]
pub(crate) struct Alternatives {
    operands: Box<[BoundExpression]>,
    /// The path that selects operands.
    selector: BoundExpression,
    /// The operands that can be true if the path has this value.
    by_value: HashMap<HashableValue, Vec<usize>>,
    /// The operands that can be true whatever value the path has.
    others: Vec<usize>,
}

/// A path into the value of a source, borrowed from an expression.
type PathOf<'a> = (usize, &'a [BoundStep]);

impl Alternatives {
    /// The operands of an OR with their table, or unchanged if a table would not help.
    pub(crate) fn new(operands: Box<[BoundExpression]>) -> Result<Alternatives, Box<[BoundExpression]>> {
        if operands.len() < OPERANDS_MIN {
            return Err(operands);
        }
        let Some((up, steps)) = selector(&operands) else { return Err(operands) };
        let mut by_value: HashMap<HashableValue, Vec<usize>> = HashMap::with_capacity(operands.len());
        let mut others = Vec::new();
        for (at, operand) in operands.iter().enumerate() {
            let mut found = None;
            for_each_equality(operand, &mut |path, value| {
                if path == (up, steps.as_slice()) {
                    found = found.or(Some(value));
                }
            });
            match found {
                Some(value) => by_value.entry(HashableValue::new(value.clone())).or_default().push(at),
                None => others.push(at),
            }
        }
        let selector = BoundExpression::Path { up, steps };
        Ok(Alternatives { operands, selector, by_value, others })
    }

    /// All operands of the disjunction.
    pub(crate) fn operands(&self) -> &[BoundExpression] {
        &self.operands
    }

    /// The path whose value selects the operands that can be true.
    pub(crate) fn selector(&self) -> &BoundExpression {
        &self.selector
    }

    /// The operands that can be true if the selector has this value. If the value is defined, all others are
    /// false; otherwise they are false or undefined.
    pub(crate) fn candidates<'a>(
        &'a self,
        selected: &Value,
    ) -> impl Iterator<Item = &'a BoundExpression> + Clone + use<'a> {
        let by_value = self.by_value.get(&HashableValue::new(selected.clone()));
        let positions = by_value.map_or(&[][..], Vec::as_slice).iter().chain(&self.others);
        positions.map(|at| &self.operands[*at])
    }
}

/// The path that tells most operands apart: the one that is compared with the most different constants.
fn selector(operands: &[BoundExpression]) -> Option<(usize, Vec<BoundStep>)> {
    let mut positions: HashMap<PathOf<'_>, usize> = HashMap::new();
    let mut paths: Vec<(PathOf<'_>, HashSet<HashableValue>)> = Vec::new();
    for operand in operands {
        for_each_equality(operand, &mut |path, value| {
            let at = *positions.entry(path).or_insert_with(|| {
                paths.push((path, HashSet::new()));
                paths.len() - 1
            });
            paths[at].1.insert(HashableValue::new(value.clone()));
        });
    }
    // In order of first use, so that the choice does not depend on a hasher.
    let best = paths.into_iter().rev().max_by_key(|(_, values)| values.len())?;
    let ((up, steps), values) = best;
    (values.len() >= OPERANDS_MIN).then(|| (up, steps.to_vec()))
}

/// Visits the comparisons `path = constant` that an operand needs to be true.
fn for_each_equality<'a>(operand: &'a BoundExpression, visit: &mut dyn FnMut(PathOf<'a>, &'a Value)) {
    match operand {
        BoundExpression::And(parts) => parts.iter().for_each(|part| for_each_equality(part, visit)),
        BoundExpression::Binary { operator: BinaryOperator::Equal, left, right } => match (&**left, &**right)
        {
            // Undefined compares to nothing, and NaN is not equal to itself.
            (BoundExpression::Path { up, steps }, BoundExpression::Constant(value))
            | (BoundExpression::Constant(value), BoundExpression::Path { up, steps })
                if value.is_defined() && !value.as_f64().is_some_and(f64::is_nan) =>
            {
                visit((*up, steps), value);
            }
            _ => {}
        },
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::{InputOrder, QueryContext, QueryExecution, QuerySchema, Statement, Value};

    /// The work of a query with `count` alternatives over as many documents, each of which satisfies one.
    fn work(count: usize, alternative: impl Fn(usize) -> String) -> u64 {
        let alternatives: Vec<String> = (0..count).map(alternative).collect();
        let text = format!("SELECT c.id FROM c WHERE c.live AND ({})", alternatives.join(" OR "));
        let statement = Statement::prepare(&text, &[], &QuerySchema::default()).unwrap();
        let mut run = QueryExecution::new(&statement, QueryContext::default(), InputOrder::Any);
        for at in 0..count {
            let document = format!(r#"{{"id": "i{at}", "pk": {}, "live": true}}"#, at % 10);
            run.push(&crate::value::parse(document.as_bytes()).unwrap()).unwrap();
            assert_eq!(run.drain().len(), 1, "{document}");
            // None of the paths exists.
            run.push(&crate::value::parse(br#"{"live": true}"#).unwrap()).unwrap();
            assert_eq!(run.drain(), [] as [Value; 0]);
        }
        run.work_done()
    }

    #[test]
    fn the_work_of_a_long_list_is_linear() {
        let forms: [&dyn Fn(usize) -> String; 4] = [
            &|at| format!("c.id = 'i{at}'"),
            &|at| format!("(c.id = 'i{at}' AND c.pk = {})", at % 10),
            &|at| format!("({} = c.pk AND c['id'] = 'i{at}')", at % 10),
            &|at| format!("(c.id = 'i{at}' AND IS_DEFINED(c.missing) = false)"),
        ];
        for form in forms {
            let (short, long) = (work(100, form), work(1000, form));
            assert!(long <= short * 11, "{short} for 100, {long} for 1000: {}", form(7));
        }
    }
}
