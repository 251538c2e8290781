//! The container: created if it does not exist, with the indexing policy that the queries need.

use perihelion::{ContainerClient, ContainerProperties, CosmosClient, ErrorKind, PartitionKeyDefinition};
use serde_json::json;

use crate::error::{Failure, Result};
use crate::options::ProviderOptions;

/// The path of the partition key: all documents of an instance are in one partition.
const PARTITION_KEY: &str = "/instanceId";

/// Opens the container, and creates it and its database if they do not exist.
pub(crate) async fn open(client: &CosmosClient, options: &ProviderOptions) -> Result<ContainerClient> {
    let database = client.database(&options.database);
    let container = database.container(&options.container);
    let properties = match container.read().await {
        Ok(found) => found.into_value(),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            client.create_database_if_missing(&options.database).await?;
            let wanted = properties(&options.container)?;
            let created = match &options.throughput {
                Some(throughput) => database.create_container_with(&wanted, throughput).await,
                None => database.create_container(&wanted).await,
            };
            match created {
                Ok(created) => created.into_value(),
                // Somebody else was faster.
                Err(error) if error.kind() == ErrorKind::Conflict => container.read().await?.into_value(),
                Err(error) => return Err(error.into()),
            }
        }
        Err(error) => return Err(error.into()),
    };
    check(&properties, options)?;
    Ok(container)
}

/// Opens a container that exists. One that does not is an error.
pub(crate) async fn open_existing(
    client: &CosmosClient,
    options: &ProviderOptions,
) -> Result<ContainerClient> {
    let container = client.database(&options.database).container(&options.container);
    check(&container.read().await?.into_value(), options)?;
    Ok(container)
}

/// Checks that documents can be stored in a container that exists.
fn check(properties: &ContainerProperties, options: &ProviderOptions) -> Result<()> {
    let found = serde_json::to_value(&properties.partition_key)?;
    if found["paths"] != json!([PARTITION_KEY]) {
        return Err(Failure::invalid(format!(
            "the container {}/{} has the partition key {}, and orchestrations need {PARTITION_KEY}: use another container",
            options.database, options.container, found["paths"]
        )));
    }
    Ok(())
}

/// The properties of a new container.
fn properties(id: &str) -> Result<ContainerProperties> {
    let key = PartitionKeyDefinition::hash(PARTITION_KEY)
        .map_err(|error| Failure::invalid(format!("{PARTITION_KEY} is no partition key: {error}")))?;
    let mut properties = ContainerProperties::new(id, key);
    properties.indexing_policy = serde_json::from_value(indexing_policy())?;
    // Documents expire only if they say so: messages from other instances that were processed.
    properties.default_ttl = Some(-1);
    Ok(properties)
}

/// What is searched for is indexed; events, work items and outputs are not.
fn indexing_policy() -> serde_json::Value {
    let included = [
        "/type/?",
        "/dispatchSlot/?",
        "/visibleAt/?",
        "/lockedUntil/?",
        "/executionId/?",
        "/eventId/?",
        "/activityId/?",
        "/status/?",
        "/sessionId/?",
        "/ownerId/?",
        "/parentInstanceId/?",
        "/createdAt/?",
    ];
    let excluded = ["/eventData/*", "/workItem/*", "/payload/*", "/output/*", "/customStatus/*", "/*"];
    let paths = |paths: &[&str]| paths.iter().map(|path| json!({"path": path})).collect::<Vec<_>>();
    let composite = |paths: &[&str]| {
        paths.iter().map(|path| json!({"path": path, "order": "ascending"})).collect::<Vec<_>>()
    };
    json!({
        "indexingMode": "consistent",
        "automatic": true,
        "includedPaths": paths(&included),
        "excludedPaths": paths(&excluded),
        // The next item of a queue is the first entry of one range. Every document pays for every composite index, so there is
        // no other.
        "compositeIndexes": [composite(&["/type", "/visibleAt"])],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_with_another_partition_key_is_refused_by_name() {
        let options = ProviderOptions::new().container("orders");
        let key = PartitionKeyDefinition::hash("/customer").expect("a path");
        let error = check(&ContainerProperties::new("orders", key), &options).expect_err("another key");
        assert!(
            error.to_string().contains("duroxide/orders has the partition key [\"/customer\"]"),
            "{error}"
        );
        check(&properties("duroxide").expect("valid"), &options).expect("its own");
    }
}
