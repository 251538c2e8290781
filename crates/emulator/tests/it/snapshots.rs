//! Tests of snapshots: saved, restored, and queried as of their time.

use std::time::Duration;

use http::Method;
use perihelion_emulator::clock::Stopwatch;
use perihelion_emulator::regions::RegionId;
use serde_json::{Value, json};

use crate::client::TestAccount;

const DOCS: &str = "/dbs/d/colls/c/docs";
const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);

async fn put(account: &TestAccount, id: u32, value: u32) {
    let body = json!({"id": id.to_string(), "pk": "a", "v": value}).to_string();
    let headers = [KEY, ("x-ms-documentdb-is-upsert", "true")];
    account.send(Method::POST, DOCS, &headers, &body).await.expect_status(&[200, 201]);
}

/// The values of all items, now or as of `as_of`.
async fn values(account: &TestAccount, as_of: Option<&str>) -> Value {
    let mut headers =
        vec![KEY, ("x-ms-documentdb-isquery", "true"), ("content-type", "application/query+json")];
    headers.extend(as_of.map(|as_of| ("x-perihelion-as-of", as_of)));
    let body = json!({"query": "SELECT VALUE c.v FROM c ORDER BY c.v"}).to_string();
    account.send(Method::POST, DOCS, &headers, &body).await.expect(200).json()["Documents"].clone()
}

fn save(account: &TestAccount, name: &str) {
    account.hosted.account.save_snapshot(name, account.clock.now()).unwrap();
}

#[tokio::test]
async fn a_restored_account_has_its_old_state_and_continues_from_there() {
    let account = TestAccount::with_container().await;
    put(&account, 1, 1).await;
    put(&account, 2, 2).await;
    save(&account, "clean");
    for round in 10..13 {
        put(&account, 1, round).await;
        put(&account, 3, round).await;
        account.create_container("e", r#"{"id":"other","partitionKey":{"paths":["/pk"]}}"#).await;
        account.send(Method::DELETE, &format!("{DOCS}/2"), &[KEY], "").await.expect(204);
        if round == 11 {
            account.hosted.account.split_partition("d", "c", 0, None, account.clock.uptime()).unwrap();
        }
        account.hosted.account.restore_snapshot("clean").unwrap();
        assert_eq!(values(&account, None).await, json!([1, 2]), "round {round}");
        account.get("/dbs/e").await.expect(404);
        account.send(Method::GET, &format!("{DOCS}/2"), &[KEY], "").await.expect(200);
    }
    // A container that was deleted comes back with its items.
    account.delete("/dbs/d/colls/c").await.expect(204);
    account.hosted.account.restore_snapshot("clean").unwrap();
    assert_eq!(values(&account, None).await, json!([1, 2]));
}

#[tokio::test]
async fn session_tokens_and_etags_from_before_a_restore_stay_unambiguous() {
    let account = TestAccount::with_container().await;
    put(&account, 1, 1).await;
    save(&account, "clean");
    put(&account, 1, 2).await;
    let path = format!("{DOCS}/1");
    let newer = account.send(Method::GET, &path, &[KEY], "").await.expect(200);
    account.hosted.account.restore_snapshot("clean").unwrap();
    let token = ("x-ms-session-token", newer.header("x-ms-session-token").unwrap());
    let restored = account.send(Method::GET, &path, &[KEY, token], "").await.expect(200);
    assert_eq!(restored.json()["v"], 1);
    put(&account, 1, 3).await;
    let again = account.send(Method::GET, &path, &[KEY], "").await.expect(200);
    let tags = [newer.header("etag"), restored.header("etag"), again.header("etag")];
    assert!(tags[0] != tags[1] && tags[1] != tags[2] && tags[0] != tags[2], "{tags:?}");
}

#[tokio::test]
async fn a_query_may_read_as_of_a_snapshot_or_an_lsn() {
    let account = TestAccount::with_container().await;
    put(&account, 1, 1).await; // LSN 2
    put(&account, 2, 2).await; // LSN 3
    save(&account, "two");
    put(&account, 1, 5).await; // LSN 4
    account.send(Method::DELETE, &format!("{DOCS}/2"), &[KEY], "").await.expect(204); // LSN 5
    for (as_of, expected) in [
        (None, json!([5])),
        (Some("snapshot=two"), json!([1, 2])),
        (Some("lsn=2"), json!([1])),
        (Some("lsn=3"), json!([1, 2])),
        (Some("lsn=4"), json!([2, 5])),
        (Some("lsn=5"), json!([5])),
    ] {
        assert_eq!(values(&account, as_of).await, expected, "{as_of:?}");
    }
    let query = json!({"query": "SELECT * FROM c"}).to_string();
    for (as_of, part) in
        [("lsn=99", "bounded history"), ("snapshot=none", "'none'"), ("yesterday", "lsn=NUMBER")]
    {
        let headers = [
            KEY,
            ("x-ms-documentdb-isquery", "true"),
            ("content-type", "application/query+json"),
            ("x-perihelion-as-of", as_of),
        ];
        account.send(Method::POST, DOCS, &headers, &query).await.expect_error(400, 0, part);
    }
}

#[tokio::test]
async fn changes_undone_by_a_restore_cannot_be_read_or_continued_from() {
    let account = TestAccount::with(|settings| {
        settings.topology = crate::client::topology(&[("West US", 0), ("East US", 0)]);
    });
    account.create_container("d", r#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#).await;
    put(&account, 1, 1).await; // LSN 2
    save(&account, "one");
    put(&account, 2, 2).await; // LSN 3
    put(&account, 3, 3).await; // LSN 4
    account.clock.advance(Duration::from_secs(10));
    // A region that stands still works out what it sees, and remembers it.
    account.hosted.account.pause_replication("East US", account.clock.uptime()).unwrap();
    account.hosted.account.restore_snapshot("one").unwrap(); // LSN 5
    put(&account, 4, 4).await; // LSN 6
    put(&account, 4, 5).await; // LSN 7
    let headers = [KEY, ("x-ms-documentdb-isquery", "true"), ("content-type", "application/query+json")];
    let body = json!({"query": "SELECT VALUE c.v FROM c"}).to_string();
    let seen = account.send_in(RegionId(1), Method::POST, DOCS, &headers, &body).await.expect(200);
    assert_eq!(seen.json()["Documents"], json!([1]), "what was restored");
    for (lsn, expected) in [(2, Some(json!([1]))), (3, None), (4, None), (5, Some(json!([1])))] {
        let as_of = format!("lsn={lsn}");
        let headers = [&headers[..], &[("x-perihelion-as-of", as_of.as_str())]].concat();
        let response = account.send(Method::POST, DOCS, &headers, &body).await;
        match expected {
            Some(expected) => assert_eq!(response.expect(200).json()["Documents"], expected, "{as_of}"),
            None => drop(response.expect_error(400, 0, "bounded history")),
        }
    }
}

#[tokio::test]
async fn snapshots_are_named_listed_removed_and_bounded() {
    let account = TestAccount::with_container().await;
    put(&account, 1, 1).await;
    save(&account, "one");
    put(&account, 2, 1).await;
    save(&account, "one");
    let listed = account.hosted.account.list_snapshots();
    assert_eq!(
        (listed.len(), listed[0].name.as_str(), listed[0].containers, listed[0].items),
        (1, "one", 1, 2)
    );
    account.hosted.account.remove_snapshot("one").unwrap();
    for name in ["one", ""] {
        assert!(
            account
                .hosted
                .account
                .restore_snapshot(name)
                .unwrap_err()
                .to_string()
                .contains("peri snapshot list")
        );
    }
    for name in ["", "a/b", "line\nbreak", &"x".repeat(129)] {
        assert!(account.hosted.account.save_snapshot(name, account.clock.now()).is_err(), "{name:?}");
    }
    for n in 0..64 {
        save(&account, &n.to_string());
    }
    let full = account.hosted.account.save_snapshot("more", account.clock.now()).unwrap_err().to_string();
    assert!(full.contains("peri snapshot rm"), "{full}");
}

#[tokio::test]
async fn saving_and_restoring_cost_the_same_whatever_there_is() {
    let account = TestAccount::with_container().await;
    // The quickest of many: whatever else the machine does makes some of them slow, not all.
    let measure = || {
        let once = |_| {
            let stopwatch = Stopwatch::start();
            save(&account, "s");
            account.hosted.account.restore_snapshot("s").unwrap();
            stopwatch.elapsed()
        };
        (0..200).map(once).min().unwrap()
    };
    put(&account, 0, 0).await;
    let few = measure();
    for n in 1..3_000 {
        put(&account, n, n).await;
    }
    let many = measure();
    // A copy of three thousand items would cost a thousand times as much.
    assert!(many < few * 20, "{few:?} became {many:?}");
}
