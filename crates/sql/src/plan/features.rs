//! Query features: what a client must be able to merge.

use std::collections::HashSet;

use crate::ast::Selection;
use crate::bound::{BoundExpression, Pipeline};
use crate::functions::Family;
use crate::functions::aggregate::Aggregate;
use crate::statement::Statement;

use super::distinct_count;

macro_rules! features {
    ($($name:ident)*) => {
        /// A query feature whose rows a client must merge.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the names are the service's own")]
        #[non_exhaustive]
        pub enum Feature { $($name,)* }

        impl Feature {
            /// The name used in the header.
            pub fn name(self) -> &'static str {
                match self { $(Feature::$name => stringify!($name),)* }
            }

            fn find(name: &str) -> Option<Feature> {
                match name { $(stringify!($name) => Some(Feature::$name),)* _ => None }
            }

            const ALL: &[Feature] = &[$(Feature::$name,)*];
        }
    };
}

features! {
    Aggregate
    CompositeAggregate
    CountIf
    DCount
    Distinct
    GroupBy
    HybridSearch
    HybridSearchSkipOrderByRewrite
    ListAndSetAggregate
    MultipleAggregates
    MultipleOrderBy
    NonStreamingOrderBy
    NonValueAggregate
    OffsetAndLimit
    OrderBy
    Top
    WeightedRankFusion
}

/// The query features that a client supports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SupportedFeatures(HashSet<Feature>);

impl SupportedFeatures {
    /// Parses the header: comma-separated names; unknown names are ignored.
    pub fn parse(header: &str) -> SupportedFeatures {
        SupportedFeatures(header.split(',').filter_map(|name| Feature::find(name.trim())).collect())
    }

    /// The set of all query features.
    pub fn all() -> SupportedFeatures {
        SupportedFeatures(Feature::ALL.iter().copied().collect())
    }

    /// Whether the client supports the feature.
    pub fn contains(&self, feature: Feature) -> bool {
        self.0.contains(&feature)
    }

    /// The features of `needed` that the client does not support.
    pub(super) fn missing(&self, needed: &[Feature]) -> Vec<Feature> {
        needed.iter().copied().filter(|feature| !self.contains(*feature)).collect()
    }
}

/// The features needed to merge the statement's rows.
pub(super) fn needed(statement: &Statement) -> Vec<Feature> {
    let (query, pipeline) = (statement.query(), statement.pipeline());
    let mut needed = Vec::new();
    let mut need = |condition: bool, feature: Feature| {
        if condition {
            needed.push(feature);
        }
    };
    if let Some(rank) = &pipeline.rank {
        need(true, Feature::HybridSearch);
        need(!rank.weights.is_empty(), Feature::WeightedRankFusion);
        return needed;
    }
    if distinct_count::info(statement).is_some() {
        return vec![Feature::DCount];
    }
    let aggregates = aggregates(pipeline);
    let is_value = matches!(query.selection, Selection::Value(_));
    let any = |wanted: &[Aggregate]| aggregates.iter().any(|aggregate| wanted.contains(aggregate));
    need(!query.group_by.is_empty(), Feature::GroupBy);
    need(!aggregates.is_empty(), Feature::Aggregate);
    need(!aggregates.is_empty() && !is_value && query.group_by.is_empty(), Feature::NonValueAggregate);
    need(aggregates.len() > 1, Feature::MultipleAggregates);
    need(any(&[Aggregate::CountIf]), Feature::CountIf);
    need(any(&[Aggregate::MakeList, Aggregate::MakeSet]), Feature::ListAndSetAggregate);
    need(query.distinct && !query.from.is_empty(), Feature::Distinct);
    need(pipeline.grouping.is_none() && !pipeline.order.is_empty(), Feature::OrderBy);
    need(pipeline.grouping.is_none() && pipeline.order.len() > 1, Feature::MultipleOrderBy);
    need(pipeline.order.iter().any(|key| is_computed_score(&key.key)), Feature::NonStreamingOrderBy);
    need(pipeline.top.is_some(), Feature::Top);
    need(pipeline.offset_limit.is_some(), Feature::OffsetAndLimit);
    needed
}

fn aggregates(pipeline: &Pipeline) -> Vec<Aggregate> {
    let grouping = pipeline.grouping.as_ref();
    grouping
        .map_or(Vec::new(), |grouping| grouping.aggregates.iter().map(|(aggregate, _)| *aggregate).collect())
}

/// Whether an ORDER BY key is a distance or a score, for which no index exists.
pub(super) fn is_computed_score(key: &BoundExpression) -> bool {
    key.any(&|code| {
        matches!(code, BoundExpression::Call { function, .. } if matches!(function.family, Family::Vector | Family::FullText))
    })
}
