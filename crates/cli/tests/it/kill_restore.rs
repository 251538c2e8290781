//! `kill -9` while snapshots are restored: the account is as before a restore or as after it.
//!
//! One writer changes two containers, each with one batch, and then has a snapshot of both restored. When
//! the process dies, what it had heard of is there, and of what it had not heard of all or nothing.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::time::Duration;

use serde_json::{Value, json};

use crate::binary::{Home, Up, try_connect};
use crate::client::Client;
use crate::kill::{Draws, number};

const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
const CONTAINERS: [&str; 2] = ["c", "e"];
/// Items of each container.
const IDS: u64 = 6;

/// Every item of both containers, whole.
type Items = BTreeMap<(usize, String), Value>;

/// What may be there when the account is opened again.
#[derive(Default)]
struct Model {
    /// What is there, if the request in flight was not carried out.
    now: Items,
    /// What is there otherwise.
    asked_for: Option<AskedFor>,
    next_value: u64,
    restored: u64,
}

enum AskedFor {
    /// These values in one container, and nothing else in it.
    Batch(usize, BTreeMap<String, u64>),
    /// The snapshot.
    Restore(Items),
}

#[test]
fn a_restore_is_there_as_a_whole_or_not_at_all() {
    let seed = number("SEED").unwrap_or(0x5EED_0002);
    let kills = number("KILLS").unwrap_or(15);
    println!("SEED={seed}");
    let mut draws = Draws::new(seed);
    let home = Home::new();
    let mut model = Model::default();
    for kill in 0..kills {
        let fsync = ["interval", "never", "always"][draws.below(3) as usize];
        let up = home.up(&["--regions", "West US", "--data-dir", "data", "--fsync", fsync]);
        let mut client = Client::new(&up.account()["endpoint"]);
        if kill == 0 {
            client.make_container();
            let body = r#"{"id":"e","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
            assert_eq!(client.ask("POST", "/dbs/d/colls", &[], body).status, 201);
        }
        model.check(&mut client, &format!("SEED={seed}, kill {kill}, fsync {fsync}"));
        let life = Duration::from_micros(2_000 + draws.below(80_000));
        live_until_killed(up, &mut model, &mut draws, life);
    }
    assert!(model.restored > kills / 2, "only {} restores were heard of: nothing was tested", model.restored);
    let up = home.up(&["--regions", "West US", "--data-dir", "data"]);
    model.check(&mut Client::new(&up.account()["endpoint"]), &format!("SEED={seed}, at the end"));
}

fn live_until_killed(up: Up, model: &mut Model, draws: &mut Draws, life: Duration) {
    let (account, control) = (up.account()["endpoint"].clone(), up.ready["control"]["endpoint"].clone());
    let mut client = Client::new(&account);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A snapshot is gone with the process: each has one of what it found.
            let saved = model.now.clone();
            if post(&control, "/snapshots/s").is_err() {
                return;
            }
            while cycle(&mut client, &control, model, &saved, draws).is_ok() {}
        });
        // How long it lives, not something to wait for.
        std::thread::sleep(life);
        drop(up);
    });
}

/// Changes both containers and has them restored; an error when the server is gone.
fn cycle(
    client: &mut Client,
    control: &Value,
    model: &mut Model,
    saved: &Items,
    draws: &mut Draws,
) -> io::Result<()> {
    for container in 0..CONTAINERS.len() {
        batch(client, model, container, draws)?;
    }
    model.asked_for = Some(AskedFor::Restore(saved.clone()));
    post(control, "/snapshots/s/restore")?;
    model.asked_for = None;
    model.now = saved.clone();
    model.restored += 1;
    Ok(())
}

/// Gives some items of a container another value, and takes the others away.
fn batch(client: &mut Client, model: &mut Model, container: usize, draws: &mut Draws) -> io::Result<()> {
    model.next_value += 1;
    let value = model.next_value;
    let (mut wanted, mut operations) = (BTreeMap::new(), Vec::new());
    for id in (0..IDS).map(|id| id.to_string()) {
        if wanted.is_empty() || draws.below(3) > 0 {
            let body =
                json!({ "id": id, "pk": "a", "value": value, "fill": "x".repeat(value as usize % 300) });
            operations.push(json!({ "operationType": "Upsert", "resourceBody": body }));
            wanted.insert(id, value);
        } else if model.now.contains_key(&(container, id.clone())) {
            operations.push(json!({ "operationType": "Delete", "id": id }));
        }
    }
    model.asked_for = Some(AskedFor::Batch(container, wanted));
    let headers = [KEY, ("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "True")];
    let path = format!("/dbs/d/colls/{}/docs", CONTAINERS[container]);
    let answer = client.send("POST", &path, &headers, &Value::from(operations).to_string())?;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let results = answer.json();
    let written = results.as_array().expect("a list of results").iter().map(|result| &result["resourceBody"]);
    model.now.retain(|(of, _), _| *of != container);
    let written = written.filter(|item| item.is_object());
    model.now.extend(
        written.map(|item| ((container, item["id"].as_str().unwrap_or_default().to_owned()), item.clone())),
    );
    model.asked_for = None;
    Ok(())
}

impl Model {
    /// Compares what is there with what may be, and learns what became of the request in flight.
    #[track_caller]
    fn check(&mut self, client: &mut Client, context: &str) {
        let found = read_all(client, context);
        let carried_out = match self.asked_for.take() {
            None => false,
            Some(AskedFor::Restore(saved)) => found == saved,
            Some(AskedFor::Batch(container, wanted)) => {
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

/// Everything that is there, by query and by reading each item.
#[track_caller]
fn read_all(client: &mut Client, context: &str) -> Items {
    let mut items = Items::new();
    for (at, container) in CONTAINERS.iter().enumerate() {
        let path = format!("/dbs/d/colls/{container}/docs");
        let listed = client.ask("GET", &path, &[KEY, ("x-ms-max-item-count", "-1")], "").json();
        let listed = listed["Documents"].as_array().cloned().unwrap_or_default();
        for id in (0..IDS).map(|id| id.to_string()) {
            let answer = client.ask("GET", &format!("{path}/{id}"), &[KEY], "");
            let in_list = listed.iter().find(|item| item["id"] == *id);
            assert_eq!(in_list.is_some(), answer.status == 200, "{context}: {container}/{id}");
            if let Some(item) = in_list {
                assert_eq!(*item, answer.json(), "{context}: {container}/{id}");
                items.insert((at, id), item.clone());
            }
        }
        assert_eq!(items.keys().filter(|(of, _)| *of == at).count(), listed.len(), "{context}");
    }
    items
}

/// Asks the control port; an error when it is gone.
fn post(endpoint: &Value, path: &str) -> io::Result<()> {
    let mut stream = try_connect(endpoint)?;
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if !answer.contains("\r\n\r\n") {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    Ok(())
}
