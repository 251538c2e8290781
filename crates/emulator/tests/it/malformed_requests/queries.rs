//! Queries that would take all of the machine.

use std::time::Duration;

use serde_json::json;

use super::{DOCS, KEY, QUERY, account, check_alive, check_readable, check_rejected};
use crate::live::LiveAccount;

/// Longer than any of these takes on a slow machine without optimizations, shorter than what an
/// unbounded one would.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

async fn send_query(account: &LiveAccount, query: &str) -> crate::live::LiveResponse {
    let about: String = query.chars().take(100).collect();
    let response = tokio::time::timeout(TEST_TIMEOUT, account.query(query, &[KEY])).await;
    let response = response.unwrap_or_else(|_| panic!("{about} takes too long"));
    check_readable(&response, &about);
    response
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_queries_are_rejected_while_others_are_served() {
    let account = std::sync::Arc::new(account().await);
    let joins = "FROM c JOIN p IN c.list JOIN q IN c.list JOIN r IN c.list JOIN s IN c.list";
    let nested = (0..30).fold("SELECT VALUE [1] FROM c".to_owned(), |inner, _| {
        format!("SELECT VALUE [x, x] FROM ({inner}) x")
    });
    for query in [
        format!("SELECT VALUE COUNT(1) {joins}"),
        format!("SELECT p, q {joins} ORDER BY c.n"),
        "SELECT VALUE 1 FROM c WHERE EXISTS(SELECT 1 FROM p IN c.list JOIN q IN c.list JOIN r IN c.list WHERE p + q + r < 0)".to_owned(),
        format!("SELECT VALUE [{}] FROM c", vec!["c"; 2_000].join(",")),
        nested,
    ] {
        let other = tokio::spawn({
            let account = std::sync::Arc::clone(&account);
            async move { check_alive(&account).await }
        });
        let rejected = send_query(&account, &query).await;
        assert_eq!(rejected.status, 400, "{query}");
        assert!(rejected.message().contains("too much work"), "{}", rejected.message());
        other.await.unwrap();
    }
}

#[tokio::test]
async fn long_and_deeply_nested_queries_get_a_response() {
    let account = account().await;
    let numbers: Vec<String> = (0..60_000).map(|n| n.to_string()).collect();
    let numbers = numbers.join(",");
    for query in [
        format!("SELECT VALUE c.n FROM c WHERE c.n IN ({numbers})"),
        format!("SELECT VALUE ARRAY_CONTAINS([{numbers}], c.n) FROM c"),
        format!("SELECT VALUE c.n FROM c WHERE {}", vec!["c.n = 1"; 30_000].join(" OR ")),
        format!("SELECT VALUE c.n FROM c WHERE {}", vec!["c.n = 1"; 30_000].join(" AND ")),
        format!("SELECT VALUE {}", vec!["1"; 100_000].join("+")),
        format!("SELECT VALUE {}", vec!["'a'"; 100_000].join("||")),
        format!("SELECT VALUE {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("SELECT VALUE {}1{}", "[".repeat(100_000), "]".repeat(100_000)),
        format!("SELECT VALUE {}1", "NOT ".repeat(100_000)),
        format!("SELECT VALUE {}1", " -".repeat(100_000)),
        format!("SELECT VALUE {}1{}", "ABS(".repeat(50_000), ")".repeat(50_000)),
        format!("SELECT VALUE c{} FROM c", ".a".repeat(100_000)),
        format!("SELECT VALUE {}1{}", "(SELECT VALUE ".repeat(10_000), ")".repeat(10_000)),
        format!("SELECT VALUE {}1{}", "true ? ".repeat(20_000), ": 0".repeat(20_000)),
        format!("SELECT {} FROM c", vec!["c.n"; 50_000].join(",")),
        format!("SELECT VALUE c FROM c {}", "JOIN x IN c.list ".repeat(10_000)),
        format!("SELECT * FROM c ORDER BY {}", vec!["c.n"; 10_000].join(",")),
        format!("SELECT COUNT(1) FROM c GROUP BY {}", vec!["c.n"; 10_000].join(",")),
        "SELECT VALUE '\u{0}'".to_owned(),
        "SELECT VALUE 'unterminated".to_owned(),
        "SELECT /* unterminated".to_owned(),
        "SELECT \u{1F600}".to_owned(),
    ] {
        send_query(&account, &query).await;
    }
    let long = send_query(&account, &format!("SELECT 1 --{}", "x".repeat(600_000))).await;
    check_rejected(&long, "600 KB of text");
    check_alive(&account).await;
}

#[tokio::test]
async fn expensive_functions_and_patterns_stay_within_limits() {
    let account = account().await;
    for query in [
        "SELECT VALUE REPLACE(c.text, 'x', c.text) FROM c",
        "SELECT VALUE LENGTH(c.text || c.text || c.text || c.text || c.text || c.text) FROM c",
        "SELECT VALUE REGEXMATCH(c.text, '(x+x+)+y') FROM c",
        "SELECT VALUE REGEXMATCH(c.text, '(x?){1000}y{1000}') FROM c",
        "SELECT VALUE REGEXMATCH(c.text, '[xy]*y[xy]{2000}$') FROM c",
        "SELECT VALUE REGEXMATCH(c.text, '((((((x{100}){100}){100}){100}){100}){100})') FROM c",
        "SELECT VALUE c.text LIKE '%x%x%x%x%x%x%x%x%x%x%y' FROM c",
        "SELECT VALUE REPLICATE(c.text, 1000000000) FROM c",
        "SELECT VALUE ARRAY_LENGTH(ARRAY_CONCAT(c.list, c.list, c.list, c.list)) FROM c",
        "SELECT VALUE SETINTERSECT(c.list, c.list) FROM c",
        "SELECT VALUE STRINGSPLIT(c.text, 'x') FROM c",
        "SELECT VALUE STRINGTOARRAY('[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[') FROM c",
        "SELECT VALUE DATETIMEADD('yyyy', 9999999999, '2020-01-01') FROM c",
        "SELECT VALUE POWER(10, 400) FROM c",
        "SELECT VALUE INTBITLEFTSHIFT(1, 9223372036854775807)",
        "SELECT VALUE c.list[99999999999999999999] FROM c",
        "SELECT VALUE SUBSTRING(c.text, 1e300, -1e300) FROM c",
        "SELECT TOP 4294967296 * FROM c",
        "SELECT * FROM c OFFSET 18446744073709551615 LIMIT 18446744073709551615",
    ] {
        send_query(&account, query).await;
    }
    let deep = format!("{}1{}", "[".repeat(50_000), "]".repeat(50_000));
    let body = format!(r#"{{"query":"SELECT @p","parameters":[{{"name":"@p","value":{deep}}}]}}"#);
    check_rejected(
        &account.send(http::Method::POST, DOCS, &[KEY, QUERY], body.into()).await,
        "a deep parameter",
    );
    let pattern = "(".repeat(10_000);
    let body = json!({"query": "SELECT VALUE REGEXMATCH('a', @p)", "parameters": [{"name": "@p", "value": pattern}]});
    check_readable(&account.post(DOCS, &[KEY, QUERY], body).await, "a deep pattern");
    check_alive(&account).await;
}

#[tokio::test]
async fn computed_properties_have_a_limit() {
    let properties: Vec<_> = (0..20)
        .map(|n| json!({"name": format!("p{}", n + 1), "query": format!("SELECT VALUE [c.p{n}, c.p{n}] FROM c")}))
        .collect();
    let account = LiveAccount::with_container(1, json!({})).await;
    let body = json!({"id": "many", "partitionKey": {"paths": ["/pk"]}, "computedProperties": properties});
    let created = account.post("/dbs/d/colls", &[], body).await;
    check_readable(&created, "properties that use each other");
    if created.status == 201 {
        let docs = "/dbs/d/colls/many/docs";
        account.post(docs, &[KEY], json!({"id": "1", "pk": "a", "p0": 1})).await.expect(201);
        let query = json!({"query": "SELECT VALUE c.p20 FROM c"});
        let response = tokio::time::timeout(TEST_TIMEOUT, account.post(docs, &[KEY, QUERY], query)).await;
        check_readable(&response.expect("an answer"), "a property that uses all others");
    }
}

/// Resident memory of this process in bytes, where the system reports it.
fn resident_bytes() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split(' ').nth(1)?.parse::<usize>().ok().map(|pages| pages * 4096)
}

#[test]
fn many_malformed_requests_leak_no_memory() {
    // In a process of its own: other tests in this process use memory as well.
    let executable = std::env::current_exe().expect("a test runs from a file");
    let arguments = ["--exact", "--ignored", "--nocapture", "malformed_requests::queries::measure_memory"];
    let outcome = std::process::Command::new(executable)
        .args(arguments)
        // glibc keeps freed memory per thread, and which thread evaluates a long query depends on the load.
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .expect("a test can start itself");
    let (stdout, stderr) =
        (String::from_utf8_lossy(&outcome.stdout), String::from_utf8_lossy(&outcome.stderr));
    assert!(outcome.status.success() && stdout.contains("1 passed"), "{stdout}{stderr}");
}

#[tokio::test]
#[ignore = "run by many_malformed_requests_leak_no_memory, alone in its process"]
async fn measure_memory() {
    let account = account().await;
    let send_all = || async {
        for n in 0..10 {
            let part = "(SELECT VALUE ARRAY_SLICE(c.list, 0, 100))";
            let joins = format!("FROM c JOIN p IN {part} JOIN q IN {part}");
            send_query(&account, &format!("SELECT p, q, c.text || '{n}' AS t {joins}")).await;
            send_query(&account, &format!("SELECT VALUE LENGTH(c.text || '{n}') FROM c")).await;
            let item = json!({"id": "1", "pk": "a", "n": 1, "list": [1], "t": "x".repeat(2_000_000)});
            check_readable(&account.post(DOCS, &[KEY], item).await, "a large item");
            let body = "[".repeat(1_000_000);
            check_rejected(&account.send(http::Method::POST, DOCS, &[KEY], body.into()).await, "a deep body");
        }
    };
    send_all().await;
    let Some(before) = resident_bytes() else { return };
    for _ in 0..3 {
        send_all().await;
    }
    let after = resident_bytes().expect("as before");
    println!("{before} bytes became {after}");
    // The requests sent in between have half as many bytes again.
    assert!(after < before + 64 * 1024 * 1024, "{before} bytes became {after}");
    check_alive(&account).await;
}
