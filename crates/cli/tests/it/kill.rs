//! `kill -9` in a loop: what was acknowledged is there, and nothing is half there.
//!
//! `SEED=…` replays the draws of one run; when the process dies in between two draws is up to the
//! machine. `KILLS=…` kills more often.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use crate::binary::{Home, Up};
use crate::client::{Answer, Client};

const WRITERS: u64 = 3;
/// Items each writer writes to.
const IDS: u64 = 12;
const DOCS: &str = "/dbs/d/colls/c/docs";

/// A version of an item, or that there is none.
#[derive(Clone, Debug, PartialEq)]
struct Version {
    value: u64,
    /// Known once it was acknowledged.
    system: Option<System>,
}

/// What the account said about a version.
#[derive(Clone, Debug, PartialEq)]
struct System {
    etag: String,
    ts: u64,
    rid: String,
}

/// What a writer asked for and has not heard about: for each item, before and after.
type InFlight = BTreeMap<String, (Option<Version>, Option<Version>)>;

/// What one writer knows.
#[derive(Default)]
struct Model {
    items: BTreeMap<String, Version>,
    in_flight: InFlight,
    containers: BTreeSet<String>,
    /// A container asked for, of which nobody knows.
    container_in_flight: Option<String>,
    /// The newest LSN that an answer named.
    lsn: u64,
    next_value: u64,
    acknowledged: u64,
}

/// Draws that a seed repeats.
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn new(seed: u64) -> Draws {
        Draws(seed.max(1))
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A number from the environment, for whoever wants another run.
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_half_there() {
    let seed = number("SEED").unwrap_or(0x5EED_0001);
    let kills = number("KILLS").unwrap_or(100);
    println!("SEED={seed}");
    let mut draws = Draws::new(seed);
    let home = Home::new();
    let models: Vec<Mutex<Model>> = (0..WRITERS).map(|_| Mutex::default()).collect();
    for kill in 0..kills {
        let fsync = ["interval", "interval", "never", "always"][draws.below(4) as usize];
        let up = home.up(&["--regions", "West US", "--data-dir", "data", "--fsync", fsync]);
        let mut client = Client::new(&up.account()["endpoint"]);
        if kill == 0 {
            client.make_container();
        }
        let context = format!("SEED={seed}, kill {kill}, fsync {fsync}");
        check_all(&mut client, &models, &context);
        let life = Duration::from_micros(500 + draws.below(60_000));
        let seeds: Vec<u64> = (0..WRITERS).map(|_| draws.below(u64::MAX - 1) + 1).collect();
        write_until_killed(up, &models, &seeds, life);
    }
    let acknowledged: u64 =
        models.iter().map(|model| model.lock().expect("no writer panicked").acknowledged).sum();
    assert!(acknowledged > kills, "only {acknowledged} writes were acknowledged: nothing was tested");
    let up = home.up(&["--regions", "West US", "--data-dir", "data"]);
    let mut client = Client::new(&up.account()["endpoint"]);
    check_all(&mut client, &models, &format!("SEED={seed}, at the end"));
}

#[track_caller]
fn check_all(client: &mut Client, models: &[Mutex<Model>], context: &str) {
    for (writer, model) in models.iter().enumerate() {
        check(client, writer as u64, &mut model.lock().expect("no writer panicked"), context);
    }
    check_feed(client, models, context);
}

fn write_until_killed(up: Up, models: &[Mutex<Model>], seeds: &[u64], life: Duration) {
    std::thread::scope(|scope| {
        for (writer, (model, seed)) in models.iter().zip(seeds).enumerate() {
            let mut client = Client::new(&up.account()["endpoint"]);
            scope.spawn(move || {
                let mut draws = Draws(*seed);
                let mut model = model.lock().expect("no writer panicked");
                while step(&mut client, writer as u64, &mut model, &mut draws).is_ok() {}
            });
        }
        // How long it lives, not something to wait for.
        std::thread::sleep(life);
        // SIGKILL, whatever it is doing.
        drop(up);
    });
}

/// One request of a writer; an error when the server is gone.
fn step(client: &mut Client, writer: u64, model: &mut Model, draws: &mut Draws) -> std::io::Result<()> {
    let id = format!("{writer}-{}", draws.below(IDS));
    let exists = model.items.contains_key(&id);
    match draws.below(20) {
        0 if writer == 0 => {
            let name = format!("extra-{}", model.containers.len());
            let body = json!({ "id": name, "partitionKey": { "paths": ["/pk"], "kind": "Hash" } });
            model.container_in_flight = Some(name.clone());
            let answer = client.send("POST", "/dbs/d/colls", &[], &body.to_string())?;
            assert_eq!(answer.status, 201, "{}", answer.text());
            model.container_in_flight = None;
            model.containers.insert(name);
        }
        0..=3 => {
            let ids: BTreeSet<String> = (0..4).map(|_| format!("{writer}-{}", draws.below(IDS))).collect();
            batch(client, writer, model, &ids)?;
        }
        4..=6 if exists => {
            let before = model.items.get(&id).cloned();
            model.in_flight.insert(id.clone(), (before, None));
            let answer = client.send("DELETE", &format!("{DOCS}/{id}"), &[key(writer).as_pair()], "")?;
            assert_eq!(answer.status, 204, "{}", answer.text());
            model.items.remove(&id);
            model.acknowledge(&answer);
        }
        _ => {
            let version = model.new_version();
            model.in_flight.insert(id.clone(), (model.items.get(&id).cloned(), Some(version.clone())));
            let (method, path) =
                if exists { ("PUT", format!("{DOCS}/{id}")) } else { ("POST", DOCS.to_owned()) };
            let body = document(writer, &id, version.value);
            let answer = client.send(method, &path, &[key(writer).as_pair()], &body.to_string())?;
            assert_eq!(answer.status, if exists { 200 } else { 201 }, "{}", answer.text());
            let version = Version { system: Some(system(&answer.json())), ..version };
            model.items.insert(id, version);
            model.acknowledge(&answer);
        }
    }
    Ok(())
}

/// Writes several items as one; either all of them change or none.
fn batch(client: &mut Client, writer: u64, model: &mut Model, ids: &BTreeSet<String>) -> std::io::Result<()> {
    let version = model.new_version();
    let operation = |id: &String| json!({ "operationType": "Upsert", "resourceBody": document(writer, id, version.value) });
    let operations: Vec<Value> = ids.iter().map(operation).collect();
    for id in ids {
        model.in_flight.insert(id.clone(), (model.items.get(id).cloned(), Some(version.clone())));
    }
    let key = key(writer);
    let headers =
        [key.as_pair(), ("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "True")];
    let answer = client.send("POST", DOCS, &headers, &Value::from(operations).to_string())?;
    assert_eq!(answer.status, 200, "{}", answer.text());
    for (id, result) in ids.iter().zip(answer.json().as_array().expect("a list of results")) {
        let version = Version { system: Some(system(&result["resourceBody"])), ..version.clone() };
        model.items.insert(id.clone(), version);
    }
    model.acknowledge(&answer);
    Ok(())
}

/// Compares what is there with what is known, and learns what became of the request in flight.
#[track_caller]
fn check(client: &mut Client, writer: u64, model: &mut Model, context: &str) {
    let mut done = BTreeSet::new();
    for id in (0..IDS).map(|id| format!("{writer}-{id}")) {
        let answer = client.ask("GET", &format!("{DOCS}/{id}"), &[key(writer).as_pair()], "");
        let found = match answer.status {
            200 => Some(answer.json()),
            404 => None,
            other => panic!("{context}: reading {id}: {other} {}", answer.text()),
        };
        let lsn: u64 = answer.header("lsn").and_then(|lsn| lsn.parse().ok()).unwrap_or(0);
        assert!(lsn >= model.lsn, "{context}: LSN {lsn} after {} was acknowledged", model.lsn);
        let is = |expected: Option<&Version>| matches(found.as_ref(), expected);
        match model.in_flight.get(&id) {
            None => {
                let expected = model.items.get(&id);
                assert!(is(expected), "{context}: {id} should be {expected:?}, found {found:?}");
            }
            Some((before, after)) => {
                let (is_before, is_after) = (is(before.as_ref()), is(after.as_ref()));
                assert!(
                    is_before || is_after,
                    "{context}: {id} should be {before:?} or {after:?}, found {found:?}"
                );
                done.insert(is_after);
            }
        }
        match found {
            Some(found) => {
                let value = found["value"].as_u64().expect("a number");
                model.items.insert(id, Version { value, system: Some(system(&found)) });
            }
            None => drop(model.items.remove(&id)),
        }
    }
    assert!(done.len() < 2, "{context}: half of {:?} is there", model.in_flight);
    model.in_flight.clear();
    if let Some(name) = model.container_in_flight.take() {
        let path = format!("/dbs/d/colls/{name}");
        if client.ask("GET", &path, &[], "").status == 200 {
            model.containers.insert(name);
        }
    }
    // The newest say as much as all of them, since all are in one order.
    for name in model.containers.iter().rev().take(3) {
        let answer = client.ask("GET", &format!("/dbs/d/colls/{name}"), &[], "");
        assert_eq!(answer.status, 200, "{context}: the container {name} is gone");
    }
}

/// The change feed has the newest version of every item once, in order.
#[track_caller]
fn check_feed(client: &mut Client, models: &[Mutex<Model>], context: &str) {
    let mut expected = BTreeMap::new();
    for model in models {
        let model = model.lock().expect("no writer panicked");
        expected.extend(model.items.iter().map(|(id, version)| (id.clone(), version.clone())));
    }
    let headers = [("a-im", "Incremental feed"), ("x-ms-max-item-count", "-1")];
    let answer = client.ask("GET", DOCS, &headers, "");
    assert!([200, 304].contains(&answer.status), "{context}: {}", answer.text());
    let documents = answer.json()["Documents"].as_array().cloned().unwrap_or_default();
    let lsns: Vec<u64> = documents.iter().map(|document| document["_lsn"].as_u64().unwrap_or(0)).collect();
    assert!(lsns.is_sorted(), "{context}: {lsns:?}");
    let found: BTreeMap<String, &Value> = documents
        .iter()
        .map(|document| (document["id"].as_str().unwrap_or_default().to_owned(), document))
        .collect();
    assert_eq!(found.len(), documents.len(), "{context}: an item is there twice");
    assert_eq!(found.len(), expected.len(), "{context}: {:?}", found.keys());
    for (id, version) in &expected {
        assert!(matches(found.get(id).copied(), Some(version)), "{context}: {id} in the feed");
    }
}

/// Whether what was found is this version, and whole.
fn matches(found: Option<&Value>, expected: Option<&Version>) -> bool {
    match (found, expected) {
        (None, None) => true,
        (Some(found), Some(expected)) => {
            found["value"] == expected.value
                && found["again"] == expected.value
                && expected.system.as_ref().is_none_or(|known| *known == system(found))
        }
        _ => false,
    }
}

fn document(writer: u64, id: &str, value: u64) -> Value {
    let fill = "x".repeat((value % 700) as usize);
    json!({ "id": id, "pk": format!("w{writer}"), "value": value, "fill": fill, "again": value })
}

fn system(item: &Value) -> System {
    System {
        etag: item["_etag"].as_str().unwrap_or_default().to_owned(),
        ts: item["_ts"].as_u64().unwrap_or_default(),
        rid: item["_rid"].as_str().unwrap_or_default().to_owned(),
    }
}

/// The partition key header of a writer's items.
struct KeyHeader(String);

impl KeyHeader {
    fn as_pair(&self) -> (&str, &str) {
        ("x-ms-documentdb-partitionkey", &self.0)
    }
}

fn key(writer: u64) -> KeyHeader {
    KeyHeader(format!(r#"["w{writer}"]"#))
}

impl Model {
    fn new_version(&mut self) -> Version {
        self.next_value += 1;
        Version { value: self.next_value, system: None }
    }

    fn acknowledge(&mut self, answer: &Answer) {
        self.in_flight.clear();
        self.acknowledged += 1;
        let lsn = answer.header("lsn").and_then(|lsn| lsn.parse().ok());
        self.lsn = self.lsn.max(lsn.unwrap_or(0));
    }
}
