//! A server with the comparison's database on it, and proof that it answers correctly.
//!
//! Set-up goes through the same wire as everything else. [`Subject::check`] runs every row once and
//! compares the answers with what they must be: speed is only worth measuring where the answer is right.

use serde_json::Value;

use crate::client::Client;
use crate::clock;
use crate::generator::{self, Outcome, Stop};
use crate::item::{CATEGORIES, Item};
use crate::request::Request;
use crate::server::{Kind, Ordering, Programs, Server};
use crate::workload::{Container, DATABASE, Fill, Row, Write};

/// Throughput that gives Perihelion as many physical partitions as the in-memory emulator always has.
const THROUGHPUT: &str = "40000";

/// The items that reads, queries and upserts work on. The peers scan for every query, so more items would
/// only widen the gap; the cost of size is the subject of `scaling`.
pub(crate) const ITEMS: u64 = 2_000;

/// A running server and its containers.
pub(crate) struct Subject {
    pub(crate) server: Server,
    items: Container,
    upserts: Container,
    creates: Container,
    throughput: &'static str,
}

impl Subject {
    /// Starts a server; one that stores also gets its containers and items.
    pub(crate) fn prepare(programs: &Programs, kind: Kind) -> Result<Subject, String> {
        Subject::on(programs.start(kind)?)
    }

    /// The same, on a server that runs already.
    pub(crate) fn on(server: Server) -> Result<Subject, String> {
        Subject::with_throughput(server, THROUGHPUT)
    }

    /// The same, with containers of this throughput.
    pub(crate) fn with_throughput(server: Server, throughput: &'static str) -> Result<Subject, String> {
        let kind = server.kind;
        let container = |name, count| Container { name, count, ranges: vec!["0".to_owned()] };
        let mut subject = Subject {
            server,
            items: container("items", ITEMS),
            upserts: container("upserts", ITEMS),
            creates: container("creates", 0),
            throughput,
        };
        if kind.stores() {
            create_database(&mut subject.server.client()?)?;
            subject.items = subject.filled("items", ITEMS)?;
            subject.upserts = subject.filled("upserts", ITEMS)?;
            subject.creates = subject.filled("creates", 0)?;
        }
        Ok(subject)
    }

    /// The container a row works on.
    pub(crate) fn container(&self, row: Row) -> &Container {
        match row {
            Row::PointRead | Row::PartitionQuery | Row::OrderedQuery => &self.items,
            Row::Create => &self.creates,
            Row::Upsert => &self.upserts,
        }
    }

    /// Replaces the container of creates by an empty one, so that every measurement starts alike.
    pub(crate) fn empty_creates(&mut self) -> Result<(), String> {
        let link = self.creates.link();
        let path = format!("/{link}");
        let delete =
            Request { verb: "DELETE", path, kind: "colls", link, headers: Vec::new(), body: String::new() };
        self.server.client()?.send(&delete)?.expect(&[204])?;
        self.creates = self.filled("creates", 0)?;
        Ok(())
    }

    fn filled(&self, name: &'static str, count: u64) -> Result<Container, String> {
        fill_container_with(&self.server, name, count, self.throughput)
    }

    /// The bytes of a point read's answer, for the canned server.
    pub(crate) fn record_point_read(&self) -> Result<Vec<u8>, String> {
        let item = Item { number: 42, count: ITEMS };
        Ok(self.server.client()?.send(&self.items.point_read(item))?.expect(&[200])?.bytes)
    }

    /// Asks each row's question once and compares the answer with the truth.
    pub(crate) fn check(&self, row: Row) -> Result<(), String> {
        let mut client = self.server.client()?;
        let item = Item { number: 1_321, count: ITEMS };
        let wrong = |found: String| {
            Err(format!("{} answers {} wrongly: {found}", self.server.kind.name(), row.name()))
        };
        match row {
            Row::PointRead => {
                let found = client.send(&self.items.point_read(item))?.expect(&[200])?.json()?;
                if !is_item(&found, item) {
                    return wrong(found.to_string());
                }
            }
            Row::Create | Row::Upsert => {
                let fresh = Item { number: 999_999_999_999, count: ITEMS };
                let (item, mode, wanted) = match row {
                    Row::Create => (fresh, Write::Create, 201),
                    _ => (item, Write::Upsert, 200),
                };
                let container = self.container(row);
                let found = client.send(&container.write(item, mode))?.expect(&[wanted])?.json()?;
                let read = client.send(&container.point_read(item))?.expect(&[200])?.json()?;
                if !is_item(&found, item) || !is_item(&read, item) {
                    return wrong(format!("{found}, then {read}"));
                }
            }
            Row::PartitionQuery => {
                let request = self.items.partition_query(123);
                let found = client.send(&request)?.expect(&[200])?.json()?;
                let keys: Vec<_> = documents(&found)?.iter().map(|document| document["pk"].clone()).collect();
                if keys != vec![Value::from("tenant-000123"); 10] {
                    return wrong(found.to_string());
                }
            }
            Row::OrderedQuery => {
                for category in [0, 13] {
                    let found = self.ordered(&mut client, category)?;
                    if found != expected_ranks(category) {
                        return wrong(format!("{found:?} instead of {:?}", expected_ranks(category)));
                    }
                }
            }
        }
        Ok(())
    }

    /// The ranks of an ordered query as a client sees them: merged, the first ten.
    fn ordered(&self, client: &mut Client, category: u64) -> Result<Vec<u64>, String> {
        let ordering = self.server.kind.ordering();
        let mut ranks = Vec::new();
        for request in self.items.ordered_query(category, ordering) {
            let found = client.send(&request)?.expect(&[200])?.json()?;
            let of_range: Vec<u64> = documents(&found)?
                .iter()
                .filter_map(|row| match ordering {
                    Ordering::Direct => row["rank"].as_u64(),
                    Ordering::PerRange => row["orderByItems"][0]["item"].as_u64(),
                })
                .collect();
            if !of_range.is_sorted() {
                return Err(format!("a partition's rows are not in order: {of_range:?}"));
            }
            ranks.extend(of_range);
        }
        ranks.sort_unstable();
        ranks.truncate(10);
        Ok(ranks)
    }
}

/// Whether `found` is the stored form of `item`: its own properties, and the service's on top.
fn is_item(found: &Value, item: Item) -> bool {
    let sent: Value = serde_json::from_str(&item.json()).expect("items are valid JSON");
    let has = |(name, value): (&String, &Value)| found.get(name) == Some(value);
    sent.as_object().is_some_and(|sent| sent.iter().all(has)) && found["_etag"].is_string()
}

fn documents(found: &Value) -> Result<&Vec<Value>, String> {
    found["Documents"].as_array().ok_or_else(|| format!("no Documents in {found}"))
}

fn expected_ranks(category: u64) -> Vec<u64> {
    assert!(category < CATEGORIES, "no such category");
    let items = (0..ITEMS).map(|number| Item { number, count: ITEMS });
    let mut ranks: Vec<u64> = items.filter(|item| item.category() == category).map(Item::rank).collect();
    ranks.sort_unstable();
    ranks.truncate(10);
    ranks
}

/// `POST /dbs`.
pub(crate) fn create_database(client: &mut Client) -> Result<(), String> {
    let request = Request {
        verb: "POST",
        path: "/dbs".to_owned(),
        kind: "dbs",
        link: String::new(),
        headers: vec![("content-type", "application/json".to_owned())],
        body: format!("{{\"id\":\"{DATABASE}\"}}"),
    };
    client.send(&request)?.expect(&[201]).map(|_| ())
}

/// Creates a container with the default indexing policy and fills it over many connections.
pub(crate) fn fill_container(server: &Server, name: &'static str, count: u64) -> Result<Container, String> {
    fill_container_with(server, name, count, THROUGHPUT)
}

/// Creates a container of this throughput with the default indexing policy and fills it.
pub(crate) fn fill_container_with(
    server: &Server,
    name: &'static str,
    count: u64,
    throughput: &str,
) -> Result<Container, String> {
    let mut client = server.client()?;
    let request = Request {
        verb: "POST",
        path: format!("/dbs/{DATABASE}/colls"),
        kind: "colls",
        link: format!("dbs/{DATABASE}"),
        headers: vec![
            ("content-type", "application/json".to_owned()),
            ("x-ms-offer-throughput", throughput.to_owned()),
        ],
        body: format!(r#"{{"id":"{name}","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}}}}"#),
    };
    client.send(&request)?.expect(&[201])?;
    let mut container = Container { name, count, ranges: Vec::new() };
    container.ranges = ranges(server.kind, &mut client, &container)?;
    let outcome = fill(server, &container)?;
    match outcome.first_error {
        None => Ok(container),
        Some(error) => Err(format!("{}: filling {name}: {error}", server.kind.name())),
    }
}

fn ranges(kind: Kind, client: &mut Client, container: &Container) -> Result<Vec<String>, String> {
    if kind.ordering() == Ordering::Direct {
        return Ok(Vec::new());
    }
    let link = container.link();
    let path = format!("/{link}/pkranges");
    let request =
        Request { verb: "GET", path, kind: "pkranges", link, headers: Vec::new(), body: String::new() };
    let found = client.send(&request)?.expect(&[200])?.json()?;
    let listed = found["PartitionKeyRanges"].as_array().ok_or("no PartitionKeyRanges")?;
    Ok(listed.iter().filter_map(|range| range["id"].as_str().map(str::to_owned)).collect())
}

const FILL_CONNECTIONS: usize = 32;

fn fill(server: &Server, container: &Container) -> Result<Outcome, String> {
    let account = server.account();
    let mut script = Fill { account, date: clock::date(), container, next: 0 };
    generator::run(server.target(), FILL_CONNECTIONS, Stop::WithTheScript, &mut script)
        .map_err(|error| format!("{}: filling {}: {error}", server.kind.name(), container.name))
}
