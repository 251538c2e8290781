//! The client of one container: operations on the container itself. Operations on its items are in `items`.

use driver::CosmosDriver;
use driver::SessionScope;
use driver::operation::{ContainerName, Operation, OperationKind, Target};
use protocol::container::ContainerProperties;

use crate::call::{Call, CompoundCall};
use crate::response::Response;
use crate::serialize::to_body;
use crate::throughput::{read_throughput, replace_throughput};
use crate::{FeedRange, Throughput};

/// The client of one container. Cheap to clone; keep one per container.
#[derive(Clone, Debug)]
pub struct ContainerClient {
    driver: CosmosDriver,
    name: ContainerName,
}

impl ContainerClient {
    pub(crate) fn new(driver: CosmosDriver, database: &str, id: &str) -> ContainerClient {
        ContainerClient { driver, name: ContainerName::new(database, id) }
    }

    /// The id of the container.
    pub fn id(&self) -> &str {
        self.name.container()
    }

    pub(crate) fn name(&self) -> &ContainerName {
        &self.name
    }

    pub(crate) fn driver(&self) -> &CosmosDriver {
        &self.driver
    }

    /// Reads the properties of the container.
    pub fn read(&self) -> Call<Response<ContainerProperties>> {
        let operation = Operation::new(OperationKind::Read, Target::container(&self.name));
        Call::new(self.driver(), Ok(operation), Response::read)
    }

    /// Replaces the properties of the container: indexing policy, time to live and others.
    pub fn replace(&self, properties: &ContainerProperties) -> Call<Response<ContainerProperties>> {
        let target = Target::container(&self.name);
        let operation =
            to_body(properties).map(|body| Operation::new(OperationKind::Replace, target).with_body(body));
        Call::new(self.driver(), operation, Response::read)
    }

    /// The feed ranges of the container, one for each physical partition, for readers that share the work. A feed range
    /// stays valid when its partition splits.
    pub fn feed_ranges(&self) -> CompoundCall<Vec<FeedRange>> {
        let (driver, name) = (self.driver.clone(), self.name.clone());
        CompoundCall::new(&self.driver, async move |deadline| {
            let options = deadline.options()?;
            let container = driver.container(&name, &options).await?;
            let partitions = driver.partitions(&container, &options).await?;
            Ok(partitions.map().partitions().iter().map(|partition| partition.range.clone()).collect())
        })
    }

    /// The session token of this client for all partitions of the container: a reader in another process that uses it
    /// sees at least what this client has seen. None until something was read or written.
    pub fn session_token(&self) -> CompoundCall<Option<String>> {
        let (driver, name) = (self.driver.clone(), self.name.clone());
        CompoundCall::new(&self.driver, async move |deadline| {
            let container = driver.container(&name, &deadline.options()?).await?;
            Ok(container.session().token(SessionScope::Unknown))
        })
    }

    /// Reads the container's own throughput; none if it shares the throughput of its database.
    pub fn throughput(&self) -> CompoundCall<Response<Option<Throughput>>> {
        read_throughput(&self.driver, Target::container(&self.name))
    }

    /// Replaces the container's own throughput.
    pub fn set_throughput(&self, throughput: &Throughput) -> CompoundCall<Response<()>> {
        replace_throughput(&self.driver, Target::container(&self.name), throughput)
    }

    /// Deletes the container and all its items.
    pub fn delete(&self) -> Call<Response<()>> {
        let operation = Operation::new(OperationKind::Delete, Target::container(&self.name));
        Call::new(self.driver(), Ok(operation), Response::without_body)
    }
}
