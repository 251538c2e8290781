//! The plan of a query: what each partition runs, and what the client does with the rows.
//!
//! In and out: the answer to a plan request, member by member in the order the service writes
//! them.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::partition::{EffectivePartitionKey, EpkRange};

/// Where clients put `true` or a resume predicate into a rewritten ORDER BY query.
pub const ORDER_BY_FILTER: &str = "{documentdb-formattableorderbyquery-filter}";

/// A plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueryPlan {
    /// Always 2.
    pub partitioned_query_execution_info_version: u32,
    /// How to run and merge; absent for hybrid search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_info: Option<QueryInfo>,
    /// How to run and fuse the parts of a hybrid search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hybrid_search_query_info: Option<HybridSearchQueryInfo>,
    /// Where to run; sorted, not overlapping.
    #[serde(default)]
    pub query_ranges: Vec<QueryRange>,
}

impl QueryPlan {
    /// A plan of one query.
    pub fn new(query_info: QueryInfo, query_ranges: Vec<QueryRange>) -> QueryPlan {
        QueryPlan {
            partitioned_query_execution_info_version: 2,
            query_info: Some(query_info),
            hybrid_search_query_info: None,
            query_ranges,
        }
    }

    /// A plan of a hybrid search.
    pub fn hybrid(info: HybridSearchQueryInfo, query_ranges: Vec<QueryRange>) -> QueryPlan {
        QueryPlan {
            partitioned_query_execution_info_version: 2,
            query_info: None,
            hybrid_search_query_info: Some(info),
            query_ranges,
        }
    }
}

/// How the rows of the partitions become the rows of the answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QueryInfo {
    /// Whether equal rows are to be dropped.
    pub distinct_type: DistinctType,
    /// TOP; `null` when the clause is absent, never 0.
    pub top: Option<u64>,
    /// OFFSET; `null` when the clause is absent.
    pub offset: Option<u64>,
    /// LIMIT; `null` when the clause is absent.
    pub limit: Option<u64>,
    /// GROUP BY, as canonical text.
    pub group_by_expressions: Vec<String>,
    /// Names of the projected members when rows are grouped or aggregated.
    pub group_by_aliases: Vec<String>,
    /// ORDER BY directions.
    pub order_by: Vec<SortOrder>,
    /// ORDER BY expressions, as canonical text.
    pub order_by_expressions: Vec<String>,
    /// The aggregate of `SELECT VALUE`; always an array.
    pub aggregates: Vec<AggregateKind>,
    /// Whether the projection is `SELECT VALUE`.
    pub has_select_value: bool,
    /// What to send to the partitions; empty for the original text.
    #[serde(deserialize_with = "text_or_null")]
    pub rewritten_query: String,
    /// What each projected member is, in the order of the projection.
    #[serde(serialize_with = "write_aliases", deserialize_with = "read_aliases")]
    pub group_by_alias_to_aggregate_type: Vec<(String, Option<AggregateKind>)>,
    /// Set when distinct rows are only counted.
    pub d_count_info: Option<DCountInfo>,
    /// Whether rows come in an order that no index gives.
    pub has_non_streaming_order_by: bool,
}

/// Whether equal rows are to be dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DistinctType {
    /// They are not.
    #[default]
    None,
    /// Wherever they are.
    Unordered,
    /// They follow each other.
    Ordered,
}

/// A direction of ORDER BY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SortOrder {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

/// An aggregate, by its word on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub enum AggregateKind {
    Count,
    Sum,
    Min,
    Max,
    Average,
    CountIf,
    MakeList,
    MakeSet,
}

/// A count of distinct rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DCountInfo {
    /// The name of the count in the answer.
    pub d_count_alias: String,
}

/// The parts of a hybrid search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HybridSearchQueryInfo {
    /// Asks every partition for counts that scores depend on.
    pub global_statistics_query: String,
    /// One query per score.
    pub component_query_infos: Vec<QueryInfo>,
    /// The same without what is projected.
    pub component_without_payload_query_infos: Vec<QueryInfo>,
    /// What is projected, by id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub projection_query_info: Option<QueryInfo>,
    /// How much each score counts.
    pub component_weights: Vec<f64>,
    /// OFFSET.
    pub skip: Option<u64>,
    /// LIMIT or TOP.
    pub take: Option<u64>,
    /// Whether the statistics are needed at all.
    pub requires_global_statistics: bool,
}

/// A stretch of the ring, with either end inside or out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueryRange {
    /// The lower end.
    pub min: EffectivePartitionKey,
    /// The upper end.
    pub max: EffectivePartitionKey,
    /// Whether the lower end is inside.
    pub is_min_inclusive: bool,
    /// Whether the upper end is inside.
    pub is_max_inclusive: bool,
}

impl QueryRange {
    /// The whole ring.
    pub fn full() -> QueryRange {
        QueryRange::from(EpkRange::FULL)
    }

    /// One logical partition.
    pub fn point(key: EffectivePartitionKey) -> QueryRange {
        QueryRange { min: key.clone(), max: key, is_min_inclusive: true, is_max_inclusive: true }
    }

    /// What a query is sent to that nothing can match: the start of the ring, where no key is.
    pub fn empty() -> QueryRange {
        QueryRange::point(EffectivePartitionKey::MIN)
    }

    /// The same keys as a half-open range.
    pub fn to_epk_range(&self) -> EpkRange {
        let above = |key: &EffectivePartitionKey| EpkRange::point(key.clone()).max;
        EpkRange {
            min: if self.is_min_inclusive { self.min.clone() } else { above(&self.min) },
            max: if self.is_max_inclusive { above(&self.max) } else { self.max.clone() },
        }
    }
}

impl From<EpkRange> for QueryRange {
    fn from(range: EpkRange) -> QueryRange {
        QueryRange { min: range.min, max: range.max, is_min_inclusive: true, is_max_inclusive: false }
    }
}

fn text_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::<String>::deserialize(deserializer).map(Option::unwrap_or_default)
}

fn write_aliases<S: Serializer>(
    aliases: &[(String, Option<AggregateKind>)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(aliases.iter().map(|(alias, kind)| (alias, kind)))
}

fn read_aliases<'de, D>(deserializer: D) -> Result<Vec<(String, Option<AggregateKind>)>, D::Error>
where
    D: Deserializer<'de>,
{
    struct Aliases;

    impl<'de> Visitor<'de> for Aliases {
        type Value = Vec<(String, Option<AggregateKind>)>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a map from aliases to aggregates")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut aliases = Vec::new();
            while let Some(entry) = map.next_entry()? {
                aliases.push(entry);
            }
            Ok(aliases)
        }
    }

    deserializer.deserialize_any(Aliases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_the_services_members() {
        let info = QueryInfo {
            order_by: vec![SortOrder::Ascending],
            order_by_expressions: vec!["c.name".into()],
            rewritten_query: "SELECT c._rid".into(),
            ..QueryInfo::default()
        };
        let plan = QueryPlan::new(info, vec![QueryRange::full()]);
        let expected = r#"{"partitionedQueryExecutionInfoVersion":2,
          "queryInfo":{"distinctType":"None","top":null,"offset":null,"limit":null,
            "orderBy":["Ascending"],"orderByExpressions":["c.name"],
            "groupByExpressions":[],"groupByAliases":[],"aggregates":[],
            "groupByAliasToAggregateType":{},"rewrittenQuery":"SELECT c._rid","hasSelectValue":false,
            "dCountInfo":null,"hasNonStreamingOrderBy":false},
          "queryRanges":[{"min":"","max":"FF","isMinInclusive":true,"isMaxInclusive":false}]}"#;
        let body = serde_json::to_value(&plan).expect("plain data");
        assert_eq!(body, serde_json::from_str::<serde_json::Value>(expected).expect("json"));
        assert_eq!(serde_json::from_value::<QueryPlan>(body).expect("what was written"), plan);
    }

    #[test]
    fn aliases_keep_the_order_of_the_projection() {
        let info = QueryInfo {
            group_by_alias_to_aggregate_type: vec![
                ("z".into(), None),
                ("a".into(), Some(AggregateKind::Average)),
            ],
            ..QueryInfo::default()
        };
        let text = serde_json::to_string(&info).expect("plain data");
        assert!(text.contains(r#""groupByAliasToAggregateType":{"z":null,"a":"Average"}"#), "{text}");
        assert_eq!(serde_json::from_str::<QueryInfo>(&text).expect("what was written"), info);
    }

    #[test]
    fn members_come_in_the_services_order() {
        let text = serde_json::to_string(&QueryInfo::default()).expect("plain data");
        let order = [
            "distinctType",
            "top",
            "offset",
            "limit",
            "groupByExpressions",
            "groupByAliases",
            "orderBy\"",
            "orderByExpressions",
            "aggregates",
            "hasSelectValue",
            "rewrittenQuery",
            "groupByAliasToAggregateType",
            "hasNonStreamingOrderBy",
        ];
        let places: Vec<_> = order.iter().map(|name| text.find(name).expect("a member")).collect();
        assert!(places.is_sorted(), "{text}");
    }

    #[test]
    fn a_plan_with_gaps_is_read() {
        let plan: QueryPlan = serde_json::from_str(
            r#"{"partitionedQueryExecutionInfoVersion":2,"queryInfo":{"rewrittenQuery":null,"groupByAliasToAggregateType":null,"newer":1},"queryRanges":[]}"#,
        )
        .expect("a plan");
        assert_eq!(plan.query_info, Some(QueryInfo::default()));
    }

    #[test]
    fn a_hybrid_plan_has_no_query_info() {
        let info =
            HybridSearchQueryInfo { requires_global_statistics: true, take: Some(10), ..Default::default() };
        let body =
            serde_json::to_value(QueryPlan::hybrid(info, vec![QueryRange::full()])).expect("plain data");
        assert!(body.get("queryInfo").is_none());
        assert_eq!(body["hybridSearchQueryInfo"]["take"], 10);
        assert_eq!(body["hybridSearchQueryInfo"]["requiresGlobalStatistics"], true);
    }

    #[test]
    fn ranges_say_which_ends_are_inside() {
        let key = EffectivePartitionKey::from_hex("3A5381E1114EB8D3FCC90795045B49B7").expect("hex");
        let point = QueryRange::point(key.clone());
        assert_eq!(
            serde_json::to_string(&point).expect("plain data"),
            r#"{"min":"3A5381E1114EB8D3FCC90795045B49B7","max":"3A5381E1114EB8D3FCC90795045B49B7","isMinInclusive":true,"isMaxInclusive":true}"#
        );
        assert_eq!(point.to_epk_range(), EpkRange::point(key));
        assert_eq!(QueryRange::full().to_epk_range(), EpkRange::FULL);
        assert_eq!(
            serde_json::to_string(&QueryRange::empty()).expect("plain data"),
            r#"{"min":"","max":"","isMinInclusive":true,"isMaxInclusive":true}"#
        );
    }
}
