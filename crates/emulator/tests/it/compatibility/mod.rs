//! Checks `docs/compatibility.md`: every row has a probe, every probe has a row, and each probe confirms its
//! row.
//!
//! A *supported* feature is used and its outcome checked. A *refused* one is requested and must get a 4xx whose
//! message names it. An *ignored* one is requested and omitted, and both responses must be equal.

mod access;
mod account;
mod batches;
mod change_feed;
mod durability;
mod failures;
mod fixture;
mod items;
mod language;
mod offers;
mod operating;
mod patches;
mod queries;
mod resources;
mod throttling;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;

use crate::live::LiveResponse;
use fixture::CompatibilityFixture;

type Future<T> = Pin<Box<dyn std::future::Future<Output = T> + Send>>;

/// The check of one row.
enum Probe {
    /// A function with its own assertions.
    Supported(fn(Arc<CompatibilityFixture>) -> Future<()>),
    /// Queries over the fixture's container, with their rows.
    Rows(&'static [(&'static str, &'static str)]),
    /// Queries whose plans are checked.
    Plans(&'static [PlanCase]),
    /// A request that must fail, and a text that its message must contain.
    Refused(fn(Arc<CompatibilityFixture>) -> Future<LiveResponse>, &'static str),
    /// The responses without and with the feature.
    Ignored(fn(Arc<CompatibilityFixture>) -> Future<(LiveResponse, LiveResponse)>),
    /// A request header that changes nothing about reads, writes and queries.
    IgnoredHeader(&'static str, &'static str),
}

/// A query, where to look in its plan, and what is there.
type PlanCase = (&'static str, &'static str, &'static str);

/// Probes by the id of their row.
type Probes = Vec<(&'static str, Probe)>;

/// `supported!(function)`: a probe out of an `async fn(&CompatibilityFixture)`.
macro_rules! supported {
    ($probe:path) => {
        $crate::compatibility::Probe::Supported(|fixture| Box::pin(async move { $probe(&fixture).await }))
    };
}

/// `refused!(function, "text")`: a probe out of an `async fn(&CompatibilityFixture) -> LiveResponse`.
macro_rules! refused {
    ($probe:path, $words:literal) => {
        $crate::compatibility::Probe::Refused(
            |fixture| Box::pin(async move { $probe(&fixture).await }),
            $words,
        )
    };
}

/// `ignored!(function)`: a probe out of an `async fn(&CompatibilityFixture) -> (LiveResponse, LiveResponse)`.
macro_rules! ignored {
    ($probe:path) => {
        $crate::compatibility::Probe::Ignored(|fixture| Box::pin(async move { $probe(&fixture).await }))
    };
}

use {ignored, refused, supported};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Supported,
    Refused,
    Ignored,
}

impl Probe {
    fn status(&self) -> Status {
        match self {
            Probe::Supported(_) | Probe::Rows(_) | Probe::Plans(_) => Status::Supported,
            Probe::Refused(..) => Status::Refused,
            Probe::Ignored(_) | Probe::IgnoredHeader(..) => Status::Ignored,
        }
    }

    async fn run(self, fixture: Arc<CompatibilityFixture>) {
        match self {
            Probe::Supported(probe) => probe(fixture).await,
            Probe::Rows(cases) => {
                for (query, expected) in cases {
                    let expected: serde_json::Value = serde_json::from_str(expected).unwrap();
                    assert_eq!(fixture.rows(query).await, expected, "{query}");
                }
            }
            Probe::Plans(cases) => queries::check_plans(&fixture, cases).await,
            Probe::Refused(probe, words) => {
                let response = probe(fixture).await;
                assert!((400..500).contains(&response.status), "{response:?}");
                let message = response.message().to_lowercase();
                assert!(message.contains(&words.to_lowercase()), "{message} does not name {words}");
            }
            Probe::Ignored(probe) => {
                let (without, with) = probe(fixture).await;
                assert_eq!(fixture::essence(without), fixture::essence(with));
            }
            Probe::IgnoredHeader(name, value) => fixture.header_changes_nothing(name, value).await,
        }
    }
}

/// The rows of the document: id and status.
fn rows(document: &str) -> Vec<(String, Status)> {
    let mut rows = Vec::new();
    for line in document.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [id, _, status, _] = cells[..] else { panic!("four columns: {line}") };
        let status = match status {
            "supported" => Status::Supported,
            "refused" => Status::Refused,
            "ignored" => Status::Ignored,
            other => panic!("'{other}' is none of the three words: {line}"),
        };
        rows.push((id.trim_matches('`').to_owned(), status));
    }
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_of_the_compatibility_document_holds() {
    let document = include_str!("../../../../../docs/compatibility.md");
    let rows = rows(document);
    let documented: BTreeMap<String, Status> = rows.iter().cloned().collect();
    assert_eq!(rows.len(), documented.len(), "an id stands for one row");
    let probes: Probes = [
        account::probes(),
        resources::probes(),
        offers::probes(),
        access::probes(),
        throttling::probes(),
        failures::probes(),
        operating::probes(),
        durability::probes(),
        items::probes(),
        patches::probes(),
        batches::probes(),
        queries::probes(),
        language::probes(),
        change_feed::probes(),
        wire::probes(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let probed: BTreeSet<&str> = probes.iter().map(|(id, _)| *id).collect();
    assert_eq!(probes.len(), probed.len(), "an id stands for one probe");
    let lonely_rows: Vec<_> = documented.keys().filter(|id| !probed.contains(id.as_str())).collect();
    let lonely_probes: Vec<_> = probed.iter().filter(|id| !documented.contains_key(**id)).collect();
    assert!(lonely_rows.is_empty() && lonely_probes.is_empty(), "{lonely_rows:?} {lonely_probes:?}");

    let fixture = Arc::new(CompatibilityFixture::new().await);
    let mut untrue = Vec::new();
    for (id, probe) in probes {
        assert_eq!(probe.status(), documented[id], "`{id}`");
        // A task of its own, so that one failure does not hide the others.
        if tokio::spawn(probe.run(Arc::clone(&fixture))).await.is_err() {
            untrue.push(id);
        }
    }
    assert!(untrue.is_empty(), "not as documented: {untrue:?}");
}
