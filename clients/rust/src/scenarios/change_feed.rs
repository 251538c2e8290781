//! The change feed, latest version and all versions and deletes.

use std::{sync::Arc, time::Duration};

use azure_data_cosmos::{
    FeedScope,
    clients::ContainerClient,
    feed::{ChangeFeedPageIterator, ContinuationToken},
    models::{ChangeFeedItem, ChangeFeedOperationType, ChangeFeedPolicy},
    options::{ChangeFeedMode, ChangeFeedOptions, ChangeFeedStartFrom},
};
use futures::StreamExt;
use serde_json::Value;

use crate::harness::{Account, Failure, Outcome, equal, item, pages_of, sorted};

type Feed = ChangeFeedPageIterator<ChangeFeedItem<Value>>;

/// Reads pages until as many in a row are empty as there are ranges: every range was asked once.
async fn drain(feed: &mut Feed, ranges: usize) -> Result<Vec<ChangeFeedItem<Value>>, Failure> {
    let mut changes = Vec::new();
    let mut quiet = 0;
    while quiet <= ranges {
        let Some(page) = feed.next().await else { break };
        let items = page?.into_items();
        quiet = if items.is_empty() { quiet + 1 } else { 0 };
        changes.extend(items);
    }
    Ok(changes)
}

fn numbers(changes: &[ChangeFeedItem<Value>]) -> Vec<i64> {
    let current = changes.iter().filter_map(|change| change.current());
    sorted(current.filter_map(|item| item["n"].as_i64()).collect())
}

async fn filled(account: &Account, count: i64) -> Result<(ContainerClient, usize), Failure> {
    let container = account.several_partitions().await?;
    for n in 0..count {
        let key = format!("k{}", n % 7);
        container.create_item(key.clone(), &n.to_string(), item(n, key, n), None).await?;
    }
    let ranges = container.read_feed_ranges(None).await?.len();
    Ok((container, ranges))
}

pub async fn the_feed_starts_at_the_beginning_and_resumes(account: Arc<Account>) -> Outcome {
    let (container, ranges) = filled(&account, 30).await?;
    let start = ChangeFeedStartFrom::Beginning;
    let options = ChangeFeedOptions::default().with_max_item_count(pages_of(4));
    let mut feed =
        container.query_change_feed::<Value>(FeedScope::full_container(), start, Some(options)).await?;
    equal(numbers(&drain(&mut feed, ranges).await?), (0..30).collect(), "everything");

    let token = feed.to_continuation_token()?.as_str().to_owned();
    container.upsert_item("k3", "3", item(3, "k3", 300), None).await?;
    container.create_item("k1", "new", item("new", "k1", 400), None).await?;
    let options = ChangeFeedOptions::default().with_continuation_token(ContinuationToken::from_string(token));
    let mut resumed = container
        .query_change_feed::<Value>(
            FeedScope::full_container(),
            ChangeFeedStartFrom::Beginning,
            Some(options),
        )
        .await?;
    equal(numbers(&drain(&mut resumed, ranges).await?), vec![300, 400], "what changed since");
    Ok(())
}

pub async fn the_feed_starts_now_and_at_a_time(account: Arc<Account>) -> Outcome {
    let (container, ranges) = filled(&account, 5).await?;
    let mut now = container
        .query_change_feed::<Value>(FeedScope::full_container(), ChangeFeedStartFrom::Now, None)
        .await?;
    equal(drain(&mut now, ranges).await?.len(), 0, "nothing yet");
    tokio::time::sleep(Duration::from_millis(2100)).await;
    let start = time::OffsetDateTime::now_utc();
    tokio::time::sleep(Duration::from_millis(1100)).await;
    container.create_item("k1", "after", item("after", "k1", 100), None).await?;
    equal(numbers(&drain(&mut now, ranges).await?), vec![100], "from now");
    let start = ChangeFeedStartFrom::PointInTime(start);
    let mut timed = container.query_change_feed::<Value>(FeedScope::full_container(), start, None).await?;
    equal(numbers(&drain(&mut timed, ranges).await?), vec![100], "from a time");
    Ok(())
}

pub async fn the_feed_of_one_key(account: Arc<Account>) -> Outcome {
    let (container, _) = filled(&account, 30).await?;
    let mut feed = container
        .query_change_feed::<Value>(FeedScope::partition("k3"), ChangeFeedStartFrom::Beginning, None)
        .await?;
    equal(numbers(&drain(&mut feed, 1).await?), vec![3, 10, 17, 24], "one key");
    Ok(())
}

pub async fn all_versions_and_deletes(account: Arc<Account>) -> Outcome {
    let retention = ChangeFeedPolicy::default().with_retention_duration(Duration::from_secs(600));
    let container = account
        .create("/pk".into(), 30_000, |properties| properties.with_change_feed_policy(retention))
        .await?;
    let ranges = container.read_feed_ranges(None).await?.len();
    let options = ChangeFeedOptions::default().with_mode(ChangeFeedMode::AllVersionsAndDeletes);
    let mut feed = container
        .query_change_feed::<Value>(FeedScope::full_container(), ChangeFeedStartFrom::Now, Some(options))
        .await?;
    equal(drain(&mut feed, ranges).await?.len(), 0, "nothing yet");
    container.create_item("a", "1", item(1, "a", 1), None).await?;
    container.upsert_item("a", "1", item(1, "a", 2), None).await?;
    container.replace_item("a", "1", item(1, "a", 3), None).await?;
    container.delete_item("a", "1", None).await?;
    let changes = drain(&mut feed, ranges).await?;
    let operations: Vec<_> = changes.iter().filter_map(|change| change.operation_type()).collect();
    use ChangeFeedOperationType::{Create, Delete, Replace};
    equal(operations, vec![Create, Replace, Replace, Delete], "operations");
    equal(numbers(&changes), vec![1, 2, 3], "versions");
    assert!(changes[1].previous().is_none(), "retention alone keeps no earlier images");
    let lsn = |n: usize| changes[n].metadata().and_then(|metadata| metadata.lsn());
    let before = changes[1].metadata().and_then(|metadata| metadata.previous_image_lsn());
    equal(before, lsn(0), "a replace names the version before it");
    equal(changes[3].metadata().and_then(|metadata| metadata.id()), Some("1"), "id of the deleted item");
    Ok(())
}
