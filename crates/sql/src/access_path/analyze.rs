//! Compiled WHERE to filter.
//!
//! The question asked of each expression is: for which documents can it be exactly `true` (or, under
//! NOT, exactly `false`)? Undefined is neither, which is what makes most comparisons exact.

use super::refine::{comparison, one_of, outside, within};
use super::{AccessPath, DocPath, DocStep, Filter, Predicate, call};
use crate::ast::{Direction, SubqueryKind, UnaryOperator};
use crate::bound::{Code, OrderCode, Origin, Pipeline, SourceCode, Step};
use crate::like::LikePattern;
use crate::value::{Value, ValueKind};

/// A filter, and whether it says exactly what the expression says.
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

    /// Nothing is known.
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

/// A place in the document and whether it is the only one meant: an index into an array becomes
/// "some element".
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) path: DocPath,
    pub(super) exact: bool,
}

impl Place {
    fn extended(&self, steps: &[Step]) -> Place {
        steps.iter().fold(self.clone(), |place, step| match step {
            Step::Name(name) => Place { path: place.path.then(DocStep::Key(name.clone())), ..place },
            Step::Index(_) => Place { path: place.path.then(DocStep::Element), exact: false },
        })
    }

    pub(super) fn element(&self) -> Place {
        Place { path: self.path.then(DocStep::Element), exact: self.exact }
    }

    /// `test` at this place.
    pub(super) fn test(&self, test: Predicate) -> Approximation {
        Approximation { filter: Filter::test(self.path.clone(), test), exact: self.exact }
    }

    /// `test` at this place, which says less than the expression does.
    pub(super) fn loosely(&self, test: Predicate) -> Approximation {
        Approximation::loose(Filter::test(self.path.clone(), test))
    }
}

/// The place each frame is bound to, outermost first; `None` for what is no part of the document.
pub(super) type Places = Vec<Option<Place>>;

pub(super) fn access(pipeline: &Pipeline) -> AccessPath {
    let (filter, exact) = match &pipeline.origin {
        Origin::Rows(inner) => (access(inner).filter, false),
        Origin::Outer | Origin::Documents => {
            let documents = matches!(pipeline.origin, Origin::Documents);
            let root = Place { path: DocPath::default(), exact: true };
            let mut places: Places = if documents { vec![Some(root)] } else { Vec::new() };
            let found = rows(pipeline, &mut places);
            // With sources of its own a query has rows, not documents, to decide about.
            (found.filter, found.exact && documents && pipeline.sources.is_empty())
        }
    };
    let order: Option<Vec<_>> = pipeline.order.iter().map(|key| order_path(pipeline, key)).collect();
    AccessPath { filter, exact, ordering_only_paths: order.is_some(), order: order.unwrap_or_default() }
}

/// The document path an ORDER BY key is.
fn order_path(pipeline: &Pipeline, key: &OrderCode) -> Option<(DocPath, Direction)> {
    let documents = matches!(pipeline.origin, Origin::Documents) && pipeline.grouping.is_none();
    let Code::Path { up, steps } = &key.key else { return None };
    // The document is the outermost frame, below all joined sources.
    if !documents || *up != pipeline.sources.len() {
        return None;
    }
    let steps: Option<Vec<DocStep>> = steps
        .iter()
        .map(|step| match step {
            Step::Name(name) => Some(DocStep::Key(name.clone())),
            Step::Index(_) => None,
        })
        .collect();
    Some((DocPath(steps?), key.direction))
}

/// For which documents a query has a row. Leaves the places of its sources in `places`.
fn rows(pipeline: &Pipeline, places: &mut Places) -> Approximation {
    let mut parts = Vec::new();
    for source in &pipeline.sources {
        let (place, part) = match source {
            SourceCode::One(code) => {
                let place = bound_place(code, places);
                let part = place.as_ref().map(|place| place.test(Predicate::Defined));
                (place, part)
            }
            SourceCode::Each(code) => {
                let place = bound_place(code, places).map(|place| place.element());
                let part = place.as_ref().map(|place| place.test(Predicate::Defined));
                (place, part)
            }
            SourceCode::Rows(inner) => subquery_rows(inner, places),
            SourceCode::EachOfRows(inner) => {
                let (place, part) = subquery_rows(inner, places);
                (place.map(|place| place.element()), part)
            }
        };
        // The document itself is always there.
        let is_document = place.as_ref().is_some_and(|place| place.path.0.is_empty());
        if !is_document {
            parts.push(part.unwrap_or_else(Approximation::unknown));
        }
        places.push(place);
    }
    if let Some(filter) = &pipeline.filter {
        parts.push(when(filter, true, places));
    }
    Approximation::all_of(parts)
}

/// A source is only as good as the query it comes from: the place its rows are at, and what has to
/// hold for there to be any.
fn subquery_rows(inner: &Pipeline, places: &Places) -> (Option<Place>, Option<Approximation>) {
    if inner.grouping.is_some() {
        return (None, None);
    }
    let mut inner_places = places.clone();
    let part = Approximation::loose(rows(inner, &mut inner_places).filter);
    (bound_place(&inner.projection, &inner_places), Some(part))
}

/// The place an expression reads, if it is a path into a document. No index knows whole documents.
pub(super) fn place_of(code: &Code, places: &Places) -> Option<Place> {
    bound_place(code, places).filter(|place| !place.path.0.is_empty())
}

/// The place an expression reads, the whole document included.
fn bound_place(code: &Code, places: &Places) -> Option<Place> {
    let bound = |up: usize| places.iter().rev().nth(up).cloned().flatten();
    match code {
        Code::Source { up } => bound(*up),
        Code::Path { up, steps } => bound(*up).map(|place| place.extended(steps)),
        _ => None,
    }
}

/// For which documents `code` is exactly `wanted`.
pub(super) fn when(code: &Code, wanted: bool, places: &Places) -> Approximation {
    let each = |codes: &[Code]| codes.iter().map(|code| when(code, wanted, places)).collect::<Vec<_>>();
    match code {
        Code::Constant(Value::Bool(value)) if *value == wanted => Approximation::exact(Filter::All),
        Code::Constant(_) => Approximation::exact(Filter::Nothing),
        Code::Source { .. } | Code::Path { .. } => match place_of(code, places) {
            Some(place) => place.test(Predicate::Equals(Value::Bool(wanted))),
            None => Approximation::unknown(),
        },
        Code::Unary { operator: UnaryOperator::Not, operand } => when(operand, !wanted, places),
        // A chain is decided by one operand in one direction and by all of them in the other.
        Code::And(codes) if wanted => Approximation::all_of(each(codes)),
        Code::Or(codes) if !wanted => Approximation::all_of(each(codes)),
        Code::And(codes) | Code::Or(codes) => Approximation::any_of(each(codes)),
        Code::Binary { operator, left, right } => comparison(*operator, (left, right), wanted, places),
        Code::InConstants { needle, haystack, negated } => match place_of(needle, places) {
            Some(place) if *negated != wanted => one_of(&place, haystack.values()),
            Some(place) => place.loosely(Predicate::Defined),
            None => Approximation::unknown(),
        },
        Code::In { needle, .. } => defined(&[needle], places),
        Code::Between { operands, negated } => {
            match (place_of(&operands[0], places), &operands[1], &operands[2]) {
                (Some(place), Code::Constant(low), Code::Constant(high)) => {
                    if *negated == wanted {
                        outside(&place, low, high)
                    } else {
                        within(&place, low, high)
                    }
                }
                _ => defined(&[&operands[0]], places),
            }
        }
        Code::LikeConstant { value, pattern, negated } => match place_of(value, places) {
            Some(place) if *negated != wanted => like(&place, pattern),
            Some(place) => place.loosely(Predicate::of_kind(ValueKind::String)),
            None => Approximation::unknown(),
        },
        Code::Like { value, .. } => match place_of(value, places) {
            Some(place) => place.loosely(Predicate::of_kind(ValueKind::String)),
            None => Approximation::unknown(),
        },
        Code::Call { function, arguments } => call::when(function.name, arguments, wanted, places),
        Code::Subquery { form: SubqueryKind::Exists, pipeline, .. } if wanted => exists(pipeline, places),
        _ => Approximation::unknown(),
    }
}

/// Each of `codes` has to be defined for the expression to be true or false.
pub(super) fn defined(codes: &[&Code], places: &Places) -> Approximation {
    let places = codes.iter().filter_map(|code| place_of(code, places));
    let filters: Vec<Filter> = places.map(|place| Filter::test(place.path, Predicate::Defined)).collect();
    Approximation::loose(Filter::and(filters))
}

fn like(place: &Place, pattern: &LikePattern) -> Approximation {
    match pattern {
        LikePattern::Exact(text) => place.test(Predicate::Equals(Value::String(text.clone()))),
        LikePattern::Prefix(prefix) => place.test(Predicate::Prefix(prefix.clone())),
        LikePattern::Suffix(_) | LikePattern::Contains(_) | LikePattern::Pieces(_) => {
            place.loosely(Predicate::Prefix(pattern.literal_prefix()))
        }
    }
}

/// EXISTS over the elements of an array asks for an element that passes. That is exact for one test,
/// or one of several; two tests might be passed by two different elements.
fn exists(pipeline: &Pipeline, places: &Places) -> Approximation {
    if pipeline.grouping.is_some() {
        return Approximation::unknown();
    }
    let mut places = places.clone();
    let outer = places.len();
    let found = rows(pipeline, &mut places);
    let element = match (&pipeline.sources[..], places.get(outer)) {
        ([SourceCode::Each(_)], Some(Some(element))) => element,
        _ => return Approximation::loose(found.filter),
    };
    let returns_something = match &pipeline.projection {
        Code::Source { up: 0 } | Code::Object(_) => true,
        Code::Constant(value) => value.is_defined(),
        _ => false,
    };
    let of_element = |filter: &Filter| match filter {
        Filter::Predicate { path, .. } => path.starts_with(&element.path),
        _ => false,
    };
    let condition = pipeline.filter.as_ref().map(|filter| when(filter, true, &places));
    let separable = match condition.as_ref().map(|condition| &condition.filter) {
        None => true,
        Some(test @ Filter::Predicate { .. }) => of_element(test),
        Some(Filter::Or(parts)) => parts.iter().all(of_element),
        Some(_) => false,
    };
    if !separable || !returns_something {
        return Approximation::loose(found.filter);
    }
    // A test on the element implies that there is one.
    let exact = found.exact;
    let filter = condition.map_or(found.filter, |condition| condition.filter);
    Approximation { filter, exact }
}
