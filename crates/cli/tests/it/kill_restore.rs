//! `kill -9` while snapshots are restored: the account is in the state before the restore or after it.
//!
//! One writer changes two containers, each with one batch, and then restores a snapshot of both. After a kill, all
//! acknowledged changes are there, and the change in flight was applied as a whole or not at all.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::time::Duration;

use serde_json::{Value, json};

use crate::binary::{TestFolder, Up, try_connect};
use crate::client::Client;
use crate::kill::number;

const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
const CONTAINERS: [&str; 2] = ["c", "e"];
/// The number of items of each container.
const IDS: u64 = 6;

/// All items of both containers, with all their properties.
type Items = BTreeMap<(usize, String), Value>;

/// The states in which the account may be after the next start.
#[derive(Default)]
struct Model {
    /// The state if the request in flight was not applied.
    now: Items,
    /// The request in flight, which may have been applied.
    in_flight: Option<InFlight>,
    next_value: u64,
    restored: u64,
}

enum InFlight {
    /// A batch after which one container has these values and no others.
    Batch(usize, BTreeMap<String, u64>),
    /// A restore of a snapshot with these items.
    Restore(Items),
}

#[test]
fn a_restore_survives_as_a_whole_or_not_at_all() {
    let seed = number("SEED").unwrap_or(0x5EED_0002);
    let kills = number("KILLS").unwrap_or(15);
    println!("SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let folder = TestFolder::new();
    let mut model = Model::default();
    for kill in 0..kills {
        let fsync = ["interval", "never", "always"][rng.u64(0..3) as usize];
        let up = folder.up(&["--regions", "West US", "--data-dir", "data", "--fsync", fsync]);
        let mut client = Client::new(&up.account()["endpoint"]);
        if kill == 0 {
            client.create_container();
            let body = r#"{"id":"e","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
            assert_eq!(client.request("POST", "/dbs/d/colls", &[], body).status, 201);
        }
        model.check(&mut client, &format!("SEED={seed}, kill {kill}, fsync {fsync}"));
        let life = Duration::from_micros(2_000 + rng.u64(0..80_000));
        live_until_killed(up, &mut model, &mut rng, life);
    }
    assert!(
        model.restored > kills / 2,
        "only {} restores were acknowledged: nothing was tested",
        model.restored
    );
    let up = folder.up(&["--regions", "West US", "--data-dir", "data"]);
    model.check(&mut Client::new(&up.account()["endpoint"]), &format!("SEED={seed}, at the end"));
}

fn live_until_killed(up: Up, model: &mut Model, rng: &mut fastrand::Rng, life: Duration) {
    let (account, control) = (up.account()["endpoint"].clone(), up.ready["control"]["endpoint"].clone());
    let mut client = Client::new(&account);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A snapshot is gone with the process: each has one of what it found.
            let saved = model.now.clone();
            if post(&control, "/snapshots/s").is_err() {
                return;
            }
            while cycle(&mut client, &control, model, &saved, rng).is_ok() {}
        });
        // How long it lives, not something to wait for.
        std::thread::sleep(life);
        drop(up);
    });
}

/// Changes both containers and has them restored; an error when the server was killed.
fn cycle(
    client: &mut Client,
    control: &Value,
    model: &mut Model,
    saved: &Items,
    rng: &mut fastrand::Rng,
) -> io::Result<()> {
    for container in 0..CONTAINERS.len() {
        batch(client, model, container, rng)?;
    }
    model.in_flight = Some(InFlight::Restore(saved.clone()));
    post(control, "/snapshots/s/restore")?;
    model.in_flight = None;
    model.now = saved.clone();
    model.restored += 1;
    Ok(())
}

/// Gives some items of a container another value, and deletes the others.
fn batch(
    client: &mut Client,
    model: &mut Model,
    container: usize,
    rng: &mut fastrand::Rng,
) -> io::Result<()> {
    model.next_value += 1;
    let value = model.next_value;
    let (mut wanted, mut operations) = (BTreeMap::new(), Vec::new());
    for id in (0..IDS).map(|id| id.to_string()) {
        if wanted.is_empty() || rng.u64(0..3) > 0 {
            let body =
                json!({ "id": id, "pk": "a", "value": value, "fill": "x".repeat(value as usize % 300) });
            operations.push(json!({ "operationType": "Upsert", "resourceBody": body }));
            wanted.insert(id, value);
        } else if model.now.contains_key(&(container, id.clone())) {
            operations.push(json!({ "operationType": "Delete", "id": id }));
        }
    }
    model.in_flight = Some(InFlight::Batch(container, wanted));
    let headers = [KEY, ("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "True")];
    let path = format!("/dbs/d/colls/{}/docs", CONTAINERS[container]);
    let response = client.send("POST", &path, &headers, &Value::from(operations).to_string())?;
    assert_eq!(response.status, 200, "{}", response.text());
    let results = response.json();
    let written = results.as_array().expect("a list of results").iter().map(|result| &result["resourceBody"]);
    model.now.retain(|(of, _), _| *of != container);
    let written = written.filter(|item| item.is_object());
    model.now.extend(
        written.map(|item| ((container, item["id"].as_str().unwrap_or_default().to_owned()), item.clone())),
    );
    model.in_flight = None;
    Ok(())
}

impl Model {
    /// Compares the stored items with the model, and finds out whether the request in flight was applied.
    #[track_caller]
    fn check(&mut self, client: &mut Client, context: &str) {
        let found = read_all(client, context);
        let carried_out = match self.in_flight.take() {
            None => false,
            Some(InFlight::Restore(saved)) => found == saved,
            Some(InFlight::Batch(container, wanted)) => {
                let (there, others): (Items, Items) =
                    found.clone().into_iter().partition(|((of, _), _)| *of == container);
                let values: BTreeMap<String, u64> = there
                    .into_iter()
                    .map(|((_, id), item)| (id, item["value"].as_u64().unwrap_or(0)))
                    .collect();
                let same = self.now.iter().filter(|((of, _), _)| *of != container);
                values == wanted && others.iter().eq(same)
            }
        };
        assert!(
            carried_out || found == self.now,
            "{context}: found {found:?} in the place of {:?}",
            self.now
        );
        self.now = found;
    }
}

/// All items, by query and by point reads.
#[track_caller]
fn read_all(client: &mut Client, context: &str) -> Items {
    let mut items = Items::new();
    for (at, container) in CONTAINERS.iter().enumerate() {
        let path = format!("/dbs/d/colls/{container}/docs");
        let listed = client.request("GET", &path, &[KEY, ("x-ms-max-item-count", "-1")], "").json();
        let listed = listed["Documents"].as_array().cloned().unwrap_or_default();
        for id in (0..IDS).map(|id| id.to_string()) {
            let response = client.request("GET", &format!("{path}/{id}"), &[KEY], "");
            let in_list = listed.iter().find(|item| item["id"] == *id);
            assert_eq!(in_list.is_some(), response.status == 200, "{context}: {container}/{id}");
            if let Some(item) = in_list {
                assert_eq!(*item, response.json(), "{context}: {container}/{id}");
                items.insert((at, id), item.clone());
            }
        }
        assert_eq!(items.keys().filter(|(of, _)| *of == at).count(), listed.len(), "{context}");
    }
    items
}

/// Sends a request to the control port; an error when the server was killed.
fn post(endpoint: &Value, path: &str) -> io::Result<()> {
    let mut stream = try_connect(endpoint)?;
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nx-perihelion-control: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
    )?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    if !response.contains("\r\n\r\n") {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    Ok(())
}
