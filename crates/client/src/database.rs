//! One database of an account.

use driver::operation::{Operation, OperationKind, Target};
use protocol::container::ContainerProperties;
use protocol::database::DatabaseProperties;

use crate::call::{Call, if_missing};
use crate::client::CosmosClient;
use crate::container::ContainerClient;
use crate::list::List;
use crate::response::Response;
use crate::serialize::to_body;
use crate::{Result, Throughput, throughput};

/// One database of an account. Cheap to clone.
#[derive(Clone, Debug)]
pub struct DatabaseClient {
    pub(crate) client: CosmosClient,
    id: String,
}

impl DatabaseClient {
    pub(crate) fn new(client: CosmosClient, id: &str) -> DatabaseClient {
        DatabaseClient { client, id: id.to_owned() }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// One of its containers. Asks nobody: whether it exists shows when it is used.
    pub fn container(&self, id: &str) -> ContainerClient {
        ContainerClient::new(self.client.clone(), &self.id, id)
    }

    /// Reads its properties.
    pub fn read(&self) -> Call<Response<DatabaseProperties>> {
        let operation = Operation::new(OperationKind::Read, Target::database(&self.id));
        Call::new(&self.client.driver, Ok(operation), Response::read)
    }

    /// Deletes it with everything in it.
    pub fn delete(&self) -> Call<Response<()>> {
        let operation = Operation::new(OperationKind::Delete, Target::database(&self.id));
        Call::new(&self.client.driver, Ok(operation), Response::without_body)
    }

    /// Makes a container.
    pub fn create_container(&self, properties: &ContainerProperties) -> Call<Response<ContainerProperties>> {
        self.create_container_of(properties, None)
    }

    /// Makes a container with a throughput of its own.
    pub fn create_container_with(
        &self,
        properties: &ContainerProperties,
        throughput: &Throughput,
    ) -> Call<Response<ContainerProperties>> {
        self.create_container_of(properties, Some(throughput))
    }

    /// The container of this id; made if it is not there. One that is there stays as it is, whatever the
    /// properties say: look at the answer.
    pub async fn create_container_if_missing(
        &self,
        properties: &ContainerProperties,
    ) -> Result<Response<ContainerProperties>> {
        let container = self.container(&properties.id);
        if_missing(|| container.read(), || self.create_container(properties)).await
    }

    /// Its containers.
    pub fn list_containers(&self) -> List<ContainerProperties> {
        List::new(&self.client.driver, Target::containers(&self.id), "DocumentCollections")
    }

    fn create_container_of(
        &self,
        properties: &ContainerProperties,
        throughput: Option<&Throughput>,
    ) -> Call<Response<ContainerProperties>> {
        let operation = to_body(properties).map(|body| {
            let target = Target::containers(&self.id);
            throughput::of_new(Operation::new(OperationKind::Create, target).with_body(body), throughput)
        });
        Call::new(&self.client.driver, operation, Response::read)
    }
}
