//! Query metrics and index metrics, as the response headers state them.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use sql::Statement;
use sql::access_path::{DocPath, Filter};

use crate::store::ContainerSchema;
use crate::store::index::Step;

/// What one page of a query read and returned.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryMetrics {
    pub(crate) retrieved_count: usize,
    pub(crate) retrieved_bytes: usize,
    pub(crate) output_count: usize,
    pub(crate) output_bytes: usize,
    /// Items read that did not contribute.
    pub(crate) rejected_count: usize,
    /// Some partition had to be scanned: no index narrowed the search.
    pub(crate) scanned: bool,
}

impl QueryMetrics {
    /// The share of the items read that contributed to the result.
    fn index_utilization(&self) -> f64 {
        match self.retrieved_count {
            0 => 1.0,
            count => (count - self.rejected_count.min(count)) as f64 / count as f64,
        }
    }

    /// The header `x-ms-documentdb-query-metrics`. One client rejects a trailing separator.
    pub fn to_header(self, compile: Duration, run: Duration) -> String {
        let milliseconds = |duration: Duration| duration.as_secs_f64() * 1000.0;
        let (compile, run) = (milliseconds(compile), milliseconds(run));
        // Reading documents takes time, however little: clients expect to see some of it.
        let least = if self.retrieved_count > 0 { 0.01_f64 } else { 0.0 };
        let run = run.max(least);
        format!(
            "totalExecutionTimeInMs={:.2};queryCompileTimeInMs={compile:.2};queryLogicalPlanBuildTimeInMs=0.00;\
             queryPhysicalPlanBuildTimeInMs=0.00;queryOptimizationTimeInMs=0.00;VMExecutionTimeInMs={run:.2};\
             indexLookupTimeInMs=0.00;documentLoadTimeInMs={least:.2};systemFunctionExecuteTimeInMs=0.00;\
             userFunctionExecuteTimeInMs=0.00;retrievedDocumentCount={};retrievedDocumentSize={};\
             outputDocumentCount={};outputDocumentSize={};writeOutputTimeInMs=0.00;indexUtilizationRatio={:.2}",
            compile + run,
            self.retrieved_count,
            self.retrieved_bytes,
            self.output_count,
            self.output_bytes,
            self.index_utilization(),
        )
    }
}

/// Which paths of a query an index serves, and which it could.
#[derive(Debug, Default)]
pub struct IndexMetrics {
    utilized: Vec<String>,
    potential: Vec<String>,
    composite: Vec<Vec<String>>,
}

impl IndexMetrics {
    /// Sorts the query's paths by whether the policy indexes them.
    pub fn of(statement: &Statement, schema: &ContainerSchema) -> IndexMetrics {
        let access = statement.access_path();
        let mut metrics = IndexMetrics::default();
        let mut paths = Vec::new();
        collect_paths(&access.filter, &mut paths);
        let selected = statement.selected_function_paths();
        paths.extend(&selected);
        match access.order.as_slice() {
            [(path, _)] => paths.push(path),
            [] => {}
            several => metrics.composite.push(several.iter().map(|(path, _)| spec(path)).collect()),
        }
        // A query without conditions is served by the partition key.
        if paths.is_empty() && metrics.composite.is_empty() {
            let key = schema.key_paths().first().map(|path| path.join("/")).unwrap_or_default();
            metrics.utilized.push(format!("/{key}/?"));
        }
        for path in paths {
            let steps: Vec<Step> = super::access_method::steps_of(path);
            let list =
                if schema.policy.is_indexed(&steps) { &mut metrics.utilized } else { &mut metrics.potential };
            let text = spec(path);
            if !list.contains(&text) {
                list.push(text);
            }
        }
        metrics
    }

    /// The first form of the header: base64 of JSON.
    pub fn to_header(&self) -> String {
        let single = |specs: &[String]| -> Vec<SingleIndex> {
            let entry = |spec: &String| SingleIndex {
                filter_expression: "",
                index_spec: spec.clone(),
                filter_precise_set: true,
                index_precise_set: true,
                index_impact_score: "High",
            };
            specs.iter().map(entry).collect()
        };
        let composite = |specs: &Vec<String>| CompositeIndex {
            index_specs: specs.clone(),
            index_impact_score: Some("High"),
        };
        let text = serde_json::to_string(&UtilizationInfo {
            utilized_single_indexes: single(&self.utilized),
            potential_single_indexes: single(&self.potential),
            utilized_composite_indexes: Vec::new(),
            potential_composite_indexes: self.composite.iter().map(composite).collect(),
        });
        STANDARD.encode(text.expect("strings always serialise"))
    }

    /// The second form: URL-encoded JSON.
    pub fn to_header_v2(&self) -> String {
        let single = |specs: &[String]| -> Vec<IndexSpec> {
            specs.iter().map(|spec| IndexSpec { index_spec: spec.clone() }).collect()
        };
        let composite =
            |specs: &Vec<String>| CompositeIndex { index_specs: specs.clone(), index_impact_score: None };
        let text = serde_json::to_string(&IndexAdvice {
            utilized_indexes: IndexLists {
                single_indexes: single(&self.utilized),
                composite_indexes: Vec::new(),
            },
            potential_indexes: IndexLists {
                single_indexes: single(&self.potential),
                composite_indexes: self.composite.iter().map(composite).collect(),
            },
        });
        utf8_percent_encode(&text.expect("strings always serialise"), NON_ALPHANUMERIC).to_string()
    }
}

/// The first form of index metrics, whose members clients read in this order.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct UtilizationInfo {
    utilized_single_indexes: Vec<SingleIndex>,
    potential_single_indexes: Vec<SingleIndex>,
    utilized_composite_indexes: Vec<CompositeIndex>,
    potential_composite_indexes: Vec<CompositeIndex>,
}

/// One path in the first form of index metrics.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct SingleIndex {
    filter_expression: &'static str,
    index_spec: String,
    filter_precise_set: bool,
    index_precise_set: bool,
    index_impact_score: &'static str,
}

/// The paths of a composite index, in either form.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct CompositeIndex {
    index_specs: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index_impact_score: Option<&'static str>,
}

/// The second form of index metrics.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct IndexAdvice {
    utilized_indexes: IndexLists,
    potential_indexes: IndexLists,
}

/// Indexes in the second form of index metrics.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct IndexLists {
    single_indexes: Vec<IndexSpec>,
    composite_indexes: Vec<CompositeIndex>,
}

/// One path in the second form of index metrics.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct IndexSpec {
    index_spec: String,
}

fn collect_paths<'a>(filter: &'a Filter, paths: &mut Vec<&'a DocPath>) {
    match filter {
        Filter::All | Filter::Nothing => {}
        Filter::Predicate { path, .. } => paths.push(path),
        Filter::And(parts) | Filter::Or(parts) => parts.iter().for_each(|part| collect_paths(part, paths)),
    }
}

/// A path as indexing policies write it, odd steps in quotes.
fn spec(path: &DocPath) -> String {
    format!("{path}/?")
}
