//! Transactional batches.

use std::sync::Arc;

use azure_core::http::Etag;
use azure_data_cosmos::{
    FeedScope, TransactionalBatch,
    clients::ContainerClient,
    options::{BatchReplaceOptions, Precondition},
};
use serde_json::{Value, json};

use crate::harness::{Account, Failure, Outcome, body, equal, fails, item, rows, with_content};

async fn codes(container: &ContainerClient, batch: TransactionalBatch) -> Result<Vec<u16>, Failure> {
    let response = container.execute_transactional_batch(batch, None).await?.into_model()?;
    Ok(response.results().iter().map(|result| result.status_code()).collect())
}

pub async fn a_batch_of_every_operation_succeeds(account: Arc<Account>) -> Outcome {
    let container = account.container().await?;
    for n in 1..=3 {
        container.create_item("a", &n.to_string(), item(n, "a", n), None).await?;
    }
    let batch = TransactionalBatch::new("a")
        .create_item(item(10, "a", 10))?
        .upsert_item(item(11, "a", 11), None)?
        .upsert_item(item(1, "a", 100), None)?
        .replace_item("2", item(2, "a", 200), None)?
        .read_item("2", None)
        .delete_item("3", None);
    let response = container.execute_transactional_batch(batch, None).await?;
    assert!(response.headers().request_charge().is_some_and(|charge| charge.value() > 0.0), "no charge");
    let response = response.into_model()?;
    let found: Vec<u16> = response.results().iter().map(|result| result.status_code()).collect();
    equal(found, vec![201, 201, 200, 200, 200, 204], "status codes");
    let read: Option<Value> = response.results()[4].into_model()?;
    equal(&read.expect("a read has a body")["n"], &json!(200), "n");
    let left: Vec<i64> =
        rows(&container, "SELECT VALUE c.n FROM c ORDER BY c.n", FeedScope::partition("a")).await?;
    equal(left, vec![10, 11, 100, 200], "items after the batch");
    Ok(())
}

pub async fn a_failed_batch_leaves_nothing_behind(account: Arc<Account>) -> Outcome {
    let container = account.container().await?;
    let first = body(container.create_item("a", "1", item(1, "a", 1), with_content()).await?)?;
    let stale = Etag::from(first["_etag"].as_str().expect("an etag"));
    container.upsert_item("a", "1", item(1, "a", 2), None).await?;
    let new = || TransactionalBatch::new("a").create_item(item(9, "a", 9));
    let if_stale = BatchReplaceOptions::default().with_precondition(Precondition::IfMatch(stale));
    let cases = [
        (new()?.create_item(item(9, "a", 9))?, vec![424, 409]),
        (new()?.create_item(item(8, "other", 8))?, vec![424, 400]),
        (TransactionalBatch::new("a").read_item("none", None).create_item(item(9, "a", 9))?, vec![404, 424]),
        (new()?.delete_item("none", None).create_item(item(8, "a", 8))?, vec![424, 404, 424]),
        (new()?.replace_item("1", item(1, "a", 9), Some(if_stale))?, vec![424, 412]),
    ];
    for (batch, expected) in cases {
        equal(codes(&container, batch).await?, expected, "status codes");
    }
    let left: Vec<i64> = rows(&container, "SELECT VALUE c.n FROM c", FeedScope::partition("a")).await?;
    equal(left, vec![2], "items after the batches");
    Ok(())
}

pub async fn batches_are_limited(account: Arc<Account>) -> Outcome {
    let container = account.container().await?;
    let of = |count: i64| {
        (0..count).try_fold(TransactionalBatch::new("a"), |batch, n| batch.create_item(item(n, "a", n)))
    };
    equal(codes(&container, of(100)?).await?, vec![201; 100], "a hundred creates");
    fails(400, container.execute_transactional_batch(of(101)?, None).await);
    let large = |id: &str| json!({"id": id, "pk": "a", "text": "x".repeat(1_150_000)});
    let batch = TransactionalBatch::new("a").create_item(large("x"))?.create_item(large("y"))?;
    fails(413, container.execute_transactional_batch(batch, None).await);
    Ok(())
}
