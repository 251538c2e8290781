//! Steps that query: at once, or page by page while everything else goes on.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};

use crate::client::Answer;
use crate::dice::Dice;
use crate::failure::{Failure, Promise, ensure};
use crate::model::{Items, plain};
use crate::ring::{Key, Lease, Place};
use crate::stage::DOCS;
use crate::world::World;
use crate::writes::shown;

const CURSORS_MAX: usize = 4;
/// More pages than a query can have.
const PAGES_MAX: usize = 400;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    least_n: Option<u64>,
    shape: Shape,
}

/// How the rows are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Any,
    Ascending,
    Descending,
    Distinct,
}

impl Question {
    fn any(dice: &mut Dice) -> Question {
        let least_n = dice.chance(50).then(|| dice.below(8) as u64);
        let shape =
            *dice.pick(&[Shape::Any, Shape::Any, Shape::Ascending, Shape::Descending, Shape::Distinct]);
        Question { least_n, shape }
    }

    fn text(self) -> String {
        let filter = self.least_n.map(|least| format!(" WHERE c.n >= {least}")).unwrap_or_default();
        match self.shape {
            Shape::Any => format!("SELECT * FROM c{filter}"),
            Shape::Ascending => format!("SELECT * FROM c{filter} ORDER BY c.n"),
            Shape::Descending => format!("SELECT * FROM c{filter} ORDER BY c.n DESC"),
            Shape::Distinct => format!("SELECT DISTINCT * FROM c{filter}"),
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
                Shape::Any | Shape::Distinct => true,
                Shape::Ascending => first <= second,
                Shape::Descending => first >= second,
            }
        })
    }

    fn wants(self, body: &Value) -> bool {
        // Patches may have made it negative.
        self.least_n.is_none_or(|least| body["n"].as_i64().unwrap() >= least as i64)
    }

    /// The bodies it should find, in an order of their own.
    fn expected(self, items: &Items) -> Vec<Value> {
        let found = items.values().filter(|version| self.wants(&version.body));
        sorted(found.map(|version| version.body.clone()).collect())
    }
}

/// By the number nobody else has.
fn sorted(mut rows: Vec<Value>) -> Vec<Value> {
    rows.sort_by_key(|row| row["v"].as_u64());
    rows
}

fn rows_of(answer: &Answer) -> Vec<Value> {
    answer.json()["Documents"].as_array().unwrap().iter().map(plain).collect()
}

/// A query that is read page by page, in one region.
pub(crate) struct Cursor {
    question: Question,
    region: u8,
    leases: Vec<Lease>,
    page_size: usize,
    /// By partition key, what the region had when it began.
    start: BTreeMap<String, u64>,
    rows: Vec<Value>,
}

impl World {
    /// Asks about one partition key or one range, and reads to the end at once.
    pub(crate) async fn query(&mut self, dice: &mut Dice) -> Result<(), Failure> {
        let (region, question, page_size) =
            (self.fresh_region(dice), Question::any(dice), dice.between(1, 6));
        let (place, keys) = if dice.chance(60) {
            let key = self.key(dice);
            (Place::Key(key.header.clone()), vec![key])
        } else {
            let range = dice.pick(&self.ranges).clone();
            (Place::Range { id: range.id, part: range.epks.clone() }, self.keys_of(range.id))
        };
        self.query_at_once(region, question, place, &keys, page_size).await
    }

    async fn query_at_once(
        &mut self,
        region: u8,
        question: Question,
        place: Place,
        keys: &[Key],
        page_size: usize,
    ) -> Result<(), Failure> {
        let mut lease = Lease::new(place);
        let mut found = Vec::new();
        let mut lsn = None;
        for page in 0.. {
            let answer = self.ask(region, &question.text(), &lease, page_size, &[]).await;
            self.tell(format!("in {region}: {} of {:?} → {}", question.text(), lease.place, shown(&answer)));
            if answer.status == 410 && answer.header("x-ms-substatus") == Some("1007") {
                return Ok(());
            }
            ensure(answer.status == 200 && page < PAGES_MAX, Promise::Answer, || {
                format!("{} {}", shown(&answer), String::from_utf8_lossy(&answer.body))
            })?;
            for key in keys {
                lsn = Some(self.check_lsn(region, &key.name, self.level, &answer)?);
            }
            found.extend(rows_of(&answer));
            lease.position = answer.header("x-ms-continuation").map(str::to_owned);
            if lease.position.is_none() {
                break;
            }
        }
        ensure(question.is_in_order(&found), Promise::Query, || format!("not in order: {found:?}"))?;
        let Some(lsn) = lsn else {
            return ensure(found.is_empty(), Promise::Query, || format!("nobody wrote {found:?}"));
        };
        let expected = keys.iter().flat_map(|key| question.expected(&self.history(&key.name).at(lsn)));
        let (found, expected) = (sorted(found), sorted(expected.collect()));
        ensure(found == expected, Promise::Query, || {
            format!("found {found:?}\n  instead of {expected:?}, which there were at LSN {lsn}")
        })?;
        let answer =
            self.ask(region, &question.count_text(), &Lease { position: None, ..lease }, 10, &[]).await;
        let count = answer.json()["Documents"][0].as_u64();
        ensure(count == Some(expected.len() as u64), Promise::Query, || {
            format!("{} is {count:?} instead of {}", question.count_text(), expected.len())
        })
    }

    /// Asks about the past of one partition key.
    pub(crate) async fn query_as_of(&mut self, dice: &mut Dice) -> Result<(), Failure> {
        let (key, question) = (self.key(dice), Question::any(dice));
        let (since, newest) = (self.history(&key.name).known_since(), self.history(&key.name).lsn());
        if newest <= since {
            return Ok(());
        }
        let lsn = dice.between(since.max(1) as usize, newest as usize) as u64;
        let lease = Lease::new(Place::Key(key.header.clone()));
        let as_of = [("x-perihelion-as-of", format!("lsn={lsn}"))];
        let answer = self.ask(self.hub, &question.text(), &lease, 1_000, &as_of).await;
        self.tell(format!("{} of {} as of LSN {lsn} → {}", question.text(), key.name, shown(&answer)));
        // History is bounded.
        if answer.status == 400 {
            return Ok(());
        }
        ensure(answer.status == 200, Promise::Answer, || shown(&answer))?;
        let (found, expected) =
            (sorted(rows_of(&answer)), question.expected(&self.history(&key.name).at(lsn)));
        ensure(found == expected, Promise::Query, || {
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
    ) -> Answer {
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

    /// Begins a query that is read while other things happen.
    pub(crate) async fn begin_query(&mut self, dice: &mut Dice) -> Result<(), Failure> {
        if self.cursors.len() >= CURSORS_MAX {
            return Ok(());
        }
        let (region, mut question) = (self.fresh_region(dice), Question::any(dice));
        let leases = match dice.below(4) {
            0 => {
                question.shape = Shape::Any;
                vec![Lease::new(Place::Everywhere)]
            }
            1 => vec![Lease::new(Place::Key(self.key(dice).header))],
            2 => {
                question.shape = Shape::Any;
                vec![Lease::new(Place::Part(dice.pick(&self.ranges).epks.clone()))]
            }
            _ => Lease::per_range(&self.ranges),
        };
        let start = self.probe(region).await?;
        let page_size = dice.between(1, 4);
        let line = format!("query {}: {} in {region}, {leases:?}", self.cursors.len(), question.text());
        self.tell(line);
        self.cursors.push(Cursor { question, region, leases, page_size, start, rows: Vec::new() });
        Ok(())
    }

    /// Reads the next pages of a query that was begun.
    pub(crate) async fn read_query(&mut self, dice: &mut Dice) -> Result<(), Failure> {
        if self.cursors.is_empty() {
            return Ok(());
        }
        let at = dice.below(self.cursors.len());
        for _ in 0..dice.between(1, 2) {
            if !self.read_query_page(at).await? {
                return self.end_query(at);
            }
        }
        Ok(())
    }

    /// Reads one page of the first part that has more; says whether there was any.
    async fn read_query_page(&mut self, at: usize) -> Result<bool, Failure> {
        let cursor = &self.cursors[at];
        let Some(lease) = cursor.leases.iter().position(|lease| !lease.done) else { return Ok(false) };
        let place = cursor.leases[lease].clone();
        let answer = self.ask(cursor.region, &cursor.question.text(), &place, cursor.page_size, &[]).await;
        let rows = if answer.status == 200 { rows_of(&answer) } else { Vec::new() };
        let shown_rows: Vec<String> =
            rows.iter().map(|row| format!("{}/{} v{}", row["pk"], row["id"], row["v"])).collect();
        self.tell(format!("query {at}: {place:?} → {} {shown_rows:?}", shown(&answer)));
        match (answer.status, answer.header("x-ms-substatus")) {
            (200, _) => {}
            (410, Some("1002")) => {
                let ranges = self.read_ranges().await?;
                let cursor = &mut self.cursors[at];
                let gone = cursor.leases.remove(lease);
                cursor.leases.extend(gone.relocate(&ranges));
                return Ok(true);
            }
            (410, Some("1007")) => return Ok(true),
            (503, _) if self.is_too_stale(self.cursors[at].region, &answer)? => return Ok(true),
            _ => return Err(Failure { promise: Promise::Answer, details: shown(&answer) }),
        }
        let Cursor { question, leases, .. } = &self.cursors[at];
        ensure(question.is_in_order(&rows), Promise::Query, || format!("not in order: {rows:?}"))?;
        // Values of DISTINCT are of all that was asked about: after a split, the first child has them all.
        let asked = |key: &Key| match question.shape {
            Shape::Distinct => leases.iter().any(|lease| lease.covers(key)),
            Shape::Any | Shape::Ascending | Shape::Descending => place.covers(key),
        };
        let covered = |row: &Value| self.keys.iter().any(|key| row["pk"] == key.name.as_str() && asked(key));
        let foreign = rows.iter().find(|row| !covered(row));
        ensure(foreign.is_none(), Promise::Query, || format!("{foreign:?} was not asked for"))?;
        let cursor = &mut self.cursors[at];
        cursor.rows.extend(rows);
        cursor.leases[lease].position = answer.header("x-ms-continuation").map(str::to_owned);
        cursor.leases[lease].done = cursor.leases[lease].position.is_none();
        Ok(true)
    }

    /// Everything that stayed as it was has to be there once, and nothing else that stayed.
    fn end_query(&mut self, at: usize) -> Result<(), Failure> {
        let Cursor { question, leases, start, rows, .. } = self.cursors.remove(at);
        self.tell(format!("query {at} has ended"));
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
                    expected.into_iter().filter(|body| question.wants(body)).collect();
                let found: Vec<&Value> = found.iter().copied().filter(|row| row["id"] == id).collect();
                ensure(found == expected, Promise::Query, || {
                    format!(
                        "of item {} {id}, untouched since LSN {start}: found {found:?} instead of {expected:?}",
                        key.name
                    )
                })?;
            }
        }
        Ok(())
    }

    /// Reads every query that was begun to its end.
    pub(crate) async fn drain_queries(&mut self) -> Result<(), Failure> {
        while !self.cursors.is_empty() {
            let mut pages = 0;
            while self.read_query_page(0).await? {
                pages += 1;
                ensure(pages < PAGES_MAX, Promise::Query, || "the query has no end".to_owned())?;
            }
            self.end_query(0)?;
        }
        Ok(())
    }

    /// Asks every region about everything: by ranges in all of them, by keys in one.
    pub(crate) async fn query_everything(&mut self, dice: &mut Dice) -> Result<(), Failure> {
        for region in 0..self.regions.len() as u8 {
            for range in self.ranges.clone() {
                let keys = self.keys_of(range.id);
                let place = Place::Range { id: range.id, part: range.epks };
                self.query_at_once(region, Question::any(dice), place, &keys, dice.between(2, 9)).await?;
            }
        }
        let region = self.region(dice);
        for key in self.keys.clone() {
            let place = Place::Key(key.header.clone());
            self.query_at_once(region, Question::any(dice), place, &[key], dice.between(1, 9)).await?;
        }
        Ok(())
    }
}
