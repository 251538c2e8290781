//! Query metrics and index metrics, as response headers state them.
//!
//! Input: the values of `x-ms-documentdb-query-metrics` and `x-ms-cosmos-index-utilization`. Output: numbers and index
//! paths, which can be merged over the partitions of a query.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use serde::Deserialize;

/// What the service read and how long it took, for one response or for several together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct QueryMetrics {
    /// The time of the whole execution.
    pub total_time: Duration,
    /// The time to compile the query text.
    pub compile_time: Duration,
    /// The time to build the logical plan.
    pub logical_plan_time: Duration,
    /// The time to build the physical plan.
    pub physical_plan_time: Duration,
    /// The time to optimize the plan.
    pub optimization_time: Duration,
    /// The time to run the plan.
    pub run_time: Duration,
    /// The time to look up entries of the index.
    pub index_lookup_time: Duration,
    /// The time to load items.
    pub document_load_time: Duration,
    /// The time in system functions.
    pub system_function_time: Duration,
    /// The time in user-defined functions.
    pub user_function_time: Duration,
    /// The time to write the result.
    pub write_output_time: Duration,
    /// How many items were loaded.
    pub retrieved_documents: u64,
    /// How many bytes the loaded items have.
    pub retrieved_bytes: u64,
    /// How many rows were returned.
    pub output_documents: u64,
    /// How many bytes the returned rows have.
    pub output_bytes: u64,
    /// The share of the loaded items that contributed to the result, from 0 to 1.
    pub index_hit_ratio: f64,
}

impl QueryMetrics {
    /// Parses the header: `name=number`, joined by `;`. Unknown names are ignored, because the service adds some now
    /// and then; none if no part is a name with a number.
    pub fn parse(header: &str) -> Option<QueryMetrics> {
        let mut metrics = QueryMetrics::default();
        let mut is_any_known = false;
        for part in header.split(';') {
            let Some((name, value)) = part.split_once('=') else { continue };
            let Ok(number) = value.trim().parse::<f64>() else { continue };
            is_any_known |= metrics.set(name.trim(), number);
        }
        is_any_known.then_some(metrics)
    }

    /// Sets the number of this name; false if the name is unknown.
    fn set(&mut self, name: &str, number: f64) -> bool {
        let time = || Duration::try_from_secs_f64(number / 1000.0).unwrap_or_default();
        // A negative number becomes 0, as no count is negative.
        let count = number as u64;
        match name {
            "totalExecutionTimeInMs" => self.total_time = time(),
            "queryCompileTimeInMs" => self.compile_time = time(),
            "queryLogicalPlanBuildTimeInMs" => self.logical_plan_time = time(),
            "queryPhysicalPlanBuildTimeInMs" => self.physical_plan_time = time(),
            "queryOptimizationTimeInMs" => self.optimization_time = time(),
            "VMExecutionTimeInMs" => self.run_time = time(),
            "indexLookupTimeInMs" => self.index_lookup_time = time(),
            "documentLoadTimeInMs" => self.document_load_time = time(),
            "systemFunctionExecuteTimeInMs" => self.system_function_time = time(),
            "userFunctionExecuteTimeInMs" => self.user_function_time = time(),
            "writeOutputTimeInMs" => self.write_output_time = time(),
            "retrievedDocumentCount" => self.retrieved_documents = count,
            "retrievedDocumentSize" => self.retrieved_bytes = count,
            "outputDocumentCount" => self.output_documents = count,
            "outputDocumentSize" => self.output_bytes = count,
            "indexUtilizationRatio" | "indexHitRatio" => self.index_hit_ratio = number,
            _ => return false,
        }
        true
    }

    /// The metrics of both together: sums, and the hit ratio of all loaded items.
    #[must_use]
    pub fn merged(self, other: QueryMetrics) -> QueryMetrics {
        let (own, others) = (self.retrieved_documents as f64, other.retrieved_documents as f64);
        let index_hit_ratio = if own + others > 0.0 {
            (self.index_hit_ratio * own + other.index_hit_ratio * others) / (own + others)
        } else {
            self.index_hit_ratio.min(other.index_hit_ratio)
        };
        QueryMetrics {
            total_time: self.total_time + other.total_time,
            compile_time: self.compile_time + other.compile_time,
            logical_plan_time: self.logical_plan_time + other.logical_plan_time,
            physical_plan_time: self.physical_plan_time + other.physical_plan_time,
            optimization_time: self.optimization_time + other.optimization_time,
            run_time: self.run_time + other.run_time,
            index_lookup_time: self.index_lookup_time + other.index_lookup_time,
            document_load_time: self.document_load_time + other.document_load_time,
            system_function_time: self.system_function_time + other.system_function_time,
            user_function_time: self.user_function_time + other.user_function_time,
            write_output_time: self.write_output_time + other.write_output_time,
            retrieved_documents: self.retrieved_documents + other.retrieved_documents,
            retrieved_bytes: self.retrieved_bytes + other.retrieved_bytes,
            output_documents: self.output_documents + other.output_documents,
            output_bytes: self.output_bytes + other.output_bytes,
            index_hit_ratio,
        }
    }
}

/// The indexes that a query used, and those that would have helped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexMetrics {
    /// The indexes that the query used.
    pub utilized: Vec<IndexUse>,
    /// The indexes that the container lacks and that would make the query cheaper.
    pub potential: Vec<IndexUse>,
}

/// An index in [`IndexMetrics`]: its paths, and how much it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexUse {
    /// The paths, such as `/total/?`; several for a composite index.
    pub paths: Vec<String>,
    /// How much the index improves the query: `High` or `Low`; none if the service does not say.
    pub impact: Option<String>,
}

impl IndexMetrics {
    /// Parses the header: JSON in base64 or URL-encoded, as it was asked for. None if it is neither.
    pub fn parse(header: &str) -> Option<IndexMetrics> {
        if let Ok(text) = STANDARD.decode(header) {
            let lists: FirstForm = serde_json::from_slice(&text).ok()?;
            return Some(IndexMetrics {
                utilized: uses(lists.utilized_single_indexes, lists.utilized_composite_indexes),
                potential: uses(lists.potential_single_indexes, lists.potential_composite_indexes),
            });
        }
        let text = percent_decode_str(header).decode_utf8().ok()?;
        let lists: SecondForm = serde_json::from_str(&text).ok()?;
        let both = |lists: IndexLists| uses(lists.single_indexes, lists.composite_indexes);
        Some(IndexMetrics {
            utilized: both(lists.utilized_indexes),
            potential: both(lists.potential_indexes),
        })
    }

    /// The metrics of both together, each index once.
    #[must_use]
    pub fn merged(mut self, other: IndexMetrics) -> IndexMetrics {
        let add = |list: &mut Vec<IndexUse>, more: Vec<IndexUse>| {
            for index in more {
                if !list.contains(&index) {
                    list.push(index);
                }
            }
        };
        add(&mut self.utilized, other.utilized);
        add(&mut self.potential, other.potential);
        self
    }
}

fn uses(single: Vec<SingleIndex>, composite: Vec<CompositeIndex>) -> Vec<IndexUse> {
    let single = single
        .into_iter()
        .map(|index| IndexUse { paths: vec![index.index_spec], impact: index.index_impact_score });
    let composite = composite
        .into_iter()
        .map(|index| IndexUse { paths: index.index_specs, impact: index.index_impact_score });
    single.chain(composite).collect()
}

/// The JSON behind `x-ms-cosmos-populateindexmetrics`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct FirstForm {
    utilized_single_indexes: Vec<SingleIndex>,
    potential_single_indexes: Vec<SingleIndex>,
    utilized_composite_indexes: Vec<CompositeIndex>,
    potential_composite_indexes: Vec<CompositeIndex>,
}

/// The JSON behind `x-ms-cosmos-populateindexmetrics-v2`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct SecondForm {
    utilized_indexes: IndexLists,
    potential_indexes: IndexLists,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct IndexLists {
    single_indexes: Vec<SingleIndex>,
    composite_indexes: Vec<CompositeIndex>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct SingleIndex {
    index_spec: String,
    index_impact_score: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct CompositeIndex {
    index_specs: Vec<String>,
    index_impact_score: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_metrics_are_parsed_and_added_up() {
        let header = "totalExecutionTimeInMs=1.50;retrievedDocumentCount=30;outputDocumentCount=10;\
                      somethingNew=7;indexUtilizationRatio=0.50";
        let one = QueryMetrics::parse(header).expect("metrics");
        assert_eq!(one.total_time, Duration::from_micros(1500));
        assert_eq!((one.retrieved_documents, one.output_documents, one.index_hit_ratio), (30, 10, 0.5));
        let other =
            QueryMetrics::parse("retrievedDocumentCount=10;indexUtilizationRatio=1").expect("metrics");
        let both = one.merged(other);
        assert_eq!((both.retrieved_documents, both.output_documents), (40, 10));
        assert_eq!(both.index_hit_ratio, 0.625);
        for nothing in ["", ";;", "what", "somethingNew=7", "totalExecutionTimeInMs=soon"] {
            assert_eq!(QueryMetrics::parse(nothing), None, "{nothing}");
        }
        let odd = QueryMetrics::parse("totalExecutionTimeInMs=-1;outputDocumentCount=-3").expect("metrics");
        assert_eq!((odd.total_time, odd.output_documents), (Duration::ZERO, 0));
    }

    #[test]
    fn index_metrics_are_parsed_in_both_forms() {
        let first = r#"{"UtilizedSingleIndexes":[{"FilterExpression":"","IndexSpec":"/a/?","IndexImpactScore":"High"}],
            "PotentialSingleIndexes":[],"UtilizedCompositeIndexes":[],
            "PotentialCompositeIndexes":[{"IndexSpecs":["/a ASC","/b ASC"],"IndexImpactScore":"Low"}]}"#;
        let second = r#"{"UtilizedIndexes":{"SingleIndexes":[{"IndexSpec":"/a/?","IndexImpactScore":"High"}]},
            "PotentialIndexes":{"CompositeIndexes":[{"IndexSpecs":["/a ASC","/b ASC"],"IndexImpactScore":"Low"}]}}"#;
        let url_encoded =
            percent_encoding::utf8_percent_encode(second, percent_encoding::NON_ALPHANUMERIC).to_string();
        let expected = IndexMetrics {
            utilized: vec![IndexUse { paths: vec!["/a/?".into()], impact: Some("High".into()) }],
            potential: vec![IndexUse {
                paths: vec!["/a ASC".into(), "/b ASC".into()],
                impact: Some("Low".into()),
            }],
        };
        assert_eq!(IndexMetrics::parse(&STANDARD.encode(first)).as_ref(), Some(&expected));
        assert_eq!(IndexMetrics::parse(&url_encoded).as_ref(), Some(&expected));
        assert_eq!(expected.clone().merged(expected.clone()), expected, "each index once");
        for nothing in ["", "what?", "%7B"] {
            assert_eq!(IndexMetrics::parse(nothing), None, "{nothing}");
        }
    }
}
