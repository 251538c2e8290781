//! Query metrics and index metrics, as the response headers state them.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use sql::access::{Access, DocPath, DocStep, Filter};

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
        format!(
            "totalExecutionTimeInMs={:.2};queryCompileTimeInMs={compile:.2};queryLogicalPlanBuildTimeInMs=0.00;\
             queryPhysicalPlanBuildTimeInMs=0.00;queryOptimizationTimeInMs=0.00;VMExecutionTimeInMs={run:.2};\
             indexLookupTimeInMs=0.00;documentLoadTimeInMs=0.00;systemFunctionExecuteTimeInMs=0.00;\
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
    pub fn of(access: &Access, schema: &ContainerSchema) -> IndexMetrics {
        let mut metrics = IndexMetrics::default();
        let mut paths = Vec::new();
        collect_paths(&access.filter, &mut paths);
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
        let single = |specs: &[String]| -> Value {
            let entry = |spec: &String| {
                json!({
                    "FilterExpression": "", "IndexSpec": spec, "FilterPreciseSet": true,
                    "IndexPreciseSet": true, "IndexImpactScore": "High",
                })
            };
            specs.iter().map(entry).collect()
        };
        let composite: Value = self
            .composite
            .iter()
            .map(|specs| json!({ "IndexSpecs": specs, "IndexImpactScore": "High" }))
            .collect();
        let text = json!({
            "UtilizedSingleIndexes": single(&self.utilized),
            "PotentialSingleIndexes": single(&self.potential),
            "UtilizedCompositeIndexes": [],
            "PotentialCompositeIndexes": composite,
        });
        STANDARD.encode(text.to_string())
    }

    /// The second form: URL-encoded JSON.
    pub fn to_header_v2(&self) -> String {
        let single =
            |specs: &[String]| -> Value { specs.iter().map(|spec| json!({ "IndexSpec": spec })).collect() };
        let composite: Value = self.composite.iter().map(|specs| json!({ "IndexSpecs": specs })).collect();
        let text = json!({
            "UtilizedIndexes": { "SingleIndexes": single(&self.utilized), "CompositeIndexes": [] },
            "PotentialIndexes": { "SingleIndexes": single(&self.potential), "CompositeIndexes": composite },
        });
        utf8_percent_encode(&text.to_string(), NON_ALPHANUMERIC).to_string()
    }
}

fn collect_paths<'a>(filter: &'a Filter, paths: &mut Vec<&'a DocPath>) {
    match filter {
        Filter::All | Filter::Nothing => {}
        Filter::Test { path, .. } => paths.push(path),
        Filter::And(parts) | Filter::Or(parts) => parts.iter().for_each(|part| collect_paths(part, paths)),
    }
}

fn spec(path: &DocPath) -> String {
    let mut text = String::new();
    for step in &path.0 {
        text.push('/');
        match step {
            DocStep::Key(name) => text.push_str(name),
            DocStep::Element => text.push_str("[]"),
        }
    }
    text + "/?"
}
