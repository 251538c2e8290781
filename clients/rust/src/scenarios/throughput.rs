//! Throughput, manual and autoscale.

use std::sync::Arc;

use azure_data_cosmos::{
    FeedScope,
    models::{ContainerProperties, ThroughputProperties},
    options::{CreateContainerOptions, ReadFeedRangesOptions},
};

use crate::harness::{Account, Outcome, equal, item, name, rows, sorted};

pub async fn throughput_is_read_and_replaced(account: Arc<Account>) -> Outcome {
    let container = account.container().await?;
    let found = container.read_throughput(None).await?.expect("a container has throughput");
    equal(found.throughput(), Some(400), "throughput");
    let replaced = container
        .begin_replace_throughput(ThroughputProperties::manual(500), None)
        .await?
        .await?
        .into_model()?;
    equal(replaced.throughput(), Some(500), "throughput");
    Ok(())
}

pub async fn autoscale_is_read_and_replaced(account: Arc<Account>) -> Outcome {
    let id = name("c");
    let properties = ContainerProperties::new(id.clone(), "/pk".into());
    let options =
        CreateContainerOptions::default().with_throughput(ThroughputProperties::autoscale(5000, Some(42)));
    account.database.create_container(properties, Some(options)).await?;
    let container = account.database.container_client(id, None).await?;
    let found = container.read_throughput(None).await?.expect("a container has throughput");
    equal(found.autoscale_maximum(), Some(5000), "maximum");
    equal(found.autoscale_increment(), Some(42), "increment");
    equal(found.throughput(), Some(500), "a tenth of the maximum");
    container.begin_replace_throughput(ThroughputProperties::autoscale(7000, None), None).await?.await?;
    let found = container.read_throughput(None).await?.expect("a container has throughput");
    equal(found.autoscale_maximum(), Some(7000), "maximum");
    Ok(())
}

pub async fn more_throughput_leaves_everything_in_place(account: Arc<Account>) -> Outcome {
    let container = account.container().await?;
    for n in 0..40 {
        let key = format!("k{n}");
        container.create_item(key.clone(), &n.to_string(), item(n, key, n), None).await?;
    }
    equal(container.read_feed_ranges(None).await?.len(), 1, "ranges at 400 RU/s");
    container.begin_replace_throughput(ThroughputProperties::manual(25_000), None).await?.await?;
    // If the partition was split, the client has to find the new ranges by itself.
    let found = rows::<i64>(&container, "SELECT VALUE c.n FROM c", FeedScope::full_container()).await?;
    equal(sorted(found), (0..40).collect(), "items afterwards");
    let refresh = ReadFeedRangesOptions::default().with_force_refresh(true);
    assert!(!container.read_feed_ranges(Some(refresh)).await?.is_empty(), "no ranges");
    container.read_item("k7", "7", None).await?;
    Ok(())
}
