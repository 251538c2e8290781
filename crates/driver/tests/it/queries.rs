//! Queries over partitions that split while they are read.

use std::num::NonZeroU32;

use perihelion_driver::operation::Operation;
use perihelion_driver::query::{QueryOptions, QueryPages, ServicePages};
use perihelion_driver::{CosmosDriver, Error, ErrorKind};
use protocol::partition::PartitionKey;
use serde_json::{Value, json};
use sql::{QueryContext, QuerySchema, Statement, run_reference};

use crate::test_account::{DEADLINE, TestAccount, run, within};

/// Items of which many share their values.
pub(crate) async fn fill(test_account: &TestAccount, driver: &CosmosDriver, count: usize) -> Vec<Value> {
    let items: Vec<Value> = (0..count)
        .map(|number| {
            let mut item = json!({
                "id": format!("i{number:03}"), "pk": format!("p{}", number % 23), "n": number % 7, "g": number % 4,
                "tags": (0..number % 3).collect::<Vec<_>>(),
            });
            match number % 5 {
                0 => item["k"] = json!(number % 3),
                1 => item["k"] = json!(format!("s{}", number % 4)),
                2 => item["k"] = Value::Null,
                3 => item["k"] = json!(number % 2 == 0),
                _ => {}
            }
            item
        })
        .collect();
    for item in &items {
        let key = PartitionKey::single(item["pk"].as_str().expect("text"));
        run(driver, &Operation::create_item(&test_account.container, key, item.to_string()))
            .await
            .expect("made");
    }
    items
}

pub(crate) fn expected(items: &[Value], query: &str) -> Vec<Value> {
    let documents: Vec<sql::Value> =
        items.iter().map(|item| sql::value::parse(item.to_string().as_bytes()).expect("JSON")).collect();
    let statement = Statement::prepare(query, &[], &QuerySchema::default()).expect(query);
    let rows = run_reference(&statement, &documents, QueryContext::default()).expect(query);
    rows.iter().map(|row| serde_json::from_str(&row.to_string()).expect("JSON")).collect()
}

pub(crate) async fn start(
    test_account: &TestAccount,
    driver: &CosmosDriver,
    query: &str,
    options: QueryOptions,
) -> Result<QueryPages<ServicePages>, Error> {
    let body = json!({"query": query}).to_string();
    driver.query(&test_account.container, body, &options, &within(DEADLINE)).await
}

/// The next page's rows, as values.
async fn page(pages: &mut QueryPages<ServicePages>) -> Option<Vec<Value>> {
    let page = pages.next_page().await.expect("a page")?;
    Some(page.rows.iter().map(|row| serde_json::from_slice(row).expect("JSON")).collect())
}

/// Splits the partition that has the most of the EPK space left to it: the first one listed.
pub(crate) async fn split(test_account: &TestAccount, driver: &CosmosDriver) {
    let container = driver.container(&test_account.container, &Default::default()).await.expect("known");
    let known = driver.partitions(&container, &Default::default()).await.expect("listed");
    let newest =
        driver.refresh_partitions(&container, &known, &Default::default()).await.expect("listed again");
    let first =
        newest.map().partitions().iter().min_by_key(|partition| partition.id).expect("one at least").id;
    test_account
        .control(
            http::Method::POST,
            &format!("/databases/d/containers/c/partitions/{first}/split"),
            json!({}),
        )
        .await;
}

const QUERIES: &[(&str, bool)] = &[
    ("SELECT c.id, c.n FROM c", false),
    ("SELECT c.id FROM c WHERE c.n > 3", false),
    ("SELECT c.id, t FROM c JOIN t IN c.tags", false),
    ("SELECT c.id, c.k FROM c ORDER BY c.k, c.id", true),
    ("SELECT c.id FROM c ORDER BY c.id DESC", true),
    ("SELECT TOP 10 c.id, c.n FROM c ORDER BY c.n DESC, c.id", true),
    ("SELECT c.id FROM c ORDER BY c.n, c.id OFFSET 5 LIMIT 20", true),
    ("SELECT DISTINCT c.g, c.n FROM c", false),
    ("SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n", true),
    ("SELECT VALUE COUNT(1) FROM c", true),
    ("SELECT VALUE AVG(c.n) FROM c", true),
    ("SELECT VALUE MAX(c.id) FROM c", true),
    ("SELECT c.g, COUNT(1) AS n, SUM(c.n) AS s FROM c GROUP BY c.g", false),
    ("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.g FROM c)", true),
    ("SELECT c.id FROM c WHERE c.pk IN ('p1', 'p7') AND c.n < 5", false),
];

#[tokio::test]
async fn results_are_those_of_the_language_while_partitions_split() {
    let test_account = TestAccount::start_with(|config| config.partitions = NonZeroU32::new(3)).await;
    let driver = test_account.driver();
    let items = fill(&test_account, &driver, 90).await;
    for (at, (query, in_order)) in QUERIES.iter().enumerate() {
        let options = QueryOptions::new().with_page_items(NonZeroU32::new(7).expect("not zero"));
        let mut pages = start(&test_account, &driver, query, options.clone()).await.expect(query);
        let mut rows = Vec::new();
        let mut number = 0;
        while let Some(more) = page(&mut pages).await {
            assert!(more.len() <= 7, "{query}");
            rows.extend(more);
            number += 1;
            // A split in the middle of every other query, and another process that continues.
            if number == 2 && at % 2 == 0 {
                split(&test_account, &test_account.driver()).await;
            }
            if number == 3
                && let Some(continuation) = pages.continuation()
            {
                let options = options.clone().with_continuation(continuation);
                pages = start(&test_account, &test_account.driver(), query, options).await.expect(query);
            }
        }
        let mut expected = expected(&items, query);
        if !in_order {
            rows.sort_by_key(Value::to_string);
            expected.sort_by_key(Value::to_string);
        }
        assert_eq!(rows, expected, "{query}");
    }
}

/// Requests that fail in ways an operation outlives.
pub(crate) async fn inject_faults(test_account: &TestAccount, operations: &[&str]) {
    for (id, every, effect) in [
        ("unavailable", 5, json!({"status": 503})),
        ("throttled", 7, json!({"status": 429, "subStatus": 3200})),
        ("closed", 9, json!({"connection": "closeAfter"})),
    ] {
        let rule =
            json!({"id": id, "match": {"operations": operations}, "everyNth": every, "effect": effect});
        test_account.control(http::Method::POST, "/faults", rule).await;
    }
}

#[tokio::test]
async fn results_under_faults_equal_results_without() {
    let test_account = TestAccount::start_with(|config| config.partitions = NonZeroU32::new(3)).await;
    let driver = test_account.driver();
    let items = fill(&test_account, &driver, 60).await;
    inject_faults(&test_account, &["query"]).await;
    let mut attempts = 0;
    for (query, in_order) in QUERIES {
        let options = QueryOptions::new().with_page_items(NonZeroU32::new(5).expect("not zero"));
        let mut pages = start(&test_account, &driver, query, options).await.expect(query);
        let mut rows: Vec<Value> = Vec::new();
        while let Some(page) = pages.next_page().await.expect(query) {
            attempts += page.diagnostics.iter().map(|request| request.totals().attempts - 1).sum::<u32>();
            rows.extend(page.rows.iter().map(|row| serde_json::from_slice::<Value>(row).expect("JSON")));
        }
        let mut expected = expected(&items, query);
        if !in_order {
            rows.sort_by_key(Value::to_string);
            expected.sort_by_key(Value::to_string);
        }
        assert_eq!(rows, expected, "{query}");
    }
    assert!(attempts > 20, "the rules struck: {attempts} attempts beyond the first");
}

#[tokio::test]
async fn what_has_no_local_plan_is_planned_by_the_gateway() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver();
    fill(&test_account, &driver, 5).await;
    let error = start(&test_account, &driver, "SELECT BADFUNC(c.a) FROM c", QueryOptions::new())
        .await
        .expect_err("unknown");
    assert_eq!(error.kind(), ErrorKind::BadRequest);
    assert!(error.message().contains("BADFUNC"), "{error}");
    let error = start(&test_account, &driver, "SELECT * FROM c WHERE", QueryOptions::new())
        .await
        .expect_err("no query");
    assert!(error.message().contains("SC1001"), "{error}");
}

#[tokio::test]
async fn a_continuation_of_another_query_is_rejected() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver();
    fill(&test_account, &driver, 20).await;
    let options = QueryOptions::new().with_page_items(NonZeroU32::MIN);
    let mut pages = start(&test_account, &driver, "SELECT * FROM c", options.clone()).await.expect("a query");
    page(&mut pages).await.expect("rows");
    let options = options.with_continuation(pages.continuation().expect("more"));
    let error =
        start(&test_account, &driver, "SELECT c.id FROM c", options).await.expect_err("another query");
    assert_eq!(error.kind(), ErrorKind::BadRequest);
    let options = QueryOptions::new().with_continuation("+RID:~x#RT:1");
    let error =
        start(&test_account, &driver, "SELECT * FROM c", options).await.expect_err("an unknown continuation");
    assert!(error.message().contains("not one of this driver's"), "{error}");
}

#[tokio::test]
async fn pages_of_a_container_made_anew_are_not_mixed_with_those_of_the_old_one() {
    use perihelion_driver::change_feed::{ChangeFeedOptions, ChangeFeedStart};
    use perihelion_driver::operation::{OperationKind, Target};
    let test_account = TestAccount::start().await;
    let driver = test_account.driver();
    fill(&test_account, &driver, 40).await;
    let options = QueryOptions::new().with_page_items(NonZeroU32::new(2).expect("not zero"));
    let mut pages = start(&test_account, &driver, "SELECT * FROM c", options.clone()).await.expect("a query");
    page(&mut pages).await.expect("rows");
    let from_the_beginning = ChangeFeedOptions::new().with_start(ChangeFeedStart::Beginning);
    let mut feed = driver
        .change_feed(&test_account.container, from_the_beginning, &within(DEADLINE))
        .await
        .expect("a feed");
    feed.next_page().await.expect("changes");

    let other = test_account.driver();
    let remove = Operation::new(OperationKind::Delete, Target::container(&test_account.container));
    run(&other, &remove).await.expect("removed");
    let body = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    let again = Operation::new(OperationKind::Create, Target::containers("d")).with_body(body);
    run(&other, &again).await.expect("made again");
    fill(&test_account, &other, 10).await;

    let error = loop {
        match pages.next_page().await {
            // What was asked for ahead is the old container's, all of it.
            Ok(Some(_)) => {}
            Ok(None) => panic!("rows of two containers"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(error.message().contains("start again"), "{error}");
    let error = feed.next_page().await.expect_err("another container");
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    let options = options.with_continuation(pages.continuation().expect("it was not the end"));
    let error =
        start(&test_account, &other, "SELECT * FROM c", options).await.expect_err("of the old container");
    assert_eq!(error.kind(), ErrorKind::BadRequest);
    start(&test_account, &driver, "SELECT * FROM c", QueryOptions::new()).await.expect("the new container");
}

#[tokio::test]
async fn the_nearest_vectors_of_all_partitions_come_first() {
    let test_account = TestAccount::start_with(|config| config.partitions = NonZeroU32::new(3)).await;
    let driver = test_account.driver();
    let items: Vec<Value> = (0..40)
        .map(|number| {
            let angle = f64::from(number) * 0.037;
            json!({"id": format!("i{number:02}"), "pk": format!("p{number}"), "v": [angle.cos(), angle.sin()]})
        })
        .collect();
    for item in &items {
        let key = PartitionKey::single(item["pk"].as_str().expect("text"));
        run(&driver, &Operation::create_item(&test_account.container, key, item.to_string()))
            .await
            .expect("made");
    }
    // Planned by the gateway: which way is near depends on the container's policy.
    let query = "SELECT TOP 12 c.id FROM c ORDER BY VectorDistance(c.v, [0.6, 0.8])";
    let options = QueryOptions::new().with_page_items(NonZeroU32::new(5).expect("not zero"));
    let mut pages = start(&test_account, &driver, query, options.clone()).await.expect(query);
    let mut rows = page(&mut pages).await.expect("rows");
    split(&test_account, &test_account.driver()).await;
    let options = options.with_continuation(pages.continuation().expect("more"));
    let mut pages = start(&test_account, &test_account.driver(), query, options).await.expect(query);
    while let Some(more) = page(&mut pages).await {
        rows.extend(more);
    }
    assert_eq!(rows, expected(&items, query));
}

#[tokio::test]
async fn a_hybrid_search_over_all_partitions_finds_what_it_finds_in_one() {
    let words = ["swim", "run", "ride", "row", "rest"];
    let items: Vec<Value> = (0..60)
        .map(|number| {
            let angle = f64::from(number) * 0.041;
            // Texts of different lengths, with words of different rarity; one without, one that is none.
            let text = (0..3 + number % 7).map(|at| words[((number * number + at * 3) % 5) as usize]);
            let text = text.chain(std::iter::once(if number % 9 == 0 { "marathon" } else { "day" }));
            let text = text.collect::<Vec<_>>().join(" ");
            let mut item = json!({
                "id": format!("i{number:02}"), "pk": format!("p{}", number % 17), "n": number,
                "v": [angle.cos(), angle.sin()], "text": text,
            });
            if number == 31 {
                item.as_object_mut().expect("an object").remove("text");
            }
            item
        })
        .collect();
    let (one, many) = (
        TestAccount::start_with(|config| config.partitions = NonZeroU32::new(1)).await,
        TestAccount::start_with(|config| config.partitions = NonZeroU32::new(5)).await,
    );
    for test_account in [&one, &many] {
        let driver = test_account.driver();
        for item in &items {
            let key = PartitionKey::single(item["pk"].as_str().expect("text"));
            run(&driver, &Operation::create_item(&test_account.container, key, item.to_string()))
                .await
                .expect("made");
        }
    }
    let text = "FullTextScore(c.text, 'marathon', 'swim')";
    let vector = "VectorDistance(c.v, [0.6, 0.8])";
    for query in [
        format!("SELECT TOP 9 c.id, c.n FROM c ORDER BY RANK RRF({text}, {vector})"),
        format!(
            "SELECT VALUE c.id FROM c WHERE c.n > 12 ORDER BY RANK RRF({text}, {vector}) OFFSET 3 LIMIT 30"
        ),
        format!("SELECT TOP 12 * FROM c ORDER BY RANK RRF({text}, {vector}, [1, 3])"),
        format!("SELECT TOP 12 c.id FROM c ORDER BY RANK RRF({vector}, {text}, [2, -1])"),
        // What has no text is behind all others, whichever way they are turned: all rows, in order.
        format!("SELECT c.id FROM c ORDER BY RANK RRF({vector}, {text}, [0.1, -3]) OFFSET 0 LIMIT 60"),
        format!("SELECT TOP 12 c.id FROM c ORDER BY RANK RRF({vector}, VectorDistance(c.v, [1, 0]))"),
        format!("SELECT TOP 3 c.id FROM c ORDER BY RANK {text}"),
    ] {
        let found = |rows: Vec<Value>| -> Vec<Value> {
            rows.into_iter().map(|row| row.get("id").cloned().unwrap_or(row)).collect()
        };
        let expected = found(expected(&items, &query));
        for test_account in [&one, &many] {
            let options = QueryOptions::new().with_page_items(NonZeroU32::new(5).expect("not zero"));
            let mut pages =
                start(test_account, &test_account.driver(), &query, options.clone()).await.expect(&query);
            let mut rows = page(&mut pages).await.expect("rows");
            // Resumed in another process, and over other partitions.
            if let Some(continuation) = pages.continuation() {
                split(test_account, &test_account.driver()).await;
                let options = options.with_continuation(continuation);
                let mut pages =
                    start(test_account, &test_account.driver(), &query, options).await.expect(&query);
                while let Some(more) = page(&mut pages).await {
                    rows.extend(more);
                }
            }
            assert_eq!(found(rows), expected, "{query}");
        }
    }
}
