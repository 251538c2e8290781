//! Steps that query: to the end in one step, or page by page over several steps.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};

use crate::client::TestResponse;
use crate::failure::{Failure, Guarantee, ensure};
use crate::fixture::DOCS;
use crate::model::{Items, plain};
use crate::partition_ranges::{Key, Lease, ReadScope};
use crate::seeded_random::SeededRandom;
use crate::single_write::SingleWriteSimulation;
use crate::writes::summary;

const CURSORS_MAX: usize = 4;
/// More pages than a query can have.
const PAGES_MAX: usize = 400;

/// A query of the simulation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TestQuery {
    least_n: Option<u64>,
    shape: RowOrder,
}

/// The order or deduplication of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowOrder {
    Any,
    Ascending,
    Descending,
    Distinct,
}

impl TestQuery {
    fn any(rng: &mut SeededRandom) -> TestQuery {
        let least_n = rng.chance(50).then(|| rng.below(8) as u64);
        let shape = *rng.pick(&[
            RowOrder::Any,
            RowOrder::Any,
            RowOrder::Ascending,
            RowOrder::Descending,
            RowOrder::Distinct,
        ]);
        TestQuery { least_n, shape }
    }

    fn text(self) -> String {
        let filter = self.least_n.map(|least| format!(" WHERE c.n >= {least}")).unwrap_or_default();
        match self.shape {
            RowOrder::Any => format!("SELECT * FROM c{filter}"),
            RowOrder::Ascending => format!("SELECT * FROM c{filter} ORDER BY c.n"),
            RowOrder::Descending => format!("SELECT * FROM c{filter} ORDER BY c.n DESC"),
            RowOrder::Distinct => format!("SELECT DISTINCT * FROM c{filter}"),
        }
    }

    fn count_text(self) -> String {
        let filter = self.least_n.map(|least| format!(" WHERE c.n >= {least}")).unwrap_or_default();
        format!("SELECT VALUE COUNT(1) FROM c{filter}")
    }

    fn is_in_order(self, rows: &[Value]) -> bool {
        rows.windows(2).all(|pair| {
            let (first, second) = (pair[0]["n"].as_i64(), pair[1]["n"].as_i64());
            match self.shape {
                RowOrder::Any | RowOrder::Distinct => true,
                RowOrder::Ascending => first <= second,
                RowOrder::Descending => first >= second,
            }
        })
    }

    fn matches(self, body: &Value) -> bool {
        // Patches may have made it negative.
        self.least_n.is_none_or(|least| body["n"].as_i64().unwrap() >= least as i64)
    }

    /// The bodies that it should find, sorted by version number.
    fn expected(self, items: &Items) -> Vec<Value> {
        let found = items.values().filter(|version| self.matches(&version.body));
        sorted(found.map(|version| version.body.clone()).collect())
    }
}

/// Sorts rows by their unique version number.
fn sorted(mut rows: Vec<Value>) -> Vec<Value> {
    rows.sort_by_key(|row| row["v"].as_u64());
    rows
}

fn rows_of(response: &TestResponse) -> Vec<Value> {
    response.json()["Documents"].as_array().unwrap().iter().map(plain).collect()
}

/// A query that is read page by page, in one region.
pub(crate) struct Cursor {
    question: TestQuery,
    region: u8,
    leases: Vec<Lease>,
    page_size: usize,
    /// The items of the region when the query started, by partition key.
    start: BTreeMap<String, u64>,
    rows: Vec<Value>,
}

impl SingleWriteSimulation {
    /// Queries one partition key or one range to the end.
    pub(crate) async fn query(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        let (region, question, page_size) =
            (self.random_fresh_region(rng), TestQuery::any(rng), rng.between(1, 6));
        let (place, keys) = if rng.chance(60) {
            let key = self.random_key(rng);
            (ReadScope::Key(key.header.clone()), vec![key])
        } else {
            let range = rng.pick(&self.ranges).clone();
            (ReadScope::Range { id: range.id, part: range.epks.clone() }, self.keys_in_range(range.id))
        };
        self.query_at_once(region, question, place, &keys, page_size).await
    }

    async fn query_at_once(
        &mut self,
        region: u8,
        question: TestQuery,
        place: ReadScope,
        keys: &[Key],
        page_size: usize,
    ) -> Result<(), Failure> {
        let mut lease = Lease::new(place);
        let mut found = Vec::new();
        let mut lsn = None;
        for page in 0.. {
            let response = self.ask(region, &question.text(), &lease, page_size, &[]).await;
            self.log_line(format!(
                "in {region}: {} of {:?} → {}",
                question.text(),
                lease.scope,
                summary(&response)
            ));
            if response.status == 410 && response.header("x-ms-substatus") == Some("1007") {
                return Ok(());
            }
            ensure(response.status == 200 && page < PAGES_MAX, Guarantee::Response, || {
                format!("{} {}", summary(&response), String::from_utf8_lossy(&response.body))
            })?;
            for key in keys {
                lsn = Some(self.check_lsn(region, &key.name, self.level, &response)?);
            }
            found.extend(rows_of(&response));
            lease.position = response.header("x-ms-continuation").map(str::to_owned);
            if lease.position.is_none() {
                break;
            }
        }
        ensure(question.is_in_order(&found), Guarantee::Query, || format!("not in order: {found:?}"))?;
        let Some(lsn) = lsn else {
            return ensure(found.is_empty(), Guarantee::Query, || format!("nobody wrote {found:?}"));
        };
        let expected = keys.iter().flat_map(|key| question.expected(&self.history(&key.name).at(lsn)));
        let (found, expected) = (sorted(found), sorted(expected.collect()));
        ensure(found == expected, Guarantee::Query, || {
            format!("found {found:?}\n  instead of {expected:?}, which there were at LSN {lsn}")
        })?;
        let response =
            self.ask(region, &question.count_text(), &Lease { position: None, ..lease }, 10, &[]).await;
        let count = response.json()["Documents"][0].as_u64();
        ensure(count == Some(expected.len() as u64), Guarantee::Query, || {
            format!("{} is {count:?} instead of {}", question.count_text(), expected.len())
        })
    }

    /// Queries one partition key as of an earlier LSN.
    pub(crate) async fn query_as_of(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        let (key, question) = (self.random_key(rng), TestQuery::any(rng));
        let (since, newest) = (self.history(&key.name).known_since(), self.history(&key.name).lsn());
        if newest <= since {
            return Ok(());
        }
        let lsn = rng.between(since.max(1) as usize, newest as usize) as u64;
        let lease = Lease::new(ReadScope::Key(key.header.clone()));
        let as_of = [("x-perihelion-as-of", format!("lsn={lsn}"))];
        let response = self.ask(self.hub, &question.text(), &lease, 1_000, &as_of).await;
        self.log_line(format!(
            "{} of {} as of LSN {lsn} → {}",
            question.text(),
            key.name,
            summary(&response)
        ));
        // History is bounded.
        if response.status == 400 {
            return Ok(());
        }
        ensure(response.status == 200, Guarantee::Response, || summary(&response))?;
        let (found, expected) =
            (sorted(rows_of(&response)), question.expected(&self.history(&key.name).at(lsn)));
        ensure(found == expected, Guarantee::Query, || {
            format!(
                "found {found:?}\n  instead of {expected:?}, which there were at LSN {lsn} of {}",
                key.name
            )
        })
    }

    async fn ask(
        &self,
        region: u8,
        text: &str,
        lease: &Lease,
        page_size: usize,
        more: &[(&'static str, String)],
    ) -> TestResponse {
        let mut headers = lease.headers();
        headers.extend([
            ("x-ms-documentdb-isquery", "true".to_owned()),
            ("content-type", "application/query+json".to_owned()),
            ("x-ms-documentdb-query-enablecrosspartition", "true".to_owned()),
            ("x-ms-max-item-count", page_size.to_string()),
        ]);
        headers.extend(lease.position.clone().map(|position| ("x-ms-continuation", position)));
        headers.extend_from_slice(more);
        self.send(region, Method::POST, DOCS, &headers, &json!({"query": text}).to_string()).await
    }

    /// Starts a query that is read over several steps.
    pub(crate) async fn begin_query(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        if self.cursors.len() >= CURSORS_MAX {
            return Ok(());
        }
        let (region, mut question) = (self.random_fresh_region(rng), TestQuery::any(rng));
        let leases = match rng.below(4) {
            0 => {
                question.shape = RowOrder::Any;
                vec![Lease::new(ReadScope::AllPartitions)]
            }
            1 => vec![Lease::new(ReadScope::Key(self.random_key(rng).header))],
            2 => {
                question.shape = RowOrder::Any;
                vec![Lease::new(ReadScope::EpkRange(rng.pick(&self.ranges).epks.clone()))]
            }
            _ => Lease::per_range(&self.ranges),
        };
        let start = self.probe(region).await?;
        let page_size = rng.between(1, 4);
        let line = format!("query {}: {} in {region}, {leases:?}", self.cursors.len(), question.text());
        self.log_line(line);
        self.cursors.push(Cursor { question, region, leases, page_size, start, rows: Vec::new() });
        Ok(())
    }

    /// Reads the next pages of a started query.
    pub(crate) async fn read_query(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        if self.cursors.is_empty() {
            return Ok(());
        }
        let at = rng.below(self.cursors.len());
        for _ in 0..rng.between(1, 2) {
            if !self.read_query_page(at).await? {
                return self.end_query(at);
            }
        }
        Ok(())
    }

    /// Reads one page of the first lease that has more; returns whether there was one.
    async fn read_query_page(&mut self, at: usize) -> Result<bool, Failure> {
        let cursor = &self.cursors[at];
        let Some(lease) = cursor.leases.iter().position(|lease| !lease.done) else { return Ok(false) };
        let place = cursor.leases[lease].clone();
        let response = self.ask(cursor.region, &cursor.question.text(), &place, cursor.page_size, &[]).await;
        let rows = if response.status == 200 { rows_of(&response) } else { Vec::new() };
        let shown_rows: Vec<String> =
            rows.iter().map(|row| format!("{}/{} v{}", row["pk"], row["id"], row["v"])).collect();
        self.log_line(format!("query {at}: {place:?} → {} {shown_rows:?}", summary(&response)));
        match (response.status, response.header("x-ms-substatus")) {
            (200, _) => {}
            (410, Some("1002")) => {
                let ranges = self.read_ranges().await?;
                let cursor = &mut self.cursors[at];
                let gone = cursor.leases.remove(lease);
                cursor.leases.extend(gone.split_over(&ranges));
                return Ok(true);
            }
            (410, Some("1007")) => return Ok(true),
            (503, _) if self.is_too_stale(self.cursors[at].region, &response)? => return Ok(true),
            _ => return Err(Failure { guarantee: Guarantee::Response, details: summary(&response) }),
        }
        let Cursor { question, leases, .. } = &self.cursors[at];
        ensure(question.is_in_order(&rows), Guarantee::Query, || format!("not in order: {rows:?}"))?;
        // DISTINCT spans the original range: after a split, the first child returns all its values.
        let requested = |key: &Key| match question.shape {
            RowOrder::Distinct => leases.iter().any(|lease| lease.covers(key)),
            RowOrder::Any | RowOrder::Ascending | RowOrder::Descending => place.covers(key),
        };
        let covered =
            |row: &Value| self.keys.iter().any(|key| row["pk"] == key.name.as_str() && requested(key));
        let foreign = rows.iter().find(|row| !covered(row));
        ensure(foreign.is_none(), Guarantee::Query, || format!("{foreign:?} was not asked for"))?;
        let cursor = &mut self.cursors[at];
        cursor.rows.extend(rows);
        cursor.leases[lease].position = response.header("x-ms-continuation").map(str::to_owned);
        cursor.leases[lease].done = cursor.leases[lease].position.is_none();
        Ok(true)
    }

    /// Checks that every unchanged matching item was returned once, and no other unchanged item.
    fn end_query(&mut self, at: usize) -> Result<(), Failure> {
        let Cursor { question, leases, start, rows, .. } = self.cursors.remove(at);
        self.log_line(format!("query {at} has ended"));
        for key in self.keys.iter().filter(|key| leases.iter().any(|lease| lease.covers(key))) {
            let history = &self.histories[&key.name];
            let start = start[&key.name];
            let touched: Vec<&str> = history.changes_after(start).map(|change| change.id.as_str()).collect();
            let found: Vec<&Value> = rows.iter().filter(|row| row["pk"] == key.name.as_str()).collect();
            for id in found
                .iter()
                .map(|row| row["id"].as_str().unwrap())
                .chain(history.newest().keys().map(String::as_str))
            {
                if touched.contains(&id) {
                    continue;
                }
                let expected = history.newest().get(id).map(|version| &version.body);
                let expected: Vec<&Value> =
                    expected.into_iter().filter(|body| question.matches(body)).collect();
                let found: Vec<&Value> = found.iter().copied().filter(|row| row["id"] == id).collect();
                ensure(found == expected, Guarantee::Query, || {
                    format!(
                        "of item {} {id}, untouched since LSN {start}: found {found:?} instead of {expected:?}",
                        key.name
                    )
                })?;
            }
        }
        Ok(())
    }

    /// Reads every started query to its end.
    pub(crate) async fn drain_queries(&mut self) -> Result<(), Failure> {
        while !self.cursors.is_empty() {
            let mut pages = 0;
            while self.read_query_page(0).await? {
                pages += 1;
                ensure(pages < PAGES_MAX, Guarantee::Query, || "the query has no end".to_owned())?;
            }
            self.end_query(0)?;
        }
        Ok(())
    }

    /// Queries everything in every region: by ranges in all of them, by keys in one.
    pub(crate) async fn query_everything(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        for region in 0..self.regions.len() as u8 {
            for range in self.ranges.clone() {
                let keys = self.keys_in_range(range.id);
                let place = ReadScope::Range { id: range.id, part: range.epks };
                self.query_at_once(region, TestQuery::any(rng), place, &keys, rng.between(2, 9)).await?;
            }
        }
        let region = self.random_region(rng);
        for key in self.keys.clone() {
            let place = ReadScope::Key(key.header.clone());
            self.query_at_once(region, TestQuery::any(rng), place, &[key], rng.between(1, 9)).await?;
        }
        Ok(())
    }
}
