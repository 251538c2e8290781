//! Binding of VECTORDISTANCE: the distance function of a call that does not name one.

use smol_str::SmolStr;

use super::Binder;
use crate::ast::{Direction, Expression, ExpressionKind, UnaryOperator};
use crate::bound::{BoundExpression, BoundStep};
use crate::context::DistanceFunction;
use crate::error::SqlError;
use crate::functions::Family;
use crate::token::Span;
use crate::value::Value;

/// The function by which rewritten hybrid queries rank vectors: the distance, inverted if needed so that
/// the nearest is the largest.
pub(super) const VECTOR_SCORE: &str = "_VectorScore";

const VECTOR_DISTANCE: &str = "VECTORDISTANCE";
const OPTIONS_AT: usize = 3;
const DISTANCE_FUNCTION: &str = "distanceFunction";

/// Whether `expression` is a call of VECTORDISTANCE, not the score of a rewritten query.
pub(super) fn is_distance(expression: &Expression) -> bool {
    matches!(
        expression.kind(),
        ExpressionKind::Call { name, user_defined: false, .. } if name.0.eq_ignore_ascii_case(VECTOR_DISTANCE)
    )
}

impl Binder<'_> {
    /// Adds the distance function to the options, unless the call names one: the one of the path's policy,
    /// else the one common to all policies, else the default.
    pub(super) fn complete_vector_options(&self, arguments: &mut Vec<BoundExpression>) {
        let name = match self.policy(arguments).or_else(|| self.common_policy()).unwrap_or_default() {
            DistanceFunction::Cosine => "cosine",
            DistanceFunction::DotProduct => "dotproduct",
            DistanceFunction::Euclidean => "euclidean",
        };
        let with_name = |options: Vec<(SmolStr, Value)>| {
            BoundExpression::Constant(Value::object(
                options.into_iter().chain([(SmolStr::new(DISTANCE_FUNCTION), Value::from(name))]),
            ))
        };
        match arguments.get(OPTIONS_AT) {
            None => {
                if arguments.len() == OPTIONS_AT - 1 {
                    arguments.push(BoundExpression::Constant(Value::Bool(false)));
                }
                arguments.push(with_name(Vec::new()));
            }
            Some(BoundExpression::Constant(Value::Object(options)))
                if options.get(DISTANCE_FUNCTION).is_none() =>
            {
                let members = options.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
                arguments[OPTIONS_AT] = with_name(members);
            }
            Some(_) => {}
        }
    }

    fn common_policy(&self) -> Option<DistanceFunction> {
        let (first, rest) = self.schema.vector_policies.split_first()?;
        rest.iter().all(|policy| policy.distance == first.distance).then_some(first.distance)
    }

    /// The distance function that the container's policy gives one of the two vectors.
    fn policy(&self, arguments: &[BoundExpression]) -> Option<DistanceFunction> {
        arguments
            .iter()
            .take(2)
            .find_map(|argument| self.schema.distance_function(&self.policy_path(argument)?))
    }

    /// A property of the document as policies write its path, `/a/b`; `None` for any other expression.
    pub(super) fn policy_path(&self, argument: &BoundExpression) -> Option<String> {
        match argument {
            BoundExpression::Path { up, steps } if self.scopes.is_document(*up) => steps
                .iter()
                .map(|step| match step {
                    BoundStep::Name(name) => Some(format!("/{name}")),
                    BoundStep::Index(_) => None,
                })
                .collect(),
            _ => None,
        }
    }

    /// Binds a call of [`VECTOR_SCORE`].
    pub(super) fn vector_score(
        &mut self,
        arguments: &[Expression],
        span: Span,
    ) -> Result<BoundExpression, SqlError> {
        let distance = self.call((&SmolStr::new_static(VECTOR_DISTANCE), false), arguments, span)?;
        let operator = match self.nearest_first(&distance) {
            Some(Direction::Ascending) => UnaryOperator::Minus,
            _ => UnaryOperator::Plus,
        };
        Ok(BoundExpression::Unary { operator, operand: Box::new(distance) })
    }

    /// The direction that puts the nearest vector first, if `code` is a distance or a score.
    pub(super) fn nearest_first(&self, code: &BoundExpression) -> Option<Direction> {
        if let BoundExpression::Unary { operator: UnaryOperator::Plus | UnaryOperator::Minus, operand } = code
        {
            return self.nearest_first(operand).map(|_| Direction::Descending);
        }
        let BoundExpression::Call { function, arguments } = code else { return None };
        if function.family != Family::Vector {
            return None;
        }
        let chosen = match arguments.get(OPTIONS_AT) {
            Some(BoundExpression::Constant(options)) => {
                options.member(DISTANCE_FUNCTION).as_str().and_then(DistanceFunction::from_name)
            }
            _ => None,
        };
        let nearest_is_smallest = chosen.unwrap_or_default().nearest_is_smallest();
        Some(if nearest_is_smallest { Direction::Ascending } else { Direction::Descending })
    }
}
