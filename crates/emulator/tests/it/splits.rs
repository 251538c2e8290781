//! Partitions that split and merge under clients that are in the middle of something.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};

use crate::client::{TestAccount, TestResponse};

const DOCS: &str = "/dbs/d/colls/c/docs";
const RANGES: &str = "/dbs/d/colls/c/pkranges";
const ITEMS: u32 = 60;

type Headers<'a> = Vec<(&'a str, &'a str)>;

async fn put(account: &TestAccount, n: u32) -> TestResponse {
    let (key, body) =
        (format!(r#"["k{}"]"#, n % 20), json!({"id": n.to_string(), "pk": format!("k{}", n % 20), "n": n}));
    let headers = [("x-ms-documentdb-partitionkey", key.as_str()), ("x-ms-documentdb-is-upsert", "true")];
    account.send(Method::POST, DOCS, &headers, &body.to_string()).await.expect_status(&[200, 201])
}

async fn filled() -> TestAccount {
    let account = TestAccount::with_container().await;
    for n in 0..ITEMS {
        put(&account, n).await;
    }
    account
}

fn split(account: &TestAccount, range: u32) -> [u32; 2] {
    account.hosted.account.split_partition("d", "c", range, None, account.clock.uptime()).unwrap()
}

fn merge(account: &TestAccount, ranges: &[u32]) -> u32 {
    account.hosted.account.merge_partitions("d", "c", ranges, account.clock.uptime()).unwrap()
}

/// One page of a query, and its continuation.
async fn page(
    account: &TestAccount,
    query: &str,
    more: &[(&str, &str)],
    from: Option<&str>,
) -> (Vec<Value>, Option<String>) {
    let mut headers: Headers<'_> = vec![
        ("x-ms-documentdb-isquery", "true"),
        ("content-type", "application/query+json"),
        ("x-ms-documentdb-query-enablecrosspartition", "true"),
        ("x-ms-max-item-count", "7"),
    ];
    headers.extend_from_slice(more);
    headers.extend(from.map(|from| ("x-ms-continuation", from)));
    let body = json!({"query": query}).to_string();
    let response = account.send(Method::POST, DOCS, &headers, &body).await.expect(200);
    let rows = response.json()["Documents"].as_array().unwrap().clone();
    (rows, response.header("x-ms-continuation").map(str::to_owned))
}

#[tokio::test]
async fn a_query_continues_through_splits_and_merges_without_losing_or_repeating_a_row() {
    for between in 0..8 {
        let account = filled().await;
        let (mut rows, mut from) = (Vec::new(), None);
        let mut ranges = vec![0];
        for step in 0.. {
            let (next, more) = page(&account, "SELECT VALUE c.n FROM c", &[], from.as_deref()).await;
            rows.extend(next);
            from = more;
            if from.is_none() {
                break;
            }
            match (step == between, step == between + 2) {
                (true, _) => {
                    let [left, right] = split(&account, 0);
                    let [a, b] = split(&account, left);
                    ranges = vec![a, b, right];
                }
                (_, true) => ranges = vec![merge(&account, &ranges)],
                _ => {}
            }
        }
        let distinct: BTreeSet<u64> = rows.iter().map(|row| row.as_u64().unwrap()).collect();
        assert_eq!((rows.len(), distinct.len()), (60, 60), "split after page {between}");
    }
}

#[tokio::test]
async fn an_aggregate_query_survives_a_split_of_its_range() {
    let account = filled().await;
    let query = "SELECT DISTINCT VALUE c.n FROM c";
    let (mut rows, from) = page(&account, query, &[("x-ms-documentdb-partitionkeyrangeid", "0")], None).await;
    let ids = split(&account, 0).map(|id| id.to_string());
    for id in &ids {
        let mut from = from.clone();
        while let Some(token) = from {
            let range = [("x-ms-documentdb-partitionkeyrangeid", id.as_str())];
            let (next, more) = page(&account, query, &range, Some(&token)).await;
            rows.extend(next);
            from = more;
        }
    }
    let distinct: BTreeSet<u64> = rows.iter().map(|row| row.as_u64().unwrap()).collect();
    assert_eq!((rows.len(), distinct.len()), (60, 60));
}

#[tokio::test]
async fn clients_with_an_old_routing_map_get_410_and_find_the_new_ranges() {
    let account = filled().await;
    let range = [("x-ms-documentdb-partitionkeyrangeid", "0")];
    account.hosted.account.set_splitting("d", "c", 0, true).unwrap();
    account.send(Method::GET, DOCS, &range, "").await.expect_error(410, 1007, "try again");
    put(&account, 1).await;
    let before = account.get(RANGES).await.expect(200);
    split(&account, 0);
    account.send(Method::GET, DOCS, &range, "").await.expect_error(410, 1002, "read the ranges again");
    let etag = before.header("etag").unwrap().to_owned();
    let poll = [("a-im", "Incremental Feed"), ("if-none-match", etag.as_str())];
    let after = account.send(Method::GET, RANGES, &poll, "").await.expect(200).json();
    let ranges: Vec<(&str, &Value)> = after["PartitionKeyRanges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|range| (range["id"].as_str().unwrap(), &range["parents"]))
        .collect();
    assert_eq!(ranges, [("1", &json!(["0"])), ("2", &json!(["0"]))]);
    let merged = merge(&account, &[1, 2]);
    let all = account.get(RANGES).await.expect(200).json();
    assert_eq!(all["PartitionKeyRanges"].as_array().unwrap().len(), 1);
    assert_eq!(all["PartitionKeyRanges"][0]["parents"], json!(["0", "1", "2"]));
    assert_eq!(merged, 3);
}

#[tokio::test]
async fn a_session_continues_in_the_children_of_its_partition() {
    let account = filled().await;
    let token = put(&account, 5).await.header("x-ms-session-token").unwrap().to_owned();
    split(&account, 0);
    let headers = [("x-ms-documentdb-partitionkey", r#"["k5"]"#), ("x-ms-session-token", token.as_str())];
    let response = account.send(Method::GET, &format!("{DOCS}/5"), &headers, "").await.expect(200);
    let child = response.header("x-ms-session-token").unwrap();
    assert!(child.starts_with("1:-1#") || child.starts_with("2:-1#"), "{child}");
    let future = token.replace('#', "#9");
    let headers = [headers[0], ("x-ms-session-token", future.as_str())];
    account.send(Method::GET, &format!("{DOCS}/5"), &headers, "").await.expect_error(404, 1002, "session");
    merge(&account, &[1, 2]);
    let headers = [headers[0], ("x-ms-session-token", token.as_str())];
    let merged = account.send(Method::GET, &format!("{DOCS}/5"), &headers, "").await.expect(200);
    assert!(merged.header("x-ms-session-token").unwrap().starts_with("3:0#"));
}

/// Changes after `etag`, page by page, and the place reached.
async fn changes(
    account: &TestAccount,
    more: &[(&str, &str)],
    etag: &str,
    pages: usize,
) -> (Vec<u64>, String) {
    let (mut seen, mut etag) = (Vec::new(), etag.to_owned());
    for _ in 0..pages {
        let place = etag.clone();
        let mut headers: Headers<'_> = vec![("a-im", "Incremental Feed"), ("x-ms-max-item-count", "9")];
        headers.extend_from_slice(more);
        if !place.is_empty() {
            headers.push(("if-none-match", &place));
        }
        let response = account.send(Method::GET, DOCS, &headers, "").await.expect_status(&[200, 304]);
        etag = response.header("etag").unwrap().to_owned();
        if response.status == 304 {
            break;
        }
        seen.extend(
            response.json()["Documents"].as_array().unwrap().iter().map(|item| item["n"].as_u64().unwrap()),
        );
    }
    (seen, etag)
}

#[tokio::test]
async fn a_change_feed_continues_through_splits_and_merges() {
    let account = filled().await;
    // By range: half of the parent, then the children, then what they merged into.
    let (mut seen, etag) = changes(&account, &[("x-ms-documentdb-partitionkeyrangeid", "0")], "", 3).await;
    assert_eq!(seen.len(), 27);
    split(&account, 0);
    let (left, _) = changes(&account, &[("x-ms-documentdb-partitionkeyrangeid", "1")], &etag, 100).await;
    let (right, _) = changes(&account, &[("x-ms-documentdb-partitionkeyrangeid", "2")], &etag, 100).await;
    seen.extend(left.iter().chain(&right));
    assert_eq!(BTreeSet::from_iter(&seen).len(), 60);
    assert_eq!(seen.len(), 60);
    // Everywhere: the position lists both ranges, at different places, when they merge.
    let (mut seen, etag) = changes(&account, &[], "", 2).await;
    merge(&account, &[1, 2]);
    put(&account, 100).await;
    let (rest, _) = changes(&account, &[], &etag, 100).await;
    seen.extend(&rest);
    assert_eq!(seen.len(), 61, "{seen:?}");
    assert_eq!(BTreeSet::from_iter(&seen).len(), 61);
}

#[tokio::test]
async fn a_feed_of_an_epk_range_continues_within_a_merged_range() {
    let account = TestAccount::with(|settings| settings.partitions = std::num::NonZeroU32::new(2));
    account.create_container("d", r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}"#).await;
    let part = [
        ("a-im", "Full-Fidelity Feed"),
        ("x-ms-read-key-type", "EffectivePartitionKeyRange"),
        ("x-ms-start-epk", "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"),
        ("x-ms-end-epk", "FF"),
    ];
    let now = account.send(Method::GET, DOCS, &[&part[..], &[("if-none-match", "*")]].concat(), "").await;
    let [_, left] = split(&account, 0);
    let [right, rightmost] = split(&account, 1);
    // The position lists both halves, and nothing before them.
    let from = now.expect(304).header("etag").unwrap().to_owned();
    let halves =
        account.send(Method::GET, DOCS, &[&part[..], &[("if-none-match", &from)]].concat(), "").await;
    let from = halves.expect(304).header("etag").unwrap().to_owned();
    merge(&account, &[left, right, rightmost]);
    account.send(Method::GET, DOCS, &[&part[..], &[("if-none-match", &from)]].concat(), "").await.expect(304);
}

#[tokio::test]
async fn changes_with_the_same_lsn_survive_merging_again_and_again() {
    let account = TestAccount::with(|settings| settings.partitions = std::num::NonZeroU32::new(2));
    account.create_container("d", r#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#).await;
    for n in 0..20 {
        put(&account, n).await;
    }
    let halves = split(&account, 0);
    let whole = merge(&account, &halves);
    merge(&account, &[whole, 1]);
    let headers = [("a-im", "Full-Fidelity Feed"), ("if-none-match", "\"1\"")];
    let response = account.send(Method::GET, DOCS, &headers, "").await.expect(200).json();
    assert_eq!(response["Documents"].as_array().unwrap().len(), 20);
}

#[tokio::test]
async fn impossible_splits_and_merges_say_why() {
    let account = filled().await;
    let uptime = account.clock.uptime();
    let split = |range, at| {
        account.hosted.account.split_partition("d", "c", range, at, uptime).unwrap_err().to_string()
    };
    assert!(split(7, None).contains("'7'"));
    assert!(split(0, Some("FF")).contains("from '' to 'FF'"));
    assert!(split(0, Some("zz")).contains("hexadecimal"));
    let unknown =
        account.hosted.account.split_partition("d", "none", 0, None, uptime).unwrap_err().to_string();
    assert!(unknown.contains("'none'"), "{unknown}");
    let merge = |ranges: &[u32]| {
        account.hosted.account.merge_partitions("d", "c", ranges, uptime).unwrap_err().to_string()
    };
    assert!(merge(&[]).contains("two or more"));
    assert!(merge(&[0, 0]).contains("two or more"));
    let [left, _] = account.hosted.account.split_partition("d", "c", 0, None, uptime).unwrap();
    account.hosted.account.split_partition("d", "c", left, None, uptime).unwrap();
    // 2 is the right half; 3 and 4 are the halves of the left one.
    assert!(merge(&[3, 2]).contains("next to each other"));
}

#[tokio::test]
async fn ranges_do_not_merge_while_a_region_is_too_far_behind() {
    let account = TestAccount::with(|settings| {
        settings.topology = crate::client::topology(&[("West US", 0), ("East US", 0)]);
    });
    account.create_container("d", r#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#).await;
    let halves = split(&account, 0);
    let uptime = account.clock.uptime();
    account.hosted.account.pause_replication("East US", uptime).unwrap();
    let error = account.hosted.account.merge_partitions("d", "c", &halves, uptime).unwrap_err().to_string();
    assert!(error.contains("'East US' is paused") && error.contains("resume"), "{error}");
    account.hosted.account.resume_replication("East US", uptime).unwrap();
    merge(&account, &halves);
}

#[tokio::test]
async fn accounts_of_one_process_do_not_share_session_tokens() {
    // The item is in range 2 at LSN 2 both times: once made by a merge, once, for half of the keys, by a
    // split.
    for n in 0..8 {
        for (partitions, version) in [(2, ":0#2"), (1, ":-1#2")] {
            let account = TestAccount::with(|settings| {
                settings.partitions = std::num::NonZeroU32::new(partitions);
            });
            account.create_container("d", r#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#).await;
            put(&account, n).await;
            if partitions == 2 {
                merge(&account, &[0, 1]);
            } else {
                split(&account, 0);
            }
            let key = format!(r#"["k{n}"]"#);
            let key = [("x-ms-documentdb-partitionkey", key.as_str())];
            let response = account.send(Method::GET, &format!("{DOCS}/{n}"), &key, "").await.expect(200);
            let token = response.header("x-ms-session-token").unwrap();
            assert!(token.ends_with(version), "{token}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_never_notice_that_their_partition_is_replaced() {
    let account = std::sync::Arc::new(TestAccount::with_container().await);
    let writers = (0..4_u32).map(|writer| {
        let account = std::sync::Arc::clone(&account);
        tokio::spawn(async move {
            for n in 0..250 {
                put(&account, writer * 1000 + n).await;
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut range = 0;
    while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
        let halves = split(&account, range);
        tokio::task::yield_now().await;
        range = merge(&account, &halves);
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let mut found = BTreeSet::new();
    let mut from = None;
    loop {
        let (rows, more) = page(&account, "SELECT VALUE c.n FROM c", &[], from.as_deref()).await;
        found.extend(rows.iter().map(|row| row.as_u64().unwrap()));
        from = more;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(found.len(), 1000);
}

/// Sets the throughput of the account's first offer; returns whether the replace is pending.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_region_that_is_paused_and_resumed_while_ranges_split_and_merge_catches_up() {
    let account = TestAccount::with(|settings| {
        settings.topology = crate::client::topology(&[("West US", 0), ("East US", 0)]);
    });
    account.create_container("d", r#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#).await;
    let account = std::sync::Arc::new(account);
    for n in 0..200 {
        put(&account, n).await;
    }
    let toggler = {
        let account = std::sync::Arc::clone(&account);
        tokio::task::spawn_blocking(move || {
            for _ in 0..300 {
                account.hosted.account.pause_replication("East US", account.clock.uptime()).unwrap();
                std::thread::yield_now();
                account.hosted.account.resume_replication("East US", account.clock.uptime()).unwrap();
            }
        })
    };
    let (mut range, mut n) = (0, 200);
    while !toggler.is_finished() {
        put(&account, n).await;
        n += 1;
        let halves = split(&account, range);
        put(&account, n).await;
        n += 1;
        // Rejected while the region is paused.
        range = loop {
            let uptime = account.clock.uptime();
            match account.hosted.account.merge_partitions("d", "c", &halves, uptime) {
                Ok(merged) => break merged,
                Err(rejected) => assert!(rejected.to_string().contains("paused"), "{rejected}"),
            }
        };
    }
    toggler.await.unwrap();
    let body = json!({"query": "SELECT VALUE COUNT(1) FROM c"}).to_string();
    let range = range.to_string();
    let headers = [
        ("x-ms-documentdb-isquery", "true"),
        ("content-type", "application/query+json"),
        ("x-ms-documentdb-partitionkeyrangeid", range.as_str()),
    ];
    for region in [0, 1].map(perihelion_emulator::regions::RegionId) {
        let counted = account.send_in(region, Method::POST, DOCS, &headers, &body).await.expect(200);
        assert_eq!(counted.json()["Documents"][0], n, "{region:?}");
    }
}

async fn set_throughput(account: &TestAccount, units: u32) -> bool {
    let mut offer = account.get("/offers").await.expect(200).json()["Offers"][0].clone();
    offer["content"]["offerThroughput"] = json!(units);
    let path = format!("/offers/{}", offer["id"].as_str().unwrap());
    let replaced = account.put(&path, &offer.to_string()).await.expect(200);
    let pending = replaced.json()["content"]["isOfferReplacePending"] == true;
    assert_eq!(replaced.header("x-ms-offer-replace-pending"), Some(if pending { "true" } else { "false" }));
    pending
}

/// Polls until no offer is pending, by every route that shows it.
async fn carried_out(account: &TestAccount) {
    let pending = |offers: &Value| {
        offers["Offers"]
            .as_array()
            .unwrap()
            .iter()
            .any(|offer| offer["content"]["isOfferReplacePending"] == true)
    };
    while pending(&account.get("/offers").await.expect(200).json()) {
        tokio::task::yield_now().await;
    }
    let found = account.query("/offers", "SELECT * FROM c", json!([])).await.expect(200).json();
    assert!(!pending(&found));
}

async fn range_count(account: &TestAccount, container: &str) -> Value {
    account.get(&format!("/dbs/d/colls/{container}/pkranges")).await.expect(200).json()["_count"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn more_throughput_than_the_partitions_support_splits_them() {
    let account = filled().await;
    assert!(!set_throughput(&account, 10_000).await, "one partition carries that");
    assert!(set_throughput(&account, 25_000).await);
    // Point operations continue meanwhile, in every partition.
    for n in 0..ITEMS {
        put(&account, n).await;
    }
    carried_out(&account).await;
    let ranges = account.get(RANGES).await.expect(200).json();
    assert_eq!(ranges["_count"], 3);
    for range in ranges["PartitionKeyRanges"].as_array().unwrap() {
        assert_eq!(range["parents"][0], "0", "{range}");
    }
    let (mut rows, mut from) = (Vec::new(), None);
    loop {
        let (next, more) = page(&account, "SELECT VALUE c.n FROM c", &[], from.as_deref()).await;
        rows.extend(next.iter().map(|n| n.as_u64().unwrap()));
        from = more;
        if from.is_none() {
            break;
        }
    }
    rows.sort_unstable();
    assert_eq!(rows, (0..u64::from(ITEMS)).collect::<Vec<_>>());
    assert!(!set_throughput(&account, 400).await);
    assert_eq!(range_count(&account, "c").await, 3, "they stay");
}

#[tokio::test(flavor = "multi_thread")]
async fn raising_again_while_pending_ends_at_the_newest_throughput() {
    let account = filled().await;
    for units in [20_000, 30_000, 60_000] {
        set_throughput(&account, units).await;
    }
    carried_out(&account).await;
    assert_eq!(range_count(&account, "c").await, 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn throughput_of_a_database_splits_the_containers_that_share_it() {
    let account = TestAccount::new();
    let header = [("x-ms-offer-throughput", "400")];
    account.send(Method::POST, "/dbs", &header, r#"{"id":"d"}"#).await.expect(201);
    let container = |id: &str| format!(r#"{{"id":"{id}","partitionKey":{{"paths":["/pk"],"version":2}}}}"#);
    for id in ["one", "two"] {
        account.post("/dbs/d/colls", &container(id)).await.expect(201);
    }
    account.send(Method::POST, "/dbs/d/colls", &header, &container("own")).await.expect(201);
    assert!(set_throughput(&account, 20_000).await);
    carried_out(&account).await;
    for (id, expected) in [("one", 2), ("two", 2), ("own", 1)] {
        assert_eq!(range_count(&account, id).await, expected, "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fixed_number_of_partitions_does_not_change() {
    let account = TestAccount::with(|settings| settings.partitions = 2.try_into().ok());
    account.create_container("d", r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}"#).await;
    assert!(!set_throughput(&account, 50_000).await);
    assert_eq!(range_count(&account, "c").await, 2);
}

#[tokio::test]
async fn a_partition_that_holds_too_much_is_split() {
    let account = TestAccount::with(|settings| settings.partition_bytes_max = 4_000);
    account
        .create_container("d", r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#)
        .await;
    for n in 0..ITEMS {
        put(&account, n).await;
    }
    // The last split may still be on its way.
    let mut ranges = 1;
    for _ in 0..10_000 {
        let all = account.get(RANGES).await.expect(200).json();
        ranges = all["PartitionKeyRanges"].as_array().unwrap().len();
        if ranges >= 3 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    assert!(ranges >= 3, "{ranges} ranges hold {ITEMS} items of about 300 bytes");
    let (mut rows, mut from) = (0, None);
    loop {
        let (next, more) = page(&account, "SELECT VALUE c.n FROM c", &[], from.as_deref()).await;
        rows += next.len();
        from = more;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(rows, 60);
}

#[tokio::test]
async fn a_single_large_logical_partition_stays_whole() {
    let account = TestAccount::with(|settings| settings.partition_bytes_max = 1_000);
    account
        .create_container("d", r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#)
        .await;
    for n in 0..20 {
        put(&account, n * 20).await;
    }
    let all = account.get(RANGES).await.expect(200).json();
    assert_eq!(all["PartitionKeyRanges"].as_array().unwrap().len(), 1);
}
