//! Binding of ORDER BY RANK: the scores and their weights.

use super::Binder;
use super::call::{check_count, find};
use crate::ast::{Direction, Expression, ExpressionKind, Query};
use crate::bound::{BoundExpression, Rank, RankComponent};
use crate::error::{SqlError, code};
use crate::functions::{Family, Function};
use crate::value::Value;

const FULL_TEXT_SCORE: &str = "FULLTEXTSCORE";
const RECIPROCAL_RANK_FUSION: &str = "RRF";

impl Binder<'_> {
    pub(super) fn rank(&mut self, score: &Expression, query: &Query) -> Result<Rank, SqlError> {
        let invalid =
            |message: &str, at: &Expression| Err(SqlError::new(code::RANK_NEEDS_A_SCORE, at.span(), message));
        if query.from.len() != 1 || !query.group_by.is_empty() || query.distinct {
            return invalid(
                "ORDER BY RANK needs a query over one source, without GROUP BY and DISTINCT",
                score,
            );
        }
        let Some((function, arguments)) = self.score_call(score)? else {
            return invalid("ORDER BY RANK takes FullTextScore(…) or RRF(…)", score);
        };
        if function.name != RECIPROCAL_RANK_FUSION {
            let component = self.component(score)?;
            return Ok(Rank { components: vec![component], weights: Vec::new() });
        }
        let (scores, weights) = self.weights(arguments)?;
        if scores.len() < 2 {
            return invalid("RRF fuses at least two scores", score);
        }
        let components = scores.iter().map(|score| self.component(score)).collect::<Result<Vec<_>, _>>()?;
        if !weights.is_empty() && weights.len() != components.len() {
            return invalid("RRF needs one weight for each score, or none", score);
        }
        Ok(Rank { components, weights })
    }

    fn score_call<'e>(
        &self,
        score: &'e Expression,
    ) -> Result<Option<(&'static Function, &'e [Expression])>, SqlError> {
        let ExpressionKind::Call { name, arguments, user_defined: false } = score.kind() else {
            return Ok(None);
        };
        let function = find(&name.0, score.span())?;
        check_count(function, arguments.len(), score.span())?;
        let is_score = function.family == Family::Rank;
        Ok(is_score.then_some((function, arguments)))
    }

    /// The scores of RRF, and the weights if the last argument is an array of numbers.
    fn weights<'e>(&mut self, arguments: &'e [Expression]) -> Result<(&'e [Expression], Vec<f64>), SqlError> {
        let Some((last, scores)) = arguments.split_last() else { return Ok((arguments, Vec::new())) };
        if !matches!(last.kind(), ExpressionKind::Array(_) | ExpressionKind::Parameter(_)) {
            return Ok((arguments, Vec::new()));
        }
        let weights = self.expression(last)?;
        let numbers = weights
            .as_constant()
            .and_then(Value::as_array)
            .and_then(|weights| weights.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>());
        match numbers {
            Some(numbers) => Ok((scores, numbers)),
            None => {
                let message = "the weights of RRF must be an array of numbers";
                Err(SqlError::new(code::RANK_NEEDS_A_SCORE, last.span(), message))
            }
        }
    }

    fn component(&mut self, score: &Expression) -> Result<RankComponent, SqlError> {
        let invalid = |message: &str| Err(SqlError::new(code::RANK_NEEDS_A_SCORE, score.span(), message));
        if let Some((function, arguments)) = self.score_call(score)? {
            if function.name != FULL_TEXT_SCORE {
                return invalid("RRF cannot be nested");
            }
            let Some((path, terms)) = arguments.split_first() else {
                return invalid("FullTextScore takes a path and its search terms");
            };
            let path = self.expression(path)?;
            if !matches!(path, BoundExpression::Path { .. }) {
                return invalid("the first argument of FullTextScore must be a property path");
            }
            let language = self.text_language(&path).unwrap_or(self.schema.full_text_language);
            return Ok(RankComponent::Text { path, language, terms: self.terms(terms)? });
        }
        let distance = self.expression(score)?;
        match self.nearest_first(&distance) {
            Some(direction) => Ok(RankComponent::Vector { distance, direction }),
            None => invalid("only FullTextScore(…) and VectorDistance(…) can be ranked"),
        }
    }

    /// Binds search terms: strings, or arrays of strings.
    fn terms(&mut self, terms: &[Expression]) -> Result<Vec<BoundExpression>, SqlError> {
        let mut bound = Vec::with_capacity(terms.len());
        for term in terms {
            match self.expression(term)? {
                BoundExpression::Constant(Value::Array(several)) => {
                    bound.extend(several.iter().cloned().map(BoundExpression::Constant))
                }
                single => bound.push(single),
            }
        }
        Ok(bound)
    }
}

/// The direction in which the best score comes first.
impl RankComponent {
    pub(crate) fn direction(&self) -> Direction {
        match self {
            RankComponent::Text { .. } => Direction::Descending,
            RankComponent::Vector { direction, .. } => *direction,
        }
    }
}
