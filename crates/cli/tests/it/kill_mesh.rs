//! `kill -9` while every region writes: what was acknowledged anywhere is there, all regions come to
//! agree, and no conflict that somebody has seen settled is settled another way.
//!
//! Each writer has a region, items of its own, and items that all of them write.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Mutex;
use std::time::Duration;

use emulator::clock::Stopwatch;
use serde_json::{Value, json};

use crate::binary::{Home, Up};
use crate::client::Client;
use crate::kill::{Draws, number};

const REGIONS: usize = 3;
const IDS: u64 = 5;
const DOCS: &str = "/dbs/d/colls/c/docs";
const CONFLICTS: &str = "/dbs/d/colls/c/conflicts";
const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
/// Lags are milliseconds; regions that do not agree by then never will.
const PATIENCE: Duration = Duration::from_secs(20);

/// What one writer knows.
#[derive(Default)]
struct Model {
    /// The value of each of its own items.
    own: BTreeMap<String, u64>,
    /// What it asked for and has not heard about: the item, and its value unless it goes.
    in_flight: Option<(String, Option<u64>)>,
    /// Values it wrote to items of all, or may have.
    shared: BTreeSet<u64>,
    next_value: u64,
    acknowledged: u64,
}

#[test]
fn regions_that_all_write_lose_nothing_and_come_to_agree() {
    let seed = number("SEED").unwrap_or(0x5EED_0003);
    let kills = number("KILLS").unwrap_or(15);
    println!("SEED={seed}");
    let mut draws = Draws::new(seed);
    let home = Home::new();
    let models: Vec<Mutex<Model>> = (0..REGIONS).map(|_| Mutex::default()).collect();
    let mut conflicts = BTreeMap::new();
    for kill in 0..kills {
        let fsync = ["interval", "never", "always"][draws.below(3) as usize];
        let up = up(&home, fsync);
        let mut clients = clients(&up);
        if kill == 0 {
            make_container(&mut clients[0]);
        }
        let context = format!("SEED={seed}, kill {kill}, fsync {fsync}");
        check(&mut clients, &models, &mut conflicts, &context);
        let life = Duration::from_micros(2_000 + draws.below(80_000));
        let seeds: Vec<u64> = (0..REGIONS).map(|_| draws.below(u64::MAX - 1) + 1).collect();
        write_until_killed(up, clients, &models, &seeds, life);
    }
    let acknowledged: u64 =
        models.iter().map(|model| model.lock().expect("no writer panicked").acknowledged).sum();
    assert!(acknowledged > kills, "only {acknowledged} writes were acknowledged: nothing was tested");
    assert!(!conflicts.is_empty(), "nothing conflicted: nothing was tested");
    let up = up(&home, "interval");
    check(&mut clients(&up), &models, &mut conflicts, &format!("SEED={seed}, at the end"));
}

fn up(home: &Home, fsync: &str) -> Up {
    home.up(&["--multi-write", "--lag", "1ms..5ms", "--data-dir", "data", "--fsync", fsync])
}

/// One in each region, the hub's first.
fn clients(up: &Up) -> Vec<Client> {
    let regions = up.account()["regions"].as_array().expect("a list of regions");
    assert_eq!(regions.len(), REGIONS);
    regions.iter().map(|region| Client::new(&region["endpoint"])).collect()
}

fn make_container(client: &mut Client) {
    assert_eq!(client.ask("POST", "/dbs", &[], r#"{"id":"d"}"#).status, 201);
    let body = json!({
        "id": "c",
        "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 },
        "conflictResolutionPolicy": { "mode": "Custom" },
    });
    assert_eq!(client.ask("POST", "/dbs/d/colls", &[], &body.to_string()).status, 201);
}

fn write_until_killed(up: Up, clients: Vec<Client>, models: &[Mutex<Model>], seeds: &[u64], life: Duration) {
    std::thread::scope(|scope| {
        for (writer, (mut client, (model, seed))) in
            clients.into_iter().zip(models.iter().zip(seeds)).enumerate()
        {
            scope.spawn(move || {
                let mut draws = Draws::new(*seed);
                let mut model = model.lock().expect("no writer panicked");
                while step(&mut client, writer, &mut model, &mut draws).is_ok() {}
            });
        }
        // How long it lives, not something to wait for.
        std::thread::sleep(life);
        drop(up);
    });
}

/// One request of a writer; an error when the server is gone.
fn step(client: &mut Client, writer: usize, model: &mut Model, draws: &mut Draws) -> io::Result<()> {
    model.next_value += 1;
    // Every value names its writer.
    let value = model.next_value * REGIONS as u64 + writer as u64;
    let upsert = [KEY, ("x-ms-documentdb-is-upsert", "True")];
    if draws.below(3) == 0 {
        model.shared.insert(value);
        let body = json!({ "id": format!("all-{}", draws.below(2)), "pk": "a", "value": value });
        let answer = client.send("POST", DOCS, &upsert, &body.to_string())?;
        assert!([200, 201].contains(&answer.status), "{}", answer.text());
        return Ok(());
    }
    let id = format!("{writer}-{}", draws.below(IDS));
    if model.own.contains_key(&id) && draws.below(4) == 0 {
        model.in_flight = Some((id.clone(), None));
        let answer = client.send("DELETE", &format!("{DOCS}/{id}"), &[KEY], "")?;
        assert_eq!(answer.status, 204, "{}", answer.text());
        model.own.remove(&id);
    } else {
        model.in_flight = Some((id.clone(), Some(value)));
        let body = json!({ "id": id, "pk": "a", "value": value });
        let answer = client.send("POST", DOCS, &upsert, &body.to_string())?;
        assert!([200, 201].contains(&answer.status), "{}", answer.text());
        model.own.insert(id, value);
    }
    model.in_flight = None;
    model.acknowledged += 1;
    Ok(())
}

/// Compares what is there with what is known, at once in the region of each writer and then everywhere.
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
        assert!(written, "{context}: nobody wrote {item}");
    }
    let own: usize = models.iter().map(|model| model.own.len()).sum();
    let found = agreed.keys().filter(|id| !id.starts_with("all-")).count();
    assert_eq!(found, own, "{context}: {agreed:?}");
    check_conflicts(&mut clients[0], conflicts, context);
}

/// A region has what was acknowledged there, before it hears of anything else.
#[track_caller]
fn check_own(client: &mut Client, writer: usize, model: &mut Model, context: &str) {
    let in_flight = model.in_flight.take();
    for id in (0..IDS).map(|id| format!("{writer}-{id}")) {
        let answer = client.ask("GET", &format!("{DOCS}/{id}"), &[KEY], "");
        let found = (answer.status == 200).then(|| answer.json()["value"].as_u64().unwrap_or(0));
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

/// What all regions have, as soon as they have the same.
#[track_caller]
fn agree(clients: &mut [Client], context: &str) -> BTreeMap<String, Value> {
    let watch = Stopwatch::start();
    loop {
        let all: Vec<BTreeMap<String, Value>> = clients.iter_mut().map(items).collect();
        // Twice the same: what was on its way to the hub comes to the others from there.
        if all.iter().all(|items| *items == all[0]) && items(&mut clients[0]) == all[0] {
            return all.into_iter().next().unwrap_or_default();
        }
        assert!(watch.elapsed() < PATIENCE, "{context}: regions do not agree: {all:?}");
    }
}

fn items(client: &mut Client) -> BTreeMap<String, Value> {
    let listed = client.ask("GET", DOCS, &[KEY, ("x-ms-max-item-count", "-1")], "").json();
    let listed = listed["Documents"].as_array().cloned().unwrap_or_default();
    listed.into_iter().map(|item| (item["id"].as_str().unwrap_or_default().to_owned(), item)).collect()
}

/// Conflicts that were seen are there, and say what they said.
#[track_caller]
fn check_conflicts(client: &mut Client, seen: &mut BTreeMap<String, Value>, context: &str) {
    let listed = client.ask("GET", CONFLICTS, &[("x-ms-max-item-count", "-1")], "").json();
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
