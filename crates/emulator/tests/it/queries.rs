//! Queries on the wire: scopes, pages, plans, metrics.

use serde_json::{Value, json};

use crate::live::LiveAccount;

const CROSS: (&str, &str) = ("x-ms-documentdb-query-enablecrosspartition", "true");

async fn filled(partitions: u32) -> LiveAccount {
    let account = LiveAccount::with_container(partitions, json!({})).await;
    for n in 0..40 {
        account
            .create(json!({"id": n.to_string(), "pk": format!("p{}", n % 7), "n": n, "even": n % 2 == 0}))
            .await
            .expect(201);
    }
    account
}

async fn all_pages(account: &LiveAccount, text: &str, headers: &[(&str, &str)]) -> (Vec<Value>, usize) {
    let (mut rows, mut pages, mut token) = (Vec::new(), 0, String::new());
    loop {
        let mut all = headers.to_vec();
        if !token.is_empty() {
            all.push(("x-ms-continuation", &token));
        }
        let page = account.query(text, &all).await.expect(200);
        assert_eq!(page.header("x-ms-item-count"), page.documents().len().to_string());
        assert!(page.header("x-ms-request-charge").parse::<f64>().unwrap() > 0.0);
        rows.extend_from_slice(page.documents());
        pages += 1;
        assert!(pages < 1000, "the pages never end");
        token = page.header("x-ms-continuation").to_owned();
        if token.is_empty() {
            return (rows, pages);
        }
    }
}

#[tokio::test]
async fn a_query_over_all_partitions_pages_through_them() {
    let account = filled(3).await;
    let (rows, pages) = all_pages(
        &account,
        "SELECT VALUE c.n FROM c WHERE c.n >= 10",
        &[CROSS, ("x-ms-max-item-count", "4")],
    )
    .await;
    let mut numbers: Vec<i64> = rows.iter().map(|row| row.as_i64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (10..40).collect::<Vec<_>>());
    assert!(pages >= 8, "{pages}");
    let rejected = account.query("SELECT * FROM c", &[]).await.expect(400);
    assert!(rejected.message().contains("Cross partition query is required but disabled"));
    assert_ne!(rejected.sub_status(), "1004");
}

#[tokio::test]
async fn a_page_is_of_one_range() {
    let account = filled(3).await;
    let (mut seen, mut ranges, mut token) = (0, Vec::new(), String::new());
    loop {
        let page =
            account.query("SELECT * FROM c", &[CROSS, ("x-ms-continuation", &token)]).await.expect(200);
        let id = page.header("x-ms-documentdb-partitionkeyrangeid").to_owned();
        let own = account.query("SELECT * FROM c", &[("x-ms-documentdb-partitionkeyrangeid", &id)]).await;
        assert_eq!(page.documents(), own.expect(200).documents(), "range {id}");
        assert!(page.header("x-ms-session-token").starts_with(&format!("{id}:")));
        seen += page.documents().len();
        ranges.push(id);
        token = page.header("x-ms-continuation").to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!((seen, ranges.join(" ")), (40, "0 1 2".to_owned()));
}

#[tokio::test]
async fn a_continuation_of_the_service_names_the_last_item() {
    let account = filled(1).await;
    let all = account.query("SELECT * FROM c", &[CROSS]).await.expect(200);
    let after =
        |item: &Value| format!("-RID:~{}#RT:1#TRC:10#ISV:2#IEO:65567#QCF:8", item["_rid"].as_str().unwrap());
    let token = after(&all.documents()[9]);
    for text in ["SELECT * FROM c", "SELECT * FROM c WHERE c.n >= 0"] {
        let rest = account.query(text, &[CROSS, ("x-ms-continuation", &token)]).await.expect(200);
        assert_eq!(rest.documents(), &all.documents()[10..], "{text}");
    }
    let feed = account.get("/dbs/d/colls/c/docs", &[("x-ms-continuation", &token)]).await.expect(200);
    assert_eq!(feed.documents(), &all.documents()[10..]);
    // What has to be worked out as a whole starts anew, and so does one of another container.
    let elsewhere = "-RID:~a0NPAOszCpOChB4AAAAAAA==#RT:1#TRC:2#ISV:2#IEO:65567#QCF:8";
    let range = ("x-ms-documentdb-partitionkeyrangeid", "0");
    for (text, token, count) in [
        ("SELECT * FROM c", elsewhere, 40),
        ("SELECT * FROM c ORDER BY c.n DESC", &token, 40),
        ("SELECT VALUE COUNT(1) FROM c", &token, 1),
    ] {
        let found = account.query(text, &[range, ("x-ms-continuation", token)]).await.expect(200);
        assert_eq!(found.documents().len(), count, "{text}");
    }
    account.query("SELECT * FROM c", &[CROSS, ("x-ms-continuation", "-RID:~?")]).await.expect(400);
}

#[tokio::test]
async fn a_query_that_needs_merging_returns_its_plan() {
    let account = filled(3).await;
    for text in [
        "SELECT * FROM c ORDER BY c.n",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT DISTINCT c.pk FROM c",
        "SELECT TOP 3 * FROM c",
    ] {
        let features = (
            "x-ms-cosmos-supported-query-features",
            "Aggregate,Distinct,OrderBy,Top,MultipleOrderBy,OffsetAndLimit",
        );
        let rejected = account.query(text, &[CROSS, features]).await.expect(400);
        assert_eq!(rejected.sub_status(), "1004", "{text}");
        let plan: Value =
            serde_json::from_str(rejected.body["additionalErrorInfo"].as_str().unwrap()).unwrap();
        assert!(plan["queryInfo"]["aggregates"].is_array());
        assert_eq!(
            plan["queryRanges"],
            json!([{"min": "", "max": "FF", "isMinInclusive": true, "isMaxInclusive": false}])
        );
    }
}

#[tokio::test]
async fn a_filter_that_pins_the_partition_key_is_served_at_once() {
    let account = filled(3).await;
    let rows = account
        .query("SELECT VALUE c.n FROM c WHERE c.pk = 'p3' ORDER BY c.n DESC", &[CROSS])
        .await
        .expect(200);
    assert_eq!(rows.documents(), [38, 31, 24, 17, 10, 3].map(|n| json!(n)));
}

#[tokio::test]
async fn one_range_serves_its_part_of_a_merged_query() {
    let account = filled(3).await;
    let mut total = 0;
    for range in ["0", "1", "2"] {
        let range = ("x-ms-documentdb-partitionkeyrangeid", range);
        let rewritten =
            account.query("SELECT VALUE [{\"item\": COUNT(1)}] FROM c", &[range]).await.expect(200);
        total += rewritten.documents()[0][0]["item"].as_i64().unwrap();
        let ordered = account
            .query("SELECT c._rid, [{\"item\": c.n}] AS orderByItems, c AS payload FROM c WHERE (true) ORDER BY c.n", &[range])
            .await
            .expect(200);
        let keys: Vec<i64> =
            ordered.documents().iter().map(|row| row["orderByItems"][0]["item"].as_i64().unwrap()).collect();
        assert!(keys.is_sorted() && keys.len() > 1);
    }
    assert_eq!(total, 40);
    let gone =
        account.query("SELECT * FROM c", &[("x-ms-documentdb-partitionkeyrangeid", "9")]).await.expect(410);
    assert_eq!(gone.sub_status(), "1002");
}

#[tokio::test]
async fn an_epk_range_narrows_a_partition_key_range() {
    let account = filled(1).await;
    let half = [
        ("x-ms-documentdb-partitionkeyrangeid", "0"),
        ("x-ms-read-key-type", "EffectivePartitionKeyRange"),
        ("x-ms-start-epk", ""),
        ("x-ms-end-epk", "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"),
    ];
    let (lower, _) = all_pages(&account, "SELECT VALUE c.pk FROM c", &half).await;
    let rest = [half[0], half[1], ("x-ms-start-epk", half[3].1), ("x-ms-end-epk", "FF")];
    let (upper, _) = all_pages(&account, "SELECT VALUE c.pk FROM c", &rest).await;
    assert_eq!(lower.len() + upper.len(), 40);
    assert!(lower.iter().all(|key| !upper.contains(key)));
}

#[tokio::test]
async fn a_repeated_continuation_gives_the_same_page_and_an_invalid_one_is_rejected() {
    let account = filled(1).await;
    let size = ("x-ms-max-item-count", "5");
    let range = ("x-ms-documentdb-partitionkeyrangeid", "0");
    for text in [
        "SELECT VALUE c.n FROM c",
        "SELECT VALUE c.n FROM c ORDER BY c.n DESC",
        "SELECT DISTINCT VALUE c.n FROM c",
    ] {
        let first = account.query(text, &[range, size]).await.expect(200);
        let token = ("x-ms-continuation", first.header("x-ms-continuation"));
        let (second, again) = (
            account.query(text, &[range, size, token]).await,
            account.query(text, &[range, size, token]).await,
        );
        assert_eq!(second.documents(), again.documents());
        assert_ne!(first.documents(), second.documents());
        assert!(token.1.len() <= 1024);
    }
    let bad = account.query("SELECT * FROM c", &[range, ("x-ms-continuation", "nonsense")]).await.expect(400);
    assert!(bad.message().contains("Invalid Continuation Token"));
}

#[tokio::test]
async fn query_metrics_state_the_items_read_and_a_count_reads_none() {
    let account = filled(1).await;
    let metrics = ("x-ms-documentdb-populatequerymetrics", "true");
    let key = ("x-ms-documentdb-partitionkey", r#"["p1"]"#);
    let count = account.query("SELECT VALUE COUNT(1) FROM c", &[key, metrics]).await.expect(200);
    assert_eq!(count.documents(), [json!(6)]);
    let header = count.header("x-ms-documentdb-query-metrics");
    assert!(header.contains("retrievedDocumentCount=0;retrievedDocumentSize=0"), "{header}");
    assert!(header.ends_with("indexUtilizationRatio=1.00"), "{header}");
    let range = ("x-ms-documentdb-partitionkeyrangeid", "0");
    let found = account.query("SELECT * FROM c WHERE c.n = 7", &[range, metrics]).await.expect(200);
    assert!(found.header("x-ms-documentdb-query-metrics").contains("retrievedDocumentCount=1;"));
    let scanned = account.query("SELECT * FROM c WHERE c.n % 40 = 7", &[range, metrics]).await.expect(200);
    let header = scanned.header("x-ms-documentdb-query-metrics");
    assert!(
        header.contains("retrievedDocumentCount=40;") && header.ends_with("indexUtilizationRatio=0.03"),
        "{header}"
    );
    let charge =
        |response: &crate::live::LiveResponse| response.header("x-ms-request-charge").parse::<f64>().unwrap();
    assert!(charge(&scanned) > charge(&found));
}

#[tokio::test]
async fn errors_say_where() {
    let account = filled(1).await;
    for text in [
        "SELECT * frm c",
        "SELECT * from ",
        "SELECT BADFUNC(c.x) FROM c",
        "SELECT * FROM c WHERE c.x IS NULL",
    ] {
        let rejected = account.query(text, &[CROSS]).await.expect(400);
        assert_eq!(rejected.body["code"], "BadRequest");
        assert!(rejected.message().contains("\"location\""), "{}", rejected.message());
    }
    account
        .post("/dbs/d/colls/c/docs", &[CROSS, ("x-ms-documentdb-isquery", "true")], json!({"nothing": 1}))
        .await
        .expect(400);
}

#[tokio::test]
async fn feeds_page_through_everything() {
    let account = filled(3).await;
    let (mut seen, mut token) = (0, String::new());
    loop {
        let mut headers = vec![("x-ms-max-item-count", "7")];
        if !token.is_empty() {
            headers.push(("x-ms-continuation", &token));
        }
        let page = account.get("/dbs/d/colls/c/docs", &headers).await.expect(200);
        seen += page.documents().len();
        token = page.header("x-ms-continuation").to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen, 40);
}

#[tokio::test]
async fn top_of_an_ordered_range_reads_only_what_it_returns() {
    let account = filled(1).await;
    let metrics = ("x-ms-documentdb-populatequerymetrics", "true");
    let range = ("x-ms-documentdb-partitionkeyrangeid", "0");
    for text in [
        "SELECT TOP 3 c._rid, [{\"item\": c.n}] AS orderByItems, c AS payload FROM c WHERE ((c.n >= 10) AND (true)) ORDER BY c.n",
        "SELECT TOP 3 * FROM c ORDER BY c.n DESC",
        "SELECT * FROM c WHERE c.n < 30 ORDER BY c.n DESC OFFSET 1 LIMIT 2",
    ] {
        let found = account.query(text, &[range, metrics]).await.expect(200);
        let header = found.header("x-ms-documentdb-query-metrics");
        assert!(header.contains("retrievedDocumentCount=3;"), "{text}: {header}");
    }
}

#[tokio::test]
async fn an_exactly_full_last_page_is_followed_by_an_empty_one() {
    let account = filled(1).await;
    let key = ("x-ms-documentdb-partitionkey", r#"["p1"]"#);
    let size = ("x-ms-max-item-count", "3");
    // Six items have this key: 1, 8, 15, 22, 29 and 36.
    let (rows, pages) = all_pages(&account, "SELECT VALUE c.n FROM c", &[key, size]).await;
    assert_eq!((rows.len(), pages), (6, 3));
    // The end of a limit is known.
    let (rows, pages) = all_pages(&account, "SELECT TOP 6 VALUE c.n FROM c", &[key, size]).await;
    assert_eq!((rows.len(), pages), (6, 2));
    // Nor does a page of a result that is sorted anew look for more rows.
    for (text, expected) in [
        ("SELECT VALUE c.n FROM c WHERE c.id IN ('1', '8', '15') ORDER BY c.n", (3, 2)),
        ("SELECT VALUE c.n FROM c WHERE c.id IN ('1', '8') ORDER BY c.n", (2, 1)),
        ("SELECT DISTINCT VALUE c.n FROM c", (6, 3)),
        ("SELECT DISTINCT VALUE c.n FROM c WHERE c.n != 1", (5, 2)),
        ("SELECT c.n FROM c GROUP BY c.n", (6, 3)),
        ("SELECT VALUE x.n FROM (SELECT DISTINCT c.n FROM c) AS x", (6, 3)),
        ("SELECT DISTINCT TOP 6 VALUE c.n FROM c", (6, 2)),
        ("SELECT DISTINCT VALUE c.n FROM c OFFSET 1 LIMIT 3", (3, 1)),
        // The only row of an aggregate is known to be the last.
        ("SELECT VALUE COUNT(1) FROM c", (1, 1)),
    ] {
        let (rows, pages) = all_pages(&account, text, &[key, size]).await;
        assert_eq!((rows.len(), pages), expected, "{text}");
    }
}

#[tokio::test]
async fn pages_that_the_gateway_routes_are_of_one_range_and_continue_by_json() {
    let account = filled(4).await;
    let mut token = String::new();
    let (mut rows, mut pages) = (0, 0);
    loop {
        let mut headers = vec![CROSS];
        if !token.is_empty() {
            headers.push(("x-ms-continuation", &token));
        }
        let page = account.query("SELECT * FROM c WHERE c.n < 3", &headers).await.expect(200);
        rows += page.documents().len();
        pages += 1;
        token = page.header("x-ms-continuation").to_owned();
        if token.is_empty() {
            break;
        }
        let json: Value = serde_json::from_str(&token).unwrap();
        assert!(json["range"]["min"].is_string() && json["range"]["max"].is_string(), "{token}");
    }
    assert_eq!((rows, pages), (3, 4), "one page for each range, with or without rows");
}

#[tokio::test]
async fn an_aggregate_without_value_needs_the_header_of_the_key() {
    let account = filled(2).await;
    let text = "SELECT COUNT(1) AS n FROM c WHERE c.pk = 'p1'";
    let refused = account.query(text, &[CROSS]).await.expect(400);
    let message = "Cross partition query only supports 'VALUE <AggregateFunc>' for aggregates.";
    assert!(refused.message().contains(message), "{}", refused.message());
    let key = ("x-ms-documentdb-partitionkey", r#"["p1"]"#);
    assert_eq!(account.query(text, &[key]).await.expect(200).documents(), [json!({"n": 6})]);
    let value = "SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'p1'";
    assert_eq!(account.query(value, &[CROSS]).await.expect(200).documents(), [json!(6)]);
}

#[tokio::test]
async fn a_filter_on_a_prefix_of_the_key_needs_no_header_within_one_partition() {
    let key = json!({"paths": ["/state", "/city"], "kind": "MultiHash", "version": 2});
    let account = LiveAccount::with_container(1, json!({"partitionKey": key})).await;
    for (id, state, city) in [("1", "WA", "Redmond"), ("2", "GA", "Atlanta"), ("3", "GA", "Macon")] {
        let header = format!(r#"["{state}","{city}"]"#);
        let item = json!({"id": id, "state": state, "city": city});
        let headers = [("x-ms-documentdb-partitionkey", header.as_str())];
        account.post("/dbs/d/colls/c/docs", &headers, item).await.expect(201);
    }
    let found = account.query("SELECT VALUE p.id FROM p WHERE p.state = 'GA'", &[]).await.expect(200);
    assert_eq!(found.documents(), [json!("2"), json!("3")]);
    for text in ["SELECT * FROM p WHERE p.city = 'Macon'", "SELECT * FROM p WHERE p.state IN ('GA', 'WA')"] {
        let refused = account.query(text, &[]).await.expect(400);
        assert!(refused.message().contains("Cross partition query is required but disabled"), "{text}");
    }
}
