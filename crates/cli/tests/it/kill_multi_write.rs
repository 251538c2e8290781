//! `kill -9` of a multi-write account: no acknowledged write is lost, all regions converge, and a conflict that was
//! resolved is not resolved in another way.
//!
//! Each writer has a region, items of its own, and items that all writers share.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Mutex;
use std::time::Duration;

use emulator::clock::Stopwatch;
use serde_json::{Value, json};

use crate::binary::{TestFolder, Up};
use crate::client::Client;
use crate::kill::number;

const REGIONS: usize = 3;
const IDS: u64 = 5;
const DOCS: &str = "/dbs/d/colls/c/docs";
const CONFLICTS: &str = "/dbs/d/colls/c/conflicts";
const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
/// How long regions may take to converge; the replication lag is some milliseconds.
const CONVERGENCE_MAX: Duration = Duration::from_secs(20);

/// The state of the account as one writer knows it.
#[derive(Default)]
struct Model {
    /// The value of each of its own items.
    own: BTreeMap<String, u64>,
    /// The request without a response: its item, and the value unless it is a delete.
    in_flight: Option<(String, Option<u64>)>,
    /// The values that it wrote, or may have written, to shared items.
    shared: BTreeSet<u64>,
    next_value: u64,
    acknowledged: u64,
}

#[test]
fn multi_write_regions_lose_nothing_and_converge() {
    let seed = number("SEED").unwrap_or(0x5EED_0003);
    let kills = number("KILLS").unwrap_or(15);
    println!("SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let folder = TestFolder::new();
    let models: Vec<Mutex<Model>> = (0..REGIONS).map(|_| Mutex::default()).collect();
    let mut conflicts = BTreeMap::new();
    for kill in 0..kills {
        let fsync = ["interval", "never", "always"][rng.u64(0..3) as usize];
        let up = up(&folder, fsync);
        let mut clients = clients(&up);
        if kill == 0 {
            create_container(&mut clients[0]);
        }
        let context = format!("SEED={seed}, kill {kill}, fsync {fsync}");
        check(&mut clients, &models, &mut conflicts, &context);
        let life = Duration::from_micros(2_000 + rng.u64(0..80_000));
        let seeds: Vec<u64> = (0..REGIONS).map(|_| rng.u64(0..u64::MAX - 1) + 1).collect();
        write_until_killed(up, clients, &models, &seeds, life);
    }
    let acknowledged: u64 =
        models.iter().map(|model| model.lock().expect("no writer panicked").acknowledged).sum();
    assert!(acknowledged > kills, "only {acknowledged} writes were acknowledged: nothing was tested");
    assert!(!conflicts.is_empty(), "nothing conflicted: nothing was tested");
    let up = up(&folder, "interval");
    check(&mut clients(&up), &models, &mut conflicts, &format!("SEED={seed}, at the end"));
}

fn up(folder: &TestFolder, fsync: &str) -> Up {
    folder.up(&[
        "--regions",
        "3",
        "--multi-write",
        "--lag",
        "1ms..5ms",
        "--data-dir",
        "data",
        "--fsync",
        fsync,
    ])
}

/// A client of each region, that of the hub first.
fn clients(up: &Up) -> Vec<Client> {
    let regions = up.account()["regions"].as_array().expect("a list of regions");
    assert_eq!(regions.len(), REGIONS);
    regions.iter().map(|region| Client::new(&region["endpoint"])).collect()
}

fn create_container(client: &mut Client) {
    assert_eq!(client.request("POST", "/dbs", &[], r#"{"id":"d"}"#).status, 201);
    let body = json!({
        "id": "c",
        "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 },
        "conflictResolutionPolicy": { "mode": "Custom" },
    });
    assert_eq!(client.request("POST", "/dbs/d/colls", &[], &body.to_string()).status, 201);
}

fn write_until_killed(up: Up, clients: Vec<Client>, models: &[Mutex<Model>], seeds: &[u64], life: Duration) {
    std::thread::scope(|scope| {
        for (writer, (mut client, (model, seed))) in
            clients.into_iter().zip(models.iter().zip(seeds)).enumerate()
        {
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(*seed);
                let mut model = model.lock().expect("no writer panicked");
                while step(&mut client, writer, &mut model, &mut rng).is_ok() {}
            });
        }
        // How long it lives, not something to wait for.
        std::thread::sleep(life);
        drop(up);
    });
}

/// One request of a writer; an error when the server was killed.
fn step(client: &mut Client, writer: usize, model: &mut Model, rng: &mut fastrand::Rng) -> io::Result<()> {
    model.next_value += 1;
    // Every value names its writer.
    let value = model.next_value * REGIONS as u64 + writer as u64;
    let upsert = [KEY, ("x-ms-documentdb-is-upsert", "True")];
    if rng.u64(0..3) == 0 {
        model.shared.insert(value);
        let body = json!({ "id": format!("all-{}", rng.u64(0..2)), "pk": "a", "value": value });
        let response = client.send("POST", DOCS, &upsert, &body.to_string())?;
        assert!([200, 201].contains(&response.status), "{}", response.text());
        return Ok(());
    }
    let id = format!("{writer}-{}", rng.u64(0..IDS));
    if model.own.contains_key(&id) && rng.u64(0..4) == 0 {
        model.in_flight = Some((id.clone(), None));
        let response = client.send("DELETE", &format!("{DOCS}/{id}"), &[KEY], "")?;
        assert_eq!(response.status, 204, "{}", response.text());
        model.own.remove(&id);
    } else {
        model.in_flight = Some((id.clone(), Some(value)));
        let body = json!({ "id": id, "pk": "a", "value": value });
        let response = client.send("POST", DOCS, &upsert, &body.to_string())?;
        assert!([200, 201].contains(&response.status), "{}", response.text());
        model.own.insert(id, value);
    }
    model.in_flight = None;
    model.acknowledged += 1;
    Ok(())
}

/// Compares the stored items with the models: at once in the region of each writer, then in all regions.
#[track_caller]
fn check(
    clients: &mut [Client],
    models: &[Mutex<Model>],
    conflicts: &mut BTreeMap<String, Value>,
    context: &str,
) {
    let mut models: Vec<_> = models.iter().map(|model| model.lock().expect("no writer panicked")).collect();
    for (writer, model) in models.iter_mut().enumerate() {
        check_own(&mut clients[writer], writer, model, context);
    }
    let agreed = agree(clients, context);
    let values = |item: &Value| item["value"].as_u64().unwrap_or(0);
    for (id, item) in &agreed {
        let written = match id.strip_prefix("all-") {
            Some(_) => models.iter().any(|model| model.shared.contains(&values(item))),
            None => models.iter().any(|model| model.own.get(id) == Some(&values(item))),
        };
        assert!(written, "{context}: no writer wrote {item}");
    }
    let own: usize = models.iter().map(|model| model.own.len()).sum();
    let found = agreed.keys().filter(|id| !id.starts_with("all-")).count();
    assert_eq!(found, own, "{context}: {agreed:?}");
    check_conflicts(&mut clients[0], conflicts, context);
}

/// Checks that a region has the writes that it acknowledged, before any replication.
#[track_caller]
fn check_own(client: &mut Client, writer: usize, model: &mut Model, context: &str) {
    let in_flight = model.in_flight.take();
    for id in (0..IDS).map(|id| format!("{writer}-{id}")) {
        let response = client.request("GET", &format!("{DOCS}/{id}"), &[KEY], "");
        let found = (response.status == 200).then(|| response.json()["value"].as_u64().unwrap_or(0));
        let expected = model.own.get(&id).copied();
        let may_be = in_flight.as_ref().filter(|(other, _)| *other == id).map(|(_, value)| *value);
        assert!(
            found == expected || may_be == Some(found),
            "{context}: {id} should be {expected:?} or {may_be:?}, found {found:?}"
        );
        match found {
            Some(value) => drop(model.own.insert(id, value)),
            None => drop(model.own.remove(&id)),
        }
    }
}

/// The items of all regions, when the regions have converged.
#[track_caller]
fn agree(clients: &mut [Client], context: &str) -> BTreeMap<String, Value> {
    let watch = Stopwatch::start();
    loop {
        let all: Vec<BTreeMap<String, Value>> = clients.iter_mut().map(items).collect();
        // Twice the same: what was on its way to the hub comes to the others from there.
        if all.iter().all(|items| *items == all[0]) && items(&mut clients[0]) == all[0] {
            return all.into_iter().next().unwrap_or_default();
        }
        assert!(watch.elapsed() < CONVERGENCE_MAX, "{context}: regions do not agree: {all:?}");
    }
}

fn items(client: &mut Client) -> BTreeMap<String, Value> {
    let listed = client.request("GET", DOCS, &[KEY, ("x-ms-max-item-count", "-1")], "").json();
    let listed = listed["Documents"].as_array().cloned().unwrap_or_default();
    listed.into_iter().map(|item| (item["id"].as_str().unwrap_or_default().to_owned(), item)).collect()
}

/// Checks that conflicts that were read before are unchanged.
#[track_caller]
fn check_conflicts(client: &mut Client, seen: &mut BTreeMap<String, Value>, context: &str) {
    let listed = client.request("GET", CONFLICTS, &[("x-ms-max-item-count", "-1")], "").json();
    let listed = listed["Conflicts"].as_array().cloned().unwrap_or_default();
    let found: BTreeMap<String, Value> = listed
        .into_iter()
        .map(|conflict| (conflict["id"].as_str().unwrap_or_default().to_owned(), conflict))
        .collect();
    // The oldest go when there are a thousand.
    if found.len() < 1_000 {
        for (id, conflict) in seen.iter() {
            assert_eq!(found.get(id), Some(conflict), "{context}: conflict {id}");
        }
    }
    *seen = found;
}
