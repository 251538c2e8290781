//! One container of a database: its own operations; those on its items are in `items`.

use driver::CosmosDriver;
use driver::SessionScope;
use driver::operation::{ContainerName, Operation, OperationKind, Target};
use protocol::container::ContainerProperties;

use crate::call::Call;
use crate::client::CosmosClient;
use crate::response::Response;
use crate::serialize::to_body;
use crate::{FeedRange, Result};

/// One container of a database. Cheap to clone; keep one per container.
#[derive(Clone, Debug)]
pub struct ContainerClient {
    client: CosmosClient,
    name: ContainerName,
}

impl ContainerClient {
    pub(crate) fn new(client: CosmosClient, database: &str, id: &str) -> ContainerClient {
        ContainerClient { client, name: ContainerName::new(database, id) }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        self.name.container()
    }

    pub(crate) fn name(&self) -> &ContainerName {
        &self.name
    }

    pub(crate) fn client(&self) -> &CosmosClient {
        &self.client
    }

    pub(crate) fn driver(&self) -> &CosmosDriver {
        &self.client.driver
    }

    /// Reads its properties.
    pub fn read(&self) -> Call<Response<ContainerProperties>> {
        let operation = Operation::new(OperationKind::Read, Target::container(&self.name));
        Call::new(self.driver(), Ok(operation), Response::read)
    }

    /// Writes its properties over: indexing policy, time to live and the like.
    pub fn replace(&self, properties: &ContainerProperties) -> Call<Response<ContainerProperties>> {
        let target = Target::container(&self.name);
        let operation =
            to_body(properties).map(|body| Operation::new(OperationKind::Replace, target).with_body(body));
        Call::new(self.driver(), operation, Response::read)
    }

    /// The parts it has now, one for each physical partition: for readers that share the work. A part stays
    /// valid when its partition splits.
    pub async fn feed_ranges(&self) -> Result<Vec<FeedRange>> {
        let container = self.driver().container(&self.name).await?;
        let partitions = self.driver().partitions(&container).await?;
        Ok(partitions.map().partitions().iter().map(|partition| partition.range.clone()).collect())
    }

    /// What this client has seen of it, of all its partitions: a reader elsewhere that is given this sees at
    /// least as much. None while nothing was read or written.
    pub async fn session_token(&self) -> Result<Option<String>> {
        let container = self.driver().container(&self.name).await?;
        Ok(container.session().token(SessionScope::Unknown))
    }

    /// Deletes it with everything in it.
    pub fn delete(&self) -> Call<Response<()>> {
        let operation = Operation::new(OperationKind::Delete, Target::container(&self.name));
        Call::new(self.driver(), Ok(operation), Response::without_body)
    }
}
