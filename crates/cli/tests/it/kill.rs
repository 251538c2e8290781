//! `kill -9` in a loop: no acknowledged write is lost, and no write is partial.
//!
//! `SEED=…` repeats the random choices of one run; at which request the process is killed depends on the machine.
//! `KILLS=…` sets the number of kills.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use crate::binary::{TestFolder, Up};
use crate::client::{Client, Response};

const WRITERS: u64 = 3;
/// The number of items of each writer.
const IDS: u64 = 12;
const DOCS: &str = "/dbs/d/colls/c/docs";

/// A version of an item.
#[derive(Clone, Debug, PartialEq)]
struct Version {
    value: u64,
    /// The system properties, if the write was acknowledged.
    system: Option<System>,
}

/// The system properties of a version.
#[derive(Clone, Debug, PartialEq)]
struct System {
    etag: String,
    ts: u64,
    rid: String,
}

/// The request without a response: each of its items before and after it.
type InFlight = BTreeMap<String, (Option<Version>, Option<Version>)>;

/// The state of the account as one writer knows it.
#[derive(Default)]
struct Model {
    items: BTreeMap<String, Version>,
    in_flight: InFlight,
    containers: BTreeSet<String>,
    /// A container whose creation has no response.
    container_in_flight: Option<String>,
    /// The newest LSN of a response.
    lsn: u64,
    next_value: u64,
    acknowledged: u64,
}

/// A number from the environment.
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn no_acknowledged_write_is_lost_and_no_write_is_partial() {
    let seed = number("SEED").unwrap_or(0x5EED_0001);
    let kills = number("KILLS").unwrap_or(100);
    println!("SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let folder = TestFolder::new();
    let models: Vec<Mutex<Model>> = (0..WRITERS).map(|_| Mutex::default()).collect();
    for kill in 0..kills {
        let fsync = ["interval", "interval", "never", "always"][rng.u64(0..4) as usize];
        let up = folder.up(&["--regions", "West US", "--data-dir", "data", "--fsync", fsync]);
        let mut client = Client::new(&up.account()["endpoint"]);
        if kill == 0 {
            client.create_container();
        }
        let context = format!("SEED={seed}, kill {kill}, fsync {fsync}");
        check_all(&mut client, &models, &context);
        let life = Duration::from_micros(500 + rng.u64(0..60_000));
        let seeds: Vec<u64> = (0..WRITERS).map(|_| rng.u64(0..u64::MAX - 1) + 1).collect();
        write_until_killed(up, &models, &seeds, life);
    }
    let acknowledged: u64 =
        models.iter().map(|model| model.lock().expect("no writer panicked").acknowledged).sum();
    assert!(acknowledged > kills, "only {acknowledged} writes were acknowledged: nothing was tested");
    let up = folder.up(&["--regions", "West US", "--data-dir", "data"]);
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
                let mut rng = fastrand::Rng::with_seed(*seed);
                let mut model = model.lock().expect("no writer panicked");
                while step(&mut client, writer as u64, &mut model, &mut rng).is_ok() {}
            });
        }
        // The time until the kill; nothing is waited for.
        std::thread::sleep(life);
        // Dropping it sends SIGKILL, whatever the account is doing.
        drop(up);
    });
}

/// One request of a writer; an error when the server was killed.
fn step(client: &mut Client, writer: u64, model: &mut Model, rng: &mut fastrand::Rng) -> std::io::Result<()> {
    let id = format!("{writer}-{}", rng.u64(0..IDS));
    let exists = model.items.contains_key(&id);
    match rng.u64(0..20) {
        0 if writer == 0 => {
            let name = format!("extra-{}", model.containers.len());
            let body = json!({ "id": name, "partitionKey": { "paths": ["/pk"], "kind": "Hash" } });
            model.container_in_flight = Some(name.clone());
            let response = client.send("POST", "/dbs/d/colls", &[], &body.to_string())?;
            assert_eq!(response.status, 201, "{}", response.text());
            model.container_in_flight = None;
            model.containers.insert(name);
        }
        0..=3 => {
            let ids: BTreeSet<String> = (0..4).map(|_| format!("{writer}-{}", rng.u64(0..IDS))).collect();
            batch(client, writer, model, &ids)?;
        }
        4..=6 if exists => {
            let before = model.items.get(&id).cloned();
            model.in_flight.insert(id.clone(), (before, None));
            let response = client.send("DELETE", &format!("{DOCS}/{id}"), &[key(writer).as_pair()], "")?;
            assert_eq!(response.status, 204, "{}", response.text());
            model.items.remove(&id);
            model.acknowledge(&response);
        }
        _ => {
            let version = model.new_version();
            model.in_flight.insert(id.clone(), (model.items.get(&id).cloned(), Some(version.clone())));
            let (method, path) =
                if exists { ("PUT", format!("{DOCS}/{id}")) } else { ("POST", DOCS.to_owned()) };
            let body = document(writer, &id, version.value);
            let response = client.send(method, &path, &[key(writer).as_pair()], &body.to_string())?;
            assert_eq!(response.status, if exists { 200 } else { 201 }, "{}", response.text());
            let version = Version { system: Some(system(&response.json())), ..version };
            model.items.insert(id, version);
            model.acknowledge(&response);
        }
    }
    Ok(())
}

/// Writes several items in one transaction.
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
    let response = client.send("POST", DOCS, &headers, &Value::from(operations).to_string())?;
    assert_eq!(response.status, 200, "{}", response.text());
    for (id, result) in ids.iter().zip(response.json().as_array().expect("a list of results")) {
        let version = Version { system: Some(system(&result["resourceBody"])), ..version.clone() };
        model.items.insert(id.clone(), version);
    }
    model.acknowledge(&response);
    Ok(())
}

/// Compares the stored items with the model, and finds out whether the request in flight was applied.
#[track_caller]
fn check(client: &mut Client, writer: u64, model: &mut Model, context: &str) {
    let mut done = BTreeSet::new();
    for id in (0..IDS).map(|id| format!("{writer}-{id}")) {
        let response = client.request("GET", &format!("{DOCS}/{id}"), &[key(writer).as_pair()], "");
        let found = match response.status {
            200 => Some(response.json()),
            404 => None,
            other => panic!("{context}: reading {id}: {other} {}", response.text()),
        };
        let lsn: u64 = response.header("lsn").and_then(|lsn| lsn.parse().ok()).unwrap_or(0);
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
        if client.request("GET", &path, &[], "").status == 200 {
            model.containers.insert(name);
        }
    }
    // The newest say as much as all of them, since all are in one order.
    for name in model.containers.iter().rev().take(3) {
        let response = client.request("GET", &format!("/dbs/d/colls/{name}"), &[], "");
        assert_eq!(response.status, 200, "{context}: the container {name} is gone");
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
    let response = client.request("GET", DOCS, &headers, "");
    assert!([200, 304].contains(&response.status), "{context}: {}", response.text());
    let documents = response.json()["Documents"].as_array().cloned().unwrap_or_default();
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

/// Whether the item is this version, with all its properties.
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

    fn acknowledge(&mut self, response: &Response) {
        self.in_flight.clear();
        self.acknowledged += 1;
        let lsn = response.header("lsn").and_then(|lsn| lsn.parse().ok());
        self.lsn = self.lsn.max(lsn.unwrap_or(0));
    }
}
