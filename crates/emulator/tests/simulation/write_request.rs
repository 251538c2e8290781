//! A write of a client: one operation as a single request, or several as a batch.
//!
//! Pure: it makes the request, and compares the response with the expected outcome.

use http::Method;
use serde_json::Value;

use crate::client::TestResponse;
use crate::failure::{Failure, Guarantee, ensure};
use crate::fixture::DOCS;
use crate::model::{Items, plain};
use crate::operation::{Decision, Operation, decide_batch};
use crate::partition_ranges::Key;
use crate::requests::TestRequest;
use crate::writes::summary;

/// A single operation or an atomic batch.
#[derive(Debug)]
pub(crate) enum WriteRequest {
    Single(Operation),
    Batch(Vec<Operation>),
}

impl WriteRequest {
    /// The request of this write, to a region.
    pub(crate) fn to_request(&self, key: &Key, region: u8) -> TestRequest {
        let (method, path, mut headers, body) = match self {
            WriteRequest::Single(operation) => operation.request(),
            WriteRequest::Batch(operations) => {
                let batch = ["x-ms-cosmos-is-batch-request", "x-ms-cosmos-batch-atomic"];
                let body = Value::Array(operations.iter().map(Operation::in_batch).collect());
                let headers = batch.map(|name| (name, "true".to_owned())).to_vec();
                (Method::POST, DOCS.to_owned(), headers, body.to_string())
            }
        };
        headers.push(("x-ms-documentdb-partitionkey", key.header.clone()));
        TestRequest { region, method, path, headers, body }
    }

    /// The expected outcome of each operation with these items.
    pub(crate) fn decide(&self, items: &Items) -> Vec<Decision> {
        match self {
            WriteRequest::Single(operation) => vec![operation.decide(items)],
            WriteRequest::Batch(operations) => decide_batch(operations, items).0,
        }
    }

    /// Checks a response against the expected outcomes. Returns the etag of each operation.
    pub(crate) fn check(
        &self,
        response: &TestResponse,
        decisions: &[Decision],
        items: &Items,
    ) -> Result<Vec<String>, Failure> {
        let expected: Vec<u64> = decisions.iter().map(|decision| decision.status.into()).collect();
        let (statuses, etags) = match self {
            WriteRequest::Single(_) => {
                let etag = response.header("etag").map(str::to_owned).unwrap_or_default();
                (vec![response.status.into()], vec![etag])
            }
            WriteRequest::Batch(_) => {
                let status = if expected.iter().all(|status| *status < 400) { 200 } else { 207 };
                ensure(response.status == status, Guarantee::WriteOutcome, || {
                    format!("{} instead of {status}", summary(response))
                })?;
                let results = response.json();
                let results = results.as_array().unwrap();
                let etag = |result: &Value| result["eTag"].as_str().unwrap_or_default().to_owned();
                let statuses = results.iter().map(|result| result["statusCode"].as_u64().unwrap());
                (statuses.collect(), results.iter().map(etag).collect())
            }
        };
        ensure(statuses == expected, Guarantee::WriteOutcome, || {
            format!(
                "{statuses:?} instead of {expected:?}: {}\n  there should be {items:?}",
                summary(response)
            )
        })?;
        if let (WriteRequest::Single(_), Some(effect)) = (self, &decisions[0].effect)
            && let Some(body) = &effect.body
        {
            let found = response.json();
            ensure(plain(&found) == *body, Guarantee::WriteOutcome, || format!("{found} instead of {body}"))?;
            ensure(found["_etag"] == etags[0], Guarantee::Response, || "two entity tags".to_owned())?;
        }
        Ok(etags)
    }

    /// A short description for the log.
    pub(crate) fn description(&self) -> String {
        match self {
            WriteRequest::Single(operation) => operation.description(),
            WriteRequest::Batch(operations) => {
                let description: Vec<String> = operations.iter().map(Operation::description).collect();
                format!("batch [{}]", description.join("; "))
            }
        }
    }
}
