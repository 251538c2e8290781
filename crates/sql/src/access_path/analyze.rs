//! Analysis of WHERE: the filter that an index can apply.
//!
//! For each expression it computes for which documents the expression can be exactly `true` (or, under NOT,
//! exactly `false`). Undefined is neither, which makes most comparisons exact.

use std::cell::RefCell;

use super::refine::{comparison, one_of, outside, within};
use super::{AccessPath, DocPath, DocStep, Filter, Predicate, call};
use crate::ast::{Direction, SubqueryKind, UnaryOperator};
use crate::bound::{BoundExpression, BoundSource, BoundStep, Pipeline, PipelineInput, SortKey};
use crate::like::LikePattern;
use crate::value::{Value, ValueKind};

/// A filter, and whether it accepts exactly the documents for which the expression holds.
#[derive(Debug)]
pub(super) struct Approximation {
    pub(super) filter: Filter,
    pub(super) exact: bool,
}

impl Approximation {
    pub(super) fn exact(filter: Filter) -> Approximation {
        Approximation { filter, exact: true }
    }

    pub(super) fn loose(filter: Filter) -> Approximation {
        Approximation { filter, exact: false }
    }

    /// The filter of an expression that no index can evaluate.
    pub(super) fn unknown() -> Approximation {
        Approximation::loose(Filter::All)
    }

    fn all_of(parts: impl IntoIterator<Item = Approximation>) -> Approximation {
        let (filters, exact) = split(parts);
        Approximation { filter: Filter::and(filters), exact }
    }

    fn any_of(parts: impl IntoIterator<Item = Approximation>) -> Approximation {
        let (filters, exact) = split(parts);
        Approximation { filter: Filter::or(filters), exact }
    }
}

fn split(parts: impl IntoIterator<Item = Approximation>) -> (Vec<Filter>, bool) {
    let mut exact = true;
    let filters = parts
        .into_iter()
        .map(|part| {
            exact &= part.exact;
            part.filter
        })
        .collect();
    (filters, exact)
}

/// A path into the document, and whether it leads to exactly one value: an array index becomes "any
/// element".
#[derive(Clone, Debug)]
pub(super) struct BoundPath {
    pub(super) path: DocPath,
    pub(super) exact: bool,
}

impl BoundPath {
    fn extended(&self, steps: &[BoundStep]) -> BoundPath {
        steps.iter().fold(self.clone(), |target, step| match step {
            BoundStep::Name(name) => {
                BoundPath { path: target.path.then(DocStep::Key(name.clone())), ..target }
            }
            BoundStep::Index(_) => BoundPath { path: target.path.then(DocStep::Element), exact: false },
        })
    }

    pub(super) fn element(&self) -> BoundPath {
        BoundPath { path: self.path.then(DocStep::Element), exact: self.exact }
    }

    /// The filter that applies a predicate at this path.
    pub(super) fn test(&self, test: Predicate) -> Approximation {
        Approximation { filter: Filter::predicate(self.path.clone(), test), exact: self.exact }
    }

    /// The filter that applies a predicate at this path and accepts more documents than the expression.
    pub(super) fn test_loosely(&self, test: Predicate) -> Approximation {
        Approximation::loose(Filter::predicate(self.path.clone(), test))
    }
}

/// The path of each frame, outermost first; `None` for frames that are no part of the document.
pub(super) type BoundPaths = Vec<Option<BoundPath>>;

pub(super) fn analyze(pipeline: &Pipeline) -> AccessPath {
    let (filter, exact) = match &pipeline.input {
        PipelineInput::Rows(inner) => (analyze(inner).filter, false),
        PipelineInput::Outer | PipelineInput::Documents => {
            let documents = matches!(pipeline.input, PipelineInput::Documents);
            let root = BoundPath { path: DocPath::default(), exact: true };
            let mut frame_paths: BoundPaths = if documents { vec![Some(root)] } else { Vec::new() };
            let found = rows(pipeline, &mut frame_paths);
            // A query with further sources filters rows, not documents.
            (found.filter, found.exact && documents && pipeline.sources.is_empty())
        }
    };
    let order: Option<Vec<_>> = pipeline.order.iter().map(|key| order_path(pipeline, key)).collect();
    AccessPath { filter, exact, ordering_only_paths: order.is_some(), order: order.unwrap_or_default() }
}

pub(super) fn function_paths(pipeline: &Pipeline) -> Vec<DocPath> {
    let mut frame_paths: BoundPaths = vec![Some(BoundPath { path: DocPath::default(), exact: true })];
    rows(pipeline, &mut frame_paths);
    let found = RefCell::new(Vec::new());
    // Every expression is visited, because none is what is looked for.
    pipeline.projection.any(&|expression| {
        if let BoundExpression::Call { arguments, .. } = expression {
            let paths = arguments.iter().filter_map(|argument| path_of(argument, &frame_paths));
            found.borrow_mut().extend(paths.map(|target| target.path));
        }
        false
    });
    found.into_inner()
}

/// The document path of an ORDER BY key.
fn order_path(pipeline: &Pipeline, key: &SortKey) -> Option<(DocPath, Direction)> {
    let documents = matches!(pipeline.input, PipelineInput::Documents) && pipeline.grouping.is_none();
    let BoundExpression::Path { up, steps } = &key.key else { return None };
    // The document is the outermost frame, below all joined sources.
    if !documents || *up != pipeline.sources.len() {
        return None;
    }
    let steps: Option<Vec<DocStep>> = steps
        .iter()
        .map(|step| match step {
            BoundStep::Name(name) => Some(DocStep::Key(name.clone())),
            BoundStep::Index(_) => None,
        })
        .collect();
    Some((DocPath(steps?), key.direction))
}

/// The documents for which a query has a row. Adds the paths of its sources to `frame_paths`.
fn rows(pipeline: &Pipeline, frame_paths: &mut BoundPaths) -> Approximation {
    let mut parts = Vec::new();
    for source in &pipeline.sources {
        let (target, part) = match source {
            BoundSource::Value(expression) => {
                let target = path_or_document(expression, frame_paths);
                let part = target.as_ref().map(|target| target.test(Predicate::Defined));
                (target, part)
            }
            BoundSource::Elements(expression) => {
                let target = path_or_document(expression, frame_paths).map(|target| target.element());
                let part = target.as_ref().map(|target| target.test(Predicate::Defined));
                (target, part)
            }
            BoundSource::Rows(inner) => subquery_rows(inner, frame_paths),
            BoundSource::RowElements(inner) => {
                let (target, part) = subquery_rows(inner, frame_paths);
                (target.map(|target| target.element()), part)
            }
        };
        // The document itself always exists.
        let is_document = target.as_ref().is_some_and(|target| target.path.0.is_empty());
        if !is_document {
            parts.push(part.unwrap_or_else(Approximation::unknown));
        }
        frame_paths.push(target);
    }
    if let Some(filter) = &pipeline.filter {
        parts.push(when(filter, true, frame_paths));
    }
    Approximation::all_of(parts)
}

/// The path of the rows of a subquery source, and the condition for there to be any.
fn subquery_rows(inner: &Pipeline, frame_paths: &BoundPaths) -> (Option<BoundPath>, Option<Approximation>) {
    if inner.grouping.is_some() {
        return (None, None);
    }
    let mut inner_places = frame_paths.clone();
    let part = Approximation::loose(rows(inner, &mut inner_places).filter);
    (path_or_document(&inner.projection, &inner_places), Some(part))
}

/// The path that an expression reads; `None` for a whole document, which no index covers.
pub(super) fn path_of(expression: &BoundExpression, frame_paths: &BoundPaths) -> Option<BoundPath> {
    path_or_document(expression, frame_paths).filter(|target| !target.path.0.is_empty())
}

/// The path that an expression reads, which may be the whole document.
fn path_or_document(expression: &BoundExpression, frame_paths: &BoundPaths) -> Option<BoundPath> {
    let bound = |up: usize| frame_paths.iter().rev().nth(up).cloned().flatten();
    match expression {
        BoundExpression::Source { up } => bound(*up),
        BoundExpression::Path { up, steps } => bound(*up).map(|target| target.extended(steps)),
        _ => None,
    }
}

/// The documents for which `expression` is exactly `wanted`.
pub(super) fn when(expression: &BoundExpression, wanted: bool, frame_paths: &BoundPaths) -> Approximation {
    let each = |expressions: &[BoundExpression]| {
        expressions.iter().map(|expression| when(expression, wanted, frame_paths)).collect::<Vec<_>>()
    };
    match expression {
        BoundExpression::Constant(Value::Bool(value)) if *value == wanted => {
            Approximation::exact(Filter::All)
        }
        BoundExpression::Constant(_) => Approximation::exact(Filter::Nothing),
        BoundExpression::Source { .. } | BoundExpression::Path { .. } => {
            match path_of(expression, frame_paths) {
                Some(target) => target.test(Predicate::Equals(Value::Bool(wanted))),
                None => Approximation::unknown(),
            }
        }
        BoundExpression::Unary { operator: UnaryOperator::Not, operand } => {
            when(operand, !wanted, frame_paths)
        }
        // One operand decides a chain in one direction, and all of them in the other.
        BoundExpression::And(expressions) if wanted => Approximation::all_of(each(expressions)),
        BoundExpression::Or(expressions) if !wanted => Approximation::all_of(each(expressions)),
        BoundExpression::And(expressions) | BoundExpression::Or(expressions) => {
            Approximation::any_of(each(expressions))
        }
        BoundExpression::Alternatives(alternatives) if !wanted => {
            Approximation::all_of(each(alternatives.operands()))
        }
        BoundExpression::Alternatives(alternatives) => Approximation::any_of(each(alternatives.operands())),
        BoundExpression::Binary { operator, left, right } => {
            comparison(*operator, (left, right), wanted, frame_paths)
        }
        BoundExpression::InConstants { needle, haystack, negated } => match path_of(needle, frame_paths) {
            Some(target) if *negated != wanted => one_of(&target, haystack.values()),
            Some(target) => target.test_loosely(Predicate::Defined),
            None => Approximation::unknown(),
        },
        BoundExpression::In { needle, .. } => defined(&[needle], frame_paths),
        BoundExpression::Between { operands, negated } => {
            match (path_of(&operands[0], frame_paths), &operands[1], &operands[2]) {
                (Some(target), BoundExpression::Constant(low), BoundExpression::Constant(high)) => {
                    if *negated == wanted { outside(&target, low, high) } else { within(&target, low, high) }
                }
                _ => defined(&[&operands[0]], frame_paths),
            }
        }
        BoundExpression::LikeConstant { value, pattern, negated } => match path_of(value, frame_paths) {
            Some(target) if *negated != wanted => like(&target, pattern),
            Some(target) => target.test_loosely(Predicate::of_kind(ValueKind::String)),
            None => Approximation::unknown(),
        },
        BoundExpression::Like { value, .. } => match path_of(value, frame_paths) {
            Some(target) => target.test_loosely(Predicate::of_kind(ValueKind::String)),
            None => Approximation::unknown(),
        },
        BoundExpression::Call { function, arguments } => {
            call::when(function.name, arguments, wanted, frame_paths)
        }
        BoundExpression::Subquery { form: SubqueryKind::Exists, pipeline, .. } if wanted => {
            exists(pipeline, frame_paths)
        }
        _ => Approximation::unknown(),
    }
}

/// The documents for which all `expressions` are defined.
pub(super) fn defined(expressions: &[&BoundExpression], frame_paths: &BoundPaths) -> Approximation {
    let frame_paths = expressions.iter().filter_map(|expression| path_of(expression, frame_paths));
    let filters: Vec<Filter> =
        frame_paths.map(|target| Filter::predicate(target.path, Predicate::Defined)).collect();
    Approximation::loose(Filter::and(filters))
}

fn like(target: &BoundPath, pattern: &LikePattern) -> Approximation {
    match pattern {
        LikePattern::Exact(text) => target.test(Predicate::Equals(Value::String(text.clone()))),
        LikePattern::Prefix(prefix) => target.test(Predicate::Prefix(prefix.clone())),
        LikePattern::Suffix(_) | LikePattern::Contains(_) | LikePattern::Elements(_) => {
            target.test_loosely(Predicate::Prefix(pattern.literal_prefix()))
        }
    }
}

/// The documents for which EXISTS over an array finds an element. This is exact for one predicate, or for
/// one of several; two predicates might hold for two different elements.
fn exists(pipeline: &Pipeline, frame_paths: &BoundPaths) -> Approximation {
    if pipeline.grouping.is_some() {
        return Approximation::unknown();
    }
    let mut frame_paths = frame_paths.clone();
    let outer = frame_paths.len();
    let found = rows(pipeline, &mut frame_paths);
    let element = match (&pipeline.sources[..], frame_paths.get(outer)) {
        ([BoundSource::Elements(_)], Some(Some(element))) => element,
        _ => return Approximation::loose(found.filter),
    };
    let returns_something = match &pipeline.projection {
        BoundExpression::Source { up: 0 } | BoundExpression::Object(_) => true,
        BoundExpression::Constant(value) => value.is_defined(),
        _ => false,
    };
    let of_element = |filter: &Filter| match filter {
        Filter::Predicate { path, .. } => path.starts_with(&element.path),
        _ => false,
    };
    let condition = pipeline.filter.as_ref().map(|filter| when(filter, true, &frame_paths));
    let separable = match condition.as_ref().map(|condition| &condition.filter) {
        None => true,
        Some(test @ Filter::Predicate { .. }) => of_element(test),
        Some(Filter::Or(parts)) => parts.iter().all(of_element),
        Some(_) => false,
    };
    if !separable || !returns_something {
        return Approximation::loose(found.filter);
    }
    // A predicate on the element implies that there is one.
    let exact = found.exact;
    let filter = condition.map_or(found.filter, |condition| condition.filter);
    Approximation { filter, exact }
}
