//! ORDER BY RANK over the documents of one execution.
//!
//! A full-text score depends on how rare a term is, so all matching documents are held and scored at the
//! end. Several scores are combined by reciprocal rank fusion.

use std::cmp::Ordering;

use super::super::{EvaluationContext, Frame};
use super::project_row;
use crate::ast::Direction;
use crate::bound::{Pipeline, Rank, RankComponent};
use crate::context::FullTextLanguage;
use crate::functions;
use crate::value::{Value, total_order};

/// The constant of reciprocal rank fusion, which limits the weight of the first ranks.
const FUSION_CONSTANT: f64 = 60.0;

/// The state of a ranked query during execution.
#[derive(Debug)]
pub(crate) struct Ranking<'a> {
    rank: &'a Rank,
    pipeline: &'a Pipeline,
    /// The documents that WHERE accepts.
    matching: Vec<Value>,
    /// The number of all documents, for the statistics.
    document_count: i64,
    statistics: Vec<TextStatistics>,
}

/// How common the terms of one score are.
#[derive(Clone, Debug, Default)]
struct TextStatistics {
    total_words: f64,
    hits: Vec<i64>,
}

impl<'a> Ranking<'a> {
    pub(crate) fn new(rank: &'a Rank, pipeline: &'a Pipeline) -> Ranking<'a> {
        let statistics = rank
            .components
            .iter()
            .map(|component| match component {
                RankComponent::Text { terms, .. } => {
                    TextStatistics { total_words: 0.0, hits: vec![0; terms.len()] }
                }
                RankComponent::Vector { .. } => TextStatistics::default(),
            })
            .collect();
        Ranking { rank, pipeline, matching: Vec::new(), document_count: 0, statistics }
    }

    pub(crate) fn push(&mut self, frame: &Frame<'_>, document: &Value, context: &EvaluationContext<'_>) {
        self.document_count += 1;
        for (component, statistics) in self.rank.components.iter().zip(&mut self.statistics) {
            let RankComponent::Text { path, language, terms } = component else { continue };
            let call = |name, arguments: &[Value]| call(name, *language, arguments, context);
            let text = path.evaluate(frame, context).into_owned();
            let words = call("_FULLTEXTWORDCOUNT", std::slice::from_ref(&text));
            statistics.total_words += words.as_f64().unwrap_or(0.0);
            for (term, hits) in terms.iter().zip(&mut statistics.hits) {
                let term = term.evaluate(frame, context).into_owned();
                *hits += i64::from(call("FULLTEXTCONTAINS", &[text.clone(), term]).is_true());
            }
        }
        if self.pipeline.filter.as_ref().is_none_or(|filter| filter.is_true(frame, context)) {
            self.matching.push(document.clone());
        }
    }

    pub(crate) fn finish(self, context: &EvaluationContext<'_>) -> Vec<Value> {
        let scores: Vec<Vec<Value>> = (0..self.rank.components.len())
            .map(|at| self.matching.iter().map(|document| self.score(at, document, context)).collect())
            .collect();
        let order = match &scores[..] {
            [only] => by_score(only, self.rank.components[0].direction()),
            several => self.fused(several),
        };
        let (offset, limit) = (self.pipeline.offset(), self.pipeline.limit());
        order
            .into_iter()
            .filter_map(|at| {
                project_row(
                    &self.pipeline.projection,
                    &Frame::with(&Frame::ROOT, &self.matching[at]),
                    context,
                )
            })
            .skip(usize::try_from(offset).unwrap_or(usize::MAX))
            .take(limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX)))
            .collect()
    }

    fn score(&self, at: usize, document: &Value, context: &EvaluationContext<'_>) -> Value {
        let frame = Frame::with(&Frame::ROOT, document);
        match &self.rank.components[at] {
            RankComponent::Vector { distance, .. } => distance.evaluate(&frame, context).into_owned(),
            RankComponent::Text { path, language, terms } => {
                let statistics = &self.statistics[at];
                let arguments = [
                    path.evaluate(&frame, context).into_owned(),
                    Value::array(terms.iter().map(|term| term.evaluate(&frame, context).into_owned())),
                    Value::from(self.document_count),
                    Value::from(statistics.total_words),
                    Value::array(statistics.hits.iter().map(|hits| Value::from(*hits))),
                ];
                call("_FULLTEXTSCORE", *language, &arguments, context)
            }
        }
    }

    /// The indexes of the matching documents, ordered by the sum of their weighted reciprocal ranks.
    fn fused(&self, scores: &[Vec<Value>]) -> Vec<usize> {
        let mut totals = vec![0.0; self.matching.len()];
        for (at, (component, scores)) in self.rank.components.iter().zip(scores).enumerate() {
            // A negative weight reverses the ranking.
            let weight = self.rank.weights.get(at).copied().unwrap_or(1.0);
            let direction = match (weight < 0.0, component.direction()) {
                (false, direction) => direction,
                (true, Direction::Ascending) => Direction::Descending,
                (true, Direction::Descending) => Direction::Ascending,
            };
            let order = by_score(scores, direction);
            let mut rank = 0.0;
            for (position, &document) in order.iter().enumerate() {
                // Equal scores share a rank.
                let tied = position > 0 && scores[order[position - 1]] == scores[document];
                if !tied {
                    rank += 1.0;
                }
                totals[document] += weight.abs() / (FUSION_CONSTANT + rank);
            }
        }
        let mut order: Vec<usize> = (0..totals.len()).collect();
        order.sort_by(|&left, &right| totals[right].total_cmp(&totals[left]));
        order
    }
}

/// The indexes by score, the best first; documents without a score come last.
fn by_score(scores: &[Value], direction: Direction) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&left, &right| {
        let (left, right) = (&scores[left], &scores[right]);
        match (left.is_defined(), right.is_defined()) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            _ => match direction {
                Direction::Ascending => total_order(left, right),
                Direction::Descending => total_order(right, left),
            },
        }
    });
    order
}

fn call(
    name: &str,
    language: FullTextLanguage,
    arguments: &[Value],
    context: &EvaluationContext<'_>,
) -> Value {
    functions::find(name).map_or(Value::Undefined, |function| {
        (functions::in_language(function, language).call)(arguments, &context.functions)
    })
}
