//! Queries that take long, beside requests that must not wait for them.
//!
//! The tests have one thread for all connections and clients, as `tokio::test` does: a query that is evaluated
//! on it ends before anything else is served, however fast or slow the machine is.

use std::sync::Arc;

use serde_json::json;
use tokio::task::JoinSet;

use crate::live::LiveAccount;

const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
const LIST: &str = "/dbs/d/colls/c/docs/list";

/// Three JOINs over a list of fifty make 125,000 rows, each with a regular expression to match.
const HEAVY: &str = "SELECT VALUE COUNT(1) FROM c JOIN p IN c.list JOIN q IN c.list JOIN r IN c.list \
                     WHERE REGEXMATCH(CONCAT(c.text, ToString(p + q + r)), '^x+[0-9]+$')";

async fn account() -> Arc<LiveAccount> {
    let account = Arc::new(LiveAccount::with_container(1, json!({})).await);
    let list: Vec<u32> = (0..50).collect();
    account.create(json!({"id": "list", "pk": "a", "list": list, "text": "x".repeat(200)})).await.expect(201);
    account
}

/// Runs `work` again and again until the queries have ended, and returns how often that was.
async fn rounds_beside<Work: Future<Output = ()>>(
    queries: &mut JoinSet<()>,
    mut work: impl FnMut(usize) -> Work,
) -> usize {
    let mut rounds = 0;
    while !queries.is_empty() {
        work(rounds).await;
        rounds += 1;
        while let Some(ended) = queries.try_join_next() {
            ended.unwrap();
        }
    }
    rounds
}

#[tokio::test]
async fn requests_are_served_while_long_queries_are_evaluated() {
    let account = account().await;
    let mut queries = JoinSet::new();
    for _ in 0..3 {
        let account = Arc::clone(&account);
        queries.spawn(async move {
            let found = account.query(HEAVY, &[KEY]).await.expect(200);
            assert_eq!(found.documents(), [json!(125_000)]);
        });
    }
    let rounds = rounds_beside(&mut queries, async |round| {
        account.get(LIST, &[KEY]).await.expect(200);
        account.create(json!({"id": format!("n{round}"), "pk": "a", "n": round})).await.expect(201);
        let found = account.query(&format!("SELECT VALUE c.n FROM c WHERE c.n = {round}"), &[KEY]).await;
        assert_eq!(found.expect(200).documents(), [json!(round)]);
    })
    .await;
    assert!(rounds >= 10, "only {rounds} rounds while three long queries were evaluated");
}

#[tokio::test]
async fn long_queries_over_resources_are_not_evaluated_on_the_threads_of_connections() {
    let account = account().await;
    let numbers: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    let list = numbers.join(",");
    let text = format!(
        "SELECT VALUE COUNT(1) FROM c JOIN p IN (SELECT VALUE [{list}]) JOIN q IN (SELECT VALUE [{list}]) \
         JOIN r IN (SELECT VALUE [{list}]) WHERE REGEXMATCH(ToString(p + q + r), '^[0-9]+$')"
    );
    let mut queries = JoinSet::new();
    let asking = Arc::clone(&account);
    queries.spawn(async move {
        let body = json!({"query": text, "parameters": []});
        let headers = [("x-ms-documentdb-isquery", "True"), ("content-type", "application/query+json")];
        let found = asking.post("/dbs", &headers, body).await.expect(200);
        assert_eq!(found.body["Databases"], json!([125_000]));
    });
    let rounds =
        rounds_beside(&mut queries, async |_| drop(account.get(LIST, &[KEY]).await.expect(200))).await;
    assert!(rounds >= 10, "only {rounds} reads while a long query was evaluated");
}

#[tokio::test]
async fn a_long_scan_returns_what_a_short_one_does() {
    let account = account().await;
    for n in 0..60 {
        account
            .create(json!({"id": format!("s{n}"), "pk": "a", "n": n, "list": [1, 2, 3], "text": "y".repeat(5_000)}))
            .await
            .expect(201);
    }
    // Each row costs more than a quick evaluation may, and all of them less than a request may.
    let text = "SELECT VALUE c.n FROM c JOIN p IN c.list WHERE c.n < 50 AND p = 2 \
                AND REGEXMATCH(c.text, CONCAT('^[x-z]+', ToString(c.n - c.n), '?$'))";
    let found = account.query(text, &[KEY, ("x-ms-max-item-count", "1000")]).await.expect(200);
    assert_eq!(found.documents(), (0..50).map(|n| json!(n)).collect::<Vec<_>>());
    assert!(found.header("x-ms-request-charge").parse::<f64>().unwrap() > 2.0);
}
