//! Tests of concurrent clients: no lost updates, no partial batches, ordered change feeds.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::live::{LiveAccount, LiveResponse};

const DOCS: &str = "/dbs/d/colls/c/docs";
const BATCH: (&str, &str) = ("x-ms-cosmos-is-batch-request", "true");
const UPSERT: (&str, &str) = ("x-ms-documentdb-is-upsert", "true");
const LATEST: (&str, &str) = ("a-im", "Incremental Feed");
const ALL: (&str, &str) = ("a-im", "Full-Fidelity Feed");

/// The number of concurrent clients.
const TASKS: usize = 6;
const ROUNDS: usize = 40;

fn key(value: &str) -> String {
    json!([value]).to_string()
}

fn key_header(key: &str) -> (&str, &str) {
    ("x-ms-documentdb-partitionkey", key)
}

/// Runs `work` once for each of several clients, all at the same time.
async fn together<F, Work>(account: &Arc<LiveAccount>, clients: usize, work: F)
where
    F: Fn(Arc<LiveAccount>, usize) -> Work,
    Work: Future<Output = ()> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for client in 0..clients {
        tasks.spawn(work(Arc::clone(account), client));
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn increments_by_patch_are_never_lost() {
    let account = Arc::new(LiveAccount::with_container(3, json!({})).await);
    for pk in ["a", "b"] {
        account.create(json!({"id": "n", "pk": pk, "count": 0})).await.expect(201);
    }
    together(&account, TASKS, |account, client| async move {
        let pk = key(if client % 2 == 0 { "a" } else { "b" });
        for _ in 0..ROUNDS {
            let patch = json!([{"op": "incr", "path": "/count", "value": 1}]);
            account.patch(&format!("{DOCS}/n"), &[key_header(&pk)], patch).await.expect(200);
        }
    })
    .await;
    for pk in ["a", "b"] {
        let read = account.get(&format!("{DOCS}/n"), &[key_header(&key(pk))]).await.expect(200);
        assert_eq!(read.body["count"], TASKS / 2 * ROUNDS);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_replace_that_names_an_etag_never_overwrites_another() {
    let account = Arc::new(LiveAccount::with_container(2, json!({})).await);
    account.create(json!({"id": "n", "pk": "a", "count": 0})).await.expect(201);
    together(&account, TASKS, |account, _| async move {
        let pk = key("a");
        for _ in 0..ROUNDS / 4 {
            loop {
                let mut read = account.get(&format!("{DOCS}/n"), &[key_header(&pk)]).await.expect(200);
                let etag = read.header("etag").to_owned();
                read.body["count"] = json!(read.body["count"].as_u64().unwrap() + 1);
                let headers = [key_header(&pk), ("if-match", etag.as_str())];
                match account.put(&format!("{DOCS}/n"), &headers, read.body).await.status {
                    200 => break,
                    412 => tokio::task::yield_now().await,
                    other => panic!("{other}"),
                }
            }
        }
    })
    .await;
    let read = account.get(&format!("{DOCS}/n"), &[key_header(&key("a"))]).await.expect(200);
    assert_eq!(read.body["count"], TASKS * (ROUNDS / 4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_batch_is_visible_as_a_whole_or_not_at_all() {
    const MEMBERS: usize = 5;
    let account = Arc::new(LiveAccount::with_container(2, json!({})).await);
    let stamped = |stamp: usize| -> Value {
        (0..MEMBERS)
            .map(|at| json!({"operationType": "Upsert", "resourceBody": {"id": at.to_string(), "pk": "a", "stamp": stamp}}))
            .collect()
    };
    account.post(DOCS, &[key_header(&key("a")), BATCH], stamped(0)).await.expect(200);
    let over = Arc::new(AtomicBool::new(false));
    let writers = {
        let (account, over) = (Arc::clone(&account), Arc::clone(&over));
        tokio::spawn(async move {
            together(&account, 3, |account, client| async move {
                for round in 0..ROUNDS {
                    let stamp = 1 + client * ROUNDS + round;
                    let mut batch: Value = (0..MEMBERS)
                        .map(|at| json!({"operationType": "Upsert", "resourceBody": {"id": at.to_string(), "pk": "a", "stamp": stamp}}))
                        .collect();
                    let fails = round % 4 == 3;
                    if fails {
                        // The last operation fails, so none of the others may leave a trace.
                        batch.as_array_mut().unwrap().push(json!({"operationType": "Read", "id": "missing"}));
                    }
                    let response = account.post(DOCS, &[key_header(&key("a")), BATCH], batch).await;
                    assert_eq!(response.status, if fails { 207 } else { 200 });
                }
            })
            .await;
            over.store(true, Ordering::SeqCst);
        })
    };
    let mut seen = 0;
    while !over.load(Ordering::SeqCst) {
        let pk = key("a");
        let headers = [key_header(&pk)];
        let (queried, listed) =
            tokio::join!(account.query("SELECT c.id, c.stamp FROM c", &headers), account.get(DOCS, &headers));
        for response in [queried.expect(200), listed.expect(200)] {
            let stamps: Vec<u64> =
                response.documents().iter().map(|item| item["stamp"].as_u64().unwrap()).collect();
            assert_eq!(stamps.len(), MEMBERS);
            assert!(stamps.windows(2).all(|pair| pair[0] == pair[1]), "half a batch: {stamps:?}");
            let stamp = usize::try_from(stamps[0]).unwrap();
            assert!(stamp == 0 || (stamp - 1) % ROUNDS % 4 != 3, "a batch that failed left {stamp}");
        }
        seen += 1;
    }
    writers.await.unwrap();
    assert!(seen > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn unique_keys_hold_under_concurrent_writes() {
    let policy = json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/name"]}]}});
    let account = Arc::new(LiveAccount::with_container(2, policy).await);
    together(&account, TASKS, |account, client| async move {
        let mut rng = fastrand::Rng::with_seed(client as u64 + 1);
        for round in 0..ROUNDS {
            let item = json!({"id": format!("{client}-{}", round % 5), "pk": "a", "name": rng.u64(..4)});
            let pk = key("a");
            let response = match rng.u64(..4) {
                0 => account.create(item).await,
                1 => account.post(DOCS, &[key_header(&pk), UPSERT], item).await,
                2 => {
                    let batch = json!([{"operationType": "Upsert", "resourceBody": item}]);
                    account.post(DOCS, &[key_header(&pk), BATCH], batch).await
                }
                _ => {
                    account
                        .delete(&format!("{DOCS}/{}", item["id"].as_str().unwrap()), &[key_header(&pk)])
                        .await
                }
            };
            assert!([200, 201, 204, 207, 404, 409].contains(&response.status), "{response:?}");
            let names = account.query("SELECT VALUE c.name FROM c", &[key_header(&pk)]).await.expect(200);
            let mut names: Vec<u64> = names.documents().iter().map(|name| name.as_u64().unwrap()).collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        }
    })
    .await;
}

fn lsn_of(response: &LiveResponse) -> u64 {
    response.header("lsn").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_client_reads_what_it_wrote_and_its_tokens_only_grow() {
    let account = Arc::new(LiveAccount::with_container(3, json!({})).await);
    together(&account, TASKS, |account, client| async move {
        let mut rng = fastrand::Rng::with_seed(client as u64 + 77);
        // By range: the token and the LSN in it.
        let mut seen: HashMap<String, (String, u64)> = HashMap::new();
        for round in 0..ROUNDS {
            let pk = format!("k{}", rng.u64(..5));
            let (id, header) = (format!("c{client}"), key(&pk));
            let item = json!({"id": id, "pk": pk, "round": round});
            let written = account.post(DOCS, &[key_header(&header), UPSERT], item).await;
            assert!([200, 201].contains(&written.status));
            let range = written.header("x-ms-documentdb-partitionkeyrangeid").to_owned();
            let token = written.header("x-ms-session-token").to_owned();
            let lsn = lsn_of(&written);
            if let Some((_, before)) = seen.insert(range, (token.clone(), lsn)) {
                assert!(lsn > before, "a write moves the partition on");
            }
            let session = ("x-ms-session-token", token.as_str());
            let read =
                account.get(&format!("{DOCS}/{id}"), &[key_header(&header), session]).await.expect(200);
            assert_eq!(read.body["round"], round);
            assert!(lsn_of(&read) >= lsn);
            assert_eq!(read.header("x-ms-item-lsn"), lsn.to_string());
        }
    })
    .await;
}

/// Reads one range's feed until `over` and nothing is left; calls `each` with every document.
async fn follow(
    account: &LiveAccount,
    (range, mode): (&str, (&str, &str)),
    mut etag: String,
    over: &AtomicBool,
    mut each: impl FnMut(&Value),
) {
    let range = ("x-ms-documentdb-partitionkeyrangeid", range);
    loop {
        // Read before the feed: later writes belong to the next round.
        let last = over.load(Ordering::SeqCst);
        let mut headers = vec![mode, range, ("x-ms-max-item-count", "7")];
        if !etag.is_empty() {
            headers.push(("if-none-match", &etag));
        }
        let page = account.get(DOCS, &headers).await;
        page.documents().iter().for_each(&mut each);
        let empty = page.status == 304;
        assert!(empty || page.status == 200, "{page:?}");
        etag = page.header("etag").to_owned();
        if empty && last {
            return;
        }
    }
}

/// Random writes to few items; what each item was last left as, by key and id.
async fn scramble(account: &Arc<LiveAccount>) -> BTreeMap<(String, String), Option<u64>> {
    let mut left = BTreeMap::new();
    let mut tasks = JoinSet::new();
    for client in 0..TASKS {
        let account = Arc::clone(account);
        tasks.spawn(async move {
            let mut rng = fastrand::Rng::with_seed(client as u64 + 13);
            let mut own = BTreeMap::new();
            for round in 1..=ROUNDS as u64 {
                // Each client has items of its own, in logical partitions it shares.
                let (pk, id) = (format!("k{}", rng.u64(..4)), format!("c{client}-{}", rng.u64(..3)));
                let header = key(&pk);
                let path = format!("{DOCS}/{id}");
                let item = json!({"id": id, "pk": pk, "round": round});
                let after = match rng.u64(..5) {
                    0 => {
                        account.delete(&path, &[key_header(&header)]).await;
                        None
                    }
                    1 => {
                        let batch = json!([{"operationType": "Upsert", "resourceBody": item}]);
                        account.post(DOCS, &[key_header(&header), BATCH], batch).await.expect(200);
                        Some(round)
                    }
                    2 => {
                        let patch = json!([{"op": "set", "path": "/round", "value": round}]);
                        let patched = account.patch(&path, &[key_header(&header)], patch).await;
                        let unchanged = own.get(&(pk.clone(), id.clone())).copied().flatten();
                        if patched.status == 200 { Some(round) } else { unchanged }
                    }
                    _ => {
                        account.post(DOCS, &[key_header(&header), UPSERT], item).await;
                        Some(round)
                    }
                };
                own.insert((pk, id), after);
            }
            own
        });
    }
    while let Some(done) = tasks.join_next().await {
        left.extend(done.unwrap());
    }
    left
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_change_feed_ends_with_the_current_items() {
    let account = Arc::new(LiveAccount::with_container(2, json!({})).await);
    let over = Arc::new(AtomicBool::new(false));
    let mut readers = JoinSet::new();
    for range in ["0", "1"] {
        let (account, over) = (Arc::clone(&account), Arc::clone(&over));
        readers.spawn(async move {
            let (mut last, mut newest) = (0, BTreeMap::new());
            follow(&account, (range, LATEST), String::new(), &over, |item| {
                let lsn = item["_lsn"].as_u64().unwrap();
                assert!(lsn >= last, "in order");
                last = lsn;
                let name = (item["pk"].as_str().unwrap().to_owned(), item["id"].as_str().unwrap().to_owned());
                newest.insert(name, item["round"].as_u64().unwrap());
            })
            .await;
            newest
        });
    }
    let left = scramble(&account).await;
    over.store(true, Ordering::SeqCst);
    let mut delivered = BTreeMap::new();
    while let Some(newest) = readers.join_next().await {
        delivered.extend(newest.unwrap());
    }
    for (name, round) in left {
        // This mode contains no deletions, only the last version before them, if it was read in time.
        if let Some(round) = round {
            assert_eq!(delivered.get(&name), Some(&round), "{name:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_feed_of_all_versions_contains_every_change_once() {
    let account = Arc::new(LiveAccount::with_container(2, json!({})).await);
    let over = Arc::new(AtomicBool::new(false));
    let mut readers = JoinSet::new();
    for range in ["0", "1"] {
        let header = ("x-ms-documentdb-partitionkeyrangeid", range);
        let now = account.get(DOCS, &[ALL, header, ("if-none-match", "*")]).await.expect(304);
        let (account, over) = (Arc::clone(&account), Arc::clone(&over));
        let etag = now.header("etag").to_owned();
        readers.spawn(async move {
            let (mut last, mut state, mut changes) = (0, BTreeMap::new(), 0u64);
            follow(&account, (range, ALL), etag, &over, |change| {
                let metadata = &change["metadata"];
                let lsn = metadata["lsn"].as_u64().unwrap();
                assert!(lsn > last, "each change of its own LSN, in order: {change}");
                last = lsn;
                changes += 1;
                let deleted = metadata["operationType"] == "delete";
                let (id, pk) = if deleted {
                    (&metadata["id"], &metadata["partitionKey"]["pk"])
                } else {
                    (&change["current"]["id"], &change["current"]["pk"])
                };
                let name = (pk.as_str().unwrap().to_owned(), id.as_str().unwrap().to_owned());
                let known = state.get(&name).copied().flatten();
                let expected = if deleted {
                    "delete"
                } else if known.is_some() {
                    "replace"
                } else {
                    "create"
                };
                assert_eq!(metadata["operationType"], expected, "{change}");
                state.insert(name, if deleted { None } else { change["current"]["round"].as_u64() });
            })
            .await;
            (state, changes, last)
        });
    }
    let left = scramble(&account).await;
    over.store(true, Ordering::SeqCst);
    let mut delivered = BTreeMap::new();
    while let Some(read) = readers.join_next().await {
        delivered.extend(read.unwrap().0);
    }
    for (name, round) in left {
        assert_eq!(delivered.get(&name).copied().flatten(), round, "{name:?}");
    }
}
