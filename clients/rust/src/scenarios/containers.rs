//! Containers and what their definition carries.

use std::{sync::Arc, time::Duration};

use azure_data_cosmos::{
    FeedScope, Query, ResourceId,
    models::{
        ChangeFeedPolicy, CompositeIndex, CompositeIndexOrder, CompositeIndexProperty, ContainerProperties,
        IndexingMode, IndexingPolicy, TimeToLive, UniqueKey, UniqueKeyPolicy,
    },
};
use futures::TryStreamExt;

use crate::harness::{Account, Outcome, equal, fails, item, name, rows};

pub async fn containers_are_created_read_queried_replaced_and_deleted(account: Arc<Account>) -> Outcome {
    let id = name("c");
    let properties = ContainerProperties::new(id.clone(), "/pk".into());
    let created = account.database.create_container(properties.clone(), None).await?.into_model()?;
    let policy = created.indexing_policy.clone().expect("an indexing policy is filled in");
    equal(policy.indexing_mode, Some(IndexingMode::Consistent), "indexing mode");
    equal(policy.included_paths[0].path.as_str(), "/*", "included path");
    fails(409, account.database.create_container(properties, None).await);

    let query = Query::from("SELECT * FROM root r WHERE r.id = @id").with_parameter("@id", &id)?;
    let found: Vec<_> = account.database.query_containers(query, None).await?.try_collect().await?;
    equal(found.len(), 1, "containers of that name");

    let container = account.database.container_client(id.clone(), None).await?;
    let replaced = container.replace(created.with_default_ttl(3600), None).await?.into_model()?;
    equal(replaced.default_ttl, TimeToLive::Seconds(3600), "default ttl");
    equal(container.read(None).await?.into_model()?.default_ttl, TimeToLive::Seconds(3600), "default ttl");

    container.delete(None).await?;
    fails(404, container.read(None).await);
    Ok(())
}

pub async fn definitions_make_the_round_trip(account: Arc<Account>) -> Outcome {
    let composite = CompositeIndex::default()
        .with_property(CompositeIndexProperty::new("/a", CompositeIndexOrder::Ascending))
        .with_property(CompositeIndexProperty::new("/b", CompositeIndexOrder::Descending));
    let policy = IndexingPolicy::default()
        .with_indexing_mode(IndexingMode::Consistent)
        .with_included_path("/*")
        .with_excluded_path("/blob/*")
        .with_composite_index(composite);
    let container = account
        .create("/pk".into(), 400, |properties| {
            properties
                .with_indexing_policy(policy)
                .with_unique_key_policy(
                    UniqueKeyPolicy::default().with_unique_key(UniqueKey::default().with_path("/email")),
                )
                .with_default_ttl(TimeToLive::NoDefault)
                .with_change_feed_policy(
                    ChangeFeedPolicy::default().with_retention_duration(Duration::from_secs(600)),
                )
        })
        .await?;
    let found = container.read(None).await?.into_model()?;
    let policy = found.indexing_policy.expect("an indexing policy");
    equal(policy.excluded_paths[0].path.as_str(), "/blob/*", "excluded path");
    assert!(!policy.automatic, "kept as the SDK sends it");
    equal(
        policy.composite_indexes[0].properties[1].order.clone(),
        CompositeIndexOrder::Descending,
        "composite order",
    );
    equal(
        found.unique_key_policy.expect("unique keys").unique_keys[0].paths[0].as_str(),
        "/email",
        "unique key",
    );
    equal(found.default_ttl, TimeToLive::NoDefault, "default ttl");
    let retention = found.change_feed_policy.and_then(|policy| policy.retention_duration());
    equal(retention, Some(Duration::from_secs(600)), "retention");
    Ok(())
}

pub async fn a_recreated_container_is_found_again(account: Arc<Account>) -> Outcome {
    let id = name("c");
    let properties = ContainerProperties::new(id.clone(), "/pk".into());
    account.database.create_container(properties.clone(), None).await?;
    let ours = account.database.container_client(id.clone(), None).await?;
    ours.create_item("a", "1", item(1, "a", 1), None).await?;

    let other = account.other_client().await?;
    let theirs = other.database_client(account.database.id().clone());
    theirs.container_client(id.clone(), None).await?.delete(None).await?;
    theirs.create_container(properties, None).await?;
    // Our client still believes in the old container: it learns, and retries by itself, or a new
    // handle does.
    let again = account.database.container_client(id, None).await?;
    again.upsert_item("a", "2", item(2, "a", 2), None).await?;
    let found: Vec<String> = rows(&again, "SELECT VALUE c.id FROM c", FeedScope::partition("a")).await?;
    equal(found, vec!["2".to_owned()], "items of the new container");
    Ok(())
}

pub async fn resources_are_found_by_their_rid(account: Arc<Account>) -> Outcome {
    let container = account.container().await?;
    container.create_item("a", "1", item(1, "a", 1), None).await?;
    let database_rid = account.database.read(None).await?.into_model()?.system_properties.resource_id;
    let container_rid = container.read(None).await?.into_model()?.system_properties.resource_id;
    let database = account.client.database_client(ResourceId::from(database_rid.expect("a _rid")));
    let by_rid = database.container_client(ResourceId::from(container_rid.expect("a _rid")), None).await?;
    by_rid.create_item("a", "2", item(2, "a", 2), None).await?;
    let found: Vec<i64> =
        rows(&by_rid, "SELECT VALUE c.n FROM c ORDER BY c.n", FeedScope::partition("a")).await?;
    equal(found, vec![1, 2], "items by rid");
    Ok(())
}
