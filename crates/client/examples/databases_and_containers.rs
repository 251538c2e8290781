//! Creates, lists, changes and deletes databases and containers.
//!
//! ```text
//! peri up                                     # or COSMOS_CONNECTION_STRING of a real account
//! cargo run -p perihelion --example databases_and_containers
//! ```

use futures::TryStreamExt as _;
use perihelion::policies::{UniqueKey, UniqueKeyPolicy};
use perihelion::{ContainerProperties, CosmosClient, PartitionKeyDefinition, Result};

mod shop;

#[tokio::main]
async fn main() -> Result<()> {
    run(&shop::connect()?).await
}

#[expect(clippy::print_stdout, reason = "an example prints its results")]
pub(crate) async fn run(client: &CosmosClient) -> Result<()> {
    client.create_database_if_missing("library").await?;
    let library = client.database("library");
    let names: Vec<String> =
        client.list_databases().stream().map_ok(|database| database.id).try_collect().await?;
    println!("databases: {names:?}");

    let by_shelf = PartitionKeyDefinition::hash("/shelf")?;
    let mut books = ContainerProperties::new("books", by_shelf);
    books.unique_key_policy =
        UniqueKeyPolicy { unique_keys: vec![UniqueKey { paths: vec!["/isbn".parse()?] }] };
    library.create_container_if_missing(&books).await?;

    // To change a container, read its properties, change them and replace them.
    let container = library.container("books");
    let mut properties = container.read().await?.into_value();
    properties.default_ttl = Some(3600);
    let response = container.replace(&properties).await?;
    println!("items live for {:?} seconds; {} RU", response.value().default_ttl, response.charge());

    let containers: Vec<ContainerProperties> = library.list_containers().stream().try_collect().await?;
    for container in &containers {
        println!("{} by {:?}", container.id, container.partition_key.paths);
    }
    library.delete().await?;
    Ok(())
}
