//! What a client orders: one operation as a request of its own, or several that happen together.
//!
//! Pure: orders become requests, and answers are compared with what was decided.

use http::Method;
use serde_json::Value;

use crate::ask::Ask;
use crate::client::Answer;
use crate::failure::{Failure, Promise, ensure};
use crate::model::{Items, plain};
use crate::operation::{Decision, Operation, decide_batch};
use crate::ring::Key;
use crate::stage::DOCS;
use crate::writes::shown;

/// What is to be carried out, as a whole or not at all.
#[derive(Debug)]
pub(crate) enum Order {
    One(Operation),
    Batch(Vec<Operation>),
}

impl Order {
    /// The request, to a region.
    pub(crate) fn ask(&self, key: &Key, region: u8) -> Ask {
        let (method, path, mut headers, body) = match self {
            Order::One(operation) => operation.request(),
            Order::Batch(operations) => {
                let batch = ["x-ms-cosmos-is-batch-request", "x-ms-cosmos-batch-atomic"];
                let body = Value::Array(operations.iter().map(Operation::in_batch).collect());
                let headers = batch.map(|name| (name, "true".to_owned())).to_vec();
                (Method::POST, DOCS.to_owned(), headers, body.to_string())
            }
        };
        headers.push(("x-ms-documentdb-partitionkey", key.header.clone()));
        Ask { region, method, path, headers, body }
    }

    /// What has to come of each operation where `items` are.
    pub(crate) fn decide(&self, items: &Items) -> Vec<Decision> {
        match self {
            Order::One(operation) => vec![operation.decide(items)],
            Order::Batch(operations) => decide_batch(operations, items).0,
        }
    }

    /// Checks an answer against what was decided where `items` are. Says the entity tag of each operation.
    pub(crate) fn check(
        &self,
        answer: &Answer,
        decisions: &[Decision],
        items: &Items,
    ) -> Result<Vec<String>, Failure> {
        let expected: Vec<u64> = decisions.iter().map(|decision| decision.status.into()).collect();
        let (statuses, etags) = match self {
            Order::One(_) => {
                let etag = answer.header("etag").map(str::to_owned).unwrap_or_default();
                (vec![answer.status.into()], vec![etag])
            }
            Order::Batch(_) => {
                let status = if expected.iter().all(|status| *status < 400) { 200 } else { 207 };
                ensure(answer.status == status, Promise::WriteOutcome, || {
                    format!("{} instead of {status}", shown(answer))
                })?;
                let results = answer.json();
                let results = results.as_array().unwrap();
                let etag = |result: &Value| result["eTag"].as_str().unwrap_or_default().to_owned();
                let statuses = results.iter().map(|result| result["statusCode"].as_u64().unwrap());
                (statuses.collect(), results.iter().map(etag).collect())
            }
        };
        ensure(statuses == expected, Promise::WriteOutcome, || {
            format!("{statuses:?} instead of {expected:?}: {}\n  there should be {items:?}", shown(answer))
        })?;
        if let (Order::One(_), Some(effect)) = (self, &decisions[0].effect)
            && let Some(body) = &effect.body
        {
            let found = answer.json();
            ensure(plain(&found) == *body, Promise::WriteOutcome, || format!("{found} instead of {body}"))?;
            ensure(found["_etag"] == etags[0], Promise::Answer, || "two entity tags".to_owned())?;
        }
        Ok(etags)
    }

    /// In a few words.
    pub(crate) fn words(&self) -> String {
        match self {
            Order::One(operation) => operation.words(),
            Order::Batch(operations) => {
                let words: Vec<String> = operations.iter().map(Operation::words).collect();
                format!("batch [{}]", words.join("; "))
            }
        }
    }
}
