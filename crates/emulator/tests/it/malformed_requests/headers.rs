//! Headers whose values cannot be.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{BATCH, DOCS, ITEM, KEY, PLAN, QUERY, account, check_alive, check_readable, check_rejected};

#[tokio::test]
async fn invalid_boolean_headers_are_rejected() {
    let account = account().await;
    let (query, item, batch) = (json!({"query": "SELECT 1"}), json!({"id": "2", "pk": "a"}), json!([]));
    for word in ["maybe", "2", "yes", "truee", "\"true\"", "null", "-1"] {
        for header in [
            "x-ms-documentdb-isquery",
            "x-ms-cosmos-is-query-plan-request",
            "x-ms-cosmos-is-batch-request",
            "x-ms-documentdb-is-upsert",
        ] {
            check_rejected(
                &account.post(DOCS, &[KEY, (header, word)], item.clone()).await,
                &format!("{header}: {word}"),
            );
        }
        for header in [
            "x-ms-documentdb-query-enablecrosspartition",
            "x-ms-documentdb-populatequerymetrics",
            "x-ms-cosmos-populateindexmetrics",
        ] {
            let response = account.post(DOCS, &[QUERY, (header, word)], query.clone()).await;
            check_rejected(&response, &format!("{header}: {word}"));
        }
        for header in ["x-ms-cosmos-batch-atomic", "x-ms-cosmos-batch-continue-on-error"] {
            check_rejected(
                &account.post(DOCS, &[KEY, BATCH, (header, word)], batch.clone()).await,
                &format!("{header}: {word}"),
            );
        }
        check_rejected(
            &account.get("/dbs/d/colls/c", &[("x-ms-documentdb-populatequotainfo", word)]).await,
            word,
        );
    }
    check_alive(&account).await;
}

#[tokio::test]
async fn invalid_numbers_dates_and_epks_are_rejected() {
    let account = account().await;
    let latest = ("a-im", "Incremental Feed");
    for value in ["abc", "0", "-2", "1.5", "1e3", "99999999999999999999999", "0x10", "１"] {
        check_rejected(
            &account.query("SELECT * FROM c", &[KEY, ("x-ms-max-item-count", value)]).await,
            value,
        );
        check_rejected(&account.get(DOCS, &[("x-ms-max-item-count", value)]).await, value);
    }
    for value in [
        "yesterday",
        "2026-11-15",
        "0",
        "-1",
        "Sun, 99 Nov 2026 00:00:00 GMT",
        "Thu, 01 Jan 1601 00:00:00 GMT",
    ] {
        check_rejected(&account.get(DOCS, &[KEY, latest, ("if-modified-since", value)]).await, value);
    }
    for value in ["XYZ", "1", "0x00", "zz", "é", "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFG"] {
        for header in ["x-ms-start-epk", "x-ms-end-epk"] {
            let headers = [
                ("x-ms-documentdb-partitionkeyrangeid", "0"),
                ("x-ms-read-key-type", "EffectivePartitionKeyRange"),
                (header, value),
            ];
            check_rejected(&account.query("SELECT * FROM c", &headers).await, value);
            check_rejected(&account.get(DOCS, &[headers[0], headers[1], headers[2], latest]).await, value);
        }
    }
    let backwards = [
        ("x-ms-start-epk", "30"),
        ("x-ms-end-epk", "10"),
        ("x-ms-read-key-type", "EffectivePartitionKeyRange"),
    ];
    check_readable(&account.query("SELECT * FROM c", &backwards).await, "a range that ends before it starts");
    check_readable(
        &account.get(DOCS, &[backwards[0], backwards[1], latest]).await,
        "a range that ends before it starts",
    );
    for value in ["abc", "-1", "99999999999999999999", "", "0,0", "d,0"] {
        check_readable(
            &account.query("SELECT 1", &[("x-ms-documentdb-partitionkeyrangeid", value)]).await,
            value,
        );
    }
    for (header, value) in [
        ("x-ms-consistency-level", "Sometimes"),
        ("x-ms-cosmos-read-consistency-strategy", "x"),
        ("x-ms-cosmos-priority-level", "Highest"),
        ("x-ms-read-key-type", "EffectivePartitionKey"),
    ] {
        check_rejected(&account.query("SELECT * FROM c", &[KEY, (header, value)]).await, header);
    }
    for value in ["Other", "", "Incremental", "Full-Fidelity Feed, Incremental Feed"] {
        check_readable(&account.get(DOCS, &[KEY, ("a-im", value)]).await, value);
    }
    for (header, value) in [
        ("x-ms-offer-throughput", "abc"),
        ("x-ms-offer-throughput", "-400"),
        ("x-ms-offer-throughput", "4e2"),
        ("x-ms-offer-throughput", "99999999999999999999"),
        ("x-ms-cosmos-offer-autopilot-settings", "{"),
        ("x-ms-cosmos-offer-autopilot-settings", "[]"),
        ("x-ms-cosmos-offer-autopilot-settings", r#"{"maxThroughput":"x"}"#),
    ] {
        let body = json!({"id": "t", "partitionKey": {"paths": ["/pk"]}});
        check_rejected(&account.post("/dbs/d/colls", &[(header, value)], body).await, value);
    }
    check_alive(&account).await;
}

#[tokio::test]
async fn invalid_partition_keys_are_rejected() {
    let account = account().await;
    let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
    for value in [
        "a",
        "\"a\"",
        "[",
        "]",
        "[\"a\"",
        "{}",
        "[[1]]",
        "[{\"a\":1}]",
        "[1,2]",
        "[1e999]",
        "[nul]",
        "[\"a\",]",
        "[\"a\"] x",
        "null",
        "[undefined]",
        "['a']",
        "[\"\\ud800\"]",
        &deep,
    ] {
        check_rejected(&account.get(ITEM, &[("x-ms-documentdb-partitionkey", value)]).await, value);
        check_rejected(
            &account
                .post(DOCS, &[("x-ms-documentdb-partitionkey", value)], json!({"id": "9", "pk": "a"}))
                .await,
            value,
        );
        let response = account.query("SELECT * FROM c", &[("x-ms-documentdb-partitionkey", value)]).await;
        check_rejected(&response, value);
    }
    let long = format!("[\"{}\"]", "x".repeat(30_000));
    check_readable(&account.get(ITEM, &[("x-ms-documentdb-partitionkey", &long)]).await, "a long key");
    check_alive(&account).await;
}

#[tokio::test]
async fn forged_continuation_tokens_are_rejected() {
    let account = account().await;
    for n in 2..30 {
        account.create(json!({"id": n.to_string(), "pk": "a", "n": n})).await.expect(201);
    }
    let page = account.query("SELECT * FROM c", &[KEY, ("x-ms-max-item-count", "2")]).await.expect(200);
    let token = page.header("x-ms-continuation").to_owned();
    let others = [
        "x",
        "{}",
        "[]",
        "null",
        "-1",
        "AAAA",
        "+RID:~x#RT:1",
        "%00",
        "ffffffffffffffffffffffffffffffffffffffffffffffff",
    ];
    let cuts = (1..token.len()).map(|length| &token[..length]);
    for value in others.into_iter().chain(cuts) {
        for query in [
            "SELECT * FROM c",
            "SELECT * FROM c ORDER BY c.n",
            "SELECT VALUE COUNT(1) FROM c",
            "SELECT DISTINCT c.n FROM c",
        ] {
            let response = account.query(query, &[KEY, ("x-ms-continuation", value)]).await;
            // Part of a token may be a token, of another place.
            check_readable(&response, value);
        }
        check_readable(&account.get(DOCS, &[("x-ms-continuation", value)]).await, value);
        check_readable(&account.get("/dbs/d/colls", &[("x-ms-continuation", value)]).await, value);
        let latest = [KEY, ("a-im", "Incremental Feed"), ("if-none-match", value)];
        check_readable(&account.get(DOCS, &latest).await, value);
    }
    for value in others {
        check_rejected(&account.query("SELECT * FROM c", &[KEY, ("x-ms-continuation", value)]).await, value);
        check_rejected(&account.get(DOCS, &[("x-ms-continuation", value)]).await, value);
    }
    // A token of one query, given to another.
    for query in [
        "SELECT * FROM c ORDER BY c.n DESC",
        "SELECT VALUE MAX(c.n) FROM c",
        "SELECT DISTINCT VALUE c.pk FROM c",
        "SELECT c.n FROM c JOIN x IN c.list",
    ] {
        check_readable(&account.query(query, &[KEY, ("x-ms-continuation", &token)]).await, query);
    }
    check_alive(&account).await;
}

#[tokio::test]
async fn invalid_session_tokens_are_rejected() {
    let account = account().await;
    // Tokens of other ranges are not even read: the item is in range 1.
    for value in [
        "x",
        "1",
        "1:",
        "1:x",
        "1:-1#",
        "1:-1#x",
        "1:1#2#3",
        "1:1#2#a=b",
        "1:99999999999999999999",
        "1:1#99999999999999999999999",
        "1:#",
        "é",
    ] {
        check_rejected(&account.get(ITEM, &[KEY, ("x-ms-session-token", value)]).await, value);
        check_rejected(&account.query("SELECT * FROM c", &[KEY, ("x-ms-session-token", value)]).await, value);
    }
    for value in [",", ":", "0:1,,1:1", "0:x", "1:1,1:x", "-1:5", "99999999999999:1"] {
        check_readable(&account.get(ITEM, &[KEY, ("x-ms-session-token", value)]).await, value);
    }
    check_alive(&account).await;
}

#[tokio::test]
async fn repeated_non_utf8_and_empty_headers_are_handled() {
    let account = account().await;
    let twice = [KEY, ("x-ms-documentdb-partitionkey", r#"["b"]"#)];
    check_readable(&account.get(ITEM, &twice).await, "two keys");
    let twice = [KEY, QUERY, ("x-ms-documentdb-isquery", "false"), PLAN, BATCH];
    check_readable(&account.post(DOCS, &twice, json!({"query": "SELECT 1"})).await, "everything at once");
    for raw in [
        &b"GET /dbs HTTP/1.1\r\nhost: x\r\nx-ms-date: \xff\xfe\r\nauthorization: \xff\r\nconnection: close\r\n\r\n"[..],
        b"GET /dbs HTTP/1.1\r\nhost: x\r\nx-ms-date: a\0b\r\nconnection: close\r\n\r\n",
        b"GET /dbs HTTP/1.1\r\nhost: x\r\nhost: y\r\nconnection: close\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
        b"GET /\0 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
        b"GET /dbs HTTP/9.9\r\nhost: x\r\nconnection: close\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        b"POST /dbs HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\nconnection: close\r\n\r\n",
        b"POST /dbs HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\nconnection: close\r\n\r\nab",
        b"POST /dbs HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\nffffffffffffffffff\r\n",
    ] {
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", account.port())).await.unwrap();
        stream.write_all(raw).await.unwrap();
        let mut response = Vec::new();
        let read = tokio::time::timeout(std::time::Duration::from_secs(20), stream.read_to_end(&mut response)).await;
        // Expects an error or a closed connection, soon.
        drop(read.expect("an end"));
        let text = String::from_utf8_lossy(&response);
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 4"), "{text}");
    }
    check_alive(&account).await;
}
