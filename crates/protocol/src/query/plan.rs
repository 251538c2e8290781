//! The query plan: what each partition executes, and how the client merges the rows.
//!
//! Input and output: the response to a query plan request, with its properties in the service's order.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::partition::{EffectivePartitionKey, EpkRange};

/// The placeholder in a rewritten ORDER BY query that clients replace by `true` or a resume filter.
pub const ORDER_BY_FILTER: &str = "{documentdb-formattableorderbyquery-filter}";

/// The response to a query plan request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueryPlan {
    /// The version of the plan format, which is always 2.
    pub partitioned_query_execution_info_version: u32,
    /// How to execute the query and merge its rows; absent for hybrid search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_info: Option<QueryInfo>,
    /// How to execute and fuse the component queries of a hybrid search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hybrid_search_query_info: Option<HybridSearchQueryInfo>,
    /// The EPK ranges to query; sorted and disjoint.
    #[serde(default)]
    pub query_ranges: Vec<QueryRange>,
}

impl QueryPlan {
    /// The plan of a query that is not a hybrid search.
    pub fn new(query_info: QueryInfo, query_ranges: Vec<QueryRange>) -> QueryPlan {
        QueryPlan {
            partitioned_query_execution_info_version: 2,
            query_info: Some(query_info),
            hybrid_search_query_info: None,
            query_ranges,
        }
    }

    /// The plan of a hybrid search query.
    pub fn hybrid(info: HybridSearchQueryInfo, query_ranges: Vec<QueryRange>) -> QueryPlan {
        QueryPlan {
            partitioned_query_execution_info_version: 2,
            query_info: None,
            hybrid_search_query_info: Some(info),
            query_ranges,
        }
    }
}

/// How the rows of the partitions are merged into the rows of the query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QueryInfo {
    /// Whether the client removes duplicate rows.
    pub distinct_type: DistinctType,
    /// The count of TOP; `null` without the clause.
    pub top: Option<u64>,
    /// The count of OFFSET; `null` without the clause.
    pub offset: Option<u64>,
    /// The count of LIMIT; `null` without the clause.
    pub limit: Option<u64>,
    /// The GROUP BY expressions, as canonical text.
    pub group_by_expressions: Vec<String>,
    /// The names of the projected properties, if rows are grouped or aggregated.
    pub group_by_aliases: Vec<String>,
    /// The directions of ORDER BY.
    pub order_by: Vec<SortOrder>,
    /// The ORDER BY expressions, as canonical text.
    pub order_by_expressions: Vec<String>,
    /// The aggregate of a `SELECT VALUE` query; always an array.
    pub aggregates: Vec<AggregateKind>,
    /// Whether the projection is `SELECT VALUE`.
    pub has_select_value: bool,
    /// The query to send to the partitions; empty if it is the original text.
    #[serde(deserialize_with = "text_or_null")]
    pub rewritten_query: String,
    /// The aggregate of each projected property, in the order of the projection.
    #[serde(serialize_with = "write_aliases", deserialize_with = "read_aliases")]
    pub group_by_alias_to_aggregate_type: Vec<(String, Option<AggregateKind>)>,
    /// Present if the query only counts distinct rows.
    pub d_count_info: Option<DCountInfo>,
    /// Whether rows are ordered by a score, for which no index exists.
    pub has_non_streaming_order_by: bool,
}

/// Whether the client removes duplicate rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DistinctType {
    /// Duplicate rows are kept.
    #[default]
    None,
    /// Duplicate rows are removed; they may come in any order.
    Unordered,
    /// Duplicate rows are removed; they are adjacent.
    Ordered,
}

/// A direction of ORDER BY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SortOrder {
    /// From the smallest value to the largest.
    Ascending,
    /// From the largest value to the smallest.
    Descending,
}

/// An aggregate function, by its name in plans.
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

/// A query that counts distinct rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DCountInfo {
    /// The name of the count in the result.
    pub d_count_alias: String,
}

/// The component queries of a hybrid search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HybridSearchQueryInfo {
    /// The query that collects the statistics on which scores depend from every partition.
    pub global_statistics_query: String,
    /// The component queries, one per score.
    pub component_query_infos: Vec<QueryInfo>,
    /// The component queries without the projection.
    pub component_without_payload_query_infos: Vec<QueryInfo>,
    /// The query that projects the results, by item id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub projection_query_info: Option<QueryInfo>,
    /// The weight of each score.
    pub component_weights: Vec<f64>,
    /// The count of OFFSET, if there is one.
    pub skip: Option<u64>,
    /// The count of LIMIT or TOP, if there is one.
    pub take: Option<u64>,
    /// Whether scores depend on the statistics.
    pub requires_global_statistics: bool,
}

/// A range of the EPK space in which each end may be inclusive or exclusive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueryRange {
    /// The lower end of the range.
    pub min: EffectivePartitionKey,
    /// The upper end of the range.
    pub max: EffectivePartitionKey,
    /// Whether the range includes its lower end.
    pub is_min_inclusive: bool,
    /// Whether the range includes its upper end.
    pub is_max_inclusive: bool,
}

impl QueryRange {
    /// The range of the whole EPK space.
    pub fn full() -> QueryRange {
        QueryRange::from(EpkRange::FULL)
    }

    /// The range of one logical partition.
    pub fn point(key: EffectivePartitionKey) -> QueryRange {
        QueryRange { min: key.clone(), max: key, is_min_inclusive: true, is_max_inclusive: true }
    }

    /// The range of a query that cannot match: the start of the EPK space, which holds no key.
    pub fn empty() -> QueryRange {
        QueryRange::point(EffectivePartitionKey::MIN)
    }

    /// The half-open range that holds the same keys.
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
    fn ranges_have_inclusive_and_exclusive_ends() {
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
