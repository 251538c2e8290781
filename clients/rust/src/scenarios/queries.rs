//! Queries: in one partition by the server, across partitions by the SDK's own plan or the server's.

use std::sync::Arc;

use azure_data_cosmos::{
    FeedScope, Query,
    clients::ContainerClient,
    feed::ContinuationToken,
    models::{CompositeIndex, CompositeIndexOrder, CompositeIndexProperty, IndexingPolicy},
    options::{QueryOptions, QueryPlanMode},
};
use futures::TryStreamExt;
use serde_json::{Value, json};

use crate::harness::{Account, Failure, Outcome, equal, fails, item, pages_of, rows, sorted};

const COUNT: i64 = 60;

async fn filled(account: &Account) -> Result<ContainerClient, Failure> {
    let composite = CompositeIndex::default()
        .with_property(CompositeIndexProperty::new("/word", CompositeIndexOrder::Descending))
        .with_property(CompositeIndexProperty::new("/n", CompositeIndexOrder::Ascending));
    let policy = IndexingPolicy::default().with_included_path("/*").with_composite_index(composite);
    let container =
        account.several_partitions_with(|properties| properties.with_indexing_policy(policy)).await?;
    for n in 0..COUNT {
        let key = format!("k{}", n % 20);
        let mut value = item(n, key.as_str(), (n * 37) % COUNT);
        value["word"] = json!(["alpha", "beta", "gamma"][(n % 3) as usize]);
        value["list"] = json!([n, -n]);
        container.create_item(key, &n.to_string(), value, None).await?;
    }
    Ok(container)
}

pub async fn queries_in_one_partition(account: Arc<Account>) -> Outcome {
    let container = account.several_partitions().await?;
    for n in 0..10 {
        let mut value = item(n, "a", n);
        value["even"] = json!(n % 2 == 0);
        container.create_item("a", &n.to_string(), value, None).await?;
    }
    let cases = [
        ("SELECT VALUE c.n FROM c WHERE c.n > 7 ORDER BY c.n DESC", json!([9, 8])),
        ("SELECT VALUE COUNT(1) FROM c", json!([10])),
        ("SELECT VALUE SUM(c.n) FROM c", json!([45])),
        ("SELECT VALUE AVG(c.n) FROM c", json!([4.5])),
        ("SELECT VALUE MIN(c.n) FROM c", json!([0])),
        ("SELECT VALUE MAX(c.n) FROM c WHERE c.even", json!([8])),
        ("SELECT DISTINCT VALUE c.even FROM c ORDER BY c.even", json!([false, true])),
        ("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 2 LIMIT 3", json!([2, 3, 4])),
        ("SELECT TOP 2 VALUE c.id FROM c ORDER BY c.id", json!(["0", "1"])),
        ("SELECT c.even, COUNT(1) AS n FROM c WHERE c.even GROUP BY c.even", json!([{"even": true, "n": 5}])),
        ("SELECT COUNT(1) AS n, MAX(c.n) AS high FROM c", json!([{"n": 10, "high": 9}])),
    ];
    for (query, expected) in cases {
        let found: Vec<Value> = rows(&container, query, FeedScope::partition("a")).await?;
        equal(json!(found), expected, query);
    }
    let query = Query::from("SELECT VALUE c.n FROM c WHERE c.n IN (@a, @b) AND c.even = @even")
        .with_parameter("@a", 3)?
        .with_parameter("@b", 4)?
        .with_parameter("@even", true)?;
    equal(rows::<i64>(&container, query, FeedScope::partition("a")).await?, vec![4], "parameters");
    Ok(())
}

pub async fn filters_across_partitions(account: Arc<Account>) -> Outcome {
    let container = filled(&account).await?;
    let all = async |query: &str| -> Result<Vec<i64>, Failure> {
        Ok(sorted(rows(&container, query, FeedScope::full_container()).await?))
    };
    equal(all("SELECT VALUE c.n FROM c").await?, (0..COUNT).collect(), "everything");
    equal(all("SELECT VALUE c.n FROM c WHERE c.n < 3").await?, vec![0, 1, 2], "a filter");
    equal(all("SELECT VALUE x FROM c JOIN x IN c.list WHERE c.id = '5'").await?, vec![-5, 5], "a join");
    equal(all("SELECT VALUE StringToNumber(c.id) FROM c WHERE c.pk = 'k3'").await?, vec![3, 23, 43], "a key");
    equal(all("SELECT VALUE c.n FROM c WHERE false").await?, vec![], "nothing");
    Ok(())
}

pub async fn order_by_top_and_distinct_across_partitions(account: Arc<Account>) -> Outcome {
    let container = filled(&account).await?;
    let all = async |query: &str| rows::<i64>(&container, query, FeedScope::full_container()).await;
    equal(all("SELECT VALUE c.n FROM c ORDER BY c.n").await?, (0..COUNT).collect(), "ascending");
    equal(all("SELECT VALUE c.n FROM c ORDER BY c.n DESC").await?, (0..COUNT).rev().collect(), "descending");
    equal(all("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n").await?, vec![0, 1, 2], "top");
    equal(
        all("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 3").await?,
        vec![10, 11, 12],
        "offset and limit",
    );
    let words: Vec<String> =
        rows(&container, "SELECT DISTINCT VALUE c.word FROM c ORDER BY c.word", FeedScope::full_container())
            .await?;
    equal(words, ["alpha", "beta", "gamma"].map(String::from).to_vec(), "distinct");
    let pairs: Vec<Value> = rows(
        &container,
        "SELECT c.word, c.n FROM c ORDER BY c.word DESC, c.n ASC",
        FeedScope::full_container(),
    )
    .await?;
    let words: Vec<&str> = pairs.iter().filter_map(|pair| pair["word"].as_str()).collect();
    let mut expected = words.clone();
    expected.sort_by(|left, right| right.cmp(left));
    equal(words, expected, "two keys");
    Ok(())
}

pub async fn gateway_plans_across_partitions(account: Arc<Account>) -> Outcome {
    let container = filled(&account).await?;
    let options = || Some(QueryOptions::default().with_query_plan_mode(QueryPlanMode::GatewayOnly));
    for (query, expected) in [
        ("SELECT VALUE c.n FROM c ORDER BY c.n", (0..COUNT).collect::<Vec<i64>>()),
        ("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC", vec![59, 58, 57]),
        ("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 3", vec![10, 11, 12]),
    ] {
        let found: Vec<i64> = container
            .query_items::<i64>(query, FeedScope::full_container(), options())
            .await?
            .try_collect()
            .await?;
        equal(found, expected, query);
    }
    Ok(())
}

/// Runs a query to its end with a new iterator for every page, resuming from the last one's token.
async fn resumed(container: &ContainerClient, query: &str, scope: FeedScope) -> Result<Vec<i64>, Failure> {
    let mut found = Vec::new();
    let mut token: Option<String> = None;
    for _ in 0..200 {
        let mut options = QueryOptions::default().with_max_item_count(pages_of(7));
        if let Some(token) = token.take() {
            options = options.with_continuation_token(ContinuationToken::from_string(token));
        }
        let mut pages = container.query_items::<i64>(query, scope.clone(), Some(options)).await?.into_pages();
        let Some(page) = pages.try_next().await? else {
            return Ok(found);
        };
        found.extend(page.into_items());
        token = Some(pages.to_continuation_token()?.as_str().to_owned());
    }
    Err("the continuation never ends".into())
}

pub async fn pages_resume(account: Arc<Account>) -> Outcome {
    let container = filled(&account).await?;
    for n in 0..30 {
        container
            .create_item("one", &format!("one{n}"), item(format!("one{n}"), "one", 1000 + n), None)
            .await?;
    }
    let everything: Vec<i64> = (0..COUNT).chain(1000..1030).collect();
    let found = resumed(&container, "SELECT VALUE c.n FROM c", FeedScope::full_container()).await?;
    equal(sorted(found), everything.clone(), "across partitions");
    let found =
        resumed(&container, "SELECT VALUE c.n FROM c ORDER BY c.n", FeedScope::full_container()).await?;
    equal(found, everything, "ordered, across partitions");
    let found = resumed(&container, "SELECT VALUE c.n FROM c", FeedScope::partition("one")).await?;
    equal(sorted(found), (1000..1030).collect(), "one partition");
    Ok(())
}

pub async fn queries_report_metrics(account: Arc<Account>) -> Outcome {
    let container = account.container().await?;
    for n in 0..5 {
        container.create_item("a", &n.to_string(), item(n, "a", n), None).await?;
    }
    let options = QueryOptions::default().with_populate_query_metrics(true).with_populate_index_metrics(true);
    let mut pages = container
        .query_items::<Value>("SELECT * FROM c WHERE c.n > 1", FeedScope::partition("a"), Some(options))
        .await?
        .into_pages();
    let page = pages.try_next().await?.expect("a page");
    equal(page.items().len(), 3, "items");
    assert!(page.headers().request_charge().is_some_and(|charge| charge.value() > 0.0), "no charge");
    let metrics = page.query_metrics().expect("query metrics");
    assert!(metrics.contains("outputDocumentCount=3"), "{metrics}");
    let index = page.index_metrics().expect("index metrics");
    assert!(index.contains("UtilizedSingleIndexes"), "{index}");
    Ok(())
}

pub async fn feed_ranges_cover_everything_once(account: Arc<Account>) -> Outcome {
    let container = filled(&account).await?;
    let mut found = Vec::new();
    for range in container.read_feed_ranges(None).await? {
        found.extend(rows::<i64>(&container, "SELECT VALUE c.n FROM c", FeedScope::range(range)).await?);
    }
    equal(sorted(found), (0..COUNT).collect(), "everything, range by range");
    let holders = container.feed_range_from_partition_key("k3", None).await?;
    equal(holders.len(), 1, "ranges of one key");
    Ok(())
}

pub async fn bad_queries_are_refused(account: Arc<Account>) -> Outcome {
    let container = account.several_partitions().await?;
    for query in ["SELECT * frm c", "SELECT * from ", "SELECT NOFUNCTION(c.a) FROM c", "SELECT x.a FROM c"] {
        for scope in [FeedScope::partition("a"), FeedScope::full_container()] {
            let result = match container.query_items::<Value>(query, scope, None).await {
                Ok(stream) => stream.try_collect::<Vec<_>>().await,
                Err(error) => Err(error),
            };
            fails(400, result);
        }
    }
    Ok(())
}
